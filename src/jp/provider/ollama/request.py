"""A thread as a request of Ollama's chat API, and back as what a prompt cache sees. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread, ToolDefinition
from jp.errors import ConfigurationError
from jp.provider.asking import cache_not_sent, merged, sampling_of
from jp.provider.base import Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import find_model
from jp.provider.ollama.messages import build_messages, joined
from jp.provider.ollama.thinking import think_of, unmet
from jp.provider.ollama.window import unfit
from jp.provider.table.ollama import is_in_cloud

PROVIDER = "ollama"
RENDERER = 2

_PATH = "/api/chat"
_PROTECTED = frozenset({"model", "messages", "tools", "stream"})
"""What `other` cannot set: it would not be what the log says was sent."""

_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Where a schema holds values, in which nothing is a keyword."""

_WINDOW = "context_window"
"""The parameter that says for one conversation what the setting of this name says for all."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has to know of the server: see the adapter."""

    provider: str = PROVIDER
    context_window: int
    keep_alive: str | None = None
    is_hosted: bool = False


def _tool(tool: ToolDefinition) -> JsonObject:
    # The server wants to be told of properties, be there none.
    parameters: JsonObject = {"type": "object", "properties": {}, **tool.parameters}
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _plea(wanted: str, tools: Sequence[ToolDefinition]) -> str:
    """What asks for a call in words: the API knows no choice of tool. A name is one of `tools`."""
    if not tools or wanted in {"auto", "none"}:
        return ""
    if wanted == "required" and len(tools) > 1:
        return "Call one of the tools now."
    return f"Call the tool {tools[0].name if wanted == 'required' else wanted!r} now."


def _options(parameters: Parameters, window: int | None) -> JsonObject:
    options: JsonObject = {} if window is None else {"num_ctx": window}
    options.update(sampling_of(parameters))
    if parameters.max_tokens is not None:
        options["num_predict"] = parameters.max_tokens
    if words := [word for word in parameters.stop_words if word]:
        options["stop"] = words
    return options


def grammatical(schema: JsonObject) -> JsonObject:
    """A schema of which the server can make a grammar: it fails at a pattern that is not about the whole text."""
    return {
        name: value if name in _VALUES else _grammatical(value)
        for name, value in schema.items()
        if not (name == "pattern" and isinstance(value, str) and not (value[:1] == "^" and value[-1:] == "$"))
    }


def _grammatical(value: object) -> object:
    if isinstance(value, dict):
        return grammatical(cast("JsonObject", value))
    return [_grammatical(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _window(parameters: Parameters, server: Server, model: str) -> tuple[int | None, JsonObject]:
    """How many tokens the server is asked to hold, and what is left of the parameters that only it knows.

    None where it is not ours to say: in the cloud, each model has its whole window.
    """
    other = dict(parameters.other)
    wanted = other.pop(_WINDOW, None)
    options: Any = other.get("options")
    if isinstance(options, dict) and "num_ctx" in options:
        wanted = cast("JsonObject", options)["num_ctx"]
    if wanted is None:
        return (None if server.is_hosted or is_in_cloud(model) else server.context_window), other
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        message = f"{wanted!r} is no context window"
        raise ConfigurationError(message, hint=f"it is a number of tokens: `--param other.{_WINDOW}:=32768`")
    return wanted, other


def render(thread: Thread, server: Server) -> WireRequest:
    """The request for `thread`. The same thread gives the same bytes.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the model does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model = find_model(PROVIDER, thread.model)
    parameters = thread.parameters
    conversation = build_messages(thread, model, provider=server.provider)
    if not conversation.messages:
        raise ProviderError("there is no message to send", kind="invalid_request")
    tools = () if parameters.tool_choice == "none" else thread.tools
    if (plea := _plea(parameters.tool_choice, tools)) and conversation.asked is not None:
        # Where it is asked, not at the end: it has to stay in its place when the model is asked again.
        conversation.asked["content"] = joined(conversation.asked["content"], plea)
    window, other = _window(parameters, server, thread.model)
    think = think_of(parameters, model)
    system = [part for part in thread.system if part.strip()]
    prompt: list[JsonObject] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    body: JsonObject = {
        "model": thread.model,
        "messages": [*prompt, *conversation.messages],
        "stream": True,
        "think": think,
        # Instead of forgetting the beginning without a word, the server is to refuse what does not fit.
        "truncate": False,
        "shift": False,
        "options": _options(parameters, window),
    }
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    elif thread.schema is not None:
        # A grammar leaves no room for calls: with tools, the schema stands in words only.
        body["format"] = grammatical(thread.schema)
    if server.keep_alive is not None:
        body["keep_alive"] = server.keep_alive
    body = merged(body, other, protected=_PROTECTED)
    kept = cache_not_sent(parameters.cache, "the server keeps what it wants")
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=body,
        framing="ndjson",
        left_out=(*unmet(parameters, model, think), *kept),
        unfit=unfit(body, server.provider),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def sections(request: WireRequest) -> Sections:
    """The parts of `request` that prompt caches see."""
    messages: list[JsonObject] = request.body["messages"]
    tools: list[JsonObject] = request.body.get("tools", [])
    return Sections(
        tools=tuple(map(_canonical, tools)),
        system=tuple(_canonical(message) for message in messages if message["role"] == "system"),
        messages=tuple(_parts(message) for message in messages if message["role"] != "system"),
    )


def _parts(message: JsonObject) -> tuple[bytes, ...]:
    fields = {name: value for name, value in message.items() if name != "role"}
    return _canonical(message["role"]), _canonical(fields)

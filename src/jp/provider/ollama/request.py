"""Render a thread as a request of Ollama's chat API, and tell whether it fits the window. Pure.

A server that is not told otherwise, and any server before 0.12.6, silently shortens a request that is too long; only
its token count shows that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from typing import Any, assert_never, cast

import msgspec

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import JsonObject
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    IncrementalMap,
    Parameters,
    Thread,
    ToolDefinition,
    UserResource,
    UserText,
)
from jp.errors import ConfigurationError
from jp.provider.base import Model, Sections, SentMessage, Unfit, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import is_made_by, model_for
from jp.provider.parameters import cache_not_sent, call_request, effort_of, is_off, merged, nearest_level, sampling_of
from jp.provider.schemas import in_words
from jp.provider.transcript import (
    IncrementalMessages,
    Media,
    TextPart,
    WireCall,
    WireEvent,
    WireResult,
    arguments_of,
    attachment,
    newest_request,
    not_shown,
    not_taken,
    request_of,
    result,
    shown_of,
)
from jp.remedies import Ask, Option, UseOption, phrase

_REPEATED = re.compile(r"(.)\1{3,}", re.DOTALL)
"""Runs of characters that a tokenizer may have one token for, whatever their length."""

_MARGIN = 2
"""No vocabulary that is in use takes fewer tokens for a text than the estimate divided by this."""

_CROWDED = 0.75
"""The share of the window from which on an estimate does not rule out that the prompt did not fit."""

_SHORTEST = 1024
"""No model that is in use was made for fewer tokens than this: a shorter request was not cut, whatever is counted."""

_BRIM = 1
"""Distance from the window within which a count fills it."""

_KEPT = 16
"""Most tokens of the beginning that a server keeps by default when it drops half of a prompt."""

_LOADED_NANOSECONDS = 1_000_000_000
"""A server that took longer than this to load the model has nothing of the prompt in its cache."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the server in tokens, None if missing, and the time that the model took to load.

    `prompt` is not reliable alone: some versions omit cached tokens.
    """

    prompt: int | None = None
    cached: int | None = None
    output: int = 0
    load_nanoseconds: int = 0

    @property
    def is_whole(self) -> bool:
        """True if `prompt` certainly counts all tokens, cached or not."""
        return self.cached is not None or self.load_nanoseconds >= _LOADED_NANOSECONDS


def window_of(body: JsonObject) -> int | None:
    """Return the window that a request asks for, None if the server decides."""
    options: object = body.get("options")
    window = cast("JsonObject", options).get("num_ctx") if isinstance(options, dict) else None
    return window if isinstance(window, int) else None


def hint(body: JsonObject, provider: str) -> str:
    """Return the hint on how to fit more of a conversation."""
    return phrase(
        f"set `providers.llm.{provider}.context_window` higher than {window_of(body)}, as far as the model and the "
        "memory go, or send less: fewer attachments, or a new conversation with `",
        *(Ask((UseOption(Option.NEW),)), "`"),
    )


def unfit(body: JsonObject, provider: str) -> Unfit | None:
    """Return the reason why a request cannot fit, None if it may."""
    window = window_of(body)
    if window is None or (least := least_tokens(body, more_than=window)) <= window:
        return None
    message = f"{provider} holds {window} tokens, and the request has {least} at the very least"
    return Unfit(message=message, hint=hint(body, provider))


def shortfall(body: JsonObject, counted: Counted) -> str:
    """Return a message if the server's count shows that it did not read the whole request, else an empty text.

    The count is close to the window; or it is half of the prompt, as in servers that drop the other half; or, if it is
    reliable, it is below the least tokens of the request.
    """
    window, prompt = window_of(body), counted.prompt
    if window is None or prompt is None:
        return ""
    if abs(prompt - window) <= _BRIM:
        return f"the request filled all of the {window} tokens that it holds"
    estimate = _estimate(body)
    if 0 <= prompt - window // 2 <= _KEPT and estimate > window * _CROWDED:
        return f"it has read {prompt} tokens of about {estimate}"
    is_suspect = counted.is_whole and estimate > _SHORTEST and prompt < estimate // _MARGIN
    if is_suspect and prompt < least_tokens(body, more_than=prompt):
        return f"it has read {prompt} tokens of about {estimate}"
    return ""


def is_full(body: JsonObject, counted: Counted) -> bool:
    """Return whether prompt and answer together fill the server's window."""
    window = window_of(body)
    return window is not None and counted.prompt is not None and counted.prompt + counted.output >= window - _BRIM


def least_tokens(body: JsonObject, *, more_than: int) -> int:
    """Return the tokens that a request has at least; any number up to `more_than` if they are no more than that."""
    texts = tuple(_texts(body))
    if sum(map(len, texts)) <= more_than:
        return more_than
    return sum(estimate_tokens(_REPEATED.sub(r"\1\1\1", text)) for text in texts) // _MARGIN


def _estimate(body: JsonObject) -> int:
    return sum(map(estimate_tokens, _texts(body)))


def _texts(body: JsonObject) -> Iterator[str]:
    """Yield the texts that every template includes: no earlier reasoning, and of tools only descriptions."""
    messages: list[JsonObject] = body["messages"]
    for message in messages:
        yield from _texts_in(message)
    tools: list[JsonObject] = body.get("tools", [])
    for tool in tools:
        yield tool["function"]["description"]


def _texts_in(message: JsonObject) -> Iterator[str]:
    yield message["content"]
    for call in message.get("tool_calls", ()):
        yield from _leaves(call)


def _characters_in(message: JsonObject) -> int:
    return sum(map(len, _texts_in(message)))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _leaves(item)


_ASSUMED_OUTPUT = 16_384
"""Output limit that a number of tokens is a share of, if none is set."""


def think_of(parameters: Parameters, model: Model) -> bool | str:
    """Return `think`. It is always sent: the default differs between versions of the server."""
    abilities, wanted = model.abilities, parameters.reasoning
    if abilities.thinking == "none":
        return False
    if is_off(parameters):
        return _least(model)
    if wanted is None and not abilities.thinks_by_default:
        return False
    effort = effort_of(parameters, parameters.max_tokens or _ASSUMED_OUTPUT)
    level = nearest_level(effort or "medium", abilities.levels)
    return True if level is None else level


def _least(model: Model) -> bool | str:
    if model.abilities.thinking_off != "never":
        return False
    return next(iter(model.abilities.levels), True)


def unmet(parameters: Parameters, model: Model, think: bool | str) -> Iterator[str]:  # noqa: FBT001 - it is data
    """Sentences about reasoning that is not sent as it was asked for."""
    name, wanted = model.details.id, parameters.reasoning
    if wanted is None:
        return
    if is_off(parameters):
        if think is not False:
            yield f"{name!r} cannot be kept from reasoning"
    elif think is False:
        yield f"reasoning {wanted!r} not sent: {name!r} does not reason"
    elif wanted != "auto" and think is True:
        yield f"reasoning {wanted!r} sent as on: {name!r} knows no efforts"
    elif wanted not in {"auto", think}:
        yield f"reasoning {wanted!r} sent as {think!r}"


IMAGES = frozenset({"image/jpeg", "image/png", "image/webp"})
"""Types that the server decodes, for models with vision."""

_SHOWN_WITH = "What the tools returned as images:"


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a request. `asked` is the position of the one that holds what the user asked last."""

    messages: list[JsonObject]
    asked: int | None


class _Builder:
    """Adds events to messages. Only the last message ever changes."""

    def __init__(self, thread: Thread, model: Model, provider: str) -> None:
        self._model = thread.model
        self._provider = provider
        self._newest = newest_request(thread.events)
        self._takes: Collection[str] = IMAGES if model.abilities.images else ()
        self._messages: list[JsonObject] = []
        self._request: tuple[str, int] | None = None
        self._pictures: list[str] = []
        self._asked: int | None = None

    def fork(self) -> _Builder:
        """Return a builder that goes on from here; what is added to it is not added here."""
        found: _Builder = copy(self)
        found._messages, found._pictures = list(self._messages), list(self._pictures)
        if self._messages:
            last = self._messages[-1]
            lists = {name: list(last[name]) for name in ("images", "tool_calls") if name in last}
            found._messages[-1] = {**last, **lists}
        return found

    def add(self, event: WireEvent) -> None:
        if not isinstance(event, WireResult):
            self._show_pictures()
        match event:
            case UserText():
                self._ask_in_words(event)
            case UserResource():
                self._attach(event)
            case AssistantText(text=text) | AssistantData(text=text):
                self._say("content", text)
            case AssistantReasoning(text=text):
                self._think(event, text)
            case WireCall():
                self._call(event)
            case WireResult():
                self._return(event)
            case _:
                assert_never(event)

    def finish(self) -> Messages:
        self._show_pictures()
        return Messages(messages=self._messages, asked=self._asked)

    def _ask_in_words(self, event: UserText) -> None:
        """Add the user's request, with the schema of the answer, which a grammar does not show to the model."""
        self._ask(event, TextPart(event.text))
        if event.schema is not None:
            self._ask(event, TextPart(in_words(event.schema)))

    def _call(self, called: WireCall) -> None:
        function = {"name": called.call.name, "arguments": arguments_of(called.call)}
        self._answer().setdefault("tool_calls", []).append({"function": function})

    def _attach(self, event: UserResource) -> None:
        resource = event.resource
        shown = attachment(resource, takes=self._takes)
        if shown is None:
            if request_of(event) == self._newest:
                types = "text, JPEG, PNG and WebP" if self._takes else "text"
                raise not_taken(resource, f"this model of {self._provider}", types)
            shown = iter((TextPart(not_shown(resource.uri, resource.mime_type, len(shown_of(resource)))),))
        for piece in shown:
            self._ask(event, piece)

    def _ask(self, event: UserText | UserResource, piece: TextPart | Media) -> None:
        if isinstance(piece, TextPart) and not piece.text.strip():
            return
        request = request_of(event)
        if self._request != request or self._messages[-1]["role"] != "user":
            self._messages.append({"role": "user", "content": ""})
            self._request = request
        message = self._messages[-1]
        if isinstance(piece, Media):
            message.setdefault("images", []).append(piece.base64)
        else:
            message["content"] = joined(message["content"], piece.text)
        if request == self._newest:
            self._asked = len(self._messages) - 1

    def _answer(self) -> JsonObject:
        """Return the answer that is being built."""
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "content": ""})
        return self._messages[-1]

    def _say(self, field: str, text: str) -> None:
        if text.strip():
            answer = self._answer()
            answer[field] = joined(answer.get(field, ""), text)

    def _think(self, event: AssistantReasoning, text: str) -> None:
        """Reasoning, as the model's own where it is: a template decides how much of it the model sees again."""
        if is_made_by(event.metadata, self._provider, self._model):
            self._say("thinking", text)

    def _return(self, answered: WireResult) -> None:
        pieces = result(answered.content, takes=self._takes, is_error=answered.is_error)
        texts: list[str] = []
        for piece in pieces:
            if isinstance(piece, Media):
                self._pictures.append(piece.base64)
                texts.append(f"[image {piece.name}: shown below]")
            else:
                texts.append(piece.text)
        text = "\n".join(texts)
        content = f"Error: {text}" if answered.is_error else text
        self._messages.append({"role": "tool", "tool_name": answered.call.name, "content": content})

    def _show_pictures(self) -> None:
        """Add the images that the tools returned in a user message, if the model has vision."""
        if self._pictures:
            self._messages.append({"role": "user", "content": _SHOWN_WITH, "images": self._pictures})
            self._request, self._pictures = None, []


def joined(text: str, more: str) -> str:
    """Two texts of one message, a blank line between them."""
    return f"{text}\n\n{more}" if text else more


def build_messages(
    thread: Thread, model: Model, *, provider: str, growing: IncrementalMessages[_Builder] | None = None
) -> Messages:
    """Return the messages of `thread`, without the system prompt. Each call is answered at once.

    `growing` knows those of a thread that this one goes on with.

    Raises:
        ProviderError: a new attachment has a type that the model does not accept (kind `unsupported`).
    """
    growing = IncrementalMessages() if growing is None else growing
    return growing.build(thread, lambda: _Builder(thread, model, provider)).finish()


PROVIDER = "ollama"

_PATH = "/api/chat"
_PROTECTED = frozenset({"model", "messages", "tools", "stream"})
"""Fields that `other` cannot set: the log would not say what was sent."""

_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords of a schema that hold values, in which nothing is a keyword."""

_WINDOW = "context_window"
"""The parameter that says for one conversation what the setting of this name says for all."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the server that a request depends on; see the adapter."""

    provider: str = PROVIDER
    context_window: int
    keep_alive: str | None = None
    is_hosted: bool = False


def _tool(tool: ToolDefinition) -> JsonObject:
    # The server requires `properties`, even if empty.
    parameters: JsonObject = {"type": "object", "properties": {}, **tool.parameters}
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _options(parameters: Parameters, window: int | None) -> JsonObject:
    options: JsonObject = {} if window is None else {"num_ctx": window}
    options.update(sampling_of(parameters))
    if parameters.max_tokens is not None:
        options["num_predict"] = parameters.max_tokens
    if words := [word for word in parameters.stop_words if word]:
        options["stop"] = words
    return options


def grammatical(schema: JsonObject) -> JsonObject:
    """Return a schema that the server can turn into a grammar, which fails for a pattern without both anchors."""
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
    """Return the window that is requested, and the remaining parameters of the server.

    The window is None in the cloud, where each model has its whole window.
    """
    other = dict(parameters.other)
    wanted = other.pop(_WINDOW, None)
    options: Any = other.get("options")
    if isinstance(options, dict) and "num_ctx" in options:
        wanted = cast("JsonObject", options)["num_ctx"]
    if wanted is None:
        return (
            None if server.is_hosted or model.lower().endswith(("-cloud", ":cloud")) else server.context_window
        ), other
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        message = f"{wanted!r} is no context window"
        parameter = UseOption(Option.PARAMETER, f"other.{_WINDOW}:=32768")
        raise ConfigurationError(message, hint=phrase("it is a number of tokens: `", parameter, "`"))
    return wanted, other


class RenderCache:
    """State of the previous request, for a thread that grows."""

    def __init__(self) -> None:
        self.messages = IncrementalMessages[_Builder]()
        self.sections = IncrementalMap[JsonObject, SentMessage](_sent)
        self.characters = IncrementalMap[JsonObject, int](_characters_in)


def render(thread: Thread, server: Server, growth: RenderCache | None = None) -> WireRequest:
    """Return the request for `thread`. The same thread gives the same bytes, with any `growth`.

    Raises:
        ConfigurationError: a parameter cannot be set.
        ProviderError: the model does not accept a new attachment (`unsupported`), or there is nothing to send
            (`invalid_request`).
    """
    model = model_for(PROVIDER, thread)
    parameters = thread.parameters
    growth = RenderCache() if growth is None else growth
    conversation = build_messages(thread, model, provider=server.provider, growing=growth.messages)
    messages = conversation.messages
    if not messages:
        raise ProviderError("there is no message to send", kind="invalid_request")
    tools = () if parameters.tool_choice == "none" else thread.tools
    if tools and parameters.tool_choice != "auto" and conversation.asked is not None:
        # The API has no choice of tool. The words follow the request, which keeps its place when it is sent again.
        words = call_request(parameters.tool_choice, [tool.name for tool in tools])
        asked = messages[conversation.asked]
        messages[conversation.asked] = {**asked, "content": joined(asked["content"], words)}
    window, other = _window(parameters, server, thread.model)
    think = think_of(parameters, model)
    system = [part for part in thread.system if part.strip()]
    prompt: list[JsonObject] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    body: JsonObject = {
        "model": thread.model,
        "messages": [*prompt, *messages],
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
        # A grammar forbids calls: with tools, the schema is only described in words.
        body["format"] = grammatical(thread.schema)
    if server.keep_alive is not None:
        body["keep_alive"] = server.keep_alive
    body = merged(body, other, protected=_PROTECTED)
    beside = sum(map(len, _texts({**body, "messages": prompt})))
    characters = beside + sum(growth.characters.map(messages))
    kept = cache_not_sent(parameters.cache, "the server keeps what it wants")
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=body,
        sections=Sections(
            tools=tuple(map(_canonical, body.get("tools", ()))),
            system=tuple(map(_canonical, prompt)),
            messages=tuple(growth.sections.map(messages)),
        ),
        framing="ndjson",
        omitted=(*unmet(parameters, model, think), *kept),
        unfit=unfit(body, server.provider) if characters > (window_of(body) or characters) else None,
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _sent(message: JsonObject) -> SentMessage:
    fields = {name: value for name, value in message.items() if name != "role"}
    return SentMessage((_canonical(message["role"]), _canonical(fields)))

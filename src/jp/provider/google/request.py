"""A thread as a request of `streamGenerateContent`. Pure."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread, ToolDefinition
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.google.messages import PROVIDER, build_contents, text_part
from jp.provider.google.parameters import PROTECTED, generation_config, held_schema, left_out, thinking_of, tool_config
from jp.provider.models import find_model
from jp.provider.parameters import merged, object_at

RENDERER = 3


def _path(model: str) -> str:
    from urllib.parse import quote

    # A tuned model says itself among which it is found.
    collection, slash, name = model.partition("/")
    where = model if slash and collection in {"models", "tunedModels"} and name else f"models/{model}"
    collection, _, name = where.partition("/")
    return f"/{collection}/{quote(name, safe='')}:streamGenerateContent?alt=sse"


def _declaration(tool: ToolDefinition) -> JsonObject:
    declaration: JsonObject = {"name": tool.name}
    if tool.description.strip():
        declaration["description"] = tool.description
    schema = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    if schema.keys() - {"type", "properties"} or schema.get("properties"):
        declaration["parametersJsonSchema"] = schema
    return declaration


def render(thread: Thread, *, provider: str = PROVIDER, store: bool | None = None) -> WireRequest:
    """The request for `thread`. The same thread gives the same bytes.

    `provider` is whose signatures are its own. `store` says whether the server may keep the request and its answer,
    which new projects do unasked; None leaves that to the project.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the model does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model = find_model(PROVIDER, thread.model)
    parameters = thread.parameters
    contents = build_contents(thread, provider=provider)
    if not contents:
        raise ProviderError("there is no message to send", kind="invalid_request")
    thinking = thinking_of(parameters, model)
    schema = held_schema(thread.schema, model, has_tools=bool(thread.tools))
    system = [text_part(part) for part in thread.system if part.strip()]
    optional: JsonObject = {
        "systemInstruction": {"parts": system} if system else None,
        "tools": [{"functionDeclarations": [_declaration(tool) for tool in thread.tools]}] if thread.tools else None,
        "toolConfig": tool_config(parameters, thread.tools, model),
        "generationConfig": generation_config(parameters, model, thinking, schema),
    }
    body: JsonObject = {name: value for name, value in optional.items() if value}
    if store is not None:
        body["store"] = store
    body["contents"] = [content.wire for content in contents]
    return WireRequest(
        path=_path(thread.model),
        model=thread.model,
        body=merged(body, parameters.other, protected=PROTECTED),
        left_out=left_out(parameters, model, thinking),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def sections(request: WireRequest) -> Sections:
    """The parts of `request` that prompt caches see."""
    body = request.body
    tools: list[JsonObject] = body.get("tools", [])
    system: JsonObject = body.get("systemInstruction", {})
    contents: list[JsonObject] = body["contents"]
    return Sections(
        tools=tuple(_canonical(declared) for tool in tools for declared in tool["functionDeclarations"]),
        system=tuple(map(_canonical, system.get("parts", ()))),
        messages=tuple((_canonical(content["role"]), *map(_canonical, content["parts"])) for content in contents),
    )


class GoogleAdapter:
    """Gemini's `streamGenerateContent`. `provider` is under what name it is known, `store` see `render`."""

    renderer = RENDERER

    def __init__(self, *, provider: str = PROVIDER, store: bool | None = False) -> None:
        self.id = provider
        self._store = store

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, provider=self.id, store=self._store)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the signatures that `error` can be about. This is hardly ever asked for."""
        from jp.provider.google.messages import locate

        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.google.response import GoogleDecoder

        config = object_at(request.body, "generationConfig")
        return GoogleDecoder(
            model=request.model, provider=self.id, is_structured=config.get("responseMimeType") == "application/json"
        )

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key: in the address it would be in every proxy's log."""
        return (("x-goog-api-key", key),)

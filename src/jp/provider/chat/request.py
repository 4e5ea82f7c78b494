"""A thread as a Chat Completions request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import assert_never

import msgspec

from jp.config.entries import ServerConfig
from jp.context.cache_hints import Piece, count_markable, place_hints
from jp.conversation.entries import JsonObject
from jp.conversation.thread import IncrementalMap, Parameters, Thread, ToolDefinition
from jp.provider.base import Level, Model, ResponseDecoder, Sections, SentMessage, WireRequest
from jp.provider.chat.messages import (
    Builder,
    Message,
    Place,
    Quirks,
    Server,
    incremental_messages,
    response_format,
    system_texts,
    text_part,
    wire_message,
)
from jp.provider.errors import ProviderError
from jp.provider.models import model_for
from jp.provider.parameters import cache_not_sent, call_request, effort_of, is_off, merged, nearest_level, sampling_of

PROTECTED = frozenset({"model", "messages", "tools", "stream", "n", "response_format", "cache_control"})
"""Fields that `other` cannot set: the log would not say what was sent, or the response could not be read."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of tool on the wire. `plea` says it in words, where the server or the model cannot be told."""

    wire: JsonObject | str | None = None
    forces: bool = False
    plea: str = ""


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model, quirks: Quirks) -> Choice:
    """Return the tool choice; a name is one of `tools`."""
    wanted = parameters.tool_choice
    if not tools or wanted == "auto":
        return Choice()
    if wanted == "none":
        return Choice(wire="none") if quirks.tool_choice else Choice(plea="Answer without calling a tool.")
    if not (quirks.tool_choice and model.abilities.forced_tools):
        return Choice(plea=call_request(wanted, [tool.name for tool in tools]))
    if wanted == "required":
        return Choice(wire="required", forces=True)
    return Choice(wire={"type": "function", "function": {"name": wanted}}, forces=True)


def tool(definition: ToolDefinition) -> JsonObject:
    """Return the definition of a tool on the wire."""
    parameters = definition.parameters
    function: JsonObject = {"name": definition.name}
    if definition.description.strip():
        function["description"] = definition.description
    function["parameters"] = parameters if "type" in parameters else {"type": "object", **parameters}
    return {"type": "function", "function": function}


_SYSTEM = Piece(section="system")
_ASKED = Piece(section="messages")
_ATTACHED = Piece(section="messages", is_attached=True)
_PASSING = Piece(section="messages", is_volatile=True)
_ANSWER = Piece(section="messages", is_answer=True, carries=False)


def cache_points(
    messages: Sequence[JsonObject], *, last_resource: Place | None, passing: Place | None
) -> tuple[Place, ...]:
    """Return the places of the parts to mark, at most four (the limit of the servers that want to be told).

    `last_resource` is the end of the newest attachment. `passing` is a part that the next request will not have:
    nothing after it is ever read again.
    """
    sizes = ((message["role"] == "assistant", len(_parts(message))) for message in reversed(messages))
    first = 0 if passing is not None else max(len(messages) - count_markable(sizes), 0)
    places = [(0, index) for index in range(len(_parts(messages[0])))] if first else []
    if last_resource is not None and 0 < last_resource[0] < first:
        places.append(last_resource)
    for number, message in enumerate(messages[first:], first):
        places += [(number, index) for index in range(len(_parts(message)))]
    pieces = [_piece(messages[place[0]]["role"], place, last_resource, passing) for place in places]
    return tuple(places[hint.position] for hint in place_hints(pieces))


def _piece(role: str, place: Place, last_resource: Place | None, passing: Place | None) -> Piece:
    if role == "assistant":
        return _ANSWER
    if role in {"system", "developer"}:
        return _SYSTEM
    if place == passing:
        return _PASSING
    return _ATTACHED if place == last_resource else _ASKED


def _parts(message: JsonObject) -> list[JsonObject]:
    """Return the parts of a message; text is one."""
    content: str | list[JsonObject] = message.get("content", "")
    return [text_part(content)] if isinstance(content, str) else content


def _mark(messages: list[JsonObject], places: Iterable[Place], marker: JsonObject) -> None:
    """Mark parts in copies of their messages: other requests have the same messages."""
    for number, index in places:
        parts = list(_parts(messages[number]))
        parts[index] = {**parts[index], _MARKER: marker}
        messages[number] = {**messages[number], "content": parts}


RENDERER = 3

_PATH = "/chat/completions"
_MARKER = "cache_control"


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a request that only the adapter of a server has.

    Attributes:
        fields: additional fields of the body.
        headers: additional headers.
        omitted: notes about parameters that are not sent as configured.
        sampling: false if no temperature may be sent.
        marker: the marker of cache breakpoints, for servers that need one and accept text as parts.
    """

    fields: JsonObject = {}
    headers: tuple[tuple[str, str], ...] = ()
    omitted: tuple[str, ...] = ()
    sampling: bool = True
    marker: JsonObject | None = None


_NOTHING = ServerOptions()


class RenderCache:
    """State of the previous request, for a thread that grows."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.messages = incremental_messages(server)
        self.wires = IncrementalMap[Message, JsonObject](lambda message: wire_message(message, server))
        self.sections = IncrementalMap[JsonObject, SentMessage](_sent)


def render(
    thread: Thread, server: Server, asked: ServerOptions = _NOTHING, growth: RenderCache | None = None
) -> WireRequest:
    """Return the request for `thread`. The same thread gives the same bytes, with any `growth`.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the server does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model, quirks, parameters = model_for(server.kind, thread), server.quirks, thread.parameters
    growth = RenderCache(server) if growth is None else growth
    conversation = growth.messages.build(thread, lambda: Builder(thread, server, model)).finish()
    choice = choice_of(parameters, thread.tools, model, quirks)
    plea = conversation.plead(choice.plea) if choice.plea else None
    optional: JsonObject = {
        "stream_options": {"include_usage": True} if quirks.stream_usage else None,
        "tools": [tool(definition) for definition in thread.tools],
        "tool_choice": choice.wire,
        "response_format": response_format(thread.schema, model, quirks, has_tools=bool(thread.tools)),
        quirks.max_tokens_name: parameters.max_tokens,
        "stop": [word for word in parameters.stop_words if word.strip()],
    }
    body: JsonObject = {"model": thread.model, "stream": True}
    body.update({name: value for name, value in optional.items() if value})
    if asked.sampling:
        body.update(sampling_of(parameters))
    body.update(asked.fields)
    wires = growth.wires.map(conversation.messages)
    if not wires:
        raise ProviderError("there is no message to send", kind="invalid_request")
    prompt = _prompt(thread, server)
    messages = body["messages"] = [*prompt, *wires]
    if asked.marker is not None:
        attached, passing = (_moved(place, len(prompt)) for place in (conversation.last_resource, plea))
        _mark(messages, cache_points(messages, last_resource=attached, passing=passing), asked.marker)
    body = merged(body, parameters.other, protected=PROTECTED)
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=body,
        sections=Sections(
            tools=tuple(map(_canonical, body.get("tools", ()))),
            system=tuple(_pieces(prompt[0]))[1:] if prompt else (),
            messages=tuple(growth.sections.map(wires)),
        ),
        headers=asked.headers,
        omitted=asked.omitted,
        probe=_probe(body, quirks) if quirks.probes else None,
        prefix_bound=(thread.model,) if model.abilities.bound_thinking else (),
    )


def _probe(body: JsonObject, quirks: Quirks) -> JsonObject:
    least: JsonObject = {name: value for name, value in body.items() if name != "stream_options"}
    return {**least, "stream": False, quirks.max_tokens_name: 1}


def _prompt(thread: Thread, server: Server) -> list[JsonObject]:
    """Return the message with the system prompt, if that has a message of its own."""
    texts = system_texts(thread)
    quirks = server.quirks
    if not texts or quirks.system_role == "user":
        return []
    content = [text_part(text) for text in texts] if quirks.text_parts else "\n\n".join(texts)
    return [{"role": quirks.system_role, "content": content}]


def _moved(place: Place | None, by: int) -> Place | None:
    return None if place is None else (place[0] + by, place[1])


def _sent(message: JsonObject) -> SentMessage:
    return SentMessage(_pieces(message))


def _pieces(message: JsonObject) -> Iterator[bytes]:
    """Yield a message's role, then its parts; plain text is one part."""
    yield msgspec.json.encode(message["role"])
    for name, value in message.items():
        if name == "content":
            parts: list[JsonObject] = [text_part(value)] if isinstance(value, str) else value
            yield from map(_canonical, parts)
        elif name == "tool_calls":
            yield from map(_canonical, value)
        elif name != "role":
            yield _canonical({name: value})


def _canonical(part: JsonObject) -> bytes:
    return msgspec.json.encode(part, order="deterministic")


class ChatAdapter:
    """A server that speaks Chat Completions.

    `asks` says of each thread what only this server is asked; `revision` grows whenever it says it otherwise.
    """

    def __init__(
        self, server: Server, asks: Callable[[Thread], ServerOptions] | None = None, *, revision: int = 0
    ) -> None:
        self.id = server.provider
        self.renderer = RENDERER + revision
        self._server = server
        self._asks = asks
        self._growth: RenderCache | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        return self.render_for(thread, self._server, _NOTHING if self._asks is None else self._asks(thread))

    def render_for(self, thread: Thread, server: Server, asked: ServerOptions) -> WireRequest:
        """Return the request for `thread` to `server`, which may depend on the model."""
        if self._growth is None or self._growth.server != server:
            self._growth = RenderCache(server)
        return render(thread, server, asked, self._growth)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return nothing: positions in the errors of these servers are not those of the sent messages."""
        return ()

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`, imported on use."""
        from jp.provider.chat.response import ChatDecoder

        return ChatDecoder.of(request, self._server)


KIND = "openai-compatible"

_LEVELS: tuple[Level, ...] = ("low", "medium", "high")
"""Levels that servers commonly accept as `reasoning_effort`."""

_LONGEST_OUTPUT = 32_000
"""Output limit that a number of tokens is a share of, if none is set: that of an unknown model is unknown."""


def create(settings: ServerConfig, provider: str) -> ChatAdapter:
    """Return the adapter of the server with the name `provider`."""
    quirks = Quirks(
        max_tokens_name=settings.max_tokens_name,
        system_role=settings.system_role,
        return_reasoning=settings.return_reasoning,
        structured=settings.structured,
        tool_choice=settings.tool_choice,
        images=settings.images,
        stream_usage=settings.stream_usage,
        call_ids=settings.call_ids,
        user_after_tool=settings.user_after_tool,
        probes=True,
    )
    server = Server(provider=provider, kind=KIND, quirks=quirks)
    return ChatAdapter(server, partial(asked, settings=settings, provider=provider))


def asked(thread: Thread, *, settings: ServerConfig, provider: str) -> ServerOptions:
    """Return the reasoning settings in the server's format, if any are set."""
    parameters = thread.parameters
    kept = cache_not_sent(parameters.cache, "the server keeps what it wants")
    if parameters.reasoning in {None, "auto"}:
        return ServerOptions(omitted=kept)
    fields = _fields(parameters, settings)
    return ServerOptions(fields=fields, omitted=(*_unmet(parameters, fields, settings, provider), *kept))


def _fields(parameters: Parameters, settings: ServerConfig) -> JsonObject:
    match settings.reasoning:
        case "none":
            return {}
        case "effort":
            return {"reasoning_effort": _level(parameters)}
        case "enable_thinking":
            return {"chat_template_kwargs": {"enable_thinking": not is_off(parameters)}}
        case _:
            assert_never(settings.reasoning)


def _level(parameters: Parameters) -> str:
    effort = None if is_off(parameters) else effort_of(parameters, parameters.max_tokens or _LONGEST_OUTPUT)
    return "none" if effort is None else nearest_level(effort, _LEVELS) or "none"


def _unmet(parameters: Parameters, fields: JsonObject, settings: ServerConfig, provider: str) -> Iterator[str]:
    """Sentences about reasoning that is not asked for as it was set."""
    wanted = parameters.reasoning
    if settings.reasoning == "none":
        yield f"reasoning {wanted!r} not sent: `providers.llm.{provider}.reasoning` says how the server is asked for it"
    elif settings.reasoning == "enable_thinking":
        if not is_off(parameters):
            yield f"reasoning {wanted!r} sent as on: the server knows on and off only"
    elif isinstance(wanted, int):
        yield f"reasoning {wanted} sent as {fields['reasoning_effort']!r}: the server takes no number of tokens"
    elif wanted in {"xhigh", "max"}:
        yield f"reasoning {wanted!r} sent as {fields['reasoning_effort']!r}, the most that servers commonly know"

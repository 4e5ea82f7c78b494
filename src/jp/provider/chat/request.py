"""A thread as a Chat Completions request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from jp.context.cache_hints import Piece, place_hints
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread, ToolDefinition
from jp.provider.base import Model, ResponseDecoder, Sections, WireRequest
from jp.provider.chat.messages import (
    Messages,
    Quirks,
    Server,
    build_messages,
    response_format,
    system_texts,
    text_part,
    wire_message,
)
from jp.provider.errors import ProviderError
from jp.provider.models import model_for
from jp.provider.parameters import merged, sampling_of

PROTECTED = frozenset({"model", "messages", "tools", "stream", "n", "response_format", "cache_control"})
"""What `other` cannot set: it would not be what the log says was sent, or not be read as what it is."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of tool on the wire. `plea` says it in words, where the server or the model cannot be told."""

    wire: JsonObject | str | None = None
    forces: bool = False
    plea: str = ""


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model, quirks: Quirks) -> Choice:
    """The choice of tool. A name is one of `tools`."""
    wanted = parameters.tool_choice
    if not tools or wanted == "auto":
        return Choice()
    if wanted == "none":
        return Choice(wire="none") if quirks.tool_choice else Choice(plea="Answer without calling a tool.")
    if not (quirks.tool_choice and model.abilities.forced_tools):
        return Choice(plea=_plea(wanted, [tool.name for tool in tools]))
    if wanted == "required":
        return Choice(wire="required", forces=True)
    return Choice(wire={"type": "function", "function": {"name": wanted}}, forces=True)


def _plea(wanted: str, names: Sequence[str]) -> str:
    if wanted == "required" and len(names) > 1:
        return "Call one of the tools now."
    return f"Call the tool {names[0] if wanted == 'required' else wanted!r} now."


def tool(definition: ToolDefinition) -> JsonObject:
    """A tool as it is offered."""
    parameters = definition.parameters
    function: JsonObject = {"name": definition.name}
    if definition.description.strip():
        function["description"] = definition.description
    function["parameters"] = parameters if "type" in parameters else {"type": "object", **parameters}
    return {"type": "function", "function": function}


_TEXT: JsonObject = {}

_SYSTEM = Piece(section="system")
_ASKED = Piece(section="messages")
_ATTACHED = Piece(section="messages", is_attached=True)
_PASSING = Piece(section="messages", is_volatile=True)
_ANSWER = Piece(section="messages", is_answer=True, carries=False)


def cache_points(
    messages: Sequence[JsonObject], *, last_resource: JsonObject | None, passing: JsonObject | None
) -> tuple[JsonObject, ...]:
    """The parts to mark, at most four (the limit of those who want to be told).

    `last_resource` is the end of what was attached last. `passing` is a part that the next request will not have: what
    is kept behind it is never read again. A content that is text is made of parts where it is marked.
    """
    places: list[tuple[JsonObject, int]] = []
    pieces: list[Piece] = []
    for message in messages:
        content: str | list[JsonObject] = message.get("content", "")
        for number, part in enumerate([_TEXT] if isinstance(content, str) else content):
            places.append((message, number))
            pieces.append(_piece(message["role"], part, last_resource, passing))
    return tuple(_part(*places[hint.position]) for hint in place_hints(pieces))


def _piece(role: str, part: JsonObject, last_resource: JsonObject | None, passing: JsonObject | None) -> Piece:
    if role == "assistant":
        return _ANSWER
    if role in {"system", "developer"}:
        return _SYSTEM
    if part is passing:
        return _PASSING
    return _ATTACHED if part is last_resource else _ASKED


def _part(message: JsonObject, number: int) -> JsonObject:
    if isinstance(message["content"], str):
        message["content"] = [text_part(message["content"])]
    part: JsonObject = message["content"][number]
    return part


RENDERER = 3

_PATH = "/chat/completions"
_MARKER = "cache_control"
_SYSTEM_ROLES = frozenset({"system", "developer"})


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What only the adapter of a server can say of a request.

    `fields` go into the body, `headers` beside it. `left_out` are sentences about parameters that are not sent as they
    were set. `sampling` is false where no temperature may be sent. `marker` marks the places up to which a prompt
    cache keeps its work, for servers that want to be told; they have to take text as parts.
    """

    fields: JsonObject = {}
    headers: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    sampling: bool = True
    marker: JsonObject | None = None


_NOTHING = Asked()


def render(thread: Thread, server: Server, asked: Asked = _NOTHING) -> WireRequest:
    """The request for `thread`. The same thread gives the same bytes.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the server does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model, quirks, parameters = model_for(server.kind, thread), server.quirks, thread.parameters
    conversation = build_messages(thread, server, model)
    choice = choice_of(parameters, thread.tools, model, quirks)
    plea = _plead(choice, conversation)
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
    messages = _messages(thread, server, [wire_message(message, server) for message in conversation.messages])
    if asked.marker is not None:
        for part in cache_points(messages, last_resource=conversation.last_resource, passing=plea):
            part[_MARKER] = asked.marker
    body["messages"] = messages
    body = merged(body, parameters.other, protected=PROTECTED)
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=body,
        headers=asked.headers,
        left_out=asked.left_out,
        probe=_probe(body, quirks) if quirks.probes else None,
        prefix_bound=(thread.model,) if model.abilities.bound_thinking else (),
    )


def _probe(body: JsonObject, quirks: Quirks) -> JsonObject:
    least: JsonObject = {name: value for name, value in body.items() if name != "stream_options"}
    return {**least, "stream": False, quirks.max_tokens_name: 1}


def _plead(choice: Choice, conversation: Messages) -> JsonObject | None:
    """Ask for a call in words, where there are any.

    Where the user asked, not at the end: it has to stay in its place when the model is asked again.
    """
    if not choice.plea or conversation.asked is None:
        return None
    plea = text_part(choice.plea)
    conversation.asked.append(plea)
    return plea


def _messages(thread: Thread, server: Server, messages: Sequence[JsonObject]) -> list[JsonObject]:
    """The messages with the system prompt before them, where that has a message of its own."""
    if not messages:
        raise ProviderError("there is no message to send", kind="invalid_request")
    texts = system_texts(thread)
    quirks = server.quirks
    if not texts or quirks.system_role == "user":
        return [*messages]
    content = [text_part(text) for text in texts] if quirks.text_parts else "\n\n".join(texts)
    return [{"role": quirks.system_role, "content": content}, *messages]


def sections(request: WireRequest) -> Sections:
    """The parts of `request` that prompt caches see, without the markers."""
    messages: list[JsonObject] = request.body["messages"]
    begins = messages[0]["role"] in _SYSTEM_ROLES
    tools: list[JsonObject] = request.body.get("tools", [])
    return Sections(
        tools=tuple(map(_canonical, tools)),
        system=tuple(_pieces(messages[0]))[1:] if begins else (),
        messages=tuple(tuple(_pieces(message)) for message in (messages[1:] if begins else messages)),
    )


def _pieces(message: JsonObject) -> Iterator[bytes]:
    """A message's role, then what it is made of; text that is no list is read as one part."""
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
    unmarked = {name: value for name, value in part.items() if name != _MARKER}
    return msgspec.json.encode(unmarked, order="deterministic")


class ChatAdapter:
    """A server that speaks Chat Completions.

    `asks` says of each thread what only this server is asked; `revision` grows whenever it says it otherwise.
    """

    def __init__(self, server: Server, asks: Callable[[Thread], Asked] | None = None, *, revision: int = 0) -> None:
        self.id = server.provider
        self.renderer = RENDERER + revision
        self._server = server
        self._asks = asks

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, self._server, Asked() if self._asks is None else self._asks(thread))

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Nothing: what these servers say of places is not about the messages that they were sent."""
        return ()

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.chat.response import ChatDecoder

        return ChatDecoder.of(request, self._server)

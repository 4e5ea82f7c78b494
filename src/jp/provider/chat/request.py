"""A thread as a Chat Completions request, and back as what a prompt cache sees. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.asking import merged, sampling_of
from jp.provider.base import Sections, WireRequest
from jp.provider.chat.answer import response_format
from jp.provider.chat.content import text_part
from jp.provider.chat.messages import Messages, build_messages, system_texts, wire_message
from jp.provider.chat.parameters import PROTECTED, Choice, choice_of, tool
from jp.provider.chat.quirks import Quirks, Server
from jp.provider.errors import ProviderError
from jp.provider.models import find_model

RENDERER = 3

_PATH = "/chat/completions"
_MARKER = "cache_control"
_SYSTEM = frozenset({"system", "developer"})


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
    model, quirks, parameters = find_model(server.kind, thread.model), server.quirks, thread.parameters
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
        from jp.provider.chat.cache_points import cache_points

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
    begins = messages[0]["role"] in _SYSTEM
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

"""Render the events of a thread as messages of Chat Completions, with each server's quirks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread, UserResource, UserText
from jp.provider.base import Abilities, Model
from jp.provider.models import is_made_by
from jp.provider.schemas import PLAIN, Strictness, in_words, strict_answer
from jp.provider.transcript import (
    IMAGES,
    NOT_SHOWN,
    PDF,
    ContentPart,
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
    plain_id,
    request_of,
    result,
    shown_of,
    thought,
)

CallIds = Literal["any", "short"]

_LONGEST = 40
"""OpenAI's own server takes no more characters."""

_CUT = 32
"""Length of a cut id, to which a number may be added if ids repeat."""

_SHORT = 9
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def plain(call_id: str, number: int) -> str:
    """Return an id that most servers accept."""
    return plain_id(call_id if len(call_id) <= _LONGEST else call_id[:_CUT], number)


def short(call_id: str, number: int) -> str:
    """Return an id of nine letters and digits: the given one if it is such, else one derived from it."""
    if number == 1 and len(call_id) == _SHORT and call_id.isascii() and call_id.isalnum():
        return call_id
    from hashlib import sha256

    rest = int.from_bytes(sha256(f"{number} {call_id}".encode(errors="surrogatepass")).digest(), "big")
    digits: list[str] = []
    for _ in range(_SHORT):
        rest, digit = divmod(rest, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def wire_id(call_id: str, number: int, *, kind: CallIds) -> str:
    """Return the id under which the `number`th call with an id is sent back to a server."""
    match kind:
        case "any":
            return plain(call_id, number)
        case "short":
            return short(call_id, number)
        case _:
            assert_never(kind)


ReturnReasoning = Literal["none", "reasoning_content", "reasoning", "text"]
Structured = Literal["json_schema", "json_object_schema", "json_object", "none"]


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of a server from others.

    Attributes:
        max_tokens_name: the field of the output limit.
        system_role: the role of the system prompt; with `user` it is put before the first request.
        return_reasoning: the form of earlier reasoning: a field of this name, text between tags, or none.
        structured: the way to enforce a schema, `strictness` the limits of the server's grammar.
        tool_choice: without it, the tool choice is described in words.
        images: whether images can be attached if the model accepts them; `documents` (PDF) and `media` (audio and
            video) likewise.
        stream_usage: whether the token counts have to be requested.
        text_parts: whether a text message is also a list of parts: cache markers need that, and few servers accept it.
        numbers_calls: whether earlier calls get an index.
        think_tags: whether the text may begin with reasoning in tags.
        call_ids: any form, or nine letters and digits (`short`).
        user_after_tool: without it, an assistant message separates a tool result from the user's next message.
        probes: whether to request one token without streaming if a stream ends before its first event: small servers
            start it before they have validated the request.
    """

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    return_reasoning: ReturnReasoning = "none"
    structured: Structured = "json_schema"
    strictness: Strictness = PLAIN
    tool_choice: bool = True
    images: bool = True
    documents: bool = False
    media: frozenset[str] = frozenset()
    stream_usage: bool = True
    text_parts: bool = False
    numbers_calls: bool = False
    think_tags: bool = True
    call_ids: CallIds = "any"
    user_after_tool: bool = True
    probes: bool = False


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The server of a request.

    `provider` is its id, which its opaque metadata is stored with; `kind` is the provider whose table has its models.
    """

    provider: str
    kind: str
    quirks: Quirks = Quirks()


def taken_media(quirks: Quirks, abilities: Abilities) -> frozenset[str]:
    """Return the media types besides text that both the server and the model accept."""
    taken = quirks.media if abilities.recordings else frozenset[str]()
    if quirks.images and abilities.images:
        taken |= IMAGES
    if quirks.documents and abilities.documents:
        taken |= {PDF}
    return taken


_NAME = "answer"
_BY_SCHEMA = frozenset({"json_schema", "json_object_schema"})
_BY_OBJECT = frozenset({"json_object_schema", "json_object"})


def response_format(schema: JsonObject | None, model: Model, quirks: Quirks, *, has_tools: bool) -> JsonObject | None:
    """Return `response_format`, None if the schema is only described in words."""
    abilities = model.abilities
    if schema is None or not abilities.structured or (has_tools and not abilities.structured_with_tools):
        return None
    strict = strict_answer(schema, quirks.strictness) if quirks.structured in _BY_SCHEMA else None
    if strict is not None:
        if quirks.structured == "json_schema":
            return {"type": "json_schema", "json_schema": {"name": _NAME, "schema": strict, "strict": True}}
        return {"type": "json_object", "schema": strict}
    if quirks.structured in _BY_OBJECT and schema.get("type") == "object":
        return {"type": "json_object"}
    return None


def strict_schema(wanted: JsonObject) -> JsonObject | None:
    """Return the strict schema of the answer to a request with the `response_format` `wanted`; None without one."""
    strict: JsonObject | None = wanted.get("json_schema", wanted).get("schema")
    return strict


def rules(schema: JsonObject | None, model: Model, quirks: Quirks, *, has_tools: bool) -> tuple[str, ...]:
    """Return the instruction about the answer's schema that follows the request.

    A server that makes a grammar of a `json_object`'s schema does not show it to the model.
    """
    if schema is None:
        return ()
    wanted = response_format(schema, model, quirks, has_tools=has_tools)
    is_held = wanted is not None and wanted["type"] == "json_schema"
    return () if is_held else (in_words(schema),)


_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NAMES = {"image": "images", "audio": "audio", "video": "video"}

NO_OUTPUT = "The tool returned nothing."
"""Text in place of an empty result, which not every server accepts."""


def text_part(text: str) -> JsonObject:
    """Return a text part of a message."""
    return {"type": "text", "text": text}


def part(shown: ContentPart) -> JsonObject:
    """Return a part of a user's message."""
    match shown:
        case TextPart(text=text):
            return text_part(text)
        case Media(media_type=media_type):
            return _media_part(shown, media_type)
        case _:
            assert_never(shown)


def _media_part(media: Media, media_type: str) -> JsonObject:
    kind = media_type.partition("/")[0]
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": media.data_url}}
    if media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": media.base64, "format": _AUDIO[media_type]}}
    if kind == "video":
        return {"type": "video_url", "video_url": {"url": media.data_url}}
    return {"type": "file", "file": {"filename": media.name, "file_data": media.data_url}}


def _types(takes: frozenset[str]) -> str:
    """Return the media types that can be attached, in words."""
    words = ["text"]
    if takes >= IMAGES:
        words.append("JPEG, PNG, GIF and WebP")
    if PDF in takes:
        words.append("PDF")
    kinds = dict.fromkeys(media_type.partition("/")[0] for media_type in sorted(takes) if media_type not in IMAGES)
    words += [_NAMES[kind] for kind in kinds if kind in _NAMES]
    return ", ".join(words)


def attachment_parts(resource: Resource, *, takes: frozenset[str], provider: str, is_new: bool) -> list[JsonObject]:
    """Return the parts of a resource that the user attached.

    `is_new` means that it belongs to the request to be answered. An earlier attachment stays in the log, perhaps for
    another model: if this one does not accept it, a note replaces it.

    Raises:
        ProviderError: it is new and of a type that is not accepted (kind `unsupported`).
    """
    shown = attachment(resource, takes=takes)
    if shown is not None:
        return [part(piece) for piece in shown]
    if is_new:
        raise not_taken(resource, provider, _types(takes))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result: `text` for the tool's message, which holds nothing else, and `parts` for the user's after it."""

    text: str
    parts: Sequence[JsonObject]


def result_of(answered: WireResult, *, takes: frozenset[str]) -> Result:
    """Return the content of a tool result; an error is marked as one."""
    lines: list[str] = []
    parts: list[JsonObject] = []
    for piece in result(answered.content, takes=takes, is_error=answered.is_error):
        if isinstance(piece, TextPart):
            lines.append(piece.text)
        else:
            lines.append(f"[{piece.name}: {piece.media_type}, shown after the results]")
            parts += [text_part(f"{piece.name}, which {answered.call.name!r} returned:"), part(piece)]
    text = "\n".join(lines) or NO_OUTPUT
    return Result(text=f"Error: {text}" if answered.is_error else text, parts=parts)


_HEARD = "Understood."
"""Assistant message between a tool result and the user, for servers that require one."""

Role = Literal["user", "assistant", "tool"]


class Message(msgspec.Struct, kw_only=True):
    """A message as it grows: a user's in `groups`, one for each request; the rest is an answer's, or a result's."""

    role: Role
    groups: list[list[JsonObject]] = []
    texts: list[str] = []
    thoughts: list[str] = []
    details: list[JsonObject] = []
    calls: list[JsonObject] = []
    call_id: str = ""

    def fork(self) -> Message:
        """Return the same message; what is added to it is not added here."""
        return Message(
            role=self.role,
            groups=[list(group) for group in self.groups],
            texts=list(self.texts),
            thoughts=list(self.thoughts),
            details=list(self.details),
            calls=list(self.calls),
            call_id=self.call_id,
        )

    @property
    def is_empty(self) -> bool:
        """True if it has nothing that a server accepts: reasoning alone is not an answer."""
        return not (self.groups or self.texts or self.calls or self.call_id)


Place = tuple[int, int]
"""The place of a part: the number of its message, and its own among all parts there."""


class Messages(msgspec.Struct, kw_only=True):
    """The messages of a request. Those before the last one can be shared with other requests.

    `asked` is the number of the message and of the group in it with the user's newest request, `last_resource` the
    place of the last part of the newest attachment.
    """

    messages: list[Message]
    asked: tuple[int, int] | None
    last_resource: Place | None

    def plead(self, text: str) -> Place | None:
        """Add a text to the user's newest request; return its place, None if there is no such request.

        It is not at the end, because it has to stay in its place when the model is asked again.
        """
        if self.asked is None:
            return None
        number, group = self.asked
        message = self.messages[number] = self.messages[number].fork()
        message.groups[group].append(text_part(text))
        return number, sum(map(len, message.groups[: group + 1])) - 1


class Builder:
    """Adds events to messages. Only the last message ever changes.

    The system prompt is in the user's first message if the server knows no other place for it.
    """

    def __init__(self, thread: Thread, server: Server, model: Model) -> None:
        self._thread = thread
        self._server = server
        self._model = model
        self._takes = taken_media(server.quirks, model.abilities)
        self._newest = newest_request(thread.events)
        self._messages: list[Message] = []
        self._group: tuple[str, int] | None = None
        self._asked: tuple[int, int] | None = None
        self._last_resource: Place | None = None
        self._shown: list[JsonObject] = []
        system = system_texts(thread) if server.quirks.system_role == "user" else ()
        if system:
            self._messages.append(Message(role="user", groups=[[text_part(text) for text in system]]))

    def fork(self) -> Builder:
        """Return a builder that goes on from here; what is added to it is not added here."""
        found: Builder = copy(self)
        found._messages, found._shown = list(self._messages), list(self._shown)
        if self._messages:
            found._messages[-1] = self._messages[-1].fork()
        return found

    def add(self, event: WireEvent) -> None:
        """Add the next event.

        Raises:
            ProviderError: it is a new attachment of a type that is not taken, of kind `unsupported`.
        """
        if self._shown and not isinstance(event, WireResult):
            self._show()
        match event:
            case UserText() | UserResource():
                self._ask(event, self._asked_parts(event))
            case AssistantText(text=text) | AssistantData(text=text):
                self._say(text)
            case AssistantReasoning():
                self._reason(event)
            case WireCall():
                self._answer().calls.append(self._call(event))
            case WireResult():
                found = result_of(event, takes=self._takes)
                self._messages.append(Message(role="tool", texts=[found.text], call_id=event.wire_id))
                self._shown += found.parts
            case _:
                assert_never(event)

    def finish(self) -> Messages:
        """Return the messages; nothing more is added."""
        if self._shown:
            self._show()
        self._drop_empty()
        return Messages(messages=self._messages, asked=self._asked, last_resource=self._last_resource)

    def _show(self) -> None:
        """Show what tools returned that only a user's message can hold."""
        self._user().groups.append(self._shown)
        self._shown = []

    def _asked_parts(self, event: UserText | UserResource) -> list[JsonObject]:
        if isinstance(event, UserText):
            texts = (
                event.text,
                *rules(event.schema, self._model, self._server.quirks, has_tools=bool(self._thread.tools)),
            )
            return [text_part(text) for text in texts if text.strip()]
        is_new = request_of(event) == self._newest
        provider = self._server.provider
        return attachment_parts(event.resource, takes=self._takes, provider=provider, is_new=is_new)

    def _ask(self, event: UserText | UserResource, parts: Sequence[JsonObject]) -> None:
        if not parts:
            return
        message = self._user()
        if self._group != request_of(event) or not message.groups:
            message.groups.append([])
            self._group = request_of(event)
        message.groups[-1] += parts
        number = len(self._messages) - 1
        if isinstance(event, UserResource):
            self._last_resource = (number, sum(map(len, message.groups)) - 1)
        if self._group == self._newest:
            self._asked = (number, len(message.groups) - 1)

    def _user(self) -> Message:
        self._drop_empty()
        if not self._server.quirks.user_after_tool and self._messages and self._messages[-1].role == "tool":
            self._say(_HEARD)
        if not self._messages or self._messages[-1].role != "user":
            self._messages.append(Message(role="user"))
            self._group = None
        return self._messages[-1]

    def _answer(self) -> Message:
        if not self._messages:
            self._messages.append(Message(role="user", groups=[[text_part(NOT_SHOWN)]]))
        if self._messages[-1].role != "assistant":
            self._messages.append(Message(role="assistant"))
        return self._messages[-1]

    def _drop_empty(self) -> None:
        if self._messages and self._messages[-1].is_empty:
            self._messages.pop()

    def _say(self, text: str) -> None:
        if text.strip():
            self._answer().texts.append(text)

    def _reason(self, event: AssistantReasoning) -> None:
        """Return the model's own reasoning as the server wants it; all of it where the server is to get text."""
        returned = self._server.quirks.return_reasoning
        if returned == "none":
            return
        metadata = event.metadata or {}
        is_own = returned != "text" and is_made_by(metadata, self._server.provider, self._thread.model)
        details = metadata.get("reasoning_details")
        if is_own and isinstance(details, list):
            self._answer().details += details
        elif is_own and event.text.strip():
            self._answer().thoughts.append(event.text)
        elif returned == "text" and event.text.strip():
            self._say(thought(event.text))

    def _call(self, called: WireCall) -> JsonObject:
        arguments = msgspec.json.encode(arguments_of(called.call)).decode()
        call: JsonObject = {
            "id": called.wire_id,
            "type": "function",
            "function": {"name": called.call.name, "arguments": arguments},
        }
        if self._server.quirks.numbers_calls:
            call["index"] = len(self._answer().calls)
        return call


def incremental_messages(server: Server) -> IncrementalMessages[Builder]:
    """Return what builds the messages for a server, request after request."""
    return IncrementalMessages(partial(wire_id, kind=server.quirks.call_ids))


def system_texts(thread: Thread) -> list[str]:
    """Return the parts of the system prompt that are not empty."""
    return [part for part in thread.system if part.strip()]


def wire_message(message: Message, server: Server) -> JsonObject:
    """Return a message as it is sent."""
    quirks = server.quirks
    match message.role:
        case "user":
            return {"role": "user", "content": _content(message.groups, as_parts=quirks.text_parts)}
        case "tool":
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.texts[0]}
        case "assistant":
            wire: JsonObject = {"role": "assistant"}
            if message.texts:
                wire["content"] = joined(message.texts)
            if message.thoughts:
                wire[quirks.return_reasoning] = "\n\n".join(message.thoughts)
            if message.details:
                wire["reasoning_details"] = message.details
            if message.calls:
                wire["tool_calls"] = message.calls
            return wire
        case _:
            assert_never(message.role)


def joined(texts: Sequence[str]) -> str:
    """Texts in a row as one; a blank line parts those that would run into one another."""
    whole = texts[0]
    for text in texts[1:]:
        whole += text if whole[-1:].isspace() or text[:1].isspace() else f"\n\n{text}"
    return whole


def _content(groups: Sequence[list[JsonObject]], *, as_parts: bool) -> str | list[JsonObject]:
    """Return the content of a user message: plain text if possible, since not every server reads a list of parts."""
    if as_parts:
        return [part for group in groups for part in group]
    parts: list[JsonObject] = []
    for group in groups:
        is_text = all(part["type"] == "text" for part in group)
        parts += [text_part("\n\n".join(part["text"] for part in group))] if is_text else group
    is_plain = len(parts) == 1 and parts[0]["type"] == "text"
    return parts[0]["text"] if is_plain else parts

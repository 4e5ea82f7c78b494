"""One event of an original JP's stream as an entry, and the values that it encodes. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import (
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    Question,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock

_URL_SAFE = str.maketrans("-_", "+/")
_DEEPEST = 8
"""Signatures were encoded up to four times."""

_RENDERED = "rendered_arguments"
_UNPREFIXED = (_RENDERED, "cache_breakpoint")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_TEXT = "1970-01-01T00:00:00.000000Z"
_MILLISECONDS_A_SECOND = 1000


class Moment(msgspec.Struct, frozen=True):
    """A point in time: RFC 3339 in UTC, and milliseconds since the Unix epoch, at least 0."""

    at: str
    milliseconds: int


def moment_of(text: object) -> Moment | None:
    """Read `YYYY-MM-DD HH:MM:SS.f`, which is UTC, or RFC 3339; None where it is neither."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        utc = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    at = f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return Moment(at, max(0, _milliseconds(utc)))


def moment_at(milliseconds: int) -> Moment | None:
    """Return the moment at so many milliseconds after the Unix epoch; None past the year 9999."""
    try:
        utc = datetime.fromtimestamp(milliseconds // _MILLISECONDS_A_SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    rest = milliseconds % _MILLISECONDS_A_SECOND
    return Moment(f"{utc.replace(tzinfo=None).isoformat()}.{rest:03d}Z", milliseconds)


def _milliseconds(moment: datetime) -> int:
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * _MILLISECONDS_A_SECOND + passed.microseconds // 1000


def timestamp_of(at: str) -> str:
    """Return a moment of an entry in the original's form: `YYYY-MM-DD HH:MM:SS.f` in UTC, at least one digit."""
    found = moment_of(at)
    seconds, _, fraction = (_EPOCH_TEXT if found is None else found.at).removesuffix("Z").partition(".")
    return f"{seconds.replace('T', ' ')}.{fraction.rstrip('0') or '0'}"


def decoded_text(stored: str) -> str:
    """Return the text that is stored as base64, in the standard or the URL-safe alphabet; other text as it is."""
    return stored if (found := _decoded(stored)) is None else found


def _decoded(stored: str) -> str | None:
    try:
        return binascii.a2b_base64(stored.translate(_URL_SAFE), strict_mode=True).decode()
    except ValueError:
        return None


def decoded_values(value: Any) -> Any:
    """Return `value` with every string in it decoded; the keys of objects are plain."""
    match value:
        case str():
            return decoded_text(value)
        case dict():
            return {name: decoded_values(below) for name, below in cast("JsonObject", value).items()}
        case list():
            return [decoded_values(item) for item in cast("list[Any]", value)]
        case _:
            return value


def encoded_values(value: Any) -> Any:
    """Return `value` with every string in it as base64: the inverse of `decoded_values`."""
    match value:
        case str():
            return base64.b64encode(value.encode()).decode()
        case dict():
            return {name: encoded_values(below) for name, below in cast("JsonObject", value).items()}
        case list():
            return [encoded_values(item) for item in cast("list[Any]", value)]
        case _:
            return value


def decoded_metadata(metadata: JsonObject, *, provider: str, model: str) -> JsonObject:
    """Return an event's metadata in the form of entries: short names for that of `provider` and `model`.

    Some old versions encoded signatures again whenever they stored them, and rendered arguments are encoded before
    they are stored.
    """
    found: JsonObject = {}
    prefix = f"{provider}_"
    is_owned = False
    for name, stored in metadata.items():
        if provider and name.startswith(prefix):
            is_owned = True
            found[_SHORT_NAMES.get(name, name.removeprefix(prefix))] = _metadata_value(name, stored)
        else:
            found[name] = _metadata_value(name, stored)
    return {"provider": provider, "model": model, **found} if is_owned else found


_SHORT_NAMES = {
    "anthropic_thinking_signature": "signature",
    "anthropic_redacted_thinking": "redacted",
    "google_thought_signature": "signature",
}


def encoded_metadata(metadata: JsonObject) -> JsonObject:
    """Return metadata of an entry in the form of an event: the inverse of `decoded_metadata`."""
    provider = metadata.get("provider")
    if not isinstance(provider, str) or "model" not in metadata:
        return {name: _encoded_value(name, value) for name, value in metadata.items()}
    names = {short: name for name, short in _SHORT_NAMES.items() if name.startswith(f"{provider}_")}
    names |= {name: name for name in (*_UNPREFIXED, *_SHORT_NAMES)}
    return {
        names.get(name, f"{provider}_{name}"): _encoded_value(name, value)
        for name, value in metadata.items()
        if name not in {"provider", "model"}
    }


def _encoded_value(name: str, value: Any) -> Any:
    return encoded_values(encoded_values(value) if name == _RENDERED and isinstance(value, str) else value)


def _metadata_value(name: str, stored: Any) -> Any:
    value = decoded_values(stored)
    if not isinstance(value, str):
        return value
    if name == _RENDERED:
        return decoded_text(value)
    return _innermost(value) if name.endswith("_signature") else value


def _innermost(text: str) -> str:
    """Return a signature without repeated encodings: it is base64 itself, of opaque bytes."""
    for _ in range(_DEEPEST):
        below = _decoded(text)
        if not below or not _is_base64(below):
            return text
        text = below
    return text


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


T = TypeVar("T")

DraftEntry = (
    TurnStart
    | ChatRequest
    | ChatResponse
    | ToolCallRequest
    | ToolCallResponse
    | InquiryRequest
    | InquiryResponse
    | ConfigDelta
    | Compaction
)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to which its id, its moment and the entry that it answers are still to be given.

    `remainder` are the fields of the event that it does not say.
    """

    entry: DraftEntry
    remainder: JsonObject


class AskingCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call of a tool that asks its user: the provider's id, and the tool."""

    call_id: str = ""
    tool: str = ""


class EventContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context of an event: the model of the request, the attachments of its turn, and the call that asks."""

    provider: str = ""
    model: str = ""
    attachments: tuple[str, ...] = ()
    asker: AskingCall | None = None


def read_event(kind: str, fields: JsonObject, around: EventContext) -> Draft | None:
    """Return the draft of an event of the type `kind`; None if jp has no such entry, or a field is missing."""
    reader = _READERS.get(kind)
    if reader is None:
        return None
    left = _Fields(fields, around)
    entry = reader(left, around)
    return None if entry is None else Draft(entry=entry, remainder=left.remainder())


class _Fields:
    """The fields of an event that were not taken yet."""

    def __init__(self, fields: JsonObject, around: EventContext) -> None:
        self._left = dict(fields)
        metadata = self.take_object("metadata")
        self._metadata = (
            None if metadata is None else decoded_metadata(metadata, provider=around.provider, model=around.model)
        )

    def has(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, kind: type[T]) -> T | None:
        """Take a field of this type; None if there is none, and a field of another type stays."""
        value = self._left.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            return None
        del self._left[name]
        return value

    def take_any(self, name: str) -> Any:
        return self._left.pop(name)

    def take_object(self, name: str) -> JsonObject | None:
        return self.take_any(name) if isinstance(self._left.get(name), dict) else None

    def take_all(self) -> JsonObject:
        found, self._left = self._left, {}
        return found

    def drop(self, name: str, value: Any) -> None:
        """Forget a field that the entry says elsewhere, where it is just `value`."""
        if self.is_value(name, value):
            del self._left[name]

    def is_value(self, name: str, value: Any) -> bool:
        return name in self._left and self._left[name] == value

    def put_back(self, name: str, value: Any) -> None:
        """Let a field that was taken be one that is left."""
        self._left[name] = value

    def take_metadata(self) -> JsonObject | None:
        found, self._metadata = self._metadata, None
        return found

    def remainder(self) -> JsonObject:
        return self._left if self._metadata is None else {**self._left, "metadata": self._metadata}


def _turn_start(fields: _Fields, around: EventContext) -> TurnStart:
    return TurnStart()


def _chat_request(fields: _Fields, around: EventContext) -> ChatRequest | None:
    content = fields.take("content", str)
    if content is None:
        return None
    return ChatRequest(
        content=content,
        attachments=around.attachments,
        schema=fields.take_object("schema"),
        author=fields.take("author", str),
    )


def _chat_response(fields: _Fields, around: EventContext) -> ChatResponse | None:
    if (message := fields.take("message", str)) is not None:
        return ChatResponse(message=message, metadata=fields.take_metadata())
    if (reasoning := fields.take("reasoning", str)) is not None:
        return ChatResponse(reasoning=reasoning, metadata=fields.take_metadata())
    if fields.has("data"):
        return ChatResponse(data=fields.take_any("data"), metadata=fields.take_metadata())
    return None


def _tool_call_request(fields: _Fields, around: EventContext) -> ToolCallRequest | None:
    call_id, name = fields.take("id", str), fields.take("name", str)
    if call_id is None or name is None:
        return None
    arguments = fields.take_object("arguments") or {}
    fields.drop("arguments", None)
    return ToolCallRequest(
        call_id=call_id, name=name, arguments=decoded_values(arguments), metadata=fields.take_metadata()
    )


def _tool_call_response(fields: _Fields, around: EventContext) -> ToolCallResponse | None:
    call_id, content = fields.take("id", str), fields.take("content", str)
    if call_id is None or content is None:
        return None
    is_error = fields.take("is_error", bool) or False
    return ToolCallResponse(request=call_id, content=(TextBlock(text=decoded_text(content)),), is_error=is_error)


_KINDS: Mapping[object, Literal["boolean", "select", "text"]] = {
    "boolean": "boolean",
    "select": "select",
    "text": "text",
}


def _inquiry_request(fields: _Fields, around: EventContext) -> InquiryRequest | None:
    identity, asked = fields.take("id", str), fields.take_object("question")
    if identity is None or asked is None:
        return None
    question = _question(asked)
    if question is None:
        return None
    if asked != as_asked(question):
        fields.put_back("question", asked)
    asker = around.asker
    if asker is None:
        return InquiryRequest(request="", question=replace(question, id=identity))
    fields.drop("source", {"source": "tool", "name": asker.tool})
    name = identity.removeprefix(f"{asker.call_id}.")
    return InquiryRequest(request=asker.call_id, question=replace(question, id=name))


def _question(asked: JsonObject) -> Question | None:
    match asked:
        case {"text": str(text), "answer_type": {"type": str(kind), **form}} if kind in _KINDS:
            options: Any = form.get("options")
            listed = cast("list[Any]", options) if isinstance(options, list) else []
            return Question(
                id="",
                text=text,
                kind=_KINDS[kind],
                options=tuple(map(_option_text, listed)),
                default=asked.get("default"),
            )
        case _:
            return None


def _option_text(option: Any) -> str:
    match option:
        case str() | {"value": str()}:
            return option if isinstance(option, str) else option["value"]
        case {"value": value}:
            return msgspec.json.encode(value).decode()
        case _:
            return msgspec.json.encode(option).decode()


def as_asked(question: Question) -> JsonObject:
    """Return the question in the form of the original."""
    answer: JsonObject = {"type": question.kind}
    if question.kind == "select":
        answer["options"] = [{"value": option} for option in question.options]
    asked: JsonObject = {"text": question.text, "answer_type": answer}
    return asked if question.default is None else {**asked, "default": question.default}


def _inquiry_response(fields: _Fields, around: EventContext) -> InquiryResponse | None:
    identity = fields.take("id", str)
    if identity is None or not fields.has("answer"):
        return None
    return InquiryResponse(request=identity, answer=fields.take_any("answer"), answered_by="unknown")


def _config_delta(fields: _Fields, around: EventContext) -> ConfigDelta | None:
    """Read a delta. In the oldest form, the event itself is the configuration."""
    delta = fields.take_object("delta") if fields.has("delta") else fields.take_all()
    return None if delta is None else ConfigDelta(delta=delta)


def _compaction(fields: _Fields, around: EventContext) -> Compaction | None:
    first, last = fields.take("from_turn", int), fields.take("to_turn", int)
    if first is None or last is None:
        return None
    return Compaction(
        from_turn=first,
        to_turn=last,
        summary=_summary(fields),
        reasoning=_reasoning(fields),
        tool_calls=_tool_calls(fields),
    )


def _summary(fields: _Fields) -> SummaryPolicy | None:
    found = fields.take_object("summary")
    match found:
        case {"summary": str(text)}:
            if len(found) > 1:
                fields.put_back("summary", found)
            return SummaryPolicy(text=text)
        case None:
            return None
        case _:
            fields.put_back("summary", found)
            return None


def _reasoning(fields: _Fields) -> Literal["strip"] | None:
    if fields.is_value("reasoning", "strip"):
        fields.drop("reasoning", "strip")
        return "strip"
    return None


def _tool_calls(fields: _Fields) -> ToolCallPolicy | None:
    found = fields.take_object("tool_calls")
    match found:
        case {"policy": "omit"}:
            return ToolCallPolicy(policy="omit")
        case {"policy": "strip"}:
            return ToolCallPolicy(
                policy="strip", request=found.get("request") is True, response=found.get("response") is True
            )
        case None:
            return None
        case _:
            fields.put_back("tool_calls", found)
            return None


_READERS: Mapping[str, Callable[[_Fields, EventContext], DraftEntry | None]] = {
    "turn_start": _turn_start,
    "chat_request": _chat_request,
    "chat_response": _chat_response,
    "tool_call_request": _tool_call_request,
    "tool_call_response": _tool_call_response,
    "inquiry_request": _inquiry_request,
    "inquiry_response": _inquiry_response,
    "config_delta": _config_delta,
    "compaction": _compaction,
}

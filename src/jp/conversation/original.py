"""The stream of an original JP's conversation, `events.json`, as entries. Pure."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, cast

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import (
    FORMAT,
    AnyEntry,
    ChatRequest,
    Compaction,
    ConfigDelta,
    Header,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    Original,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.ids import ENTROPY_BYTES, ConversationId, entry_id
from jp.conversation.original_events import AskingCall, Draft, EventContext, Moment, moment_at, moment_of, read_event
from jp.conversation.turns import Turn, turns_of
from jp.errors import JpError

Kind = Literal["turn", "tool_request", "tool_response", "inquiry_request", "inquiry_response"]


class Link(msgspec.Struct, frozen=True):
    """An event that can be paired: its position in the stream, its kind, and its id (none for the start of a turn)."""

    position: int
    kind: Kind
    identity: str = ""


def answered(links: Sequence[Link]) -> dict[int, int]:
    """Return the position of its request, by the position of a response or of a question to the user.

    Of requests with the same id, the oldest in the same turn that is still open is answered; then one that an earlier
    turn left open; then one that comes later. A question belongs to the newest call whose id its own begins with.
    """
    return {**_pairs(links, "tool_request", "tool_response"), **_pairs(links, *_INQUIRIES), **_askers(links)}


_INQUIRIES: tuple[Kind, Kind] = ("inquiry_request", "inquiry_response")


def _pairs(links: Sequence[Link], request: Kind, response: Kind) -> dict[int, int]:
    found: dict[int, int] = {}
    open_here: dict[str, list[int]] = {}
    open_before: dict[str, list[int]] = {}
    unmatched: list[Link] = []
    for link in links:
        if link.kind == "turn":
            _move(open_here, open_before)
        elif link.kind == request:
            open_here.setdefault(link.identity, []).append(link.position)
        elif link.kind == response:
            waiting = open_here.get(link.identity) or open_before.get(link.identity)
            if waiting:
                found[link.position] = waiting.pop(0)
            else:
                unmatched.append(link)
    _move(open_here, open_before)
    for link in unmatched:
        if waiting := open_before.get(link.identity):
            found[link.position] = waiting.pop(0)
    return found


def _move(source: dict[str, list[int]], target: dict[str, list[int]]) -> None:
    for identity, positions in source.items():
        target.setdefault(identity, []).extend(positions)
    source.clear()


def _askers(links: Sequence[Link]) -> dict[int, int]:
    found: dict[int, int] = {}
    calls: dict[str, int] = {}
    for link in links:
        if link.kind == "tool_request":
            calls[link.identity] = link.position
        elif link.kind == "inquiry_request":
            call = call_of(link.identity, calls)
            if call is not None:
                found[link.position] = calls[call]
    return found


def call_of(inquiry: str, calls: dict[str, int]) -> str | None:
    """Return the longest id of `calls` that the id of an inquiry, `<call>.<question>`, begins with."""
    head = inquiry
    while "." in head:
        head = head.rpartition(".")[0]
        if head in calls:
            return head
    return None


REMAINDER = "original"
"""The type of an entry for everything else: a whole `event`, or `fields` of the entry `of`."""

_MILLISECONDS_A_DECISECOND = 100
_EPOCH = Moment("1970-01-01T00:00:00.000Z", 0)
_BYTE = re.compile(r"\(byte (\d+)\)\Z")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_BESIDE_TURNS = frozenset({"config_delta", "compaction"})
_LINKED: Mapping[str, Kind] = {
    "turn_start": "turn",
    "tool_call_request": "tool_request",
    "tool_call_response": "tool_response",
    "inquiry_request": "inquiry_request",
    "inquiry_response": "inquiry_response",
}


class MalformedOriginalError(JpError):
    """A file is no stream of the original's; the message does not name it."""


class Settings(Protocol):
    """The settings of a conversation that decide the meaning of an event; they follow the events."""

    @property
    def provider(self) -> str:
        """Return the provider of requests; empty if it is not known."""
        ...

    @property
    def model(self) -> str:
        """Return the provider's name of the model."""
        ...

    @property
    def attachments(self) -> tuple[str, ...]:
        """Return the declared attachments of every turn."""
        ...

    def change(self, delta: JsonObject) -> JsonObject:
        """Apply a delta of the stream; the delta in jp's spelling."""
        ...


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """An element of the file. `begins` says that a turn begins with it though the file does not say so."""

    position: int
    raw: bytes
    type: str
    moment: Moment
    fields: JsonObject
    begins: bool = False


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its draft (None: it is kept whole), and the ids of its entries."""

    event: _Event
    draft: Draft | None
    id: str
    turn_id: str = ""
    rest_id: str = ""


def convert(data: bytes, conversation: ConversationId, settings: Settings) -> list[AnyEntry]:
    """Return the entries of the `events.json` that holds `data`, with a header without a nonce.

    Every request that begins a turn names the attachments that were declared then: each turn attached all of them.
    The header has the attachments that are declared at the end and named by no request.

    Raises:
        MalformedOriginalError: it is no array of events.
    """
    events = _events(data)
    requests = answered(list(_links(events)))
    created = moment_at(conversation.deciseconds * _MILLISECONDS_A_DECISECOND)
    stamps = _Stamps(created or (events[0].moment if events else _EPOCH))
    header = stamps.header(data, conversation)
    steps = [stamps.step(event, draft) for event, draft in _drafts(events, requests, settings)]
    entries = [entry for step in steps for entry in _entries(step, steps, requests)]
    header = _with_declarations(header, entries, settings.attachments)
    return [header, *_with_our_turns(entries, {step.id: step.event for step in steps})]


def _with_declarations(header: Header, entries: Sequence[AnyEntry], declared: Sequence[str]) -> Header:
    named = {text for entry in entries if isinstance(entry, ChatRequest) for text in entry.attachments}
    rest = tuple(text for text in declared if text not in named and not text.startswith("!"))
    if header.original is None or not rest:
        return header
    return replace(header, original=replace(header.original, attachments=rest))


def _events(data: bytes) -> list[_Event]:
    events = [_event(position, bytes(element)) for position, element in enumerate(_elements(data))]
    first = next((event.position for event in events if event.type == "turn_start"), len(events))
    # Versions that knew no `turn_start` wrote one request a turn.
    return [replace(event, begins=event.position < first and event.type == "chat_request") for event in events]


def _elements(data: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(without_mark(data), type=list[msgspec.Raw])
    except msgspec.ValidationError as error:
        raise MalformedOriginalError(f"not an array of events: {error}") from None
    except RecursionError:
        raise MalformedOriginalError("its JSON is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise MalformedOriginalError(_what_is_wrong(without_mark(data), str(error))) from None


def without_mark(data: bytes) -> bytes:
    """Return the JSON that a file holds: some editors put a byte order mark before it."""
    return data.removeprefix(codecs.BOM_UTF8)


def _what_is_wrong(data: bytes, found: str) -> str:
    """Return the problem with `data` in words, with line and column; `found` is the decoder's message."""
    if not data.strip():
        return "it is empty"
    place = _BYTE.search(found)
    if place is not None:
        return f"malformed JSON in {_place(data, int(place[1]))}"
    half = _HALF_CHARACTER.search(data)
    if half is not None and data.rstrip().endswith(b"]"):
        return f"malformed JSON in {_place(data, half.start())}: {half[0].decode()} alone is no character"
    return f"its JSON is cut off: it ends in {_place(data, len(data))}"


def _place(data: bytes, offset: int) -> str:
    """Return the line and the column of the byte at `offset`, counted from 1."""
    before = data[:offset].decode("utf-8", "replace")
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _event(position: int, raw: bytes) -> _Event:
    try:
        fields = msgspec.json.decode(raw, type=JsonObject)
    except msgspec.ValidationError:
        raise MalformedOriginalError(f"event {position} (from 0) is not an object, or a number in it is none") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedOriginalError(f"event {position} (from 0) is not JSON in UTF-8") from None
    found = fields.pop("type", None)
    moment = moment_of(fields.pop("timestamp", None))
    if not isinstance(found, str) or moment is None:
        lacking = "timestamp" if isinstance(found, str) else "type"
        raise MalformedOriginalError(f"event {position} (from 0) has no valid {lacking!r}")
    return _Event(position=position, raw=raw, type=found, moment=moment, fields=fields)


def _links(events: Sequence[_Event]) -> Iterator[Link]:
    for event in events:
        if event.begins:
            yield Link(event.position, "turn")
        kind = _LINKED.get(event.type)
        if kind is not None:
            identity = event.fields.get("id")
            yield Link(event.position, kind, identity if isinstance(identity, str) else "")


def _drafts(
    events: Sequence[_Event], requests: Mapping[int, int], settings: Settings
) -> Iterator[tuple[_Event, Draft | None]]:
    """Yield each event with its draft; `settings` follow the events."""
    has_asked = False
    for event in events:
        if event.begins or event.type == "turn_start":
            has_asked = False
        around = EventContext(
            provider=settings.provider,
            model=settings.model,
            attachments=() if has_asked else settings.attachments,
            asker=_asker(event, events, requests),
        )
        has_asked = has_asked or event.type == "chat_request"
        yield event, _spelled(read_event(event.type, event.fields, around), settings)


def _spelled(draft: Draft | None, settings: Settings) -> Draft | None:
    """Return a delta in jp's spelling, with the values that differ as its remainder; other drafts as they are."""
    if draft is None or not isinstance(draft.entry, ConfigDelta):
        return draft
    delta = draft.entry.delta
    spelled = settings.change(delta)
    differing = _differing(delta, spelled)
    remainder = {**draft.remainder, "delta": differing} if differing else draft.remainder
    return Draft(entry=replace(draft.entry, delta=spelled), remainder=remainder)


def _differing(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the values of `old` that `new` does not have."""
    found: JsonObject = {}
    for name, value in old.items():
        other: Any = new.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            if below := _differing(cast("JsonObject", value), cast("JsonObject", other)):
                found[name] = below
        elif value != other:
            found[name] = value
    return found


def _asker(event: _Event, events: Sequence[_Event], requests: Mapping[int, int]) -> AskingCall | None:
    if event.type != "inquiry_request" or event.position not in requests:
        return None
    call = events[requests[event.position]].fields
    return AskingCall(call_id=call["id"], tool=call.get("name", ""))


class _Stamps:
    """Gives entries their ids, in the order of the stream."""

    def __init__(self, created: Moment) -> None:
        self._created = created
        self._last = ""

    def header(self, data: bytes, conversation: ConversationId) -> Header:
        return Header(
            id=self._take("header", conversation.digits.encode(), self._created),
            at=self._created.at,
            format=FORMAT,
            created_at=self._created.at,
            original=Original(sha256=hashlib.sha256(data).hexdigest(), size=len(data)),
        )

    def step(self, event: _Event, draft: Draft | None) -> _Step:
        """Return the ids of the entries that an event becomes."""
        turn_id = self._take(f"{event.position} turn", event.raw, event.moment) if event.begins else ""
        identity = self._take(f"{event.position}", event.raw, event.moment)
        has_rest = draft is not None and bool(draft.remainder)
        rest_id = self._take(f"{event.position} rest", event.raw, event.moment) if has_rest else ""
        return _Step(event=event, draft=draft, id=identity, turn_id=turn_id, rest_id=rest_id)

    def _take(self, place: str, content: bytes, moment: Moment) -> str:
        digest = hashlib.sha256(f"{place}:".encode() + content).digest()
        self._last = entry_id(milliseconds=moment.milliseconds, entropy=digest[:ENTROPY_BYTES], last=self._last)
        return self._last


def _entry(step: _Step, steps: Sequence[_Step], requests: Mapping[int, int]) -> AnyEntry:
    """Return the entry that an event becomes, with its stamps and the id of the entry that it answers."""
    event, draft = step.event, step.draft
    if draft is None:
        raw = msgspec.Raw(msgspec.json.format(event.raw, indent=-1))
        return _remainder(step.id, event.moment.at, {"event": raw})
    entry = replace(draft.entry, id=step.id, at=event.moment.at)
    request = requests.get(event.position)
    if request is not None and isinstance(entry, (ToolCallResponse, InquiryRequest, InquiryResponse)):
        return replace(entry, request=steps[request].id)
    return entry


def _entries(step: _Step, steps: Sequence[_Step], requests: Mapping[int, int]) -> Iterator[AnyEntry]:
    at = step.event.moment.at
    if step.turn_id:
        yield TurnStart(id=step.turn_id, at=at)
    yield _entry(step, steps, requests)
    if step.draft is not None and step.rest_id:
        yield _remainder(step.rest_id, at, {"of": step.id, "fields": step.draft.remainder})


def _remainder(identity: str, at: str, content: JsonObject) -> Unknown:
    raw = msgspec.json.encode({"id": identity, "type": REMAINDER, "at": at, **content})
    return Unknown(raw=raw, id=identity, at=at, type=REMAINDER)


def _with_our_turns(entries: list[AnyEntry], events: Mapping[str, _Event]) -> list[AnyEntry]:
    """Return the entries, with compactions that say their range by the turns of this stream.

    What stands before the first `turn_start` is one turn to the original. `events` are by the ids of their entries.
    """
    if not any(isinstance(entry, Compaction) for entry in entries):
        return entries
    ours = {entry.id: turn for turn in turns_of(entries) for entry in turn.entries}
    spans: dict[int, list[Turn]] = {}
    numbers = turn_numbers([event.type for event in events.values()])
    for identity, number in zip(events, numbers, strict=True):
        if identity in ours:
            spans.setdefault(number, []).append(ours[identity])
    return [_ranged(entry, spans) if isinstance(entry, Compaction) else entry for entry in entries]


def turn_numbers(types: Sequence[str]) -> list[int]:
    """Return the number of the turn of each event, by the types of all, as the original counts them.

    A `turn_start` opens a turn if the one before it is not empty.
    """
    found: list[int] = []
    number, holds = 0, False
    for kind in types:
        if kind == "turn_start" and holds:
            number += 1
        holds = holds or kind not in _BESIDE_TURNS
        found.append(number)
    return found


def _ranged(compaction: Compaction, spans: Mapping[int, Sequence[Turn]]) -> Compaction:
    last = min(compaction.to_turn, max(spans, default=0))
    if compaction.from_turn not in spans or last not in spans:
        return compaction
    first_turn, last_turn = spans[compaction.from_turn][0], spans[last][-1]
    return replace(
        compaction,
        from_turn=first_turn.number,
        to_turn=last_turn.number,
        from_id=first_turn.id or None,
        to_id=last_turn.id or None,
    )

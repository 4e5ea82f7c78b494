"""Entries as the original JP's `events.json`: the inverse of `jp.conversation.original`. Pure.

The original has no reverts, no snapshots and fewer compaction policies. Undone turns are not written; everything else
that it cannot hold is counted in `OriginalStream.omitted`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

import msgspec

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Header,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    KnownEntry,
    RequestContext,
    Revert,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.original import REMAINDER, Link, Settings, answered, turn_numbers
from jp.conversation.original_events import as_asked, encoded_metadata, encoded_values, timestamp_of
from jp.conversation.resource import Block, TextBlock
from jp.conversation.turns import cycles_of, turns_of, undone

TextOf = Callable[[Block], str]
"""Returns the text of a block of a tool result."""


class OriginalStream(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of `events.json`, and how many of what it cannot hold, by a noun phrase in the plural."""

    events: bytes
    omitted: Mapping[str, int]


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the entry that it was written for."""

    entry: AnyEntry
    event: JsonObject | msgspec.Raw
    type: str


def write_stream(entries: Sequence[AnyEntry], settings: Settings, text_of: TextOf) -> OriginalStream:
    """Return the events of a conversation.

    Args:
        entries: The log, with its header.
        settings: The settings of the base configuration that is written beside the events; they follow the deltas.
        text_of: Returns the text of a result's block, and reads its content where it is stored elsewhere.
    """
    writer = _EventWriter(entries, settings, text_of)
    written = list(writer.events())
    events = [one.event for one in _with_ranges(written, entries, writer.omitted)]
    data = msgspec.json.format(msgspec.json.encode(events), indent=2)
    return OriginalStream(events=data + b"\n", omitted={name: count for name, count in writer.omitted.items() if count})


class _EventWriter:
    """Writes one event after the other; ranges of compactions are still those of jp."""

    def __init__(self, entries: Sequence[AnyEntry], settings: Settings, text_of: TextOf) -> None:
        self.omitted: Counter[str] = Counter()
        self._settings = settings
        self._text_of = text_of
        self._entries = _counting(entries, self.omitted)
        self._wholes, self._fields = _remainders(entries)
        self._by_id = {entry.id: entry for entry in self._entries if entry.id}
        self._call_ids = _call_ids(self._entries)

    def events(self) -> Iterator[_Written]:
        has_asked = False
        for entry in self._entries:
            if isinstance(entry, TurnStart):
                has_asked = False
            if isinstance(entry, ChatRequest) and not has_asked:
                has_asked = True
                yield from self._declarations(entry)
            if isinstance(entry, (ChatResponse, ToolCallRequest)):
                yield from self._model(entry)
            yield from self._event(entry)

    def _event(self, entry: AnyEntry) -> Iterator[_Written]:
        if isinstance(entry, Unknown):
            if whole := self._wholes.get(entry.id):
                yield _Written(entry=entry, event=whole, type=_type_of(whole))
            return
        left = dict(self._fields.get(entry.id, {}))
        fields = self._delta(entry, left.pop("delta", {})) if isinstance(entry, ConfigDelta) else self._body(entry)
        if "metadata" in left:
            left["metadata"] = encoded_metadata(left["metadata"])
        kind = str(entry.__struct_config__.tag)
        event = {"timestamp": timestamp_of(entry.at), "type": kind, **fields, **left}
        yield _Written(entry=entry, event=event, type=kind)

    def _body(self, entry: KnownEntry) -> JsonObject:  # noqa: C901 - one case for each type
        fields: JsonObject = {}
        match entry:
            case ChatRequest():
                fields = self._request(entry)
            case ChatResponse():
                fields = self._answer(entry)
            case ToolCallRequest():
                fields = self._call(entry)
            case ToolCallResponse():
                fields = self._result(entry)
            case InquiryRequest():
                fields = self._question(entry)
            case InquiryResponse():
                fields = {"id": self._asked_id(entry), "answer": entry.answer}
            case Compaction():
                fields = self._compaction(entry)
            case TurnStart() | ConfigDelta() | Header() | Revert() | RequestContext() | CycleEnd():
                pass
            case _:
                assert_never(entry)
        return fields

    def _delta(self, entry: ConfigDelta, other: object) -> JsonObject:
        delta = _merged(entry.delta, other)
        self._settings.change(delta)
        return {"delta": delta}

    def _request(self, entry: ChatRequest) -> JsonObject:
        self.omitted["attachment snapshots"] += len(entry.resources)
        return _present(content=entry.content, schema=entry.schema, author=entry.author)

    def _declarations(self, request: ChatRequest) -> Iterator[_Written]:
        """Declare what a turn attached: the original attaches what is declared to every turn."""
        declared = self._settings.attachments
        added = [text for text in request.attachments if text not in declared]
        if added:
            yield self._change(request, {"conversation": {"attachments": [*declared, *added]}})

    def _model(self, answer: ChatResponse | ToolCallRequest) -> Iterator[_Written]:
        """Set the model that metadata belongs to: the original tells it by the settings that hold."""
        metadata = answer.metadata or {}
        provider, model = metadata.get("provider"), metadata.get("model")
        is_named = isinstance(provider, str) and isinstance(model, str)
        if is_named and (provider, model) != (self._settings.provider, self._settings.model):
            yield self._change(answer, {"assistant": {"model": {"id": {"provider": provider, "name": model}}}})

    def _change(self, entry: AnyEntry, delta: JsonObject) -> _Written:
        self._settings.change(delta)
        event = {"timestamp": timestamp_of(entry.at), "type": "config_delta", "delta": delta}
        return _Written(entry=entry, event=event, type="config_delta")

    def _answer(self, entry: ChatResponse) -> JsonObject:
        if entry.message is not None:
            said: JsonObject = {"message": entry.message}
        elif entry.reasoning is not None:
            said = {"reasoning": entry.reasoning}
        else:
            said = {"data": None if entry.data is msgspec.UNSET else entry.data}
        return said | _metadata(entry.metadata)

    def _call(self, entry: ToolCallRequest) -> JsonObject:
        arguments = entry.arguments
        if isinstance(arguments, str):
            self.omitted["malformed tool arguments"] += 1
            arguments = {}
        call = {"id": self._call_ids[entry.id], "name": entry.name, "arguments": encoded_values(arguments)}
        return call | _metadata(entry.metadata)

    def _result(self, entry: ToolCallResponse) -> JsonObject:
        if any(not isinstance(block, TextBlock) for block in entry.content):
            self.omitted["tool results that are not plain text"] += 1
        content = "\n\n".join(map(self._text_of, entry.content))
        identity = self._call_ids.get(entry.request, entry.request)
        return {"id": identity, "content": encoded_values(content), "is_error": entry.is_error}

    def _question(self, entry: InquiryRequest) -> JsonObject:
        call = self._by_id.get(entry.request)
        source = {"source": {"source": "tool", "name": call.name}} if isinstance(call, ToolCallRequest) else {}
        return {"id": self._inquiry_id(entry), **source, "question": as_asked(entry.question)}

    def _asked_id(self, entry: InquiryResponse) -> str:
        asked = self._by_id.get(entry.request)
        return self._inquiry_id(asked) if isinstance(asked, InquiryRequest) else entry.request

    def _inquiry_id(self, entry: InquiryRequest) -> str:
        call = self._call_ids.get(entry.request)
        return entry.question.id if call is None else f"{call}.{entry.question.id}"

    def _compaction(self, entry: Compaction) -> JsonObject:
        is_narrower = entry.to_cycle is not None or bool(entry.kept)
        is_lost = entry.resources is not None or bool(entry.tool_overrides) or is_narrower
        policy = entry.tool_calls
        self.omitted["details of compactions"] += is_lost or (policy is not None and policy.policy == "digest")
        return _present(
            from_turn=entry.from_turn,
            to_turn=entry.to_turn,
            summary=None if entry.summary is None else {"summary": entry.summary.text},
            reasoning=entry.reasoning,
            tool_calls=None if policy is None else _policy(policy),
        )


def _counting(entries: Sequence[AnyEntry], omitted: Counter[str]) -> list[AnyEntry]:
    """Return the entries that count, and add those that do not to `omitted`."""
    gone = undone(entries)
    turns = turns_of(entries)
    hidden: set[int] = set()
    for turn in turns:
        if turn.id in gone:
            omitted["undone turns"] += 1
            hidden.update(map(id, turn.entries))
        else:
            failed = (attempt for cycle in cycles_of(turn) for attempt in cycle.attempts[:-1])
            hidden.update(id(answer) for attempt in failed for answer in attempt.answers)
    found: list[AnyEntry] = []
    for entry in entries:
        if isinstance(entry, (Header, Revert, RequestContext, CycleEnd)) or id(entry) in hidden:
            continue
        if isinstance(entry, Unknown) and entry.type != REMAINDER:
            omitted["entries of an unknown type"] += 1
        elif entry.id not in gone or not entry.id:
            found.append(entry)
    return found


def _remainders(entries: Sequence[AnyEntry]) -> tuple[dict[str, msgspec.Raw], dict[str, JsonObject]]:
    """Return the events that were kept whole by the id of their entry, and the other fields by that of theirs."""
    wholes: dict[str, msgspec.Raw] = {}
    fields: dict[str, JsonObject] = {}
    for entry in entries:
        if isinstance(entry, Unknown) and entry.type == REMAINDER:
            found = msgspec.json.decode(entry.raw, type=_Remainder)
            if found.event:
                wholes[entry.id] = found.event
            else:
                fields[found.of] = found.fields
    return wholes, fields


class _Remainder(msgspec.Struct, frozen=True):
    """An entry of the type `REMAINDER`."""

    event: msgspec.Raw = msgspec.Raw(b"")
    of: str = ""
    fields: JsonObject = {}


class _Typed(msgspec.Struct, frozen=True):
    type: str = ""


def _type_of(raw: msgspec.Raw) -> str:
    return msgspec.json.decode(raw, type=_Typed).type


def _call_ids(entries: Sequence[AnyEntry]) -> dict[str, str]:
    """Return the id of each call by that of its entry: the provider's, unless it would pair wrongly."""
    calls = {entry.id: entry.call_id for entry in entries if isinstance(entry, ToolCallRequest)}
    links = list(_links(entries, calls))
    pairs = answered(links)
    positions = {entry.id: number for number, entry in enumerate(entries)}
    expected = {
        number: positions[entry.request]
        for number, entry in enumerate(entries)
        if isinstance(entry, ToolCallResponse) and entry.request in calls
    }
    found = {number: request for number, request in pairs.items() if isinstance(entries[number], ToolCallResponse)}
    if found == expected:
        return calls
    times = Counter(calls.values())
    seen: Counter[str] = Counter()
    unique: dict[str, str] = {}
    for identity, call in calls.items():
        seen[call] += 1
        unique[identity] = f"{call}-{seen[call]}" if times[call] > 1 else call
    return unique


def _links(entries: Sequence[AnyEntry], calls: Mapping[str, str]) -> Iterator[Link]:
    for number, entry in enumerate(entries):
        if isinstance(entry, TurnStart):
            yield Link(number, "turn")
        elif isinstance(entry, ToolCallRequest):
            yield Link(number, "tool_request", entry.call_id)
        elif isinstance(entry, ToolCallResponse):
            yield Link(number, "tool_response", calls.get(entry.request, entry.request))


def _with_ranges(written: Sequence[_Written], entries: Sequence[AnyEntry], omitted: Counter[str]) -> Iterator[_Written]:
    """Yield the events, with compactions that say their range by the turns that the original counts."""
    theirs = turn_numbers([one.type for one in written])
    by_turn: dict[int, list[int]] = {}
    ours = {id(entry): turn.number for turn in turns_of(entries) for entry in turn.entries}
    for one, number in zip(written, theirs, strict=True):
        if id(one.entry) in ours:
            by_turn.setdefault(ours[id(one.entry)], []).append(number)
    known = turns_of(entries)
    starts = {turn.id: turn.number for turn in known if turn.id}
    for one in written:
        if not isinstance(one.entry, Compaction) or isinstance(one.event, msgspec.Raw):
            yield one
            continue
        first = starts.get(one.entry.from_id or "", one.entry.from_turn)
        last = starts.get(one.entry.to_id or "", one.entry.to_turn) - (one.entry.to_cycle is not None)
        numbers = [number for turn in range(first, last + 1) for number in by_turn.get(turn, ())]
        if numbers:
            event = {**one.event, "from_turn": min(numbers), "to_turn": max(numbers)}
            yield msgspec.structs.replace(one, event=event)
        elif first >= len(known):
            yield one
        else:
            omitted["compactions of undone turns or of a part of a turn"] += 1


def _policy(policy: ToolCallPolicy) -> JsonObject:
    match policy.policy:
        case "omit":
            return {"policy": "omit"}
        case "strip":
            return {"policy": "strip", "request": policy.request, "response": policy.response}
        case "digest":
            return {"policy": "strip", "request": False, "response": True}
        case _:
            assert_never(policy.policy)


def _metadata(metadata: JsonObject | None) -> JsonObject:
    return {} if metadata is None else {"metadata": encoded_metadata(metadata)}


def _present(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _merged(delta: JsonObject, over: Any) -> JsonObject:
    """Return a delta with the values that the original had of it in another spelling."""
    found = dict(delta)
    for name, value in cast("JsonObject", over).items():
        below: Any = found.get(name)
        is_object = isinstance(value, dict) and isinstance(below, dict)
        found[name] = _merged(cast("JsonObject", below), value) if is_object else value
    return found

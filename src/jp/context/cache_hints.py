"""Prompt caches: which blocks to mark, keys, and what in a prefix changes each time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NoReturn, assert_never, get_args

import msgspec

from jp.context.budget import estimate_block, estimate_call
from jp.context.groups import index_groups
from jp.context.types import Block, Message, ReasoningBlock, StoredBlock, TextBlock, Transcript
from jp.errors import JpError, reason_of

Section = Literal["tools", "system", "messages"]
"""The parts of a request in the order in which caches read them."""

Ttl = Literal["short", "long"]

Reason = Literal["static_prefix", "newest", "previous_request", "attachment", "tools", "lookback"]
"""Why a place is marked: the end of what every request begins with, of this request, of the one before it, of what was
attached last, of the tools alone (they outlive a change of the system prompt), or one near the end to look back to.
"""

MOST = 4
LOOKBACK = 18
"""Caches look back twenty blocks; two are left for what an adapter adds."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a cache reads as one block.

    `is_answer` says that it stands in a message of the model. `carries`: a mark may stand on it, which it may not on
    thinking, on what is empty, and on calls that still run. `is_volatile`: the next request will not have it there.
    `is_attached` is the end of something that a person attached.
    """

    section: Section
    tokens: int = 0
    is_answer: bool = False
    carries: bool = True
    is_volatile: bool = False
    is_attached: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider's cache is like. `minimum` is how many tokens a prefix needs to be kept at all.

    `static` and `tail` say for how long to keep the prefix that never changes, and the rest.
    """

    most: int = MOST
    lookback: int = LOOKBACK
    minimum: int = 0
    static: Ttl = "short"
    tail: Ttl = "short"


class CacheHint(msgspec.Struct, frozen=True, kw_only=True):
    """A mark on the piece at `position`, for how long what ends there is to be kept, and why."""

    position: int
    ttl: Ttl
    reason: Reason


_COMMON = Limits()


def place_hints(pieces: Sequence[Piece], limits: Limits = _COMMON) -> tuple[CacheHint, ...]:
    """The places to mark, at most `limits.most`, in their order.

    `pieces` are all blocks of a request: tools, system prompt, messages. Nothing is marked from the first volatile one
    on, for nobody could read it again. Where more is worth a mark than there are marks, the end of the static prefix,
    the newest place and the end of the request before come first.
    """
    end = next((at for at, piece in enumerate(pieces) if piece.is_volatile), len(pieces))
    long_enough = _first_of(pieces, limits.minimum)
    chosen: dict[int, Reason] = {}
    for position, reason in _wanted(pieces[:end], limits.lookback):
        if len(chosen) < limits.most and position >= long_enough:
            chosen.setdefault(position, reason)
    # Providers refuse an entry that is kept longer behind one that is kept shorter.
    static: Ttl = "long" if "long" in {limits.static, limits.tail} else "short"
    return tuple(
        CacheHint(
            position=position,
            ttl=limits.tail if pieces[position].section == "messages" else static,
            reason=chosen[position],
        )
        for position in sorted(chosen)
    )


def _wanted(pieces: Sequence[Piece], lookback: int) -> Iterator[tuple[int, Reason]]:
    """Every place that is worth a mark, the most important ones first."""
    start = next((at for at, piece in enumerate(pieces) if piece.section == "messages"), len(pieces))
    static = _last_carrier(pieces, 0, start)
    newest = _last_carrier(pieces, start, len(pieces))
    previous = None if newest is None else _end_of_request_before(pieces, start, newest)
    attached = next((at for at in range(len(pieces) - 1, start - 1, -1) if _holds_attachment(pieces[at])), None)
    system = next((at for at in range(start) if pieces[at].section == "system"), 0)
    found: list[tuple[int | None, Reason]] = [
        (static, "static_prefix"),
        (newest, "newest"),
        (previous, "previous_request"),
        (attached, "attachment"),
        (_last_carrier(pieces, 0, system), "tools"),
    ]
    if newest is not None and newest - (start if previous is None else previous) > lookback:
        near = (at for at in range(newest - lookback, newest) if pieces[at].carries)
        found.append((next(near, None), "lookback"))
    for position, reason in found:
        if position is not None:
            yield position, reason


def _end_of_request_before(pieces: Sequence[Piece], start: int, newest: int) -> int | None:
    """The last place before the answer at or before `newest`: there the request for that answer was marked."""
    answer = next((at for at in range(newest, start - 1, -1) if pieces[at].is_answer), start)
    asked = (at for at in range(answer - 1, start - 1, -1) if pieces[at].carries and not pieces[at].is_answer)
    return next(asked, None)


def _holds_attachment(piece: Piece) -> bool:
    return piece.is_attached and piece.carries


def _last_carrier(pieces: Sequence[Piece], start: int, end: int) -> int | None:
    return next((at for at in range(end - 1, start - 1, -1) if pieces[at].carries), None)


def _first_of(pieces: Sequence[Piece], minimum: int) -> int:
    """The first position with at least `minimum` tokens up to its end."""
    tokens = 0
    for position, piece in enumerate(pieces):
        tokens += piece.tokens
        if tokens >= minimum:
            return position
    return len(pieces)


class Carrier(msgspec.Struct, frozen=True, kw_only=True):
    """Where a mark stands.

    In `messages` and `system`, `message` is the position in the transcript and `block` the number of the block in its
    content; a content that is one text is block 0, and calls count on from there. In `tools`, `block` is the tool's.
    """

    section: Section
    block: int
    message: int | None = None


class CarrierHint(msgspec.Struct, frozen=True, kw_only=True):
    """A mark for a provider, for how long what ends there is to be kept, and why."""

    carrier: Carrier
    ttl: Ttl
    reason: Reason


_COMMON_ANCHORS = Limits()


def cache_hints(
    messages: Transcript,
    *,
    tool_tokens: Sequence[int] = (),
    volatile_from: int | None = None,
    limits: Limits = _COMMON_ANCHORS,
) -> tuple[CarrierHint, ...]:
    """Where to mark a request of `messages` and of tools that have so many tokens each, in their order.

    From message `volatile_from` on, the next request will say something else. Nothing is changed: placing the marks is
    the adapter's part, on what it renders.
    """
    carriers: list[Carrier] = []
    pieces: list[Piece] = []
    for number, tokens in enumerate(tool_tokens):
        carriers.append(Carrier(section="tools", block=number))
        pieces.append(Piece(section="tools", tokens=tokens))
    ordered = _in_reading_order(messages)
    pending = _pending_from(messages)
    for position in ordered:
        is_volatile = volatile_from is not None and position >= volatile_from
        for block, piece in enumerate(_pieces_of(messages[position], is_pending=position >= pending)):
            carriers.append(Carrier(section=piece.section, block=block, message=position))
            pieces.append(msgspec.structs.replace(piece, is_volatile=True) if is_volatile else piece)
    return tuple(
        CarrierHint(carrier=carriers[hint.position], ttl=hint.ttl, reason=hint.reason)
        for hint in place_hints(pieces, limits)
    )


def _in_reading_order(messages: Transcript) -> list[int]:
    """System messages first, wherever they stand: so they are read."""
    return sorted(range(len(messages)), key=lambda position: messages[position].role != "system")


def _pending_from(messages: Transcript) -> int:
    """Where the calls begin that still run: from there on the next request has more."""
    index = index_groups(messages)
    return next((group.start for group in index.groups if group.pending), len(messages))


def _pieces_of(message: Message, *, is_pending: bool) -> Iterator[Piece]:
    section: Section = "system" if message.role == "system" else "messages"
    is_answer = message.role == "assistant"
    blocks = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    for block in blocks:
        yield Piece(
            section=section,
            tokens=estimate_block(block),
            is_answer=is_answer,
            carries=not (is_pending or _is_unfit(block)),
            is_attached=message.role == "user" and not isinstance(block, ReasoningBlock) and block.uri != "",
        )
    for call in message.calls:
        yield Piece(section=section, tokens=estimate_call(call), is_answer=True, carries=not is_pending)


def _is_unfit(block: Block) -> bool:
    """Whether providers refuse a mark on `block`: on thinking, and on what shows nothing."""
    match block:
        case ReasoningBlock():
            return True
        case TextBlock(text=text):
            return not text or text.isspace()
        case StoredBlock(size=size):
            return size == 0
        case _:
            assert_never(block)


_VERSION = "static-prefix 1"


class PrefixError(JpError):
    """The tools of a request are no tools that a provider takes."""


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is sent: `wire` is its JSON, byte for byte. `kind` tells what a provider offers from what is run."""

    name: str
    wire: bytes
    kind: str = "function"


class PrefixKey(msgspec.Struct, frozen=True, kw_only=True):
    """`key` names what is said, `wire_digest` the bytes that say it; both are a sha256 in hexadecimal digits."""

    key: str
    wire_digest: str


class _Number(str):
    """A number as it is spelled: `1`, `1.0` and `1e0` are other bytes."""

    __slots__ = ()


class _Object(tuple[tuple[str, "_Json"], ...]):
    """The members of a JSON object as they stand there; names may repeat."""

    __slots__ = ()


_Json = _Number | _Object | str | bool | list["_Json"] | None


def static_prefix_key(system: Sequence[str], tools: Sequence[ToolSchema], *, provider: str, model: str) -> PrefixKey:
    """The key of a static prefix.

    Neither the order of the tools nor that of the keys in their JSON changes it; everything else does: the order in
    lists, the spelling of numbers, how the system prompt is divided, characters that only look alike.

    Raises:
        PrefixError: two tools have one name, or what a tool sends is not JSON.
    """
    _check_names(tools)
    head = [_utf8(text) for text in (_VERSION, provider, model, str(len(system)), *system)]
    canonical = sorted((_utf8(tool.kind), _utf8(tool.name), _canonical(tool)) for tool in tools)
    as_sent = [(_utf8(tool.kind), _utf8(tool.name), tool.wire) for tool in tools]
    return PrefixKey(key=_digest(head, canonical), wire_digest=_digest(head, as_sent))


def compare_prefixes(before: PrefixKey, after: PrefixKey) -> Literal["same", "reordered", "changed"]:
    """What became of a prefix from one request to the next.

    `reordered` misses the cache although nothing else was said: whoever renders has to put things in one order.
    """
    if before.key != after.key:
        return "changed"
    return "same" if before.wire_digest == after.wire_digest else "reordered"


def _check_names(tools: Iterable[ToolSchema]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise PrefixError(f"there are two tools called {tool.name!r}", hint="rename or disable one of them")
        seen.add(tool.name)


def _canonical(tool: ToolSchema) -> bytes:
    """What `tool` says, whatever the order in which the members of its objects stand."""
    try:
        value: _Json = json.loads(
            tool.wire, parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_Object
        )
        return b"".join(_fields(value))
    except (ValueError, RecursionError) as error:
        raise PrefixError(f"the tool {tool.name!r} does not send JSON: {reason_of(error)}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _fields(value: _Json) -> Iterator[bytes]:
    """`value` as fields of which each says how long it is, so that no two values give the same bytes."""
    match value:
        case None | True | False:
            yield _field(b"c", repr(value).encode())
        case _Number():
            yield _field(b"n", value.encode())
        case str():
            yield _field(b"s", _utf8(value))
        case _Object():
            members = sorted(((_utf8(name), item) for name, item in value), key=_name)
            yield _field(b"o", b"".join(_field(b"k", name) + b"".join(_fields(item)) for name, item in members))
        case list():
            yield _field(b"l", b"".join(b"".join(_fields(item)) for item in value))
        case _:
            assert_never(value)


def _name(member: tuple[bytes, _Json]) -> bytes:
    return member[0]


def _field(kind: bytes, content: bytes) -> bytes:
    return b"%b%d:%b" % (kind, len(content), content)


def _digest(head: Iterable[bytes], tools: Iterable[tuple[bytes, ...]]) -> str:
    whole = hashlib.sha256()
    for part in (*head, *(part for tool in tools for part in tool)):
        whole.update(_field(b"", part))
    return whole.hexdigest()


def _utf8(text: str) -> bytes:
    """Half of a surrogate pair, which JSON can spell, counts as the three bytes that it would have."""
    return text.encode("utf-8", "surrogatepass")


VolatileKind = Literal["timestamp", "uuid", "temporary_directory", "counter"]
_KINDS: tuple[VolatileKind, ...] = get_args(VolatileKind)


class Volatile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of thing in one part of a prefix: how often, where first (in characters), and what shape that has."""

    part: int
    kind: VolatileKind
    count: int
    first: int
    sample: str


_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_COUNTED = "attempts?|credits?|iterations?|messages?|requests?|tokens?|turns?"

_VOLATILE = re.compile(
    # In this order where several would begin at one place; what lies inside of another one is not looked at again.
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<temporary_directory>(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user)(?:/[\w.+-]+){1,16}"
    r"|\b[a-z]:\\(?:[\w.~ -]{1,64}\\){0,8}te?mp\\[\w.~-]+)"
    r"|(?P<timestamp>\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:z\b|[+-]\d\d:?\d\d)?"
    rf"|\b\d{{1,2}} (?:{_MONTH})[a-z]{{0,6}} \d{{4}} \d\d:\d\d(?::\d\d)?"
    rf"|\b(?:{_MONTH})[a-z]{{0,6}} \d{{1,2}}(?:, \d{{4}})?,? (?:at )?\d{{1,2}}:\d\d"
    r"|\b(?:today|now|date|time)(?: is)?[:=]? {0,4}\d{4}-\d\d-\d\d\b"
    r"|\b\d\d:\d\d:\d\d\b"
    r"|\b1[6-9]\d{8}(?:\d{3})?\b)"  # since 1970, in seconds or milliseconds
    rf"|(?P<counter>\b(?:{_COUNTED})(?: (?:count|left|number|remaining|so far|used))?(?: ?[#:=]| no\.) ?\d[\d,]{{0,15}}"
    rf"|\b\d[\d,]{{0,15}} (?:{_COUNTED}) (?:left|remaining|so far|used)\b"
    rf"|\b(?:{_COUNTED}) \d{{1,9}} (?:of|/) \d{{1,9}}\b)",
    re.IGNORECASE,
)

_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_LONGEST_SAMPLE = 40


def find_volatile(parts: Sequence[str]) -> tuple[Volatile, ...]:
    """What may change in `parts` of a prefix (its system prompt, its tools), in their order.

    A part has at most one entry of a kind. What lies in another one, such as the time in a path, counts once.
    """
    return tuple(found for number, text in enumerate(parts) for found in _in_part(number, text))


def redacted(text: str) -> str:
    """The shape of `text`: letters as `a`, digits as `0`, the rest as it stands; cut where it is long."""
    shape = _DIGIT.sub("0", _LETTER.sub("a", text[:_LONGEST_SAMPLE]))
    return f"{shape}…" if len(text) > _LONGEST_SAMPLE else shape


def _in_part(number: int, text: str) -> Iterator[Volatile]:
    found: dict[str, list[re.Match[str]]] = {}
    for match in _VOLATILE.finditer(text):
        found.setdefault(match.lastgroup or "", []).append(match)
    for kind in _KINDS:
        matches = found.get(kind, ())
        if matches:
            first = matches[0]
            yield Volatile(
                part=number, kind=kind, count=len(matches), first=first.start(), sample=redacted(first.group())
            )

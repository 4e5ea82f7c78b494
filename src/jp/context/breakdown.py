"""The breakdown of a context into buckets that add up, and corrections of estimates by what providers measure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar, get_args

import msgspec

from jp.context.budget import Item, ItemKind

LEAST = 0.5
MOST = 2.0
_SHARE_OF_THE_NEWEST = 0.3
_WORTH_LEARNING_FROM = 500
"""Below so many tokens, what every request has besides its messages is too large a share."""


class Calibration(msgspec.Struct, frozen=True):
    """By model: reported tokens over estimated ones, averaged so that newer requests count more."""

    ratios: Mapping[str, float] = {}


def calibrate(calibration: Calibration, model: str, *, estimated: int, reported: int | None) -> Calibration:
    """Return `calibration` with one more request to `model`, whose whole input was estimated and then reported.

    The first report counts in full. Tiny requests and providers that report nothing are ignored.
    """
    if reported is None or reported <= 0 or estimated < _WORTH_LEARNING_FROM:
        return calibration
    observed = _clamp(reported / estimated)
    before = ratio_of(calibration, model) if model in calibration.ratios else observed
    ratio = before + (observed - before) * _SHARE_OF_THE_NEWEST
    return Calibration({**calibration.ratios, model: _clamp(ratio)})


def ratio_of(calibration: Calibration, model: str) -> float:
    """Return the factor for estimates of `model`: 1 if nothing is known, always between 0.5 and 2."""
    return _clamp(calibration.ratios.get(model, 1.0))


def _clamp(ratio: float) -> float:
    return min(max(ratio, LEAST), MOST)


def apportion(weights: Sequence[int], total: int) -> tuple[int, ...]:
    """Return the shares of `total` by `weights`, which are not negative; the shares add up to it.

    Rounding gives the rest to the largest remainders, and to earlier ones among equals. A positive weight has a share
    of at least 1, if the total is large enough. Without any weight, every share is 0.
    """
    whole = sum(weights)
    if whole <= 0:
        return (0,) * len(weights)
    shares = [weight * total // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda number: -(weights[number] * total % whole))
    for number in by_remainder[: total - sum(shares)]:
        shares[number] += 1
    nothing = [number for number, weight in enumerate(weights) if weight and not shares[number]]
    if total >= sum(map(bool, weights)):
        for number in nothing:
            shares[shares.index(max(shares))] -= 1
            shares[number] = 1
    return tuple(shares)


Bucket = Literal[
    "system_prompt", "tool_definitions", "rules", "skills", "mcp_tools", "subagents", "memory", "conversation"
]
"""`rules` are instructions and context files, `mcp_tools` the definitions of tools of MCP servers."""

Source = Literal["provider_usage", "provider_usage+estimate", "local_estimate"]

K = TypeVar("K")

BUCKETS: tuple[Bucket, ...] = get_args(Bucket)
_OF_CONVERSATION: tuple[ItemKind, ...] = tuple(kind for kind in get_args(ItemKind) if kind != "system")

UNKNOWN_TOOL = "?"
"""Replaces the names of tools that the host did not offer: a model can write anything as a name."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a request besides its messages: a section of the system prompt, the definition of a tool.

    `is_static`: every request begins with it.
    """

    bucket: Bucket
    tokens: int
    size: int = 0
    is_static: bool = True


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that the provider reported for a request, and the estimate of those added since; 0 or less is unknown.

    If they are unknown, `ratio` multiplies estimates: see `jp.context.breakdown`.
    """

    tokens: int | None = None
    added: int = 0
    ratio: float = 1.0


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """The space that is available, None if unknown. Compaction is due at `threshold`."""

    window: int | None = None
    reserved: int = 0
    threshold: int | None = None


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The size of one thing: `tokens` scaled to the measurement, and as `estimated`; bytes; the number of items."""

    tokens: int
    estimated: int
    size: int
    items: int


class BucketShare(Share, frozen=True, kw_only=True):
    """A bucket. `is_static`: every request begins with it. `is_compressible`: compaction can shrink it."""

    kind: Bucket
    is_static: bool
    is_compressible: bool


class KindShare(Share, frozen=True, kw_only=True):
    """A part of the conversation."""

    kind: ItemKind


class ToolShare(Share, frozen=True, kw_only=True):
    """The results of one tool, a part of the conversation's `results`."""

    name: str


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """The eight buckets always, in one order, even where they are empty; of `conversation` and `tools` what is there.

    The buckets and `other`, of which nothing is known, add up to `total`, `conversation` to its bucket, and `tools` to
    its results. `ratio` is the total over the estimate, None where nothing was estimated.
    """

    room: Room
    source: Source
    total: int
    estimated: int
    ratio: float | None
    buckets: tuple[BucketShare, ...]
    other: int
    conversation: tuple[KindShare, ...]
    tools: tuple[ToolShare, ...]

    @property
    def free(self) -> int | None:
        """Tokens left besides those reserved for the answer, None if the window is unknown."""
        if self.room.window is None:
            return None
        return max(self.room.window - self.room.reserved - self.total, 0)


class _Sum:
    """Counts."""

    def __init__(self) -> None:
        self.tokens, self.size, self.items = 0, 0, 0

    def add(self, tokens: int, size: int) -> None:
        self.tokens += tokens
        self.size += size
        self.items += 1


class _Tally:
    """Sorts what there is."""

    def __init__(self, known_tools: Collection[str]) -> None:
        self.buckets: dict[Bucket, _Sum] = {bucket: _Sum() for bucket in BUCKETS}
        self.kinds: dict[ItemKind, _Sum] = {kind: _Sum() for kind in _OF_CONVERSATION}
        self.tools: dict[str, _Sum] = {}
        self.changing: set[Bucket] = {"conversation"}
        self._known_tools = known_tools

    def add_part(self, part: Part) -> None:
        self.buckets[part.bucket].add(part.tokens, part.size)
        if not part.is_static:
            self.changing.add(part.bucket)

    def add_item(self, item: Item) -> None:
        if item.kind == "system":
            self.buckets["system_prompt"].add(item.tokens, item.size)
            return
        self.buckets["conversation"].add(item.tokens, item.size)
        self.kinds[item.kind].add(item.tokens, item.size)
        if item.kind == "results":
            name = item.tool if item.tool in self._known_tools else UNKNOWN_TOOL
            self.tools.setdefault(name, _Sum()).add(item.tokens, item.size)


_ANY = Room()
_NOTHING = Measurement()


def break_down(
    parts: Iterable[Part],
    items: Iterable[Item],
    *,
    known_tools: Collection[str] = (),
    room: Room = _ANY,
    measured: Measurement = _NOTHING,
) -> Breakdown:
    """Return the breakdown of a context that has `parts`, and a transcript of `items` (see `jp.context.budget`).

    `known_tools` are the tools that the host offers or offered; the results of others are under `UNKNOWN_TOOL`.
    """
    tally = _Tally(known_tools)
    for part in parts:
        tally.add_part(part)
    for item in items:
        tally.add_item(item)
    estimated = sum(bucket.tokens for bucket in tally.buckets.values())
    total, source = _total_of(measured, estimated)
    buckets = tuple(
        BucketShare(
            kind=kind,
            is_static=kind not in tally.changing,
            is_compressible=kind == "conversation",
            tokens=tokens,
            estimated=found.tokens,
            size=found.size,
            items=found.items,
        )
        for kind, found, tokens in _scaled(tally.buckets, total)
    )
    conversation = tuple(
        KindShare(kind=kind, tokens=tokens, estimated=found.tokens, size=found.size, items=found.items)
        for kind, found, tokens in _scaled(tally.kinds, buckets[-1].tokens)
        if found.items
    )
    results = next((share.tokens for share in conversation if share.kind == "results"), 0)
    tools = (
        ToolShare(name=name, tokens=tokens, estimated=found.tokens, size=found.size, items=found.items)
        for name, found, tokens in _scaled(tally.tools, results)
    )
    return Breakdown(
        room=room,
        source=source,
        total=total,
        estimated=estimated,
        ratio=total / estimated if estimated else None,
        buckets=buckets,
        other=total - sum(bucket.tokens for bucket in buckets),
        conversation=conversation,
        tools=tuple(sorted(tools, key=lambda tool: (-tool.tokens, tool.name))),
    )


def _total_of(measured: Measurement, estimated: int) -> tuple[int, Source]:
    if measured.tokens is None or measured.tokens <= 0:
        return round(estimated * measured.ratio), "local_estimate"
    if measured.added <= 0:
        return measured.tokens, "provider_usage"
    return measured.tokens + measured.added, "provider_usage+estimate"


def _scaled(sums: Mapping[K, _Sum], total: int) -> Iterator[tuple[K, _Sum, int]]:
    """Yield each sum with its share of `total`."""
    shares = apportion([found.tokens for found in sums.values()], total)
    for (kind, found), tokens in zip(sums.items(), shares, strict=True):
        yield kind, found, tokens

"""Availability of a session's facts after a compaction: jp's own beside other ways.

A chain cuts the session into as many parts of equal length and compacts after each; the budget is a share of
everything so far. A fact is in view, or in a text whose handle is in view, or in what one search finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from context.baselines import (
    ClearOldest,
    KeepLast,
    MaskedOutcomes,
    Masking,
    Placeholders,
    Truncation,
)
from context.digest_schemes import HashDigests, LineDigests
from context.gold import KINDS, Fact, Kind, Place, availability, found_in, gold_of, one_line, places_of, shares_by_kind
from context.product import Product
from context.questions import EXCERPT_TOKENS, EXCERPTS, questions_of
from context.rounds import index_groups, leading_systems
from context.schemes import Named, Scheme
from context.sessions import Session
from context.tokens import Tokenizer, tokenizer
from context.workers import spread
from jp.context.budget import estimate_messages
from jp.context.types import Transcript

BUDGETS = (10, 25, 50)
CHAINS = (1, 3, 10)
OURS = "jp"
WITHOUT_FACTS = "jp, no host facts"
BARS = {10: 75, 25: 91, 50: 97}
"""Percent of facts that have to be in view, by budget."""

SEARCH_BAR = 98

BASELINES = (
    Named("recency truncation", Truncation),
    Named("masking, keep 10", Masking),
    Named("placeholder, keep 5", Placeholders),
    Named("clear oldest, keep 3", ClearOldest),
    Named("line digests (Hermes)", LineDigests),
    Named("hash digests (TinyJuice)", HashDigests),
    Named("keep last 20, stub", KeepLast),
    Named("twenty lines", MaskedOutcomes),
)


class Chain(Protocol):
    """A conversation that grows and is compacted a few times."""

    def grow(self, part: Transcript) -> None:
        """Append what was said next."""
        ...

    def compact(self, target: int) -> None:
        """Make it fit into `target` estimated tokens."""
        ...

    def view(self) -> Transcript:
        """Return what a model is sent."""
        ...

    def recallable(self) -> Iterator[str]:
        """Return each text that a reader of the view could ask for by something in it."""
        ...

    def search(self, queries: Sequence[str]) -> list[Sequence[str]]:
        """Return the excerpts that one search for each query finds, best first."""
        ...


class Plain:
    """A baseline, which knows messages only and cannot search."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._messages: Transcript = ()

    def grow(self, part: Transcript) -> None:
        """See the protocol."""
        self._messages = (*self._messages, *part)

    def compact(self, target: int) -> None:
        """See the protocol."""
        self._messages = self._scheme.compact(self._messages, target)

    def view(self) -> Transcript:
        """See the protocol."""
        return self._messages

    def recallable(self) -> Iterator[str]:
        """See the protocol."""
        return self._scheme.recallable(self._messages)

    def search(self, queries: Sequence[str]) -> list[Sequence[str]]:
        """Find nothing."""
        return [()] * len(queries)


class Way(NamedTuple):
    """A way to make room under its name in tables; `start` begins a conversation."""

    name: str
    start: Callable[[], Chain]


WAYS = (
    Way(OURS, Product),
    Way(WITHOUT_FACTS, partial(Product, facts=False)),
    *(Way(named.name, lambda named=named: Plain(named.make())) for named in BASELINES),
)


class Measured(NamedTuple):
    """A session, its facts, and the query for each of them."""

    session: Session
    facts: tuple[Fact, ...]
    questions: Mapping[Fact, str]


class Once(NamedTuple):
    """Facts of one session that are left: shares from 0 to 1, and the facts themselves by where they are found."""

    kept: float
    estimated: float
    pinned: float
    in_view: frozenset[Fact]
    recalled: frozenset[Fact]
    searched: frozenset[Fact]


class Score(NamedTuple):
    """One way at one point, as means over sessions; shares from 0 to 1.

    `over` sessions do not fit the budget; in `cannot` of them the system prompt and the last group alone do not.
    """

    way: str
    budget: int
    chain: int
    kept: float
    in_view: float
    recalled: float
    searched: float
    over: int
    cannot: int = 0
    by_kind: Mapping[Kind, float] = {}


def measured(sessions: Sequence[Session]) -> list[Measured]:
    """Return sessions with what is looked for in them."""
    found: list[Measured] = []
    for session in sessions:
        facts = gold_of(session.messages)
        found.append(Measured(session, facts, questions_of(session.messages, facts)))
    return found


def scores(sessions: Sequence[Session], report: Callable[[str], None]) -> list[Score]:
    """Return every way at every point."""
    prepared = measured(sessions)
    found: list[Score] = []
    for chain in CHAINS:
        for budget in BUDGETS:
            report(f"availability, {chain} compactions to {budget} %")
            tasks = [(way, one) for way in WAYS for one in prepared]
            each = spread(lambda task, at=(budget, chain): once(*task, budget=at[0], chain=at[1]), tasks)
            for number, way in enumerate(WAYS):
                of_way = each[number * len(prepared) : (number + 1) * len(prepared)]
                found.append(score_of(way.name, prepared, of_way, budget=budget, chain=chain))
    return found


def score_of(name: str, prepared: Sequence[Measured], each: Sequence[Once], *, budget: int, chain: int) -> Score:
    """Return the means over sessions."""
    count = len(each)

    def mean(found: Callable[[Once], frozenset[Fact]]) -> float:
        pairs = zip(prepared, each, strict=True)
        return sum(availability(one.facts, found(of)) for one, of in pairs) / count

    return Score(
        way=name,
        budget=budget,
        chain=chain,
        kept=sum(one.kept for one in each) / count,
        in_view=mean(lambda one: one.in_view),
        recalled=mean(lambda one: one.in_view | one.recalled),
        searched=mean(lambda one: one.in_view | one.recalled | one.searched),
        over=sum(_is_over(one.estimated, budget) for one in each),
        cannot=sum(_is_over(one.estimated, budget) and one.pinned * 100 > budget for one in each),
        by_kind=_by_kind(prepared, each),
    )


def _by_kind(prepared: Sequence[Measured], each: Sequence[Once]) -> dict[Kind, float]:
    shares: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for one, of in zip(prepared, each, strict=True):
        for kind, share in shares_by_kind(one.facts, of.in_view).items():
            shares[kind].append(share)
    return {kind: sum(found) / len(found) for kind, found in shares.items() if found}


def _is_over(kept: float, budget: int) -> bool:
    return kept * 100 > budget + 1


def pinned(messages: Transcript) -> int:
    """Return the tokens that no scheme may touch: the system prompt and the last group."""
    systems = leading_systems(messages)
    last = max(index_groups(messages).groups[-1].start, systems)
    return estimate_messages((*messages[:systems], *messages[last:]))


def once(way: Way, one: Measured, *, budget: int, chain: int, counting: Tokenizer | None = None) -> Once:
    """Run a chain over one session and look for its facts."""
    counting = counting or tokenizer()
    conversation = way.start()
    messages, facts = one.session.messages, one.facts
    so_far = 0
    for part in parts_of(messages, chain):
        conversation.grow(part)
        so_far += estimate_messages(part)
        conversation.compact(so_far * budget // 100)
    view = conversation.view()
    in_view = found_in(facts, places_of(view))
    recalled = found_in(set(facts) - in_view, [Place(one_line(text)) for text in conversation.recallable()])
    return Once(
        kept=counting.count(view) / max(counting.count(messages), 1),
        estimated=estimate_messages(view) / max(so_far, 1),
        pinned=pinned(messages) / max(so_far, 1),
        in_view=in_view,
        recalled=recalled,
        searched=_searched(conversation, one, set(facts) - in_view - recalled, counting),
    )


def _searched(conversation: Chain, one: Measured, missing: set[Fact], counting: Tokenizer) -> frozenset[Fact]:
    """Return those of `missing` that the one search for each of them finds."""
    facts = sorted(missing, key=str)
    found = conversation.search([one.questions[fact] for fact in facts]) if facts else []
    return frozenset(
        fact
        for fact, excerpts in zip(facts, found, strict=True)
        if found_in([fact], _excerpts(excerpts[:EXCERPTS], counting))
    )


def _excerpts(texts: Sequence[str], counting: Tokenizer) -> list[Place]:
    return [Place(one_line(counting.truncate(text, EXCERPT_TOKENS))) for text in texts]


def parts_of(messages: Transcript, count: int) -> Iterator[Transcript]:
    """`messages` in `count` parts of about as many tokens each; no group is cut."""
    index = index_groups(messages)
    costs = [estimate_messages(messages[group.start : group.end]) for group in index.groups]
    total, taken, start = sum(costs), 0, 0
    done = 0
    for group, cost in zip(index.groups, costs, strict=True):
        taken += cost
        if taken * count >= total * (done + 1) or group.end == len(messages):
            done = taken * count // max(total, 1)
            yield messages[start : group.end]
            start = group.end


def dominated_by(score: Score, others: Sequence[Score]) -> list[Score]:
    """Return those of `others` that dominate `score`: as good in tokens and in facts, and better in one."""
    return [
        other
        for other in others
        if other.kept <= score.kept
        and other.in_view >= score.in_view
        and other.recalled >= score.recalled
        and (other.kept, -other.in_view, -other.recalled) != (score.kept, -score.in_view, -score.recalled)
    ]


def lines(found: Sequence[Score], counting: Tokenizer) -> Iterator[str]:
    """The table, which bars jp misses, and where it is not on the front."""
    head = ("kept %", "in view %", "+ recall %", "+ search %", "over", "cannot")
    yield f"{'chain':>5}{'budget':>8}  {'':<26}" + "".join(f"{name:>12}" for name in head)
    for score in found:
        searched = f"{score.searched * 100:.1f}" if score.way in {OURS, WITHOUT_FACTS} else ""
        yield (
            f"{score.chain:>5}{score.budget:>7}%  {score.way:<26}{score.kept * 100:>12.1f}{score.in_view * 100:>12.1f}"
            f"{score.recalled * 100:>12.1f}{searched:>12}{score.over:>12}{score.cannot:>12}"
        )
    yield ""
    yield from _classes(found)
    yield from _missed(found)
    yield from _front(found)
    yield f"tokens by {counting.name}; budgets are in jp's estimate; means over sessions of the means of five classes"


def _classes(found: Sequence[Score]) -> Iterator[str]:
    yield f"in view by class, %{'':<22}" + "".join(f"{kind:>13}" for kind in KINDS)
    for score in found:
        if score.way in {OURS, WITHOUT_FACTS}:
            shares = "".join(f"{score.by_kind.get(kind, 1.0) * 100:>13.1f}" for kind in KINDS)
            yield f"{score.chain:>5}{score.budget:>7}%  {score.way:<26}{shares}"
    yield ""


def _missed(found: Sequence[Score]) -> Iterator[str]:
    for score in found:
        if score.way in {OURS, WITHOUT_FACTS}:
            at = f"chain {score.chain}, budget {score.budget} %, {score.way}"
            if score.in_view * 100 < BARS[score.budget]:
                yield f"below the bar: {at}: {score.in_view * 100:.1f} % in view, {BARS[score.budget]} % are asked for"
            if score.searched * 100 < SEARCH_BAR:
                with_search = f"{score.searched * 100:.1f} % with recall and one search"
                yield f"below the bar: {at}: {with_search}, {SEARCH_BAR} % are asked for"


def _front(found: Sequence[Score]) -> Iterator[str]:
    """Yield the points at which another way dominates jp, in each chain, at any budget."""
    ours = [score for score in found if score.way in {OURS, WITHOUT_FACTS}]
    beaten = 0
    for score in ours:
        others = [other for other in found if other.chain == score.chain and other.way not in {OURS, WITHOUT_FACTS}]
        for other in dominated_by(score, others):
            beaten += 1
            yield (
                f"not on the front: chain {score.chain}, budget {score.budget} %, {score.way}: {other.way} has "
                f"{other.in_view * 100:.1f} % with {other.kept * 100:.1f} % of the tokens"
            )
    if not beaten:
        yield f"jp is on the Pareto front (tokens, in view, with recall) at each of its {len(ours)} points"
    yield "over: sessions above the budget; cannot: those of them whose system prompt and last round alone are above it"

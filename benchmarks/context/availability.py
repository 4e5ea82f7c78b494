"""How much of what a session held can still be read, or recalled, after it was made to fit: for each scheme and budget.

A chain of compactions cuts the session into as many parts of equal length and compacts after each; the budget is a
share of everything so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from context.baselines import ClearOldest, KeepLast, Masking, Placeholders, Truncation
from context.digest_schemes import HashDigests, LineDigests
from context.gold import Fact, Place, availability, found_in, gold_of, one_line, places_of
from context.schemes import NONCE, Named, OurPasses, newest_request
from context.sessions import Session
from jp.context.budget import estimate_messages, group_costs
from jp.context.groups import index_groups, leading_systems
from jp.context.spoken import Spoken
from jp.context.summary_row import summary_row
from jp.context.summary_state import Provenance, SummaryState
from jp.context.types import Transcript, texts_of

BUDGETS = (10, 25, 50)
CHAINS = (1, 2, 3, 10)
OURS = "jp.context"
SHORTEST_REQUEST = 300

SCHEMES = (
    Named(OURS, OurPasses),
    Named("recency truncation", Truncation),
    Named("masking, keep 10", Masking),
    Named("placeholder, keep 5", Placeholders),
    Named("clear oldest, keep 3", ClearOldest),
    Named("line digests (Hermes)", LineDigests),
    Named("hash digests (TinyJuice)", HashDigests),
    Named("keep last 20, stub", KeepLast),
)


class Score(NamedTuple):
    """One scheme at one point, as means over sessions; shares from 0 to 1.

    `over` sessions did not fit the budget; `cannot` of them have parts above it that no scheme may touch.
    """

    scheme: str
    budget: int
    chain: int
    retained: float
    closed: float
    recoverable: float
    over: int
    cannot: int = 0


class _Once(NamedTuple):
    retained: float
    closed: float
    recoverable: float
    pinned: float


def scores(sessions: Sequence[Session], report: Callable[[str], None]) -> list[Score]:
    """Every scheme at every point."""
    gold = [gold_of(session.messages) for session in sessions]
    found: list[Score] = []
    for chain in CHAINS:
        for budget in BUDGETS:
            for scheme in SCHEMES:
                report(f"availability, {chain} compactions to {budget} %: {scheme.name}")
                found.append(_score(scheme, sessions, gold, budget=budget, chain=chain))
    return found


def _score(
    scheme: Named, sessions: Sequence[Session], gold: Sequence[tuple[Fact, ...]], *, budget: int, chain: int
) -> Score:
    each = [
        _once(scheme, session.messages, facts, budget=budget, chain=chain)
        for session, facts in zip(sessions, gold, strict=True)
    ]
    count = len(each)
    return Score(
        scheme=scheme.name,
        budget=budget,
        chain=chain,
        retained=sum(one.retained for one in each) / count,
        closed=sum(one.closed for one in each) / count,
        recoverable=sum(one.recoverable for one in each) / count,
        over=sum(_is_over(one.retained, budget) for one in each),
        cannot=sum(_is_over(one.retained, budget) and one.pinned * 100 > budget for one in each),
    )


def _is_over(retained: float, budget: int) -> bool:
    return retained * 100 > budget + 1


def pinned(messages: Transcript) -> int:
    """Tokens that are always sent: the system prompt, the last group, a summary with no more than the newest request.

    Of that no more than 300 characters are counted, and none where it stands in the last group.
    """
    systems = leading_systems(messages)
    last = max(index_groups(messages).groups[-1].start, systems)
    request = newest_request(messages[:last])
    said = "" if request is None or newest_request(messages[last:]) else "".join(texts_of(request))[:SHORTEST_REQUEST]
    state = SummaryState(spoken=Spoken(active=said), provenance=Provenance(is_local=True))
    return estimate_messages((*messages[:systems], summary_row(state, (), NONCE), *messages[last:]))


def _once(scheme: Named, messages: Transcript, facts: tuple[Fact, ...], *, budget: int, chain: int) -> _Once:
    maker = scheme.make()
    context: Transcript = ()
    so_far = 0
    for part in parts_of(messages, chain):
        context = (*context, *part)
        so_far += estimate_messages(part)
        context = maker.compact(context, so_far * budget // 100)
    places = places_of(context)
    closed = found_in(facts, places)
    recalled = [Place(one_line(text)) for text in maker.recallable(context)]
    return _Once(
        retained=estimate_messages(context) / max(so_far, 1),
        closed=availability(facts, closed),
        recoverable=availability(facts, closed | found_in(set(facts) - closed, recalled)),
        pinned=pinned(messages) / max(so_far, 1),
    )


def parts_of(messages: Transcript, count: int) -> Iterator[Transcript]:
    """`messages` in `count` parts of about as many tokens each; no group is cut."""
    index = index_groups(messages)
    costs = group_costs(messages, index)
    total, taken, start = sum(costs), 0, 0
    done = 0
    for group, cost in zip(index.groups, costs, strict=True):
        taken += cost
        if taken * count >= total * (done + 1) or group.end == len(messages):
            done = taken * count // max(total, 1)
            yield messages[start : group.end]
            start = group.end


def dominated_by(score: Score, others: Sequence[Score]) -> list[Score]:
    """Who of `others` is as good as `score` or better in tokens and in both availabilities, and better in one."""
    return [
        other
        for other in others
        if other.retained <= score.retained
        and other.closed >= score.closed
        and other.recoverable >= score.recoverable
        and (other.retained, -other.closed, -other.recoverable) != (score.retained, -score.closed, -score.recoverable)
    ]


def lines(found: Sequence[Score]) -> Iterator[str]:
    """The table, and where ours is not on the front."""
    head = ("retained %", "closed-book %", "one recall %", "over", "cannot")
    yield f"{'chain':>5}{'budget':>8}  {'scheme':<26}{head[0]:>11}{head[1]:>15}{head[2]:>14}{head[3]:>6}{head[4]:>8}"
    for score in found:
        yield (
            f"{score.chain:>5}{score.budget:>7}%  {score.scheme:<26}{score.retained * 100:>11.1f}"
            f"{score.closed * 100:>15.1f}{score.recoverable * 100:>14.1f}{score.over:>6}{score.cannot:>8}"
        )
    yield ""
    yield from _front(found)


def _front(found: Sequence[Score]) -> Iterator[str]:
    """Where another scheme has as few tokens and as much in it as ours; in each chain, at any budget."""
    ours = [score for score in found if score.scheme == OURS]
    for score in ours:
        others = [other for other in found if other.chain == score.chain and other.scheme != OURS]
        for other in dominated_by(score, others):
            yield (
                f"not on the front: chain {score.chain}, budget {score.budget} %: {other.scheme} has "
                f"{other.closed * 100:.1f} % with {other.retained * 100:.1f} % of the tokens"
            )
    if not any(dominated_by(score, [each for each in found if each.chain == score.chain]) for score in ours):
        yield f"{OURS} is on the Pareto front (tokens, closed-book, one recall) at each of its {len(ours)} points"
    yield "over: sessions above the budget; cannot: those of them whose system prompt, last message or round, and"
    yield f"a summary with only {SHORTEST_REQUEST} characters of the newest request are above it by themselves"

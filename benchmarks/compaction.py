"""What compacting recorded conversations saves and costs, in tokens and money: each profile, and the original's rules.

Each session is a log that is compacted once, at its end. Tokens are estimated; prices are those of the shipped table.
No model is asked: `heavy` writes the summary that jp writes without one, and is charged for what a model would have
read and written. Of the original it is the rule that it ships: reasoning out, arguments blank, one status line for each
result, but for the first and the last turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from context.conversations import Conversation, conversation_of
from context.gold import Fact, Place, availability, found_in, gold_of, one_line, places_of
from context.product import recallable
from context.sessions import recorded_sessions
from jp.app.compaction.summarizer import rehearsal_terms, rehearse, texts_of
from jp.compaction.fact_lines import StatusLineFormatter, tool_policy
from jp.compaction.overlays import KeepTurns, Range, RangeRequest
from jp.compaction.planning import Effect, Planner, PolicyRequest, ResultObserver, requested_policies
from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter, StatusFormatter
from jp.compaction.transcript import transcript_of
from jp.config.model import PROFILES
from jp.context.budget import EditCost, Prices, PromptEdit, cost_of_edit
from jp.context.estimate import estimate_tokens
from jp.context.summary_asking import summary_limit
from jp.conversation.entries import AnyEntry, Compaction
from jp.provider.base import ModelDetails
from jp.provider.models import find_model
from jp.turn.request import InlineLoader
from results import Report

MODEL = ("anthropic", "claude-sonnet-4-5")
WINDOW = 200_000
_ABSENT = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"
_MILLION = 1_000_000


class Way(NamedTuple):
    """A way to compact: what, which turns stay at both ends, and what stands for what leaves."""

    name: str
    wish: PolicyRequest
    keep_first: int
    keep_last: int
    status_formatter: Callable[[], StatusFormatter] = StatusLineFormatter


PROFILE_NAMES = ("default", "light", "heavy")
STRIP = PolicyRequest(reasoning=True, tools=tool_policy("strip"))
WAYS = (
    *(Way(f"{name} 0/3", requested_policies(PROFILES[name]), 0, 3) for name in PROFILE_NAMES),
    *(Way(f"{name} 0/1", requested_policies(PROFILES[name]), 0, 1) for name in PROFILE_NAMES),
    Way("original 1/1", STRIP, 1, 1, PlainStatusFormatter),
    Way("original 0/1", STRIP, 0, 1, PlainStatusFormatter),
)

QUOTED = {
    **{f"{name} 0/1": f"`{name}`" for name in PROFILE_NAMES},
    "original 0/1": "blank arguments, status lines",
}
"""The ways that a page quotes, with their titles in it."""


class Outcome(NamedTuple):
    """What came of one conversation.

    `seen` and `recalled` are the shares of what the session held that the view has, and that it has or recalls.
    """

    effect: Effect
    edit: EditCost
    seen: float
    recalled: float


class Prepared(NamedTuple):
    """A conversation and what it holds that its reader would need."""

    conversation: Conversation
    facts: tuple[Fact, ...]


def prices_of(details: ModelDetails) -> Prices:
    """The prices of a model that has some."""
    if details.input_price is None:
        raise ValueError(f"no price is known of {details.id!r}")
    return Prices(input=details.input_price, cache_read=details.cache_read_price, cache_write=details.cache_write_price)


def outcome_of(way: Way, prepared: Prepared, details: ModelDetails) -> Outcome:
    """A conversation, compacted in this way at its end; its provider's cache still holds all of it."""
    entries = prepared.conversation.entries
    planner = Planner(entries, way.status_formatter(), {}, now=0.0, observer=ResultObserver(texts_of(InlineLoader())))
    keep = RangeRequest(keep_first=KeepTurns(way.keep_first), keep_last=KeepTurns(way.keep_last))
    plan = planner.plan(way.wish, keep)
    overlays, once = plan.overlays, 0.0
    if plan.summary is not None:
        overlays, once = _summarised(entries, planner, plan.summary, details)
    effect = planner.effect(overlays)
    seen, recalled = _known(prepared, overlays, way.status_formatter())
    return Outcome(effect, edit_of(effect, once, prices_of(details)), seen, recalled)


def _summarised(
    entries: Sequence[AnyEntry], planner: Planner, turns: Range, details: ModelDetails
) -> tuple[tuple[Compaction, ...], float]:
    """The overlay with a summary that no model wrote, and what one would have taken; none where it is no shorter."""
    found = rehearse(entries, turns, InlineLoader(), rehearsal_terms(window=WINDOW, limit=summary_limit(WINDOW)))
    overlay = replace(planner.bare(turns), summary=found.policy)
    if found.policy is None or planner.effect((overlay,)).freed <= 0:
        return (), 0.0
    return (overlay,), summary_cost(found.input, estimate_tokens(found.policy.text), details)


def summary_cost(read: int, written: int, details: ModelDetails) -> float:
    """What a model takes for reading and writing so many tokens, nothing of it cached."""
    return (read * (details.input_price or 0.0) + written * (details.output_price or 0.0)) / _MILLION


def reading_cost(tokens: int, prices: Prices) -> float:
    """What a prompt of `tokens` costs in USD that the cache has."""
    return tokens * (prices.input if prices.cache_read is None else prices.cache_read) / _MILLION


def edit_of(effect: Effect, once: float, prices: Prices) -> EditCost:
    """What the break of a warm cache costs, and when it has come back."""
    edit = PromptEdit(before=effect.before - effect.untouched, after=effect.after - effect.untouched, once=once)
    return cost_of_edit(edit, prices, is_warm=True)


def _known(
    prepared: Prepared, overlays: Sequence[Compaction], status_formatter: StatusFormatter
) -> tuple[float, float]:
    entries = (*prepared.conversation.entries, *overlays)
    view = transcript_of(project(entries, status_formatter), entries).messages
    seen = found_in(prepared.facts, places_of(view))
    recalled = [Place(one_line(text)) for text in recallable(entries, view)]
    return (
        availability(prepared.facts, seen),
        availability(prepared.facts, seen | found_in(prepared.facts, recalled)),
    )


class Total(NamedTuple):
    """All conversations in one way. Money is in USD; `break_even` is the median of those that were compacted.

    `once` is how much more the request costs that comes next, with what a model takes for a summary.
    """

    compacted: int
    before: int
    after: int
    read_before: float
    read_after: float
    once: float
    breaks: int
    break_even: float | None
    never: int
    seen: float
    recalled: float


def total_of(outcomes: Sequence[Outcome], prices: Prices) -> Total:
    """The sums over conversations. A request reads what is cached; a compaction breaks the cache once."""
    changed = [one for one in outcomes if one.effect.freed > 0]
    paid = [one.edit.break_even for one in changed if one.edit.break_even is not None]
    before = sum(one.effect.before for one in outcomes)
    after = sum(one.effect.after for one in outcomes)
    return Total(
        compacted=len(changed),
        before=before,
        after=after,
        read_before=reading_cost(before, prices),
        read_after=reading_cost(after, prices),
        once=sum(max(one.edit.next_request, 0.0) for one in changed),
        breaks=sum(one.effect.untouched < one.effect.before for one in changed),
        break_even=median(paid) if paid else None,
        never=len(changed) - len(paid),
        seen=sum(one.seen for one in outcomes) / len(outcomes),
        recalled=sum(one.recalled for one in outcomes) / len(outcomes),
    )


def rows(report: Report) -> Iterator[str]:
    """A line for each conversation, and one for each way over all of them."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    details = find_model(*MODEL).details
    prices = prices_of(details)
    prepared = [Prepared(conversation_of(session), gold_of(session.messages)) for session in sessions]
    outcomes: dict[str, list[Outcome]] = {}
    for way in WAYS:
        report(f"compaction: {way.name}")
        outcomes[way.name] = [outcome_of(way, one, details) for one in prepared]
    yield from report.table("table", *_for_pages(outcomes, prices))
    yield ""
    yield from _by_conversation(prepared, outcomes)
    yield ""
    yield from _by_way(outcomes, prices)
    yield f"{len(sessions)} conversations; prices of {'/'.join(MODEL)}, with a warm cache; no model wrote for heavy"


def _for_pages(outcomes: dict[str, list[Outcome]], prices: Prices) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the table of the ways that keep the last turn only."""
    cells: list[tuple[str, ...]] = []
    for name, title in QUOTED.items():
        total = total_of(outcomes[name], prices)
        less = f"{(1 - total.after / max(total.before, 1)) * 100:.0f} %"
        pays = "never" if total.break_even is None else f"{total.break_even:g} requests"
        cells.append((title, less, pays, f"{total.seen * 100:.0f} %", f"{total.recalled * 100:.0f} %"))
    return ("way", "fewer tokens", "it pays after (median)", "in the view", "or recalled"), cells


def _by_conversation(prepared: Sequence[Prepared], outcomes: dict[str, list[Outcome]]) -> Iterator[str]:
    yield f"{'tokens in a request':<37}{'before':>9}" + "".join(f"{name:>14}" for name in outcomes)
    for number, one in enumerate(prepared):
        cells = [found[number].effect for found in outcomes.values()]
        left = "".join(f"{effect.after:>14,}" if effect.freed > 0 else f"{'-':>14}" for effect in cells)
        yield f"{one.conversation.session.name[-36:]:<37}{cells[0].before:>9,}{left}"


def _by_way(outcomes: dict[str, list[Outcome]], prices: Prices) -> Iterator[str]:
    yield (
        f"{'turns kept, first/last':<24}{'compacted':>10}{'tokens':>12}{'less %':>8}{'$ a request':>13}"
        f"{'$ once':>9}{'breaks':>8}{'break-even':>12}{'never':>7}{'in view %':>11}{'recall %':>10}"
    )
    first = total_of(next(iter(outcomes.values())), prices)
    yield f"{'nothing compacted':<34}{first.before:>12,}{'':>8}{first.read_before:>13.3f}"
    for name, found in outcomes.items():
        yield line(name, total_of(found, prices))


def line(name: str, total: Total) -> str:
    """A row of the second table; money is for one request of each conversation."""
    break_even = "" if total.break_even is None else f"{total.break_even:g}"
    return (
        f"{name:<24}{total.compacted:>10}{total.after:>12,}{(1 - total.after / max(total.before, 1)) * 100:>8.1f}"
        f"{total.read_after:>13.3f}{total.once:>9.3f}{total.breaks:>8}{break_even:>12}{total.never:>7}"
        f"{total.seen * 100:>11.1f}{total.recalled * 100:>10.1f}"
    )

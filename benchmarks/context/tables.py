"""The tables about compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from context import automatic, availability, speed
from context.availability import BUDGETS, OURS, WITHOUT_FACTS, Score
from context.sessions import recorded_sessions
from context.tokens import tokenizer
from results import Report

QUOTED_CHAINS = (1, 10)
_ABSENT = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"


def availability_rows(report: Report) -> Iterator[str]:
    """What can still be read or recalled."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    found = availability.scores(sessions, report)
    yield from _quoted(found, report)
    report.figures |= {"sessions": len(sessions), "tokenizer": tokenizer().name}
    yield ""
    yield from availability.lines(found, tokenizer())


def _quoted(found: Sequence[Score], report: Report) -> Iterator[str]:
    """Yield the table that a page quotes: jp at each budget, in one compaction and in most."""
    head = ("budget", "compactions", "tokens kept", "in the view", "or recalled", "or found by one search", "over it")
    points = {(score.way, score.budget, score.chain): score for score in found}
    cells = [
        (
            f"{budget} %",
            str(chain),
            *(f"{share * 100:.1f} %" for share in (ours.kept, ours.in_view, ours.recalled, ours.searched)),
            str(ours.over),
        )
        for (way, budget, chain), ours in sorted(points.items())
        if way == OURS and chain in QUOTED_CHAINS
    ]
    yield from report.table("table", head, cells)
    without = [score for score in found if score.way == WITHOUT_FACTS]
    others = [score for score in found if score.way not in {OURS, WITHOUT_FACTS} and score.budget == BUDGETS[-1]]
    report.figures |= {
        "less without facts": max(points[OURS, of.budget, of.chain].in_view - of.in_view for of in without) * 100,
        "searched without facts": min(of.searched for of in without) * 100,
        "others": len({score.way for score in others}),
        "best of others": max((score.in_view for score in others), default=0.0) * 100,
    }


def automatic_rows(report: Report) -> Iterator[str]:
    """Yield the cost of recorded sessions under automatic compaction."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    yield from automatic.lines(sessions, report)
    report.figures["sessions"] = len(sessions)


def speed_rows(report: Report) -> Iterator[str]:
    """What the passes take; on recorded sessions only where there are some."""
    sessions = recorded_sessions()
    if not sessions:
        yield f"recorded sessions {_ABSENT}"
    yield from speed.lines(sessions, report)

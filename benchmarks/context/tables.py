"""The tables about compaction, and the plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from context import automatic, availability, plot, speed
from context.sessions import recorded_sessions
from context.tokens import tokenizer

PLOT = Path(__file__).parents[2] / "dist" / "context-availability.png"
_ABSENT = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"


def availability_rows(report: Callable[[str], None]) -> Iterator[str]:
    """What can still be read or recalled, and where the picture of that is."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    found = availability.scores(sessions, report)
    yield from availability.lines(found, tokenizer())
    plot.draw(found, PLOT)
    yield f"plot: {PLOT}"


def automatic_rows(report: Callable[[str], None]) -> Iterator[str]:
    """Yield the cost of recorded sessions under automatic compaction."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    yield from automatic.lines(sessions, report)


def speed_rows(report: Callable[[str], None]) -> Iterator[str]:
    """What the passes take; on recorded sessions only where there are some."""
    sessions = recorded_sessions()
    if not sessions:
        yield f"recorded sessions {_ABSENT}"
    yield from speed.lines(sessions, report)

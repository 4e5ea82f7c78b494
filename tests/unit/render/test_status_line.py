from __future__ import annotations

import io

import pytest

from jp.render import status_line
from jp.render.channel import Channel
from jp.render.status_line import Waiting
from jp.render.theme import Look


class SteppedClock:
    """Time stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def jitter(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def at(clock: SteppedClock, line: Waiting, *moments: float, coming: str = "") -> None:
    for moment in moments:
        clock.now = moment
        line.tick(coming)


def test_the_line_appears_after_a_while_counts_and_leaves_no_trace() -> None:
    stream, clock = io.StringIO(), SteppedClock()
    line = Waiting(Channel(stream, name="stderr"), look=Look(), clock=clock)
    line.restart("waiting")

    at(clock, line, 0.5, 0.9, 1.0, 1.5, 2.1, 62.0)
    line.restart()
    at(clock, line, 62.5)

    assert stream.getvalue() == (
        "\r\x1b[Kwaiting 1 s" "\r\x1b[Kwaiting 2 s" "\r\x1b[Kwaiting 1 min 2 s" "\r\x1b[K"
    )  # fmt: skip


def test_nothing_appears_in_the_middle_of_a_line_or_without_a_label() -> None:
    stream, clock = io.StringIO(), SteppedClock()
    channel = Channel(stream, name="stderr")
    line = Waiting(channel, look=Look(), clock=clock)

    at(clock, line, 2.0)
    line.restart("waiting")
    channel.write("text")
    at(clock, line, 5.0)
    line.restart("")

    assert stream.getvalue() == "text"


def test_the_line_that_is_coming_is_shown_at_once_and_for_how_long_it_has_not_grown() -> None:
    stream, clock = io.StringIO(), SteppedClock()
    line = Waiting(Channel(stream, name="stderr"), look=Look(width=24), clock=clock)
    line.restart("waiting")

    at(clock, line, 0.25, coming="The an")
    at(clock, line, 0.5, 0.75, 1.75, coming="The answer is 42 and")
    at(clock, line, 2.75, 3.75)
    line.restart()

    assert stream.getvalue() == (
        "\r\x1b[KThe an"
        "\r\x1b[KThe answer …"
        "\r\x1b[KThe answer …  1 s"
        "\r\x1b[Kwaiting 1 s"
        "\r\x1b[K"
    )  # fmt: skip


def test_a_question_has_the_terminal_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), SteppedClock()
    line = Waiting(Channel(stream, name="stderr"), look=Look(), clock=clock)
    line.restart("waiting")
    asking = True
    monkeypatch.setattr(status_line, "is_asking", lambda: asking)

    at(clock, line, 5.0)
    asking = False
    at(clock, line, 5.9)
    assert stream.getvalue() == ""
    at(clock, line, 6.0)
    assert stream.getvalue() == "\r\x1b[Kwaiting 1 s"


def test_a_long_label_is_cut_to_the_width() -> None:
    stream, clock = io.StringIO(), SteppedClock()
    line = Waiting(Channel(stream, name="stderr"), look=Look(width=20, color=True), clock=clock)
    line.restart("running something long")

    at(clock, line, 1.0)

    assert stream.getvalue() == "\r\x1b[K\x1b[2mrunning… 1 s\x1b[0m"


def test_a_line_is_erased_from_every_row_in_which_a_narrower_terminal_shows_it() -> None:
    stream, clock = io.StringIO(), SteppedClock()
    width = 80
    line = Waiting(Channel(stream, name="stderr"), look=Look(color=True), clock=clock, measure=lambda: width)
    line.restart("waiting")

    at(clock, line, 1.0, coming="word " * 12)
    width = 30
    at(clock, line, 2.5, coming="word " * 12)
    line.restart()

    shown = f"{'word ' * 3}wo…"
    assert stream.getvalue() == (f"\r\x1b[K{'word ' * 12}\x1b[1A\r\x1b[J{shown}\x1b[2m  1 s\x1b[0m\r\x1b[K")

from __future__ import annotations

import anyio
import pytest

from jp.app.query.screen import Dialogue


class Screen:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def notice(self, text: str) -> None:
        self.heard.append(text)


def test_one_question_is_asked_at_a_time_and_nothing_is_shown_meanwhile() -> None:
    screen, dialogue = Screen(), Dialogue()
    dialogue.screen = screen

    async def ask(name: str) -> None:
        async with dialogue.question():
            screen.heard.append(name)
            await anyio.lowlevel.checkpoint()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "one")
            tasks.start_soon(ask, "two")

    anyio.run(run)

    assert screen.heard == ["pause", "one", "resume", "pause", "two", "resume"]


def test_a_question_that_fails_leaves_the_terminal_to_the_next() -> None:
    screen, dialogue = Screen(), Dialogue()
    dialogue.screen = screen

    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            async with dialogue.question():
                raise ZeroDivisionError
        async with dialogue.question():
            pass

    anyio.run(run)

    assert screen.heard == ["pause", "resume", "pause", "resume"]


def test_where_nothing_is_shown_a_question_has_nothing_to_pause_and_a_notice_goes_nowhere() -> None:
    dialogue = Dialogue()

    async def run() -> None:
        async with dialogue.question():
            dialogue.notice("nobody hears it")

    anyio.run(run)
    dialogue.screen = screen = Screen()
    dialogue.notice("it was cut")

    assert screen.heard == ["it was cut"]

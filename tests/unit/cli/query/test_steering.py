from __future__ import annotations

import signal

import anyio
import pytest

from jp.app.query.screen import Dialogue, TurnEnd
from jp.cli.query.terminal import TOOLS_MENU, TURN_MENU, InterruptChoice, InterruptMenu, TurnInterruption, ask_choice
from jp.cli.terminal.signals import interruptions
from jp.conversation.entries import AnyEntry, Usage
from jp.errors import ExitCode
from jp.render import prompts
from jp.render.stream import PausableRenderer
from jp.turn.loop import TurnOutcome
from jp.turn.ports import ToolNews

OUTCOME = TurnOutcome(ending="answered", cycles=1, usage=Usage())


class Screen:
    """Notes what is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def text(self, text: str) -> None:
        self.shown.append(text)

    def reasoning(self, text: str) -> None:
        self.shown.append(text)

    def block_end(self) -> None:
        pass

    def tool(self, event: ToolNews) -> None:
        pass

    def notice(self, text: str) -> None:
        self.shown.append(text)

    def entry(self, entry: AnyEntry) -> None:
        pass

    def close(self) -> None:
        pass

    def set_paused(self, *, is_paused: bool) -> None:
        self.shown.append("?" if is_paused else "!")


class Tools:
    """Tools that run, or not, and can be stopped."""

    def __init__(self) -> None:
        self.is_running = False
        self.heard: list[str] = []

    def stop(self, words: str = "") -> None:
        self.heard.append(words)


class Played:
    """A turn that waits in its middle, and a person who presses Ctrl-C there."""

    def __init__(self, *choices: InterruptChoice, presses: int = 1, ends_first: bool = False) -> None:
        self.screen = Screen()
        self.dialogue = Dialogue()
        self.renderer = self.dialogue.screen = PausableRenderer(self.screen)
        self.choices = list(choices)
        self.tools = Tools()
        self.menus: list[InterruptMenu] = []
        self.presses = presses
        self.ends_first = ends_first
        self.is_over = anyio.Event()
        self.code: ExitCode | None = None
        self.ended: TurnEnd | None = None

    async def play(self) -> None:
        with interruptions() as interruption:
            self.ended = await TurnInterruption(interruption, self.dialogue, self.tools, self._ask).steer(self._turn)
        self.code = interruption.exit_code

    async def _turn(self) -> TurnOutcome:
        try:
            for _ in range(self.presses):
                asked = len(self.screen.shown)
                signal.raise_signal(signal.SIGINT)
                while not self.ends_first and len(self.screen.shown) < asked + 2:
                    await anyio.lowlevel.checkpoint()
            if self.ends_first:
                while "?" not in self.screen.shown:
                    await anyio.lowlevel.checkpoint()
                self.renderer.text("late")
            return OUTCOME
        finally:
            self.is_over.set()

    async def _ask(self, menu: InterruptMenu) -> InterruptChoice:
        self.menus.append(menu)
        if self.ends_first:
            await self.is_over.wait()
        return self.choices.pop(0)


@pytest.fixture(autouse=True)
def presses_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jp.cli.terminal.signals.SAME_PRESS_SECS", -1.0)


@pytest.mark.parametrize(
    ("choice", "ended", "code"),
    [
        (InterruptChoice(verb="continue"), TurnEnd(outcome=OUTCOME), None),
        (InterruptChoice(verb="stop"), None, ExitCode.INTERRUPTED),
        (InterruptChoice(verb="reply", reply="shorter"), TurnEnd(reply="shorter"), None),
        (InterruptChoice(verb="abort"), TurnEnd(is_aborted=True), None),
    ],
)
def test_a_choice_decides_about_the_turn(choice: InterruptChoice, ended: TurnEnd | None, code: ExitCode | None) -> None:
    played = Played(choice)

    anyio.run(played.play)

    assert (played.ended, played.code) == (ended, code)
    assert played.screen.shown == ["?", "!"]


def test_after_a_turn_that_goes_on_it_can_be_asked_again() -> None:
    played = Played(InterruptChoice(verb="continue"), InterruptChoice(verb="abort"), presses=2)

    anyio.run(played.play)

    assert played.ended == TurnEnd(is_aborted=True)
    assert played.screen.shown == ["?", "!", "?", "!"]


@pytest.mark.parametrize(
    ("choice", "ended"),
    [
        (InterruptChoice(verb="continue"), TurnEnd(outcome=OUTCOME)),
        (InterruptChoice(verb="reply", reply="shorter"), TurnEnd(reply="shorter")),
        (InterruptChoice(verb="abort"), TurnEnd(is_aborted=True)),
    ],
)
def test_the_answer_counts_although_the_turn_has_ended_meanwhile(choice: InterruptChoice, ended: TurnEnd) -> None:
    played = Played(choice, ends_first=True)

    anyio.run(played.play)

    assert (played.ended, played.code) == (ended, None)
    assert played.screen.shown == ["?", "!", "late"]


def answering(monkeypatch: pytest.MonkeyPatch, keys: list[str | None], lines: list[str | None]) -> None:
    async def ask_key(question: str, _keys: object, *, default: str) -> str | None:
        return keys.pop(0)

    async def ask_line(question: str) -> str | None:
        return lines.pop(0)

    monkeypatch.setattr(prompts, "ask_key", ask_key)
    monkeypatch.setattr(prompts, "ask_line", ask_line)


def test_tools_that_run_are_stopped_and_the_turn_goes_on() -> None:
    played = Played(InterruptChoice(verb="respond", reply="too slow"), InterruptChoice(verb="abort"), presses=2)
    played.tools.is_running = True

    anyio.run(played.play)

    assert played.menus == [TOOLS_MENU, TOOLS_MENU]
    assert played.tools.heard == ["too slow"]
    assert played.ended == TurnEnd(is_aborted=True)


@pytest.mark.parametrize(("words", "ended"), [("too slow", TurnEnd(reply="too slow")), ("", TurnEnd(outcome=OUTCOME))])
def test_what_was_said_to_tools_that_have_ended_meanwhile_is_a_reply(words: str, ended: TurnEnd) -> None:
    played = Played(InterruptChoice(verb="respond", reply=words))

    anyio.run(played.play)

    assert played.menus == [TURN_MENU]
    assert played.ended == ended


@pytest.mark.parametrize(
    ("keys", "lines", "choice"),
    [
        (["c"], [], InterruptChoice(verb="continue")),
        (["a"], [], InterruptChoice(verb="abort")),
        ([None], [], InterruptChoice(verb="stop")),
        (["r"], ["in French"], InterruptChoice(verb="reply", reply="in French")),
        (["r", "s"], [""], InterruptChoice(verb="stop")),
        (["r", "s"], [None], InterruptChoice(verb="stop")),
    ],
)
def test_keys_are_choices_and_an_empty_reply_is_none(
    keys: list[str | None], lines: list[str | None], choice: InterruptChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, keys, lines)

    assert anyio.run(ask_choice, TURN_MENU) == choice


def test_tools_are_stopped_with_words_or_without(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, ["r", "r"], ["use the index", None])

    assert anyio.run(ask_choice, TOOLS_MENU) == InterruptChoice(verb="respond", reply="use the index")
    assert anyio.run(ask_choice, TOOLS_MENU) == InterruptChoice(verb="respond")

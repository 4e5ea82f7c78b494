from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

import questioner
from forked import Forked, fork
from jp.render import prompt
from jp.render.prompt import ask_key, ask_line, ask_yes_no, is_asking
from running import isolated_environment

TIMEOUT_SECS = 20
SCRIPT = Path(questioner.__file__)


class Dialogue(NamedTuple):
    """What a program answered on stdout, and what stood on the terminal."""

    result: str
    screen: str


def converse(expression: str, *exchange: tuple[str, str], before: str = "") -> Dialogue:
    """Evaluate `expression` in a process whose controlling terminal we are.

    In `exchange`, what is awaited on the screen and what is typed then. `before` is typed before it starts.
    """
    master, slave = os.openpty()
    os.write(master, before.encode())
    from_stdout, stdout = os.pipe()
    stdin, to_stdin = os.pipe()
    environment = isolated_environment(Path("/nonexistent"))
    streams = (stdin, stdout, 2)
    process = Forked(
        fork(expression, cwd=Path("/"), env=environment, streams=streams, script=SCRIPT, terminal=os.ttyname(slave))
    )
    for end in (stdin, stdout):
        os.close(end)
    screen = ""
    for awaited, typed in exchange:
        seen = len(screen)
        while awaited not in screen[seen:]:
            screen += os.read(master, 4096).decode()
        os.write(master, typed.encode())
    with os.fdopen(from_stdout, encoding="utf-8") as said:
        result, _, still_asking = said.readline().strip().rpartition("|")
    os.write(slave, b"<end>")
    while not screen.endswith("<end>"):
        screen += os.read(master, 4096).decode()
    # It stays until all was read: with it, what it wrote to its terminal may go.
    os.close(to_stdin)
    process.wait(TIMEOUT_SECS)
    os.close(master)
    os.close(slave)
    assert still_asking == "False"
    return Dialogue(result, screen.removesuffix("<end>"))


@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [
        ("y\n", False, "True"),
        ("YES \n", False, "True"),
        ("n\n", True, "False"),
        ("\n", True, "True"),
        ("\n", False, "False"),
        ("\x04", True, "False"),
        ("y\x04\x04", False, "True"),
    ],
)
def test_a_question_is_answered_at_the_terminal(typed: str, answer: str, *, default: bool) -> None:
    choices = "[Y/n] " if default else "[y/N] "

    dialogue = converse(f"ask_yes_no('Sure?', default={default})", (f"Sure? {choices}", typed))

    assert dialogue.result == answer


def test_what_is_no_answer_is_asked_again_and_then_means_no() -> None:
    again = "Please answer yes or no. [Y/n] "

    once = converse("ask_yes_no('Sure?', default=True)", ("Sure? [Y/n] ", "perhaps\n"), (again, "y\n"))
    never = converse("ask_yes_no('Sure?', default=True)", ("Sure? [Y/n] ", "a\n"), (again, "b\n"), (again, "c\n"))

    assert (once.result, never.result) == ("True", "False")


@pytest.mark.parametrize(
    ("typed", "answer"), [(" a b \n", "'a b'"), ("\n", "'x'"), ("é\n", "'é'"), ("\x04", "None"), ("a\x04\x04", "'a'")]
)
def test_a_line_is_asked_for(typed: str, answer: str) -> None:
    assert converse("ask_line('Which?', 'x')", ("Which? [x] ", typed)).result == answer


def test_a_line_may_have_no_default() -> None:
    assert converse("ask_line('Which?')", ("Which? ", "\n")).result == "''"


@pytest.mark.parametrize(
    ("typed", "answer"), [("b\n", "'b'"), ("A\n", "'a'"), (" b \n", "'b'"), ("\n", "'a'"), ("\x04", "None")]
)
def test_one_of_a_few_keys_is_asked_for(typed: str, answer: str) -> None:
    assert converse("ask_key('Which?', ('a', 'b'), default='a')", ("Which? [a] ", typed)).result == answer


def test_another_key_is_no_answer_and_three_of_them_are_none() -> None:
    question = "ask_key('Which?', ('a', 'b'), default='a')"
    again = "One of a, b [a] "

    assert converse(question, ("Which? [a] ", "bee\n"), (again, "b\n")).result == "'b'"
    assert converse(question, ("Which? [a] ", "x\n"), (again, "y\n"), (again, "z\n")).result == "None"


def test_what_was_typed_before_the_question_answers_nothing() -> None:
    assert converse("ask_yes_no('Sure?', default=True)", ("[Y/n] ", "n\n"), before="y\n").result == "False"


def test_a_question_cannot_steer_the_terminal() -> None:
    dialogue = converse("ask_line('Run\\n\\x1b[2Jrm \\u202e?')", ("? ", "\n"))

    assert "Run\r\nrm ? " in dialogue.screen
    assert "\x1b" not in dialogue.screen


def always(_terminal: int) -> bool:
    return True


def test_while_a_question_stands_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    monkeypatch.setattr(prompt, "TERMINAL", os.ttyname(slave))
    monkeypatch.setattr(prompt, "_is_in_foreground", always)
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(ask_line("Which?")))

    asking.start()
    screen = b""
    while b"Which? " not in screen:
        screen += os.read(master, 100)
    assert is_asking()
    os.write(master, b"a\n")
    asking.join(TIMEOUT_SECS)

    assert answers == ["a"]
    assert not is_asking()
    os.close(master)
    os.close(slave)


def test_ctrl_c_ends_the_question() -> None:
    dialogue = converse("interruptible(lambda: ask_line('Which?'))", ("Which? ", "\x03"))

    assert dialogue.result == "'interrupted'"


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "TERMINAL", "/nonexistent")

    assert ask_yes_no("Sure?", default=True) is None
    assert ask_line("Which?", "x") is None
    assert ask_key("Which?", ("x",), default="x") is None
    assert not is_asking()


def test_a_job_in_the_background_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    monkeypatch.setattr(prompt, "TERMINAL", os.ttyname(slave))

    assert ask_yes_no("Sure?", default=True) is None
    os.close(master)
    os.close(slave)

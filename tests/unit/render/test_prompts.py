from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

import questioner
from jp.render import tty
from jp.render.prompts import ask_key, ask_line, ask_yes_no
from jp.render.tty import is_asking
from screen import Screen
from terminal import CTRL_C, jp_at_terminal

SCRIPT = Path(questioner.__file__)
PASTED = "\x1b[200~{}\x1b[201~"


class Dialogue(NamedTuple):
    """What a program answered on stdout, and what stood on the terminal."""

    result: str
    screen: Screen
    shown: str


def converse(
    expression: str, *exchange: tuple[str, str], columns: int = 80, rows: int = 24, term: str = ""
) -> Dialogue:
    """Evaluate `expression` in a process whose controlling terminal we are, and whose stdin and stdout are pipes.

    In `exchange`, what is awaited on the screen, as a regular expression, and what is typed then.
    """
    from_stdout, stdout = os.pipe()
    stdin, to_stdin = os.pipe()
    env = {"TERM": term} if term else {}
    with jp_at_terminal(
        expression, cwd=Path("/"), env=env, script=SCRIPT, stdin=stdin, stdout=stdout, size=(columns, rows)
    ) as terminal:
        os.close(stdin)
        os.close(stdout)
        for awaited, typed in exchange:
            if awaited:
                terminal.question(awaited)
            terminal.type(typed)
        with os.fdopen(from_stdout, encoding="utf-8") as said:
            result, _, still_asking = said.readline().strip().rpartition("|")
        # It stays until all was read: with it, what it wrote to its terminal may go.
        os.close(to_stdin)
        assert terminal.finish() == 0
    assert still_asking == "False"
    return Dialogue(result, terminal.screen, terminal.shown)


@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [
        ("y\n", False, "True"),
        ("YES \r", False, "True"),
        ("n\n", True, "False"),
        ("\n", True, "True"),
        ("\n", False, "False"),
        ("\x04", True, "False"),
        ("y\x04\x04", False, "False"),
        ("x\x7fy\n", False, "True"),
    ],
)
def test_a_question_is_answered_at_the_terminal(typed: str, answer: str, term: str, *, default: bool) -> None:
    choices = r"\[Y/n\]" if default else r"\[y/N\]"

    dialogue = converse(f"ask_yes_no('Sure?', default={default})", (rf"^Sure\? {choices}$", typed), term=term)

    assert dialogue.result == answer
    assert ("\x1b" in dialogue.shown) == (term != "dumb")


def test_what_is_no_answer_is_asked_again_and_then_means_no() -> None:
    first, again = r"^Sure\? \[Y/n\]$", r"^Please answer yes or no\.\nSure\? \[Y/n\]$"

    once = converse("ask_yes_no('Sure?', default=True)", (first, "perhaps\n"), (again, "y\n"))
    never = converse("ask_yes_no('Sure?', default=True)", (first, "a\n"), (again, "b\n"), (again, "c\n"))

    assert (once.result, never.result) == ("True", "False")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (" a b \n", "'a b'"),
        ("\n", "'x'"),
        ("é\n", "'é'"),
        ("\x04", "None"),
        (PASTED.format("two\nlines") + "\n", "'two lines'"),
    ],
)
def test_a_line_is_asked_for(typed: str, answer: str) -> None:
    assert converse("ask_line('Which?', 'x')", (r"^Which\? \[x\]$", typed)).result == answer


def test_a_line_may_have_no_default() -> None:
    assert converse("ask_line('Which?')", (r"^Which\?$", "\n")).result == "''"


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_secret_is_not_shown(term: str) -> None:
    dialogue = converse("ask_secret('Key?')", (r"^Key\?$", "sk-1\n"), term=term)

    assert dialogue.result == "'sk-1'"
    assert "sk" not in dialogue.shown


KEYS = "{'a': 'the first', 'b': 'the second', '?': 'help'}"


@pytest.mark.parametrize(
    ("typed", "answer"), [("b\n", "'b'"), ("A\n", "'a'"), (" b \n", "'b'"), ("\n", "'a'"), ("\x04", "None")]
)
def test_one_of_a_few_keys_is_asked_for(typed: str, answer: str) -> None:
    assert converse(f"ask_key('Which?', {KEYS}, default='a')", (r"^Which\? \[a\]$", typed)).result == answer


def test_another_key_is_no_answer_and_three_of_them_are_none() -> None:
    question = f"ask_key('Which?', {KEYS}, default='a')"
    first, again = r"^Which\? \[a\]$", r"^One of a, b, \?\.\nWhich\? \[a\]$"

    assert converse(question, (first, "bee\n"), (again, "b\n")).result == "'b'"
    assert converse(question, (first, "x\n"), (again, "y\n"), (again, "z\n")).result == "None"


def test_what_the_keys_mean_is_said_as_often_as_it_is_asked() -> None:
    first = r"^Which\? \[a\]$"
    helped = rf"^a  the first\nb  the second\n\?  help\n{first[1:]}"

    dialogue = converse(
        f"ask_key('Which?', {KEYS}, default='a')", (first, "?\n"), *[(helped, "?\n")] * 3, (helped, "b\n")
    )

    assert dialogue.result == "'b'"


def test_what_was_typed_before_the_question_answers_nothing() -> None:
    asked = "await_keys() or ask_yes_no('Sure?', default=True)"

    assert converse(asked, ("", "y\n"), (r"\[Y/n\]$", "n\n")).result == "False"


def test_what_was_typed_behind_an_answer_answers_nothing_else() -> None:
    twice = "[ask_yes_no('One?', default=False), ask_yes_no('Two?', default=False)]"

    assert converse(twice, (r"One\?.*\]$", "y\ny\ny\n"), (r"Two\?.*\]$", "n\n")).result == "[True, False]"


@pytest.mark.parametrize("text", ["y\n", "y", "yes\ry\n", "y\x1b[201~\n"])
def test_what_is_pasted_is_no_consent(text: str) -> None:
    pasted = PASTED.format(text)
    question = r"^Sure\? \[y/N\]$"
    exchange = [(question, pasted)] if "201" in text else [(question, pasted), (question, "\n")]

    dialogue = converse("ask_yes_no('Sure?', default=False)", *exchange)

    assert dialogue.result == "False"
    assert "pasted text is no answer here; press the key\nSure?" in dialogue.screen.text


def test_a_question_cannot_steer_the_terminal() -> None:
    dialogue = converse("ask_line('Run\\n\\x1b[2Jrm \\u202e?')", (r"^Run\n⟨ESC⟩\[2Jrm ⟨U\+202E⟩\?$", "\n"))

    assert "\u202e" not in dialogue.shown
    assert "[2J" in dialogue.screen.text


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_what_a_question_is_about_is_shown_page_by_page(term: str) -> None:
    text = "\\n".join(map(str, range(10)))
    question = r"^Sure\? \[y/N\]$"

    dialogue = converse(
        f"ask_yes_no('Sure?', default=False, about=about('{text}'))",
        (rf"^│ 0\n│ 1\n│ 2\n│ 3\n\(not on the screen: 6 lines, 6 characters; p shows more\)\n{question[1:]}", "p\n"),
        (r"^│ 4\n│ 5\n│ 6\n\(not on the screen: 3 lines, 3 characters below, 4 lines, 4\s+characters above; p", "p\n"),
        (
            rf"^│ 7\n│ 8\n│ 9\n\(not on the screen: 7 lines, 7 characters above; p starts\s+again\)\n{question[1:]}",
            "p\n",
        ),
        (r"^│ 0\n│ 1(.|\n)*\[y/N\]$", "y\n"),
        columns=70,
        rows=6,
        term=term,
    )

    assert dialogue.result == "True"


def test_enter_shows_the_next_page_where_any_line_is_an_answer() -> None:
    dialogue = converse(
        "ask_line('Which?', 'x', about=about('1\\n2\\n3\\n4\\n5'))",
        (r"^│ 1\n│ 2\n│ 3\n\(not on the screen: 2 lines, 2 characters; Enter shows more\)\nWhich\? \[x\]$", "\n"),
        (r"^│ 4\n│ 5\n(.|\n)*Which\? \[x\]$", "\n"),
        rows=5,
    )

    assert dialogue.result == "'x'"


def test_ctrl_c_takes_the_question_away() -> None:
    dialogue = converse("interruptible(lambda: ask_line('Which?'))", (r"^Which\?$", CTRL_C))

    assert dialogue.result == "'interrupted'"
    assert dialogue.screen.text == ""


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tty, "TERMINAL", "/nonexistent")

    assert_nobody_is_asked()


def test_a_job_in_the_background_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    monkeypatch.setattr(tty, "TERMINAL", os.ttyname(slave))

    assert_nobody_is_asked()
    os.close(master)
    os.close(slave)


def assert_nobody_is_asked() -> None:
    async def ask() -> list[object]:
        return [
            await ask_yes_no("Sure?", default=True),
            await ask_line("Which?", "x"),
            await ask_key("Which?", {"x": ""}, default="x"),
        ]

    assert anyio.run(ask) == [None, None, None]
    assert not is_asking()

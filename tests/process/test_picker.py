"""The picker, at a terminal with a person at it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import run_jp
from shell import shell_at_terminal
from stage import make_workspace
from terminal import CTRL_C, CTRL_D, Terminal, jp_at_terminal

DOWN, UP, ESCAPE = "\x1b[B", "\x1b[A", "\x1b"
ENTER = "\r"
OPENED = "\x1b[?1049h"
READY = r"type to narrow"
STYLES = re.compile(r"\x1b\[([0-9;]*)m")


def conversation(root: Path, number: int, title: str, *, request: str = "hello", **metadata: object) -> str:
    """A conversation that was used last in the order of the numbers."""
    digits = 17_800_000_000 + number
    directory = root / ".jp" / "conversations" / f"{digits}-x"
    directory.mkdir(parents=True)
    (directory / "metadata.json").write_text(json.dumps({"title": title, **metadata}), encoding="utf-8")
    at = "2026-01-02T03:04:05Z"
    entries = [
        {"id": "1", "type": "header", "at": at, "format": 1, "created_at": at, "nonce": "n"},
        {"id": "2", "type": "turn_start", "at": at},
        {"id": "3", "type": "chat_request", "at": at, "content": request},
    ]
    log = directory / "events.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    os.utime(log, (1_700_000_000 + number, 1_700_000_000 + number))
    return f"jp-c{digits}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work")
    conversation(root, 1, "The lexer", labels={"area": "parser"}, request="why does the lexer loop?")
    conversation(root, 2, "The lexer again")
    conversation(root, 3, "Lunch", pinned_at="2026-01-02T03:04:05Z")
    conversation(root, 4, "Old lexer", archived_at="2026-01-02T03:04:05Z")
    return root


@contextmanager
def jp(
    arguments: str, root: Path, *, stdin: int | None = None, stdout: int | None = None, **env: str
) -> Generator[Terminal]:
    named = {"JP_SESSION": "here", **env}
    with jp_at_terminal(*shlex.split(arguments), cwd=root, env=named, stdin=stdin, stdout=stdout) as terminal:
        yield terminal


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def test_a_conversation_is_picked_with_arrows_while_stdout_is_a_pipe(root: Path) -> None:
    path, out = os.pipe()
    with jp("conversation path '?'", root, stdout=out) as terminal:
        os.close(out)
        terminal.expect("> +jp-c17800000003")
        terminal.expect(READY)
        terminal.type(DOWN + DOWN + UP + ENTER)
        assert terminal.finish() == 0

    with os.fdopen(path, encoding="utf-8") as stream:
        assert Path(stream.read()).name == "17800000002-x\n"
    assert terminal.shown.rindex("\x1b[?1049l") > terminal.shown.index(OPENED)


def test_typing_narrows_the_list_by_title_id_and_label(root: Path) -> None:
    with jp("conversation use '?le'", root) as terminal:
        terminal.expect("2 of 3")
        terminal.expect(READY)
        terminal.type("\x15")
        terminal.expect("Lunch")
        terminal.type("area=par")
        terminal.expect("why does the lexer loop")
        terminal.type("zzz")
        terminal.expect("nothing matches")
        terminal.type(ENTER + "\x7f\x7f\x7f" + ENTER)
        assert terminal.finish() == 0

    assert terminal.shown.endswith("jp-c17800000001  The lexer\n")


def test_typing_finds_what_was_said(root: Path) -> None:
    conversation(root, 5, "Breakfast", request="where does the wombat sleep?")
    with jp("conversation use '?wombat sle'", root) as terminal:
        terminal.expect("1 of 4")
        terminal.expect(READY)
        terminal.type(ENTER)
        assert terminal.finish() == 0

    assert terminal.shown.endswith("jp-c17800000005  Breakfast\n")


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
def test_who_leaves_changes_nothing(key: str, root: Path) -> None:
    with jp("conversation rm --yes lexer", root) as terminal:
        terminal.expect("2 of 2")
        terminal.expect(READY)
        terminal.type(key)
        assert terminal.finish() == 130

    assert len(list((root / ".jp" / "conversations").iterdir())) == 4
    assert "error" not in terminal.shown


def test_use_without_a_previous_conversation_lets_a_person_pick_one(root: Path) -> None:
    with jp("conversation use", root) as terminal:
        terminal.expect(READY)
        terminal.type(ENTER)
        terminal.expect("jp-c17800000003  Lunch\n")
        assert terminal.finish() == 0

    for words, name in ((["jp-c17800000001"], "jp-c17800000001  The lexer\n"), ([], "jp-c17800000003  Lunch\n")):
        used = run_jp("conversation", "use", *words, cwd=root, env={"JP_SESSION": "here"})
        assert used.stdout + used.stderr == name


def test_unarchive_offers_what_is_archived(root: Path) -> None:
    with jp("conversation unarchive '?'", root) as terminal:
        terminal.expect("1 of 1")
        terminal.expect("Old lexer +\\(archived\\)")
        terminal.type(ENTER)
        assert terminal.finish() == 0

    assert terminal.shown.endswith("unarchived jp-c17800000004 (Old lexer)\n")


def test_a_query_goes_on_in_the_conversation_that_is_picked(root: Path) -> None:
    with jp("query --id '?lunch' hungry", root) as terminal:
        terminal.expect(READY)
        terminal.type(ENTER)
        assert terminal.finish() == 0

    log = root / ".jp" / "conversations" / "17800000003-x" / "events.jsonl"
    assert "You said: hungry" in terminal.shown
    assert log.read_text(encoding="utf-8").count('"turn_start"') == 2


def test_a_query_is_not_asked_where_nothing_is_picked(root: Path) -> None:
    with jp("query --id lexer hungry", root) as terminal:
        terminal.expect(READY)
        terminal.type(CTRL_C)
        assert terminal.finish() == 130

    assert "hungry" not in "".join(path.read_text(encoding="utf-8") for path in root.rglob("events.jsonl"))


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        ("query --id '?' x", signal.SIGTERM, 143),
        ("conversation path '?'", signal.SIGTERM, 143),
        ("conversation path '?'", signal.SIGINT, 130),
    ],
)
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    command: str, number: signal.Signals, code: int, root: Path
) -> None:
    with jp(command, root) as terminal:
        terminal.expect(READY)
        os.kill(terminal.process.pid, number)
        assert terminal.finish() == code

    assert terminal.shown.rindex("\x1b[?1049l") > terminal.shown.index(OPENED)


def test_a_window_that_is_closed_ends_it(root: Path) -> None:
    with jp("conversation use '?'", root) as terminal:
        terminal.expect(READY)
        terminal.hang_up()

        assert terminal.ends_within(20)


def test_it_fits_the_window_and_follows_its_size(root: Path) -> None:
    conversation(root, 5, "A title that is far too long for one line of a window " * 4)
    with jp("conversation use '?too long'", root) as terminal:
        terminal.expect("1 of")
        terminal.expect(READY)
        narrow = plain(terminal.shown)
        terminal.resize(200, 30)
        terminal.expect("─{199}")
        terminal.type(ENTER)
        assert terminal.finish() == 0

    assert "─" * 79 in narrow
    assert "─" * 80 not in narrow


def test_no_colour_is_used(root: Path) -> None:
    with jp("conversation use '?'", root, COLORTERM="truecolor") as terminal:
        terminal.expect(READY)
        terminal.type(ENTER)
        assert terminal.finish() == 0

    used = {part for style in STYLES.findall(terminal.shown) for part in style.split(";")}
    assert used <= {"", "0", "1", "7"}
    assert "7" in used


@pytest.mark.parametrize(
    ("arguments", "piped", "words"),
    [
        ("conversation show '?'", "", "there is no terminal for it here"),
        ("query --id lexer y", "x\n", "2 conversations match 'lexer': jp-c17800000002 (The lexer again, "),
        ("conversation use", "", "no other conversation was active in this terminal"),
    ],
)
def test_it_opens_only_where_a_person_is_at_the_terminal(arguments: str, piped: str, words: str, root: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as stream:
        stream.write(piped.encode())
    with jp(arguments, root, stdin=reader) as terminal:
        assert terminal.finish() == 2
    os.close(reader)

    assert words in terminal.shown
    assert OPENED not in terminal.shown


def test_it_opens_only_at_a_terminal_that_can_show_it(root: Path) -> None:
    with jp("conversation show '?'", root, TERM="dumb") as terminal:
        assert terminal.finish() == 2

    assert "TERM='dumb' says that this terminal cannot show one" in terminal.shown
    assert OPENED not in terminal.shown


@pytest.mark.parametrize(
    "command",
    [
        "jp conversation show '?' 2>err; code=$?; cat err; exit $code",
        "set -m; jp conversation show '?' & wait $!",
    ],
)
def test_it_opens_neither_where_its_messages_go_elsewhere_nor_in_the_background(command: str, root: Path) -> None:
    with shell_at_terminal(command, cwd=root, env={"JP_SESSION": "here"}) as terminal:
        assert terminal.finish() == 2

    assert "there is no terminal for it here" in terminal.shown
    assert OPENED not in terminal.shown


def test_thousands_of_conversations_are_narrowed_at_once(root: Path) -> None:
    for number in range(10, 1010):
        conversation(root, number, f"Conversation number {number}")

    with jp("conversation use '?'", root) as terminal:
        terminal.expect("1,003 of 1,003")
        terminal.expect(READY)
        terminal.type("number 777" + ENTER)
        assert terminal.finish() == 0

    assert terminal.shown.endswith("jp-c17800000777  Conversation number 777\n")


def test_what_is_deleted_meanwhile_is_said_and_the_list_comes_again(root: Path) -> None:
    with jp("conversation use '?lexer'", root) as terminal:
        terminal.expect("2 of 3")
        terminal.expect(READY)
        shutil.rmtree(root / ".jp/conversations/17800000002-x")
        terminal.type(ENTER)
        terminal.expect("note: conversation 'jp-c17800000002' was deleted meanwhile")
        terminal.expect(READY)
        terminal.type(ENTER)
        assert terminal.finish() == 0

    assert terminal.shown.endswith("jp-c17800000001  The lexer\n")


def test_no_key_at_a_terminal_is_no_key_given(root: Path) -> None:
    with jp("keys set anthropic", root) as terminal:
        terminal.expect("Key for anthropic")
        terminal.type(CTRL_D)
        assert terminal.finish() == 2

    assert "error: no key was given" in terminal.shown


def test_one_model_that_is_not_taken_is_not_several(root: Path) -> None:
    with jp("init new", root, ANTHROPIC_API_KEY="sk-ant-a-key-of-a-test") as terminal:
        terminal.expect("Model:")
        terminal.type(CTRL_D)
        assert terminal.finish() == 0

    assert "no model is set yet; this one could be used:" in terminal.shown
    assert "several" not in terminal.shown

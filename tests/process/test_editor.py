"""Writing queries in an editor, at a terminal: what was written survives whatever ends the editor, the turn or jp."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import run_jp
from jp.conversation.entries import AnyEntry, ChatRequest
from running import home_beside
from shell import shell_at_terminal
from stage import ECHO, logs, make_workspace, only_log
from terminal import CTRL_C, Terminal, jp_at_terminal

COST = re.compile(r"note: .* tokens in, .* out, free\n")

REFUSING = """
[[reply]]
error = { kind = "invalid_request" }
"""

# Puts $TEXT above what the page holds already, as somebody who types at its beginning does.
WRITES = 'printf "%s\\n" "$TEXT" >"$1.new"; cat "$1" >>"$1.new"; mv "$1.new" "$1"; '

# Says on the terminal that it is open, and goes on when a line is typed. A read that a signal interrupts is repeated.
WAITS = 'echo "open in $$"; while ! read -r line; do [ -t 0 ] || exit 7; done; '


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def editor(root: Path, script: str) -> dict[str, str]:
    """The environment of an editor that is a shell script: `$1` is the page."""
    path = home_beside(root) / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"EDITOR": str(path)}


def writing(root: Path, text: str, script: str = "") -> dict[str, str]:
    return {**editor(root, WRITES + script), "TEXT": text}


@contextmanager
def query(arguments: str, root: Path, env: dict[str, str]) -> Generator[Terminal]:
    """`jp query` at a terminal, where a session with a name goes on from one to the next."""
    words = shlex.split(arguments)
    with jp_at_terminal("query", *words, cwd=root, env={"JP_SESSION": "here", **env}) as terminal:
        yield terminal


def ask(arguments: str, root: Path, env: dict[str, str], *, code: int = 0) -> str:
    """What a run shows that ends by itself, but for what it cost."""
    with query(arguments, root, env) as terminal:
        assert terminal.finish() == code, terminal.shown
    return COST.sub("", terminal.stays)


def drafts(root: Path) -> list[Path]:
    return sorted((home_beside(root) / "data").glob("**/query.md"))


def only_draft(root: Path) -> str:
    """The text of the only draft that is kept, with what the editor got below it."""
    (draft,) = drafts(root)
    return draft.read_text(encoding="utf-8")


def requests(entries: list[AnyEntry]) -> list[str]:
    return [entry.content for entry in entries if isinstance(entry, ChatRequest)]


def test_no_words_at_a_terminal_open_an_editor_whose_page_is_for_the_user_alone(root: Path) -> None:
    looks = 'ls -l "$1" | cut -c1-10; ls -ld "${1%/*}" | cut -c1-10; '
    env = {**editor(root, looks + WRITES + 'cat "$1"'), "TEXT": "from the editor"}

    shown = ask("", root, env)

    assert shown.startswith("-rw-------\ndrwx------\nfrom the editor\n")
    assert "<!-- jp " in shown
    assert "- conversation: a new one\n- model: script/test\n" in shown
    assert shown.endswith("You said: from the editor\n")
    assert requests(only_log(root)) == ["from the editor"]
    assert logs(root)[0].parent.name.endswith("-from-the-editor")
    assert drafts(root) == []
    assert not list((home_beside(root) / "data").glob("**/drafts/*"))


def test_the_editor_has_the_terminal_while_the_query_stands_in_pipes(root: Path) -> None:
    env = writing(root, "explain", "test -t 0 && test -t 1 && test -t 2 && echo at the terminal")

    data, given = os.pipe()
    answer, out = os.pipe()
    with os.fdopen(given, "wb") as stream:
        stream.write(b"data\n")
    with jp_at_terminal("query", "--edit", "typed", cwd=root, env=env, stdin=data, stdout=out) as terminal:
        os.close(out)
        assert terminal.finish() == 0
    os.close(data)

    assert COST.sub("", terminal.shown) == "at the terminal\n"
    with os.fdopen(answer, encoding="utf-8") as stream:
        assert stream.read() == "You said: explain\ntyped\n\ndata\n"


def test_an_editor_may_have_arguments_and_the_first_variable_counts(root: Path) -> None:
    env = {"VISUAL": 'sh -c \'printf "%s" "$0" >"$1"\' \'two words\'', "EDITOR": "/nonexistent", "JP_EDITOR": ""}

    ask("--edit", root, env)

    assert requests(only_log(root)) == ["two words"]


def test_an_editor_that_fails_asks_nothing_and_the_next_one_goes_on(root: Path) -> None:
    shown = ask("--edit", root, writing(root, "first", "stty raw; exit 3"), code=1)

    (draft,) = drafts(root)
    assert stat.S_IMODE(draft.stat().st_mode) == 0o600
    assert shown == (
        "error: nothing was asked: the editor "
        f"{str(home_beside(root) / 'editor')!r} ended with exit code 3\n"
        f"hint: what you wrote is kept in {str(draft)!r}; `jp query --edit` goes on with it\n"
    )
    assert logs(root) == []

    shown = ask("--edit", root, writing(root, "second"))

    assert shown.startswith("note: the editor starts from what you wrote before and was not answered\n")
    assert requests(only_log(root)) == ["second\nfirst"]
    assert drafts(root) == []


def test_a_killed_editor_loses_nothing_that_it_saved(root: Path) -> None:
    shown = ask("-e", root, writing(root, "saved", "kill -9 $$"), code=1)

    assert "editor' was ended by SIGKILL\nhint: what you wrote is kept in " in shown
    assert only_draft(root).startswith("saved\n\n\n<!-- jp ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 143), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_what_was_written_survives_the_end_of_jp(number: signal.Signals, code: int, root: Path) -> None:
    env = writing(root, "saved", "trap 'echo unsaved >\"$1.swp\"; exit 1' TERM HUP; " + WAITS)
    with query("-e", root, env) as terminal:
        terminal.expect(r"open in \d+\n")
        os.kill(terminal.process.pid, number)
        assert terminal.process.wait(60) == code

    assert only_draft(root).startswith("saved\n")
    if number != signal.SIGKILL:
        assert [path.name for path in drafts(root)[0].parent.glob("*.swp")] == ["query.md.swp"]
    assert ask("-e", root, writing(root, "more")).startswith("note: the editor starts from what you wrote before")
    assert requests(only_log(root)) == ["more\nsaved"]
    assert drafts(root) == []


def test_a_closed_terminal_loses_nothing(root: Path) -> None:
    with query("-e", root, writing(root, "saved", "trap 'exit 1' HUP; " + WAITS)) as terminal:
        terminal.expect("open in")
        terminal.hang_up()
        assert terminal.process.wait(60) == 143

    assert only_draft(root).startswith("saved\n")


def test_ctrl_c_is_the_editors(root: Path) -> None:
    env = writing(root, "text", "trap 'echo not yet' INT; " + WAITS)
    with query("-e", root, env) as terminal:
        terminal.expect("open in")
        terminal.type(CTRL_C)
        terminal.expect("not yet")
        terminal.type("\n")
        assert terminal.finish() == 0

    assert requests(only_log(root)) == ["text"]


def test_a_request_that_fails_is_kept_with_its_conversation(root: Path) -> None:
    scenario = root / ".jp" / "scenarios" / "test.toml"
    scenario.write_text(REFUSING, encoding="utf-8")

    shown = ask("", root, writing(root, "a question"), code=5)

    (draft,) = drafts(root)
    digits = logs(root)[0].parent.name.partition("-")[0]
    assert draft.parent.parent.name == digits
    assert f"note: what you wrote is kept in {str(draft)!r}; `jp query --edit` goes on with it\nerror: " in shown

    scenario.write_text(ECHO, encoding="utf-8")
    ask("--edit", root, editor(root, ":"))
    assert requests(only_log(root)) == ["a question", "a question"]
    assert drafts(root) == []


def test_two_terminals_write_apart(root: Path) -> None:
    run_jp("query", "begin", cwd=root, env={"JP_SESSION": "here"})
    with query("-e", root, writing(root, "one", WAITS)) as first:
        first.expect("open in")
        shown = ask("-e", root, writing(root, "two"))
        assert not shown.startswith("note:")
        assert requests(only_log(root)) == ["begin", "two"]
        assert only_draft(root).startswith("one\n")
        first.type("\n")
        assert first.finish() == 0

    assert requests(only_log(root)) == ["begin", "two", "one"]
    assert drafts(root) == []


@pytest.mark.parametrize("script", [': >"$1"', 'rm "$1"', "exit 0", "exit 1"])
def test_without_a_text_nothing_is_asked_and_nothing_is_kept(script: str, root: Path) -> None:
    shown = ask("", root, editor(root, script), code=1)

    assert shown.startswith("error: nothing was asked: the ")
    assert "kept" not in shown
    assert logs(root) == []
    assert drafts(root) == []


def test_the_last_answer_is_quoted_above_what_one_writes(root: Path) -> None:
    run_jp("query", "a\n\nb", cwd=root, env={"JP_SESSION": "here"})
    below = 'printf "really?" >>"$1"'

    assert "nothing was asked: nothing stands there besides the quote" in ask(
        "--quote", root, editor(root, ":"), code=1
    )
    ask("--quote", root, editor(root, f'head -n 3 "$1" >"$1.new"; mv "$1.new" "$1"; {below}'))

    assert requests(only_log(root))[1] == "> You said: a\n>\n> breally?".replace("breally", "b\nreally")


def test_a_draft_stays_where_it_is_while_another_text_is_written(root: Path) -> None:
    run_jp("query", "old", cwd=root, env={"JP_SESSION": "here"})
    ask("--edit", root, writing(root, "unsent", "stty raw; exit 3"), code=1)
    (draft,) = drafts(root)

    for arguments, text in (("--replay --edit", "old"), ("--edit words", "words"), ("--quote --edit", "> You said")):
        shown = ask(arguments, root, editor(root, 'cat "$1"; echo new >"$1"'))
        assert f"note: what you wrote before and was not answered stays in {str(draft)!r}; " in shown
        assert f"\n{text}" in shown
        assert "unsent\n" not in shown
        assert drafts(root) == [draft]

    assert "unsent\n" in ask("--edit", root, editor(root, 'cat "$1"'))
    assert drafts(root) == []


def test_a_replay_begins_with_what_was_asked(root: Path) -> None:
    run_jp("query", "old", cwd=root, env={"JP_SESSION": "here"})

    shown = ask("--replay --edit", root, editor(root, 'cat "$1"; echo new >"$1"'))

    assert shown.startswith("old\n\n<!-- jp ")
    assert "## Turn 0, answer\n\n> You said: old\n\n## Turn 0, request\n\n> old\n" in shown
    assert requests(only_log(root)) == ["old", "new"]


def test_a_replay_of_what_has_changed_meanwhile_is_refused_and_kept(root: Path) -> None:
    run_jp("query", "old", cwd=root, env={"JP_SESSION": "here"})
    with query("--replay -e", root, editor(root, WAITS)) as terminal:
        terminal.expect("open in")
        run_jp("query", "--id", ".", "between", cwd=root, env={"JP_SESSION": "here"})
        terminal.type("\n")
        assert terminal.finish() == 2

    assert "error: the conversation has gone on since" in terminal.shown
    assert requests(only_log(root)) == ["old", "between"]
    assert only_draft(root).startswith("old\n")


def test_a_template_that_fails_is_kept(root: Path) -> None:
    assert "line 2 ('{{ x }}')" in ask("-e%", root, writing(root, "a\n{{ x }}"), code=2)
    ask("-e% -ctemplate.values.x=1", root, editor(root, ":"))

    assert requests(only_log(root)) == ["a\n1"]


def test_a_dry_run_keeps_what_was_written(root: Path) -> None:
    shown = ask("-e --dry-run", root, writing(root, "text"))

    assert "nothing was sent or written" in shown
    assert shown.rstrip().endswith("`jp query --edit` goes on with it")
    assert only_draft(root).startswith("text\n")


def test_nothing_is_left_without_persistence(root: Path) -> None:
    shown = ask("-! -e", root, writing(root, "text", 'echo "$1"'))

    assert shown.endswith("You said: text\n")
    assert not Path(shown.splitlines()[0]).parent.parent.exists()
    assert logs(root) == []
    assert not (home_beside(root) / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "editors", "expected"),
    [
        ("", {}, (2, "error: there is no query\nhint: type one, as in")),
        ("--edit", {}, (3, "error: no editor is set\nhint: set EDITOR, or for all sessions: `jp config set --in user")),
        (
            "--edit",
            {"EDITOR": "no-such-editor -f"},
            (3, "error: cannot start the editor 'no-such-editor', which EDITOR"),
        ),
        ("--edit", {"EDITOR": "vim 'x"}, (3, 'error: EDITOR is no command: "vim \'x"\nhint: it is read as a shell')),
        ("--edit -m nope/x", {"EDITOR": "touch opened;"}, (3, "error: ")),
    ],
)
def test_without_an_editor_or_a_model_one_is_told_before_writing(
    arguments: str, editors: dict[str, str], expected: tuple[int, str], root: Path
) -> None:
    code, words = expected

    assert ask(arguments, root, editors, code=code).startswith(words)
    check_that_nothing_was_written(root)


def check_that_nothing_was_written(root: Path) -> None:
    assert not (root / "opened").exists()
    assert logs(root) == []
    assert drafts(root) == []


def test_no_editor_is_opened_where_stdin_is_no_terminal(root: Path) -> None:
    with (
        Path(os.devnull).open("rb") as nothing,
        jp_at_terminal("query", cwd=root, env={"EDITOR": "touch opened;"}, stdin=nothing.fileno()) as terminal,
    ):
        assert terminal.finish() == 2

    assert terminal.shown.startswith("error: there is no query\nhint: type one, as in")
    check_that_nothing_was_written(root)


def test_no_editor_is_opened_in_the_background(root: Path) -> None:
    with shell_at_terminal(
        "set -m; jp query --edit & wait $!; exit $?", cwd=root, env={"EDITOR": "touch opened;"}
    ) as terminal:
        assert terminal.finish() == 2

    assert terminal.shown.startswith("error: --edit needs a terminal")
    check_that_nothing_was_written(root)


def test_an_editor_that_a_repository_names_is_not_run_untrusted(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", settings='[editor]\ncmd = "touch ran"')

    ask("--edit", root, {"EDITOR": "true"}, code=1)

    assert not (root / "ran").exists()

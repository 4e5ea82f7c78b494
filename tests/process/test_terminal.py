"""jp as a person meets it: colours, questions, Ctrl-C, and which conversation goes on where."""

from __future__ import annotations

import os
import re
import select
from pathlib import Path

import pytest

from doubles import messages
from forked import run_jp
from halting import halting
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    CycleEnd,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import NOT_STARTED_CONTENT
from running import TIMEOUT_SECS
from shell import shell_at_terminal
from stage import entries_of, logs, make_workspace, only_log
from terminal import CTRL_C, CTRL_D, Terminal, jp_at_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")

MARKDOWN = """
[[reply]]
reasoning = "Let me think."
text = '''
# Two words

Some **bold** text that is much longer than forty columns, so that it wraps.

- an item
'''
"""

LONG = """
[[reply]]
text = '''
# Begun

TEXT'''
chunk = 8
delay_ms = 10
""".replace("TEXT", "word " * 20_000)

HANGING = """
[[reply]]
wait_ms = 600000
text = "never"
"""

LIMITED = """
[[reply]]
text = "never"
error = { kind = "rate_limit", retry_after = 50 }
"""

READING = """
[[reply]]
when = { tool = "fs_read_file", error = true }
text = "I could not read it."

[[reply]]
when = { tool = "fs_read_file" }
text = "It says {{result}}"

[[reply]]
text = "Let me look."
calls = [{ name = "fs_read_file", arguments = { path = "note.txt" } }]
"""

ASKING = """
[conversation.tools.fs_read_file]
enable = true
run = "ask"
"""

REPLYING = f"""{LONG}
when = {{ exact = "hi" }}

[[reply]]
text = "You said: {{{{user}}}}"
"""

CHOICE = r"continue \(c\), reply \(r\), stop and keep \(s\), abort and undo\s\(a\)\? \[c\]$"

NAMED = {"JP_SESSION": "here"}

STOPPED = "\nnote: stopped; the output so far is kept\n"


def finishes(entries: list[AnyEntry]) -> list[str]:
    return [entry.finish for entry in entries if isinstance(entry, CycleEnd)]


def requests(entries: list[AnyEntry]) -> list[str]:
    return [entry.content for entry in entries if isinstance(entry, ChatRequest)]


def stage_with_tool(root: Path) -> None:
    make_workspace(root, READING, settings=ASKING)
    (root / "note.txt").write_text("hello", encoding="utf-8")


def test_an_answer_is_formatted_and_what_is_beside_it_dimmed(tmp_path: Path) -> None:
    make_workspace(tmp_path, MARKDOWN)

    with jp_at_terminal("query", "hi", cwd=tmp_path, size=(40, 24)) as terminal:
        assert terminal.finish() == 0

    assert terminal.stays.startswith("\x1b[2mLet me\x1b[0m\x1b[2m think.\x1b[0m\n\n")
    assert "\x1b[1mbold\x1b[0m" in terminal.shown
    assert "**" not in terminal.shown
    assert SGR.sub("", terminal.stays).splitlines()[:8] == [
        "Let me think.",
        "",
        "# Two words",
        "",
        "Some bold text that is much longer than",
        "forty columns, so that it wraps.",
        "",
        "• an item",
    ]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colour_nothing_steers_the_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    make_workspace(tmp_path, MARKDOWN)

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=environment) as terminal:
        assert terminal.finish() == 0

    assert "Some **bold** text" in terminal.shown
    assert "\x1b" not in terminal.shown


def stop(terminal: Terminal) -> None:
    """Press Ctrl-C, and choose to stop and keep what came."""
    terminal.type(CTRL_C)
    terminal.question(CHOICE)
    terminal.type("s\n")


def test_ctrl_c_stops_an_answer_that_streams_and_keeps_what_came(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect("Begun")
        terminal.resize(60)
        terminal.expect("word\n")
        stop(terminal)
        assert terminal.finish() == 130

    kept = "".join(messages(only_log(tmp_path)))
    assert terminal.shown.endswith(STOPPED)
    assert SGR.sub("", terminal.stays).count("word") == kept.count("word")
    assert finishes(only_log(tmp_path)) == ["cancelled"]


def test_ctrl_c_stops_before_the_first_byte_and_the_waiting_line_makes_room(tmp_path: Path) -> None:
    make_workspace(tmp_path, HANGING)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect(r"waiting for the model \d+ s")
        stop(terminal)
        assert terminal.finish() == 130

    assert terminal.screen.text.endswith("[c] s\nnote: stopped before any output\n")
    assert finishes(only_log(tmp_path)) == ["cancelled"]


def test_a_line_that_comes_slowly_is_shown_before_it_is_full(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with (
        halting("The answer begins ", "and then takes its time.") as model,
        jp_at_terminal("query", "hi", cwd=tmp_path, env=model.environment) as terminal,
    ):
        terminal.expect("\r\x1b\\[KThe answer begins")
        stop(terminal)
        assert terminal.finish() == 130

    assert terminal.screen.text.endswith("\nThe answer begins\nnote: stopped; the output so far is kept\n")
    assert messages(only_log(tmp_path))[0].startswith("The answer begins ")


def test_ctrl_c_stops_the_wait_for_another_attempt(tmp_path: Path) -> None:
    make_workspace(tmp_path, LIMITED)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect("retry 1 of 5 in 50.0 s\n")
        stop(terminal)
        assert terminal.finish() == 130

    assert terminal.screen.text.endswith("[c] s\nnote: stopped before any output\n")
    assert finishes(only_log(tmp_path)) == ["error"]


def test_a_request_that_fails_says_how_it_is_asked_again_and_how_taken_back(tmp_path: Path) -> None:
    make_workspace(tmp_path, '[[reply]]\nerror = { kind = "quota", message = "no credit" }')
    note = (
        "note: what you asked stays in the conversation:"
        " `jp query --replay` asks it again, `jp conversation undo` takes it back\n"
    )

    for arguments, said in (((), note), (("--no-persist",), "")):
        with jp_at_terminal("query", "hi", *arguments, cwd=tmp_path) as terminal:
            assert terminal.finish() == 6
        assert terminal.stays.startswith(f"{said}error: ")


def test_a_second_ctrl_c_at_the_menu_stops_and_keeps_what_came(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect("word\n")
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        assert not terminal.ends_within(0.3)
        terminal.type(CTRL_C)
        assert terminal.finish() == 130

    assert terminal.shown.endswith(STOPPED)
    assert finishes(only_log(tmp_path)) == ["cancelled"]


def test_a_deadline_that_passes_at_the_menu_takes_the_question_away(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG)

    with jp_at_terminal("query", "--deadline", "2s", "hi", cwd=tmp_path) as terminal:
        terminal.expect("word\n")
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        assert terminal.finish() == 124

    assert "continue (c)" not in terminal.screen.text
    assert terminal.screen.text.endswith(
        "note: stopped; the output so far is kept\n"
        "error: the deadline passed\nhint: allow it more time with `--deadline`\n"
    )


def test_a_terminal_that_becomes_narrower_is_filled_and_no_more(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with (
        halting(f"# Begun\n\n{'word ' * 28}", "word " * 32) as model,
        jp_at_terminal("query", "hi", cwd=tmp_path, env=model.environment) as terminal,
    ):
        terminal.expect("word\n\r\x1b\\[K(word ){11}word")
        terminal.resize(30)
        model.go_on.set()
        assert terminal.finish() == 0

    # The line that was coming has become two.
    _, erased, rest = terminal.shown.partition("\x1b[1A\r\x1b[J")
    assert erased
    assert {len(line) for line in rest.splitlines()[:-2]} == {29}


def test_an_answer_goes_on_behind_the_menu_and_is_shown_when_it_is_continued(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with (
        halting("# Begun\n\nword ", "word " * 59) as model,
        jp_at_terminal("query", "hi", cwd=tmp_path, env=model.environment) as terminal,
    ):
        terminal.expect("Begun")
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        model.go_on.set()
        while not finishes(only_log(tmp_path)):
            assert not terminal.ends_within(0.05)
        terminal.type("\n")
        assert terminal.finish() == 0

    kept = "".join(messages(only_log(tmp_path)))
    assert SGR.sub("", terminal.stays).count("word") == kept.count("word") == 60
    assert finishes(only_log(tmp_path)) == ["stop"]


def test_a_reply_ends_the_answer_and_asks_on(tmp_path: Path) -> None:
    make_workspace(tmp_path, REPLYING)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect("word\n")
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        terminal.type("r\n")
        terminal.question("^your reply .*:$")
        terminal.type("shorter, please\n")
        assert terminal.finish() == 0

    assert "You said: shorter, please" in terminal.stays.splitlines()
    entries = only_log(tmp_path)
    assert requests(entries) == ["hi", "shorter, please"]
    assert finishes(entries) == ["cancelled", "stop"]


def test_an_aborted_turn_is_undone_and_stays_in_the_log(tmp_path: Path) -> None:
    make_workspace(tmp_path, REPLYING)

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=NAMED) as terminal:
        terminal.expect("word\n")
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        terminal.type("a\n")
        assert terminal.finish() == 130
    assert terminal.shown.endswith("note: aborted; the turn is undone, and stays in the log\n")
    with jp_at_terminal("query", "again", cwd=tmp_path, env=NAMED) as next_one:
        assert next_one.finish() == 0

    entries = only_log(tmp_path)
    starts = [entry.id for entry in entries if isinstance(entry, TurnStart)]
    assert [entry.entries for entry in entries if isinstance(entry, Revert)] == [(starts[0],)]
    assert requests(entries) == ["hi", "again"]


def test_an_abort_is_a_line_of_json_too(tmp_path: Path) -> None:
    make_workspace(tmp_path, REPLYING)

    with jp_at_terminal("query", "hi", "--format", "json", cwd=tmp_path) as terminal:
        terminal.expect('"type":"request_context"')
        terminal.type(CTRL_C)
        terminal.question(CHOICE)
        terminal.type("a\n")
        assert terminal.finish() == 130

    (revert,) = [entry for entry in only_log(tmp_path) if isinstance(entry, Revert)]
    assert f'"type":"revert","id":"{revert.id}"' in terminal.stays.replace("\n", "")


def test_a_second_ctrl_c_leaves_at_once_where_the_first_cannot_stop_it(tmp_path: Path) -> None:
    make_workspace(tmp_path, f"[[reply]]\nchunk = 200000\ntext = '{'word ' * 40_000}'")
    pipe, theirs = os.pipe()

    with jp_at_terminal("query", "hi", cwd=tmp_path, stdout=theirs) as terminal:
        os.close(theirs)
        assert select.select([pipe], [], [], TIMEOUT_SECS)[0]  # the rest fills it, and nobody reads
        terminal.type(CTRL_C)
        terminal.expect(r"\^C\n")
        assert terminal.process.poll() is None
        for _ in range(20):
            if terminal.ends_within(0.3):
                break
            terminal.type(CTRL_C)
        assert terminal.finish() == 130
    os.close(pipe)

    assert requests(only_log(tmp_path)) == ["hi"]


@pytest.mark.parametrize(
    ("typed", "code", "answer"),
    [("y\n", 0, "It says hello"), ("n\n", 8, "I could not read it."), (CTRL_D, 8, "I could not read it.")],
)
def test_a_tool_is_asked_about_at_the_terminal_whatever_stdin_and_stdout_are(
    typed: str, code: int, answer: str, tmp_path: Path
) -> None:
    stage_with_tool(tmp_path)

    with (tmp_path / "piped").open("w+b") as piped, (tmp_path / "answer").open("wb") as out:
        piped.write(b"piped")
        piped.seek(0)
        with jp_at_terminal("query", "hi", cwd=tmp_path, stdin=piped.fileno(), stdout=out.fileno()) as terminal:
            terminal.question(r'^Run fs_read_file\(path="note.txt"\)\? \[y,n,Y,N,a,p,r,e,\?\] \[n\]$')
            terminal.type(typed)
            assert terminal.finish() == code

    assert (tmp_path / "answer").read_text(encoding="utf-8") == f"Let me look.\n\n{answer}\n"
    assert requests(only_log(tmp_path)) == ["hi\n\npiped"]
    assert "\n← fs_read_file" in terminal.screen.text


def test_ctrl_c_at_a_question_is_no_answer_and_stops_the_turn(tmp_path: Path) -> None:
    stage_with_tool(tmp_path)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.question(r"\[n\]$")
        terminal.type(CTRL_C)
        assert terminal.finish() == 130

    shown = terminal.screen.text
    assert '\n→ fs_read_file(path="note.txt")\n← fs_read_file' in shown
    assert shown.endswith(STOPPED)
    calls = [entry.id for entry in only_log(tmp_path) if isinstance(entry, ToolCallRequest)]
    responses = [entry for entry in only_log(tmp_path) if isinstance(entry, ToolCallResponse)]
    assert [(response.request, response.content) for response in responses] == [(calls[0], NOT_STARTED_CONTENT)]


def test_a_terminal_goes_on_with_its_own_conversation(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with shell_at_terminal("jp query one && jp query two", cwd=tmp_path) as first:
        assert first.finish() == 0
    with jp_at_terminal("query", "three", cwd=tmp_path) as second:
        assert second.finish() == 0

    assert [requests(entries_of(log)) for log in logs(tmp_path)] == [["one", "two"], ["three"]]


def test_a_named_session_goes_on_in_any_terminal(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    for question in ("one", "two"):
        with jp_at_terminal("query", question, cwd=tmp_path, env=NAMED) as terminal:
            assert terminal.finish() == 0

    assert requests(only_log(tmp_path)) == ["one", "two"]


def test_no_words_at_a_terminal_are_an_error_and_nothing_is_waited_for(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with jp_at_terminal("query", cwd=tmp_path) as terminal:
        assert terminal.finish() == 2

    assert terminal.shown.startswith("error: there is no query\nhint: ")
    assert logs(tmp_path) == []


def test_a_dash_reads_the_terminal_to_its_end(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with jp_at_terminal("query", "-", cwd=tmp_path) as terminal:
        terminal.type(f"typed text\n{CTRL_D}")
        assert terminal.finish() == 0

    assert requests(only_log(tmp_path)) == ["typed text"]


def test_a_pipe_that_brings_nothing_is_waited_for_and_said(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    piped, ours = os.pipe()

    with jp_at_terminal("query", "hi", cwd=tmp_path, stdin=piped) as terminal:
        terminal.expect("note: reading standard input … .*\n")
        os.write(ours, b"at last\n")
        os.close(ours)
        assert terminal.finish() == 0
    os.close(piped)

    assert requests(only_log(tmp_path)) == ["hi\n\nat last"]


def test_a_reader_that_leaves_leaves_nothing_on_the_terminal(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    ours, piped = os.pipe()

    with (
        halting("first\nsecond\n", "third\n") as model,
        jp_at_terminal("query", "hi", cwd=tmp_path, env=model.environment, stdout=piped) as terminal,
    ):
        os.close(piped)
        assert os.read(ours, 6) == b"first\n"
        os.close(ours)
        model.go_on.set()
        assert terminal.finish() == 141

    assert terminal.shown == ""


def test_init_asks_for_a_model_until_it_can_be_one(tmp_path: Path) -> None:
    with jp_at_terminal("init", cwd=tmp_path, size=(200, 24)) as terminal:
        terminal.question(r"Which model (.|\n)*\nModel \(Enter to set one later\):$")
        terminal.type("nonsense\n")
        terminal.question(r"^'nonsense' is neither a model nor an alias\n(.|\n)*\nModel .*:$")
        terminal.type("script/demo\n")
        assert terminal.finish() == 0

    assert f"\ncreated the workspace at {tmp_path}\nmodel: script/demo\n" in terminal.screen.text
    assert 'id = "script/demo"' in (tmp_path / ".jp" / "config.toml").read_text(encoding="utf-8")


def test_init_suggests_a_model_whose_key_is_there(tmp_path: Path) -> None:
    with jp_at_terminal("init", cwd=tmp_path, env={"ANTHROPIC_API_KEY": "sk-test-key"}) as terminal:
        terminal.question(r"Model: \[anthropic/[\w-]+\]$")
        terminal.type("\n")
        assert terminal.finish() == 0

    assert "\nmodel: anthropic/" in terminal.screen.text


def test_ctrl_c_at_the_question_of_init_creates_nothing(tmp_path: Path) -> None:
    with jp_at_terminal("init", cwd=tmp_path) as terminal:
        terminal.question(r"later\):$")
        terminal.type(CTRL_C)
        assert terminal.finish() == 130

    assert terminal.screen.text == ""
    assert list(tmp_path.iterdir()) == []


def test_deleting_asks_by_the_name_that_a_list_shows(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "good morning", cwd=tmp_path)

    for answer, code in (("\n", 1), (CTRL_D, 1), ("y\n", 0)):
        assert len(logs(tmp_path)) == 1
        with jp_at_terminal("conversation", "rm", "morning", cwd=tmp_path) as terminal:
            terminal.question(r"^Delete jp-c\d+ \(good morning\) permanently\? \[y/N\]$")
            terminal.type(answer)
            assert terminal.finish() == code
        assert terminal.screen.text.endswith("\nnote: nothing was deleted\n") == bool(code)

    assert logs(tmp_path) == []


def test_trust_shows_what_it_is_about_and_asks(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings=ASKING.replace('"ask"', '"unattended"'))

    with jp_at_terminal("workspace", "trust", cwd=tmp_path) as terminal:
        terminal.question(r"^│ conversation\.tools\.fs_read_file\.run = 'unattended' (.|\n)*Trust it\? \[y/N\]$")
        terminal.type("y\n")
        assert terminal.finish() == 0

    assert run_jp("query", "hi", cwd=tmp_path).stdout == "You said: hi\n"

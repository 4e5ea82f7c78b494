"""`jp chat` at a terminal: messages, commands, keys, and the log that they leave."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ConfigDelta, CycleEnd, Revert, TurnStart
from running import home_beside
from stage import ECHO, entries_of, logs, make_workspace, only_log
from terminal import CTRL_C, CTRL_D, Terminal, jp_at_terminal

PROMPT = r"^> *$"
ENTER = "\r"
ALT_ENTER = "\x1b\r"
UP = "\x1b[A"

LONG = (
    """
[[reply]]
when = { contains = "slow" }
text = "{text}"
chunk = 5
delay_ms = 50
""".replace("{text}", "word " * 5000)
    + ECHO
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@contextmanager
def chat(root: Path, *words: str, env: dict[str, str] | None = None) -> Generator[Terminal]:
    """A chat that is left at the end."""
    with jp_at_terminal("chat", *words, cwd=root, env=env) as terminal:
        terminal.question(PROMPT)
        yield terminal
        terminal.type(CTRL_D)
        assert terminal.finish() == 0


def say(terminal: Terminal, text: str, answer: str) -> None:
    """Send a message, wait for the answer, and for the next prompt."""
    terminal.type(text + ENTER)
    terminal.question(answer)
    terminal.question(PROMPT)


def requests(entries: list[AnyEntry]) -> list[str]:
    return [entry.content for entry in entries if isinstance(entry, ChatRequest)]


def shape(entries: list[AnyEntry]) -> list[str]:
    return [type(entry).__name__ for entry in entries]


def test_messages_are_turns_of_one_conversation_as_queries_are(root: Path, tmp_path: Path) -> None:
    with chat(root) as terminal:
        say(terminal, "one", "^You said: one")
        terminal.type(ENTER)
        terminal.question(PROMPT)
        say(terminal, "two", "^You said: two")

    other = make_workspace(tmp_path / "other")
    for text in ("one", "two"):
        run_jp("query", text, cwd=other)
    assert requests(only_log(root)) == ["one", "two"]
    assert shape(only_log(root)) == shape(only_log(other))


def test_what_a_file_says_in_vain_is_told_once(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", settings='[style.code]\ncopy_link = "osc8"\n[editor]\ncmd = "vi"')

    with chat(root) as terminal:
        say(terminal, "one", "^You said: one")
        say(terminal, "two", "^You said: two")
        shown = terminal.shown

    assert shown.count("ignored or read differently") == 1
    assert shown.count("ignored until trusted") == 1


def test_it_goes_on_with_the_active_conversation_and_queries_go_on_with_it(root: Path) -> None:
    env = {"JP_SESSION": "test"}
    run_jp("query", "one", cwd=root)
    with chat(root, env=env) as terminal:
        say(terminal, "two", "^You said: two")
    run_jp("query", "three", cwd=root)
    with chat(root, "--new", "first", env=env) as terminal:
        say(terminal, "second", "^You said: second")

    assert [requests(entries_of(log)) for log in logs(root)] == [["one", "two", "three"], ["first", "second"]]


def test_a_message_can_have_several_lines_and_be_found_again(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("one" + ALT_ENTER + "two\nthree" + ENTER)
        terminal.question("^You said: one")
        terminal.question(PROMPT)
        terminal.type(UP + ENTER)
        terminal.question("^You said: one")
        terminal.question(PROMPT)
    with chat(root, "--new") as terminal:
        terminal.type(UP + ENTER)
        terminal.question("^You said: one")
        terminal.question(PROMPT)

    texts = [text for log in logs(root) for text in requests(entries_of(log))]
    assert texts == ["one\ntwo\nthree"] * 3
    (history,) = (home_beside(root) / "data").rglob("chat_history")
    assert history.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_stops_the_answer_and_keeps_what_came(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", LONG)
    with chat(root) as terminal:
        terminal.type("slow" + ENTER)
        terminal.expect("word")
        terminal.type(CTRL_C)
        terminal.question("^note: stopped; what came is kept")
        terminal.question(PROMPT)
        say(terminal, "fast", "^You said: fast")

    entries = only_log(root)
    assert requests(entries) == ["slow", "fast"]
    stopped, answered = [entry.message or "" for entry in entries if isinstance(entry, ChatResponse)]
    assert (stopped[:5], answered) == ("word ", "You said: fast")
    assert [entry.finish for entry in entries if isinstance(entry, CycleEnd)] == ["cancelled", "stop"]


def test_ctrl_c_at_the_prompt_takes_back_what_was_typed(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("never sent" + CTRL_C)
        terminal.question(PROMPT)
        say(terminal, "sent", "^You said: sent")

    assert requests(only_log(root)) == ["sent"]


def test_commands_attach_switch_undo_and_show(root: Path) -> None:
    (root / "a file.txt").write_text("the content", encoding="utf-8")
    (root / ".jp" / "scenarios" / "other.toml").write_text('[[reply]]\ntext = "Another model."\n', encoding="utf-8")
    with chat(root) as terminal:
        say(terminal, "/attach 'a file.txt'", r"^note: attached to the next message: a file\.txt")
        say(terminal, "read it", "^You said: read it")
        say(terminal, "no file", "^You said: no file")
        say(terminal, "/undo", "^undid turn 1")
        say(terminal, "/model", "^note: model: script/test")
        say(terminal, "/model script/other", "^note: model: script/other")
        say(terminal, "hi", r"^Another model\.")
        say(terminal, "again", r"^Another model\.")
        say(terminal, "/model", "^note: model: script/other")
        say(terminal, "/context", "^model +script/other")
        say(terminal, "/help", "^/undo ")

    entries = only_log(root)
    sent = [entry for entry in entries if isinstance(entry, ChatRequest)]
    assert [len(request.resources) for request in sent] == [1, 0, 0, 0]
    assert [type(entry) for entry in entries if isinstance(entry, Revert | ConfigDelta)] == [Revert, ConfigDelta]
    assert len([entry for entry in entries if isinstance(entry, TurnStart)]) == 4


def test_a_conversation_is_compacted(root: Path) -> None:
    with chat(root) as terminal:
        for number in range(5):
            say(terminal, f"turn {number}", f"^You said: turn {number}")
        say(terminal, "/compact light", "nothing to")
        say(terminal, "/compact nonsense", "^error: .*nonsense")


def test_a_message_is_written_in_an_editor(root: Path) -> None:
    with chat(root, env={"EDITOR": "sed -i 1s/begun/done/"}) as terminal:
        say(terminal, "/edit begun", "^You said: done")

    assert requests(only_log(root)) == ["done"]


def test_an_editor_that_fails_sends_nothing_and_keeps_the_attachments(root: Path) -> None:
    (root / "a.txt").write_text("the content", encoding="utf-8")
    with chat(root, env={"EDITOR": "false"}) as terminal:
        say(terminal, "/attach a.txt", r"^note: attached to the next message: a\.txt")
        terminal.type("/edit begun" + ENTER)
        terminal.question("^error: ")
        terminal.question("^> /edit begun")
        terminal.type(CTRL_C)
        terminal.question(PROMPT)
        say(terminal, "hi", "^You said: hi")

    (request,) = [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]
    assert (request.content, len(request.resources)) == ("hi", 1)


def test_what_fails_does_not_end_the_chat_and_what_was_not_sent_is_typed_again(root: Path) -> None:
    with chat(root) as terminal:
        say(terminal, "/attach nosuch.txt", r"^note: attached to the next message: nosuch\.txt")
        terminal.type("read it" + ENTER)
        terminal.question(r"^error: there is no file 'nosuch\.txt'")
        terminal.question("^> read it")
        terminal.type(CTRL_C)
        terminal.question(PROMPT)
        say(terminal, "/attach", "^note: attached to the next message: nothing")
        say(terminal, "read it", "^You said: read it")
        say(terminal, "/nonsense", "^error: there is no command '/nonsense'")
        say(terminal, "/model nonsense", "^error: 'nonsense' is neither a model nor an alias")
        say(terminal, "/undo now", "^error: /undo takes no argument")
        say(terminal, "/exit now", "^error: /exit takes no argument")

    assert requests(only_log(root)) == ["read it"]


def test_a_path_and_a_line_with_a_space_before_it_are_messages(root: Path) -> None:
    with chat(root) as terminal:
        say(terminal, "/etc/hosts is what?", "^You said: /etc/hosts is what")
        say(terminal, " /undo", "^You said: +/undo")

    assert requests(only_log(root)) == ["/etc/hosts is what?", " /undo"]


def test_exit_leaves(root: Path) -> None:
    with jp_at_terminal("chat", "hello", cwd=root) as terminal:
        terminal.question("^You said: hello")
        terminal.question(PROMPT)
        terminal.type("/exit" + ENTER)
        assert terminal.finish() == 0

    assert requests(only_log(root)) == ["hello"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_at_the_prompt_ends_it(number: signal.Signals, code: int, root: Path) -> None:
    with jp_at_terminal("chat", cwd=root) as terminal:
        terminal.question(PROMPT)
        terminal.process.send_signal(number)
        assert terminal.finish() == code


def test_a_signal_during_an_answer_ends_it(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", LONG)
    with jp_at_terminal("chat", "slow", cwd=root) as terminal:
        terminal.expect("word")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.finish() == 143

    (stopped,) = [entry.message or "" for entry in only_log(root) if isinstance(entry, ChatResponse)]
    assert stopped.startswith("word ")


def test_without_a_terminal_it_is_refused(root: Path) -> None:
    check_failure(run_jp("chat", cwd=root, stdin="hi\n"), 2, "jp chat needs a terminal", "`jp query` works in scripts")
    check_failure(run_jp("chat", "--no-persist", cwd=root), 2, "--no-persist leaves nothing for `jp chat` to do")

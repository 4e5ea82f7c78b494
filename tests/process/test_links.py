"""Links and notifications at a real terminal, and their absence elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from forked import prepare, run_jp
from running import home_beside
from stage import logs, make_workspace
from terminal import CTRL_C, jp_at_terminal

ADDRESS = "https://example.org/page"
ANSWER = f"[[reply]]\ntext = 'See [the page]({ADDRESS}) or /etc/passwd.'\n"
HOST = f"file://{os.uname().nodename}"
LINK = re.compile(r"\x1b\]8;;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work", ANSWER)


def links(root: Path, *words: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What is a link of what a command shows at a terminal, and where each leads."""
    with jp_at_terminal(*words, cwd=root, env=env, size=(250, 24)) as terminal:
        assert terminal.finish() == 0, terminal.shown
    found = {re.sub(r"\x1b\[[0-9;]*m", "", shown): target for target, shown in LINK.findall(terminal.shown)}
    assert all(shown in terminal.screen.text for shown in found)
    return found


def test_an_address_in_an_answer_is_a_link_and_a_path_is_none(root: Path) -> None:
    assert links(root, "query", "where?") == {ADDRESS: ADDRESS}
    assert links(root, "conversation", "print", "last") == {ADDRESS: ADDRESS}


def test_attached_sources_are_links(root: Path) -> None:
    (root / "a b.txt").write_text("a", encoding="utf-8")
    (root / "docs").mkdir()
    prepare(["query", "hi"], cwd=root)
    prepare(["attachment", "add", "-i", "last", "a b.txt", "*.txt", ADDRESS, "!docs"], cwd=root)

    assert links(root, "attachment", "ls", "-i", "last") == {
        "file:a%20b.txt": f"{HOST}{root}/a%20b.txt",
        ADDRESS: ADDRESS,
    }


def test_paths_of_files_that_a_command_prints_are_links(root: Path) -> None:
    prepare(["query", "hi"], cwd=root)
    log = logs(root)[0]
    own = home_beside(root) / "config" / "config.toml"

    assert links(root, "conversation", "path", "last", "--log") == {str(log): f"{HOST}{log}"}
    assert links(root, "conversation", "export", "last", "-o", "talk.html", "--to", "html") == {
        "talk.html": f"{HOST}{root}/talk.html"
    }
    assert links(root, "config", "set", "--in", "user", "user.name=Ada")[str(own)] == f"{HOST}{own}"
    assert links(root, "config", "path")[str(own)] == f"{HOST}{own}"


def test_a_note_links_to_a_path(root: Path) -> None:
    (root.parent / "out.toml").write_text("user={}", encoding="utf-8")
    config = root / ".jp" / "config.toml"
    config.write_text(f'extends = ["../../out.toml"]\n{config.read_text(encoding="utf-8")}', encoding="utf-8")
    outside = f"{config.parent}/../../out.toml"

    assert links(root, "config", "fmt")[outside] == f"{HOST}{outside}"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "linux"}])
def test_a_terminal_without_links_gets_none(environment: dict[str, str], root: Path) -> None:
    for words in (("query", "where?"), ("config", "path")):
        with jp_at_terminal(*words, cwd=root, env=environment) as terminal:
            assert terminal.finish() == 0
        assert "\x1b]" not in terminal.shown


def test_neither_a_pipe_nor_a_pager_gets_links(root: Path) -> None:
    for words in (("query", "--color", "always", "-F", "pretty", "where?"), ("config", "path", "--color", "always")):
        assert "\x1b]" not in run_jp(*words, cwd=root).stdout

    pager = {"PAGER": "cat -v"}
    with jp_at_terminal("config", "path", cwd=root, env=pager, size=(40, 3)) as terminal:
        assert terminal.finish() == 0
    assert str(home_beside(root)) in terminal.shown
    assert "]8;" not in terminal.shown


OSC9 = r"\x1b\]9;jp: answered after \d+ s: A title\x1b\\"
OSC777 = r"\x1b\]777;notify;jp;answered after \d+ s: A title\x1b\\"


def told(root: Path, kind: str, *words: str, secs: float = 0) -> str:
    """What is shown of a query in a conversation with a title, where a turn of `secs` is long."""
    prepare(["query", "--new", "--title", "A title", "hi"], cwd=root)
    settings = (f"style.notification={kind}", f"style.notification_secs={secs}")
    with jp_at_terminal(
        "query", "--id", "last", *(f"--cfg={text}" for text in settings), *words, "hi", cwd=root
    ) as terminal:
        terminal.finish()
    return terminal.shown


@pytest.mark.parametrize(("kind", "said"), [("bell", "\a"), ("osc9", OSC9), ("osc777", OSC777)])
def test_a_long_turn_is_told_as_the_setting_says(kind: str, said: str, root: Path) -> None:
    assert len(re.findall(said, told(root, kind))) == 1


@pytest.mark.parametrize("words", [("-q",), ("--format", "json"), ("--dry-run",)])
def test_it_is_told_to_nobody_who_wants_it_quiet(words: tuple[str, ...], root: Path) -> None:
    assert "\x1b]9" not in told(root, "osc9", *words)


def test_a_short_turn_is_told_to_nobody_and_without_the_setting_no_turn_is(root: Path) -> None:
    assert "\a" not in told(root, "bell", secs=3600)
    assert "\a" not in told(root, "off")


def test_a_turn_that_failed_is_told_too(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", '[[reply]]\nerror = { kind = "quota", message = "no credit" }')
    long = ("--cfg=style.notification=osc9", "--cfg=style.notification_secs=0")
    with jp_at_terminal("query", *long, "hi", cwd=root) as terminal:
        assert terminal.finish() == 6

    assert re.search(r"\x1b\]9;jp: failed after \d+ s\x1b", terminal.shown)


def test_who_stops_a_turn_is_told_nothing(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", "[[reply]]\nwait_ms = 600000\ntext = 'never'")
    long = ("--cfg=style.notification=bell", "--cfg=style.notification_secs=0")
    with jp_at_terminal("query", *long, "hi", cwd=root) as terminal:
        terminal.expect("waiting for the model")
        terminal.type(CTRL_C)
        terminal.question("stop and keep")
        terminal.type("s\n")
        assert terminal.finish() == 130

    assert "\a" not in terminal.shown


def test_a_stream_that_is_no_terminal_is_told_nothing(root: Path) -> None:
    done = run_jp("query", "--cfg=style.notification=bell", "--cfg=style.notification_secs=0", "hi", cwd=root)

    assert "\a" not in done.stdout + done.stderr

"""A model that hides what it wants to run, and a person at a real terminal.

All of it is on the screen, or said not to be, and what is on the screen decodes to what runs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from escapes import decode, decode_arguments, decode_rows
from jp.conversation.entries import JsonObject
from running import home_beside
from stage import logs, make_workspace
from terminal import CTRL_C, Terminal, at_terminal, jp_at_terminal

ROW = re.compile("^[│┆]", re.MULTILINE)
LEFT_OUT = re.compile(r"\(not\s+on\s+the\s+screen:\s([^;]*);\sp\s+(?:shows|goes|starts)\s+(?:more|on|again)\)")
ASKED = r"^Run (fs_create_file|run_command)(.|\n)*\[n\]$"
HIDDEN = "; touch hidden"

SPOOFS = {
    "osc across lines": f"echo hi \x1b]0;{HIDDEN}\n" + "code\n" * 800 + "\x07# end",
    "osc by c1": f"echo hi \x9d0;{HIDDEN}\x9c# end",
    "dcs": f"echo hi \x1bP{HIDDEN}\x1b\\# end",
    "csi erases": f"{HIDDEN}\x1b[2K\x1b[1A\x1b[2Kecho hi",
    "c1 csi": f"{HIDDEN}\x9b2K\recho hi",
    "bidi override": "echo \u202e" + HIDDEN[::-1] + "\u202c hi",
    "isolates": f"echo \u2066{HIDDEN}\u2069 hi",
    "zero width": "\u200b".join(HIDDEN),
    "tags": "echo hi" + "".join(chr(0xE0000 + ord(char)) for char in HIDDEN),
    "variation selectors": "echo hi" + "".join(chr(0xE0100 + ord(char)) for char in HIDDEN),
    "carriage return": f"{HIDDEN}\recho hi        ",
    "backspaces": f"{HIDDEN}{chr(8) * 20}echo hi",
    "spaces": f"echo hi{' ' * 100_000}{HIDDEN}",
    "line feeds": f"echo hi{chr(10) * 5_000}{HIDDEN}",
    "odd spaces": f"echo hi{chr(0xA0) * 300}{chr(0x2800) * 300}{HIDDEN}",
    "a long line": f"echo hi; : {'x' * 5_000} {HIDDEN}",
    "many lines": "echo hi\n" * 300 + HIDDEN,
    "many marks": "echo hi" + "\u0336\u0301" * 2_000 + HIDDEN,
    "another script": "p\u0430ypal " + HIDDEN,
    "tokens of its own": f"echo ⟨space*100⟩ ⟨ESC⟩ \\u001b {HIDDEN}",
    "rows of its own": f"echo hi{' ' * 30}│   echo{' ' * 30}┆ {HIDDEN}",
    "a question of its own": f'echo hi\n\nRun fs_read_file(path="a")? [y,n] [n] {HIDDEN}',
}


def stage(root: Path, tool: str, arguments: JsonObject) -> Path:
    """A workspace whose model makes one call, and whose user is asked about it."""
    values = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    scenario = f"""
[[reply]]
when = {{ tool = "{tool}" }}
text = "Done."

[[reply]]
calls = [{{ name = "{tool}", arguments = {{ {values} }} }}]
"""
    make_workspace(root, scenario)
    config = home_beside(root) / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[conversation.tools.{tool}]\nenable = true\nrun = "ask"\n', encoding="utf-8")
    return root


def pages(terminal: Terminal) -> list[list[str]]:
    """The rows of each page as they stand above the question, until all was shown."""
    found: list[list[str]] = []
    while True:
        terminal.question(ASKED)
        visible = [*terminal.screen.visible]
        while visible and not ROW.match(visible[-1]):
            visible.pop()
        first = next((number for number in range(len(visible), 0, -1) if not ROW.match(visible[number - 1])), 0)
        found.append(visible[first:])
        said = LEFT_OUT.search(" ".join(terminal.screen.visible[len(visible) :]))
        if found[-1] and (said is None or "starts" in said[0]):
            return found
        terminal.type("p\n")


def arguments_of(found: list[list[str]]) -> JsonObject:
    """The arguments that stand on these pages."""
    return decode_arguments(decode_rows([row for rows in found for row in rows]))


@pytest.mark.parametrize("name", SPOOFS)
def test_what_would_run_is_on_the_screen(name: str, tmp_path: Path) -> None:
    arguments: JsonObject = {"command": SPOOFS[name], "timeout": 5}
    stage(tmp_path, "run_command", arguments)

    with jp_at_terminal("query", "hi", cwd=tmp_path, size=(80, 60)) as terminal:
        found = pages(terminal)
        terminal.type("n\n")
        assert terminal.finish() == 8

    assert arguments_of(found) == arguments
    assert not (tmp_path / "hidden").exists()


@pytest.mark.parametrize("size", [(20, 24), (200, 24)])
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_what_would_run_is_on_any_screen(size: tuple[int, int], environment: dict[str, str], tmp_path: Path) -> None:
    arguments: JsonObject = {"command": f"echo 漢字{' ' * 500}\x9b2K\n" + "line\n" * 30 + HIDDEN, "timeout": 5}
    stage(tmp_path, "run_command", arguments)

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=environment, size=size) as terminal:
        found = pages(terminal)
        terminal.type("n\n")
        assert terminal.finish() == 8

    assert arguments_of(found) == arguments
    assert len(found) > 1


def test_a_long_diff_is_paged_and_what_is_not_on_the_screen_is_counted(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(500)).replace("line 400\n", "line 400\x1b]0;x\nrm\x07\n")
    stage(tmp_path, "fs_create_file", {"path": "note.txt", "content": content})
    (tmp_path / "note.txt").write_text("old\n", encoding="utf-8")

    with jp_at_terminal("query", "hi", cwd=tmp_path, size=(80, 50)) as terminal:
        found = pages(terminal)
        shown = terminal.screen.text
        terminal.type("y\n")
        terminal.question(r"Overwrite it\? \[y/N\]$")
        terminal.type("y\n")
        assert terminal.finish() == 0

    last = next(number for number, rows in enumerate(found) if any("path:" in row for row in rows))
    diff = decode(decode_rows([row for rows in found[:last] for row in rows]))
    assert diff == "\n".join(["--- note.txt", "+++ note.txt", "@@ -1 +1,501 @@", "-old", *added(content)])
    assert arguments_of(found[last:]) == {"path": "note.txt", "content": content}
    counted = [sum(map(int, re.findall(r"([0-9]+) lines", said.replace(",", "")))) for said in LEFT_OUT.findall(shown)]
    in_all = sum(map(len, found))
    assert counted == [in_all - len(rows) for rows in found]
    assert (tmp_path / "note.txt").read_text(encoding="utf-8") == content


def added(content: str) -> list[str]:
    return [f"+{line}" for line in content.removesuffix("\n").split("\n")]


def test_the_question_is_drawn_again_when_a_stopped_jp_goes_on(tmp_path: Path) -> None:
    stage(
        tmp_path,
        "run_command",
        {"command": "echo one\necho two # and more than fits into the question itself, all in all", "timeout": 5},
    )
    shell = "set -m; jp query hi; stty -a | grep -c ' icanon.* echo ' ; echo in the shell; fg"

    with at_terminal(shell, cwd=tmp_path) as terminal:
        terminal.question(r"^│ command:\n│   echo one(.|\n)*\[n\]$")
        terminal.type("y")
        terminal.expect("y")
        terminal.type("\x1a")
        terminal.expect("1\nin the shell\n")
        terminal.expect(r"\[n\] y")
        rows = terminal.screen.text.partition("in the shell\n")[2].splitlines()
        assert rows[1:3] == ["│ command:", "│   echo one"]
        terminal.type("\x7fn\n")
        assert terminal.finish() == 8

    assert "the user was asked and declined" in logs(tmp_path)[0].read_text(encoding="utf-8")


def test_a_stopped_jp_that_is_told_to_end_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    stage(
        tmp_path,
        "run_command",
        {"command": "echo one\necho two # and more than fits into the question itself, all in all", "timeout": 5},
    )

    with at_terminal("set -m; jp query hi; kill %1; fg; echo code $?", cwd=tmp_path) as terminal:
        terminal.question(ASKED)
        terminal.type("\x1a")
        terminal.expect("code 143")
        assert terminal.finish() == 0


def test_ctrl_c_at_a_page_runs_nothing(tmp_path: Path) -> None:
    stage(tmp_path, "run_command", {"command": "touch hidden\n" * 100})

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.question(ASKED)
        terminal.type("p\n")
        terminal.question(ASKED)
        terminal.type(f"y{CTRL_C}")
        assert terminal.finish() == 130

    assert not (tmp_path / "hidden").exists()


def test_a_pasted_answer_runs_nothing(tmp_path: Path) -> None:
    stage(tmp_path, "run_command", {"command": "touch hidden"})

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.question(ASKED)
        terminal.type("\x1b[200~y\ny\n\x1b[201~\n")
        assert terminal.finish() == 8

    assert not (tmp_path / "hidden").exists()


def test_what_is_trusted_is_shown_page_by_page(tmp_path: Path) -> None:
    value = f"echo hi\x1b]0;x\n{HIDDEN}\x07\u202e"
    command = json.dumps(value, ensure_ascii=False)
    tools = "".join(
        f'[conversation.tools.t{number}]\nsource = "local"\nrun = "unattended"\n'
        f'command = {{ program = "sh", args = [{command}] }}\n'
        for number in range(10)
    )
    make_workspace(tmp_path, settings=tools)
    found: list[str] = []

    with jp_at_terminal("workspace", "trust", cwd=tmp_path, size=(200, 12)) as terminal:
        while not found or "starts" not in found[-1]:
            terminal.question(r"Trust it\? \[y/N\]$")
            found.append("\n".join(terminal.screen.visible))
            terminal.type("p\n")
        terminal.question(r"Trust it\? \[y/N\]$")
        terminal.type("n\n")
        assert terminal.finish() == 1

    rows = [row for page in found for row in page.split("\n") if ROW.match(row)]
    shown = decode(decode_rows(list(dict.fromkeys(rows))))
    assert all(f"conversation.tools.t{number}." in shown for number in range(10))
    assert repr(value) in shown


def test_nobody_agrees_to_a_question_that_the_terminal_has_no_room_for(tmp_path: Path) -> None:
    """A command of 90 characters takes more rows than there are."""
    command = "echo harmless; touch hidden; echo more text here; echo and some more words"
    stage(tmp_path, "run_command", {"command": command})

    with jp_at_terminal("query", "hi", cwd=tmp_path, size=(20, 5)) as terminal:
        terminal.expect("no room: enlarge it")
        terminal.type("y\n")
        terminal.type("\n")
        assert terminal.finish() == 8

    assert not (tmp_path / "hidden").exists()

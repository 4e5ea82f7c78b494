"""The questions about tools, with a person at a real terminal."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from forked import run_jp
from jp.conversation.entries import AnyEntry, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import ResourceBlock
from running import home_beside
from stage import make_workspace, only_log
from terminal import CTRL_C, CTRL_D, Terminal, jp_at_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")

READING = """
[[reply]]
when = { tool = "fs_read_file" }
text = "Done."

[[reply]]
when = { tool = "run_command" }
text = "Done."

[[reply]]
calls = [CALLS]
"""
COMMAND = '{ name = "run_command", arguments = { command = "TEXT" } }'
NOTE = '{ name = "fs_read_file", arguments = { path = "note.txt" } }'
QUESTION = r'^Run fs_read_file\(path="note.txt"\)\? \[y,n,Y,N,a,p,r,e,\?\] \[n\]$'

SLOW = """
[[reply]]
when = { tool = "slow" }
text = "The model was told: {{result}}"

[[reply]]
calls = [{ name = "fs_read_file", arguments = { path = "note.txt" } }, { name = "slow" }]
"""
SLOW_TOOL = """
[conversation.tools.slow]
enable = true
source = "local"
run = "unattended"
command = "sleep 60"
"""


def stage(root: Path, *calls: str, scenario: str = READING, settings: str = "") -> Path:
    """A workspace whose model makes these calls, and whose user lets `fs_read_file` be asked about."""
    make_workspace(root, scenario.replace("CALLS", ", ".join(calls)))
    (root / "note.txt").write_text("hello\n", encoding="utf-8")
    (root / "other.txt").write_text("other\n", encoding="utf-8")
    config = home_beside(root) / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(f"[conversation.tools.fs_read_file]\nenable = true\n{settings}", encoding="utf-8")
    return root


def editor_that_writes(root: Path, text: str) -> dict[str, str]:
    """An environment whose editor replaces a file by `text`."""
    new = root.parent / "new.txt"
    new.write_text(text, encoding="utf-8")
    return {"EDITOR": f"cp {new}"}


def responses(entries: list[AnyEntry]) -> list[str]:
    """What each call was answered, in the order of the log."""
    texts: list[str] = []
    for entry in entries:
        if isinstance(entry, ToolCallResponse):
            blocks = [block.resource if isinstance(block, ResourceBlock) else block for block in entry.content]
            texts.append(" | ".join(getattr(block, "text", "") or "" for block in blocks))
    return texts


def answer(terminal: Terminal, *keys: str) -> None:
    for key in keys:
        terminal.question(QUESTION)
        terminal.type(f"{key}\n")


def test_the_arguments_and_the_keys_are_shown_and_then_a_reason_goes_to_the_model(tmp_path: Path) -> None:
    stage(tmp_path, NOTE)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        answer(terminal, "p")
        terminal.question(r'^│ path: "note.txt"$')
        answer(terminal, "?")
        terminal.question(r"^N  do not run it, and for the rest of this turn no call with these arguments$")
        answer(terminal, "r")
        terminal.question(r"^Why not\?$")
        terminal.type("it is private\n")
        assert terminal.finish() == 8

    (text,) = responses(only_log(tmp_path))
    assert "the user was asked and declined. The user said: it is private" in text


def test_an_answer_for_the_rest_of_the_turn_is_asked_for_once(tmp_path: Path) -> None:
    other = NOTE.replace("note.txt", "other.txt")
    stage(tmp_path, NOTE, NOTE, other, other)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        answer(terminal, "Y")
        terminal.question(r'^Run fs_read_file\(path="other.txt"\)\? ')
        terminal.type("N\n")
        assert terminal.finish() == 8
        shown = terminal.screen.text

    assert shown.count("Run fs_read_file") == 2
    given = sorted(responses(only_log(tmp_path)))
    assert given[2:] == ["hello\n", "hello\n"]
    assert all("declined" in text for text in given[:2])


def test_arguments_are_edited_until_they_fit_and_asked_about_again(tmp_path: Path) -> None:
    stage(tmp_path, NOTE)
    env = editor_that_writes(tmp_path, '{"pth": "other.txt"}')

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=env) as terminal:
        answer(terminal, "e")
        terminal.question(r"^The arguments do not fit: 'path' is missing; (.|\n)* Edit again\? \[Y/n\]$")
        editor_that_writes(tmp_path, '{"path": "other.txt"}')
        terminal.type("\n")
        terminal.question(r'^Run fs_read_file\(path="other.txt"\)\? ')
        terminal.type("y\n")
        assert terminal.finish() == 0

    entries = only_log(tmp_path)
    assert responses(entries) == [
        'The user changed the arguments, and the call ran with these: {"path":"other.txt"} | other\n'
    ]
    assert [entry.arguments for entry in entries if isinstance(entry, ToolCallRequest)] == [{"path": "note.txt"}]


def test_a_call_that_is_to_be_edited_opens_the_editor_before_it_is_asked_about(tmp_path: Path) -> None:
    stage(tmp_path, NOTE, settings='run = "edit"\n')
    env = editor_that_writes(tmp_path, '{"path": "other.txt"}')

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=env) as terminal:
        terminal.question(r'^Run fs_read_file\(path="other.txt"\)\? ')
        terminal.type("n\n")
        assert terminal.finish() == 8


def test_without_an_editor_nothing_is_edited_and_the_end_of_input_is_a_no(tmp_path: Path) -> None:
    stage(tmp_path, NOTE)

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        answer(terminal, "e")
        terminal.expect(r"Nothing is changed: no editor is set\n")
        terminal.question(QUESTION)
        terminal.type(CTRL_D)
        assert terminal.finish() == 8


def test_a_result_is_looked_at_changed_and_given(tmp_path: Path) -> None:
    stage(tmp_path, NOTE, settings='run = "unattended"\nresult = "ask"\n')
    question = r"Give the model the result of fs_read_file \(1 line, 6 B\)\? \[y,n,p,r,e,\?\] \[n\]$"

    with jp_at_terminal("query", "hi", cwd=tmp_path, env=editor_that_writes(tmp_path, "goodbye\n")) as terminal:
        terminal.question(rf"^│ hello\n│\n{question}")
        terminal.type("e\n")
        assert terminal.finish() == 0

    assert responses(only_log(tmp_path)) == ["goodbye\n"]


def test_at_ctrl_c_the_tools_are_stopped_and_the_model_goes_on(tmp_path: Path) -> None:
    stage(tmp_path, scenario=SLOW, settings=f'run = "unattended"\n{SLOW_TOOL}')

    with jp_at_terminal("query", "hi", cwd=tmp_path) as terminal:
        terminal.expect("← fs_read_file")
        terminal.type(CTRL_C)
        terminal.question(r"stop the tools and tell the model \(r\)(.|\n)*\? \[c\]$")
        terminal.type("r\n")
        terminal.question("^what to tell the model besides:$")
        terminal.type("it is Sunday\n")
        terminal.expect("The model was told: The user stopped this call while it ran")
        assert terminal.finish() == 0

    assert responses(only_log(tmp_path)) == [
        "hello\n",
        "The user stopped this call while it ran; what it did until then stays. The user says: it is Sunday",
    ]


def own_settings(root: Path) -> str:
    return (home_beside(root) / "config" / "config.toml").read_text(encoding="utf-8")


ALWAYS = r"^Which run without a question in this workspace from now on\? 1-3, or nothing:"


def allow(root: Path, number: int) -> None:
    """Answer the question about a call with `a`, and choose what is allowed from now on."""
    with jp_at_terminal("query", "--new", "read it", cwd=root, size=(120, 24)) as terminal:
        terminal.question(r"^Run .*\? \[y,n,Y,N,a,p,r,e,\?\] \[n\]$")
        terminal.type("a\n")
        terminal.question(ALWAYS)
        terminal.type(f"{number}\n")
        terminal.expect("Written to ")
        assert terminal.finish() == 0


def test_a_tool_is_allowed_permanently_once_it_is_said_what_that_covers(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", NOTE)
    with jp_at_terminal("query", "--new", "read it", cwd=root, size=(120, 24)) as terminal:
        answer(terminal, "a")
        terminal.question(r"^1  fs_read_file with path='note.txt', and no other arguments$")
        terminal.question(r"^2  fs_read_file on files below '.'$")
        terminal.question(r"^3  every call of fs_read_file, whatever it is given$")
        terminal.question(ALWAYS)
        terminal.type("3\n")
        terminal.expect("Written to ")
        terminal.expect("Done.")
        assert terminal.finish() == 0

    asked = run_jp("query", "--new", "read it", cwd=root)
    assert (asked.code, asked.stdout) == (0, "Done.\n")
    listed = json.loads(run_jp("tool", "rules", "--format", "json", cwd=root).stdout)["rules"]
    assert [(rule["number"], rule["tool"], rule["run"]) for rule in listed] == [(1, "fs_read_file", "unattended")]
    result = run_jp("tool", "rules", "--remove", "2", cwd=root)
    assert (result.code, "there is no rule 2" in result.stderr) == (2, True)
    assert run_jp("tool", "rules", "--remove", "1", cwd=root).code == 0
    assert run_jp("tool", "rules", cwd=root).stderr == "note: your settings have no rules for tools\n"
    assert run_jp("query", "--new", "read it", cwd=root).code == 8


def test_what_is_allowed_for_a_directory_and_a_call_holds_for_them_only(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", NOTE)
    (root / "docs").mkdir()
    (root / "docs/a.txt").write_text("a\n", encoding="utf-8")
    for number, path, others in ((1, "note.txt", ["other.txt", "docs/a.txt"]), (2, "docs/a.txt", ["other.txt"])):
        set_calls(root, f'{{ name = "fs_read_file", arguments = {{ path = "{path}" }} }}')
        allow(root, number)
        assert run_jp("query", "--new", "read it", cwd=root).code == 0
        for other in others:
            set_calls(root, f'{{ name = "fs_read_file", arguments = {{ path = "{other}" }} }}')
            assert run_jp("query", "--new", "read it", cwd=root).code == 8
    listed = run_jp("tool", "rules", cwd=root).stdout
    assert re.findall(r"path=\S+.*", listed) == [f"path={root}/note.txt, no other arguments", f"path={root}/docs/**"]


def set_calls(root: Path, *calls: str) -> None:
    (root / ".jp/scenarios/test.toml").write_text(READING.replace("CALLS", ", ".join(calls)), encoding="utf-8")


def test_a_prefix_of_a_command_is_allowed_with_plain_words_after_it(tmp_path: Path) -> None:
    settings = "[conversation.tools.run_command]\nenable = true\n"
    root = stage(tmp_path / "work", COMMAND.replace("TEXT", "echo one 1"), settings=settings)
    allow(root, 2)
    assert "command=echo one …, no other arguments" in run_jp("tool", "rules", cwd=root).stdout
    for text, code in (("echo one 2 3", 0), ("echo one; touch x", 8), ("echo one $(touch x)", 8), ("echo two", 8)):
        set_calls(root, COMMAND.replace("TEXT", text))
        assert run_jp("query", "--new", "do it", cwd=root).code == code
    assert not (root / "x").exists()


def test_what_is_allowed_in_a_workspace_is_not_in_another_one_although_it_brings_the_same_id(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", NOTE)
    allow(root, 3)
    other, home = copied(root)

    denied = run_jp("query", "--new", "read it", cwd=other, env=home)
    assert denied.code == 8
    assert "conversation.tools.fs_read_file.run" in denied.stderr
    assert run_jp("workspace", "trust", "--yes", cwd=other, env=home).code == 0
    assert run_jp("query", "--new", "read it", cwd=other, env=home).code == 0
    (other / ".jp/.id").unlink()
    assert run_jp("query", "--new", "read it", cwd=other, env=home).code == 8


def test_a_directory_is_offered_for_jps_own_file_tools_only(tmp_path: Path) -> None:
    local = 'source = "local"\ncommand = "cat note.txt"\nparameters.path.type = "string"\n'
    root = stage(tmp_path / "work", NOTE, settings=local)

    with jp_at_terminal("query", "--new", "read it", cwd=root, size=(120, 24)) as terminal:
        answer(terminal, "a")
        terminal.question(r"^1  fs_read_file with path='note.txt', and no other arguments$")
        terminal.question(r"^2  every call of fs_read_file")
        terminal.question(r"1-2, or nothing:")
        terminal.type("\n")
        answer(terminal, "n")
        assert terminal.finish() == 8


def copied(root: Path) -> tuple[Path, dict[str, str]]:
    """Copy a workspace with its id, as a clone of its repository does; return it, and the environment of its user."""
    other, home = root.parent / "other", home_beside(root)
    shutil.copytree(root, other)
    return other, {"JP_USER_DATA_DIR": str(home / "data"), "JP_GLOBAL_CONFIG_DIR": str(home / "config")}


def test_nothing_is_added_for_a_workspace_whose_settings_were_made_for_another_one(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", NOTE)
    allow(root, 3)
    other, home = copied(root)

    with jp_at_terminal("query", "--new", "read it", cwd=other, env=home, size=(120, 24)) as terminal:
        answer(terminal, "a")
        terminal.question(ALWAYS)
        terminal.type("1\n")
        terminal.expect("were made for a workspace at another path")
        answer(terminal, "n")
        assert terminal.finish() == 8


def test_a_rule_of_its_own_is_not_written_where_it_would_replace_those_for_all_tools(tmp_path: Path) -> None:
    rules = '[[conversation.tools."*".rules]]\nrun = "skip"\narguments = { path = "keys/**" }\n'
    root = stage(tmp_path / "work", NOTE, settings=rules)

    with jp_at_terminal("query", "--new", "read it", cwd=root, size=(120, 24)) as terminal:
        answer(terminal, "a")
        terminal.question(ALWAYS)
        terminal.type("2\n")
        terminal.expect("Nothing is changed: 'fs_read_file' follows rules for several tools")
        answer(terminal, "n")
        assert terminal.finish() == 8
    set_calls(root, NOTE.replace("note.txt", "keys/a"))
    assert run_jp("query", "--new", "read it", cwd=root).code == 0  # skipped, which is no denial


def test_nothing_is_written_where_nothing_is_chosen_or_may_be_written(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", NOTE)
    for options, choice in (((), ""), ((), "4"), ((), "y"), (("--no-persist",), "1")):
        with jp_at_terminal(*options, "query", "--new", "read it", cwd=root, size=(120, 24)) as terminal:
            answer(terminal, "a")
            terminal.question(ALWAYS)
            terminal.type(f"{choice}\n")
            answer(terminal, "n")
            assert terminal.finish() == 8
    assert run_jp("tool", "rules", cwd=root).stderr == "note: your settings have no rules for tools\n"


def test_rules_that_were_written_by_hand_are_listed_and_removed(tmp_path: Path) -> None:
    rules = '[[conversation.tools.fs_read_file.rules]]\nrun = "unattended"\narguments = { path = "docs/**" }\n'
    root = stage(tmp_path / "work", NOTE, settings=rules)

    assert run_jp("tool", "rules", cwd=root).stdout.split()[3:] == ["1", "fs_read_file", "unattended", "path=docs/**"]
    assert run_jp("tool", "rules", "--remove", "1", cwd=root).code == 0
    assert "docs/**" not in own_settings(root)

"""Tools that run while something happens: a person is asked, a signal comes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from forked import start_jp
from jp.conversation.entries import InquiryResponse, ToolCallResponse
from jp.conversation.resource import TextBlock
from running import home_beside
from stage import make_workspace, only_log
from terminal import CTRL_C, CTRL_D, jp_at_terminal

ASKING = r"""
import json, sys
answers = json.load(sys.stdin)["tool"]["answers"]
questions = [
    {"id": "sure", "text": "Sure?", "kind": "boolean"},
    {"id": "colour", "text": "Which colour?", "options": ["red", "dark blue"]},
    {"id": "name", "text": "Which name?", "default": "Ada"},
]
left = [question for question in questions if question["id"] not in answers]
block = {"type": "question", **left[0]} if left else {"type": "text", "text": json.dumps(answers)}
print(json.dumps({"content": [block]}))
"""

SETTINGS = """
[conversation.tools.asking]
enable = true
run = "unattended"
command = "python3 asking.py"
input = "json"

[conversation.tools.run_command]
enable = true
run = "unattended"
"""


def stage(root: Path, name: str, **arguments: object) -> Path:
    """A workspace whose model calls this tool and then repeats its result."""
    given = ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
    scenario = f"""
[[reply]]
when = {{ contains = "go" }}
calls = [{{ name = "{name}", arguments = {{ {given} }} }}]

[[reply]]
text = "It said {{{{result}}}}"
"""
    make_workspace(root, scenario)
    directory = home_beside(root) / "config"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(SETTINGS, encoding="utf-8")
    (root / "asking.py").write_text(ASKING, encoding="utf-8")
    return root


def only_response(root: Path) -> ToolCallResponse:
    (response,) = [entry for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    return response


def text_of(response: ToolCallResponse) -> str:
    return "".join(block.text or "" for block in response.content if isinstance(block, TextBlock))


def answers_in(root: Path) -> list[tuple[object, str]]:
    return [(entry.answer, entry.answered_by) for entry in only_log(root) if isinstance(entry, InquiryResponse)]


def test_what_a_tool_asks_is_answered_at_the_terminal(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", "asking")

    with jp_at_terminal("query", "go", cwd=root) as terminal:
        terminal.question(r"^asking: Sure\? \[y/N\]$")
        terminal.type("y\n")
        terminal.question(r"^│ Which colour\?\n│   1  red\n│   2  dark blue\nasking: 1-2:$")
        terminal.type("3\n")
        terminal.question(r"^One of these, 1-2:$")
        terminal.type("2\n")
        terminal.question(r"^asking: Which name\? \[Ada\]$")
        terminal.type("\n")
        terminal.expect(r"It said .*dark blue")
        assert terminal.finish() == 0

    assert answers_in(root) == [(True, "user"), ("dark blue", "user"), ("Ada", "user")]
    assert json.loads(text_of(only_response(root))) == {"sure": True, "colour": "dark blue", "name": "Ada"}


@pytest.mark.parametrize(
    ("arguments", "asked", "typed", "said", "error"),
    [
        ({}, r"^ask_user: Which\?$", "both\n", "The user answered: both", False),
        (
            {"options": ["a", "b"]},
            r"^│ Which\?\n│   1  a\n│   2  b\nask_user: 1-2:$",
            "b\n",
            "The user answered: b",
            False,
        ),
        ({}, r"^ask_user: Which\?$", CTRL_D, "The user was asked, and gave no answer.", True),
    ],
)
def test_the_model_asks_the_person_at_the_terminal(
    tmp_path: Path, *, arguments: dict[str, object], asked: str, typed: str, said: str, error: bool
) -> None:
    root = stage(tmp_path / "work", "ask_user", question="Which?", **arguments)

    with jp_at_terminal("query", "go", cwd=root) as terminal:
        terminal.question(asked)
        terminal.type(typed)
        assert terminal.finish() == 0

    assert (text_of(only_response(root)), only_response(root).is_error) == (said, error)


HANGING = "exec 3>alive; sleep 1000 & printf x >&3; wait"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_with_all_that_it_has_started(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    root = stage(tmp_path / "work", "run_command", command=HANGING)
    os.mkfifo(root / "alive")
    process = start_jp("query", "go", cwd=root)
    process.stdin.close()

    with (root / "alive").open("rb") as alive:
        assert alive.read(1) == b"x"
        process.send_signal(number)
        assert alive.read(1) == b""
    process.communicate()

    assert process.returncode == code
    assert text_of(only_response(root)) == "interrupted; effects unknown"


def test_ctrl_c_at_a_question_stops_the_turn(tmp_path: Path) -> None:
    root = stage(tmp_path / "work", "asking")

    with jp_at_terminal("query", "go", cwd=root) as terminal:
        terminal.question(r"^asking: Sure\? \[y/N\]$")
        terminal.type(CTRL_C)
        assert terminal.finish() == 130

    assert answers_in(root) == []
    assert only_response(root).is_error


def test_a_person_sees_the_whole_command_before_it_runs(tmp_path: Path) -> None:
    command = "printf 'one\n' # \x1b]0;\nprintf two; touch ran #\x07"
    root = stage(tmp_path / "work", "run_command", command=command)

    with jp_at_terminal("query", "-c", "conversation.tools.run_command.run=ask", "go", cwd=root) as terminal:
        terminal.question(
            r"^│ command:\n│   printf 'one\n│   ' # ⟨ESC⟩\]0;\n│   printf two; touch ran #⟨BEL⟩\n(.*\n)*Run run_command"
        )
        assert not (root / "ran").exists()
        terminal.type("y\n")
        terminal.expect("It said <exit_code>0")
        assert terminal.finish() == 0

    assert (root / "ran").exists()

"""Tools that a configuration declares, the model's own commands, and what tools ask, from the command line on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import run_jp
from jp.conversation.entries import Facts, InquiryRequest, InquiryResponse, ToolCallResponse
from jp.conversation.resource import ResourceBlock, TextBlock
from running import home_beside
from stage import make_workspace, only_log

PAGE = Path(__file__).parents[2] / "docs" / "local-tools.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def scenario(calls: list[tuple[str, dict[str, Any]]], *, answer: str = '{"answer": true}') -> str:
    """A model that makes these calls at once, and says of any question of a tool what `answer` is."""
    listed = ", ".join(f"{{ name = {json.dumps(name)}, arguments = {_inline(given)} }}" for name, given in calls)
    return f"""
[[reply]]
when = {{ contains = "<question>" }}
text = '{answer}'

[[reply]]
when = {{ contains = "go" }}
calls = [{listed}]

[[reply]]
text = "done"
"""


def _inline(given: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in given.items()) + "}"


def own_settings(root: Path, text: str) -> None:
    """The user's own configuration, which needs no trust."""
    directory = home_beside(root) / "config"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(text, encoding="utf-8")


def responses(root: Path) -> list[ToolCallResponse]:
    return [entry for entry in only_log(root) if isinstance(entry, ToolCallResponse)]


def texts(response: ToolCallResponse) -> str:
    return "".join(block.text or "" for block in response.content if isinstance(block, TextBlock))


def test_the_tools_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    calls = [
        ("find_todos", {"directory": "."}),
        ("count_words", {"text": "-x $(touch ran); 'y'"}),
        ("set_version", {"version": "1.0; touch ran"}),
    ]
    root = make_workspace(tmp_path / "work", scenario(calls))
    own_settings(root, "\n".join(blocks("toml")))
    (root / "set_version.py").write_text(blocks("python")[0], encoding="utf-8")
    (root / "a.py").write_text("# TODO: say '-x $(touch ran); 'y''\n", encoding="utf-8")

    result = run_jp("query", "go", cwd=root)
    usage = run_jp("conversation", "usage", "last", cwd=root)

    assert (result.code, result.stdout) == (0, "done\n")
    by_text = {texts(response): response for response in responses(root)}
    assert set(by_text) == {"./a.py:1:# TODO: say '-x $(touch ran); 'y''\n", "7 ./a.py\n", "done"}
    assert (root / "VERSION").read_text(encoding="utf-8") == "1.0; touch ran\n"
    assert not (root / "ran").exists()
    (asked,) = [entry for entry in only_log(root) if isinstance(entry, InquiryRequest)]
    (answered,) = [entry for entry in only_log(root) if isinstance(entry, InquiryResponse)]
    assert (asked.question.id, asked.question.text) == ("sure", "Set the version to 1.0; touch ran?")
    assert (answered.answer, answered.answered_by, answered.model) == (True, "assistant", "script/test")
    assert answered.usage is not None
    assert "for answers to what tools asked" in usage.stdout
    (block,) = [block for block in by_text["done"].content if isinstance(block, ResourceBlock)]
    assert block.resource.uri == (root / "VERSION").as_uri()


def test_a_tool_of_the_page_is_run_by_hand(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", settings=blocks("toml")[0])
    (root / "a.py").write_text("# TODO: more\n", encoding="utf-8")

    trusted = run_jp("workspace", "trust", "--yes", cwd=root)
    result = run_jp("tool", "run", "find_todos", "--arguments", '{"directory": "."}', cwd=root)

    assert (trusted.code, result.code, result.stdout) == (0, 0, "./a.py:1:# TODO: more\n")


def test_the_configuration_answers_and_the_model_is_not_asked(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", scenario([("set_version", {"version": "1.0"})], answer="no JSON"))
    own_settings(root, blocks("toml")[2] + "\n[conversation.tools.set_version.questions.sure]\nanswer = false\n")
    (root / "set_version.py").write_text(blocks("python")[0], encoding="utf-8")

    result = run_jp("query", "go", cwd=root)

    assert result.code == 0
    assert "? set_version: Set the version to 1.0? false (the configuration)" in result.stderr
    (response,) = responses(root)
    assert (texts(response), response.is_error) == ("The answer was no.", True)
    assert not (root / "VERSION").exists()


def test_where_nobody_answers_the_model_is_told_and_the_exit_code_says_so(tmp_path: Path) -> None:
    calls = [("set_version", {"version": "1.0"}), ("ask_user", {"question": "Which colour?"})]
    root = make_workspace(tmp_path / "work", scenario(calls, answer="no JSON"))
    own_settings(root, blocks("toml")[2])
    (root / "set_version.py").write_text(blocks("python")[0], encoding="utf-8")

    result = run_jp("query", "-v", "go", cwd=root)

    assert (result.code, result.stdout) == (8, "done\n")
    assert "error: without an answer that it needs of a person: ask_user, set_version\n" in result.stderr or (
        "error: without an answer that it needs of a person: set_version, ask_user\n" in result.stderr
    )
    assert "'script/test' gives no answer: its answer is not true or false" in result.stderr
    said = sorted(texts(response) for response in responses(root))
    assert said[0].startswith("Nobody can be asked here.")
    assert said[1].startswith("set_version asks 'Set the version to 1.0?', and nobody can answer it here")
    assert not (root / "VERSION").exists()


def test_what_a_workspace_declares_runs_only_when_it_is_trusted(tmp_path: Path) -> None:
    settings = '[conversation.tools.touch]\nenable = true\ncommand = "touch ran"\n'
    root = make_workspace(tmp_path / "work", scenario([("touch", {})]), settings=settings)

    refused = run_jp("query", "--approve", "touch", "go", cwd=root)
    trusted = run_jp("workspace", "trust", "--yes", cwd=root)
    denied = run_jp("query", "go", cwd=root)
    ran_unasked = (root / "ran").exists()
    approved = run_jp("query", "--new", "--approve", "touch", "go", cwd=root)

    check_failure(refused, 3, "conversation.tools.touch.command", "jp workspace trust")
    assert "conversation.tools.touch.command = 'touch ran'" in trusted.stdout
    assert (denied.code, approved.code) == (8, 0)
    assert not ran_unasked
    assert (root / "ran").exists()


def test_a_query_tells_of_errors_and_keeps_secrets_from_commands(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", scenario([("environment", {}), ("broken", {})]))
    own_settings(
        root,
        """
[conversation.tools.environment]
enable = true
run = "unattended"
command = "env"
environment = ["MY_TOKEN"]

[conversation.tools.broken]
enable = true
run = "unattended"
kind = "test"
command = { program = "echo 'error: no such thing' >&2; exit 2", shell = true }
""",
    )

    env = {"MY_TOKEN": "mine", "OTHER_TOKEN": "secret", "ANTHROPIC_API_KEY": "secret"}
    result = run_jp("query", "-v", "go", cwd=root, env=env)

    assert result.code == 0
    assert "log: broken: error: no such thing\n" in result.stderr
    broken, environment = sorted(responses(root), key=lambda response: not response.is_error)
    assert broken.facts == Facts(kind="test", exit_code=2, first_error="error: no such thing")
    assert "MY_TOKEN=mine\n" in texts(environment)
    assert "secret" not in texts(environment)


RUN = ("run_command", {"command": "echo out; echo err >&2; exit 3"})


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 0, "There is no tool 'run_command'"),
        (("--tool=run_command",), 8, "This call did not run"),
        (("--tool=run_command", "--approve", "run_command"), 0, "<exit_code>3</exit_code>\n<stdout>\nout\n</stdout>"),
    ],
)
def test_a_command_of_the_model_runs_only_where_a_person_lets_it(
    flags: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "work", scenario([RUN]))

    result = run_jp("query", *flags, "go", cwd=root)

    (response,) = responses(root)
    assert (result.code, response.is_error) == (code, True)
    assert texts(response).startswith(said)

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from jp.config.entries import AccessConfig, CommandConfig, FileRuleConfig, ParameterConfig, ToolConfig
from jp.conversation.entries import Facts, Header, Question
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.errors import ConfigurationError, JpError
from jp.tool import execution
from jp.tool.base import Answer, ToolInvocation, ToolOutput, Unanswered
from jp.tool.execution import Sandbox
from jp.tool.local import LocalTool, RunCommand

PATIENCE = 20.0
FREE = Sandbox(name="run_command", default="off")


class Answers:
    """Gives these answers, one after the other, and remembers the questions."""

    def __init__(self, *answers: Answer | Unanswered) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        assert not person_only
        self.asked.append(question)
        return self._answers.pop(0)


class HeaderOnly:
    entries: Sequence[Header] = (Header(id="conversation", format=1, created_at="2026-01-02T03:04:05Z"),)

    def load(self, carrier: Any, /) -> Any:
        return carrier


def invocation(root: Path, settings: ToolConfig, *, answers: Answers | None = None, **arguments: Any) -> ToolInvocation:
    return ToolInvocation(
        arguments=arguments, root=root, settings=settings, inquirer=answers or Answers(), stream=HeaderOnly()
    )


def output(
    root: Path, settings: ToolConfig, *, answers: Answers | None = None, log: list[str] | None = None, **arguments: Any
) -> ToolOutput:
    heard: list[str] = [] if log is None else log
    tool = LocalTool("t", settings, workspace_id="w")

    async def run() -> ToolOutput:
        with anyio.fail_after(PATIENCE):
            given = invocation(root, settings, answers=answers, **arguments)
            return await tool.run(msgspec.structs.replace(given, log=heard.append))

    return anyio.run(run)


def text_of(found: ToolOutput) -> str:
    (block,) = found.content
    assert isinstance(block, TextBlock)
    return block.text or ""


def shell(script: str, **settings: Any) -> ToolConfig:
    return ToolConfig(command=msgspec.convert({"program": script, "shell": True}, CommandConfig), **settings)


def test_what_a_command_prints_is_the_result_and_its_errors_are_logged(tmp_path: Path) -> None:
    log: list[str] = []

    found = output(tmp_path, ToolConfig(command="sh -c 'pwd; echo one >&2; echo two >&2'"), log=log)

    assert found == ToolOutput(content=(TextBlock(text=f"{tmp_path}\n"),), facts=Facts(kind="terminal", exit_code=0))
    assert log == ["t: one", "t: two"]


def test_a_command_that_fails_says_all_that_it_said(tmp_path: Path) -> None:
    found = output(tmp_path, shell("echo out; echo 'fatal: no such thing' >&2; exit 3"))

    assert found == ToolOutput(
        content=(
            TextBlock(
                text="<exit_code>3</exit_code>\n<stdout>\nout\n</stdout>\n<stderr>\nfatal: no such thing\n</stderr>\n"
            ),
        ),
        is_error=True,
        facts=Facts(kind="terminal", exit_code=3, first_error="fatal: no such thing"),
    )


@pytest.mark.parametrize("value", ["; rm -rf /", "$(touch ran)", "a\nb", "'\"", "-n", "`touch ran`", "a  b"])
@pytest.mark.parametrize("is_shell", [False, True])
def test_what_the_model_says_is_never_code(value: str, *, is_shell: bool, tmp_path: Path) -> None:
    words = CommandConfig(program="printf", args=("%s", "{{tool.arguments.value}}"))
    settings = shell("printf %s {{tool.arguments.value}}") if is_shell else ToolConfig(command=words)

    assert text_of(output(tmp_path, settings, value=value)) == value
    assert list(tmp_path.iterdir()) == []


def test_a_command_may_read_the_call_as_json(tmp_path: Path) -> None:
    settings = ToolConfig(
        command="cat",
        input="json",
        options={"deep": [1]},
        access=AccessConfig(fs=(FileRuleConfig(path="src", read=True),)),
        parameters={"omitted": ParameterConfig()},
    )

    assert json.loads(text_of(output(tmp_path, settings, path="a.txt"))) == {
        "tool": {"name": "t", "arguments": {"path": "a.txt"}, "answers": {}, "options": {"deep": [1]}},
        "context": {
            "action": "run",
            "root": str(tmp_path),
            "access": {"fs": [{"path": "src", "read": True}]},
            "workspace_id": "w",
            "conversation_id": "conversation",
        },
    }


def test_blocks_are_results_as_they_are(tmp_path: Path) -> None:
    said = json.dumps({"content": [{"type": "resource", "resource": {"uri": "x:y", "text": "t"}}], "isError": False})

    found = output(tmp_path, shell(f"echo '{said}'; exit 1"))

    assert found == ToolOutput(
        content=(ResourceBlock(resource=Resource(uri="x:y", text="t")),), facts=Facts(kind="terminal", exit_code=1)
    )
    assert output(tmp_path, shell("echo '{\"content\": []}'; exit 1")).is_error


def test_a_tool_that_says_nothing_says_so(tmp_path: Path) -> None:
    assert text_of(output(tmp_path, ToolConfig(command="true"))) == "(no output)"
    assert text_of(output(tmp_path, shell("echo '{\"content\": []}'"))) == "(no output)"


def test_what_is_no_text_is_not_shown(tmp_path: Path) -> None:
    found = output(tmp_path, shell("printf 'a\\0b'"))

    assert found.is_error
    assert "[3 bytes that are no text]" in text_of(found)
    assert found.facts == Facts(kind="terminal", exit_code=0, first_error="3 bytes that are no text")


ASKING = """
if [ -z {{tool.answers.name}} ]; then
    echo '{"type": "needs_input", "question": {"id": "name", "text": "Which name?", "answer_type": "Text"}}'
elif [ {{tool.answers.sure}} != true ]; then
    echo '{"content": [{"type": "question", "id": "sure", "text": "Sure?", "kind": "boolean"}]}'
else
    echo hello {{tool.answers.name}}
fi
"""


def test_a_tool_that_asks_is_run_again_with_the_answers(tmp_path: Path) -> None:
    answers = Answers(Answer(value="$(Ada)", by="user"), Answer(value=True, by="config"))

    found = output(tmp_path, shell(ASKING), answers=answers)

    assert text_of(found) == "hello $(Ada)\n"
    assert answers.asked == [
        Question(id="name", text="Which name?", kind="text"),
        Question(id="sure", text="Sure?", kind="boolean"),
    ]


@pytest.mark.parametrize(
    ("cause", "said"), [("nobody", "nobody can answer it here"), ("declined", "who was asked did not answer")]
)
def test_a_question_without_an_answer_ends_the_call(cause: Any, said: str, tmp_path: Path) -> None:
    found = output(tmp_path, shell(ASKING), answers=Answers(Unanswered(cause=cause)))

    assert found.is_error
    assert text_of(found).startswith(f"t asks 'Which name?', and {said}")


def test_a_tool_does_not_ask_without_end(tmp_path: Path) -> None:
    answers = Answers(*[Answer(value="", by="config")] * 21)

    found = output(tmp_path, shell(ASKING), answers=answers)

    assert text_of(found) == "t asked more than 20 questions, and was stopped."


def test_a_command_gets_no_secrets_but_those_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1")
    monkeypatch.setenv("OTHER_TOKEN", "sk-2")

    said = text_of(output(tmp_path, ToolConfig(command="env", environment=("OTHER_TOKEN",))))

    assert "sk-1" not in said
    assert "OTHER_TOKEN=sk-2\n" in said


def test_a_command_that_takes_too_long_is_stopped_and_what_came_is_told(tmp_path: Path) -> None:
    found = output(tmp_path, shell("echo begun; sleep 1000", timeout_secs=0.5))

    assert found.is_error
    assert text_of(found) == (
        "It was stopped: it took longer than 0.5 s.\n<exit_code>143 (SIGTERM)</exit_code>\n<stdout>\nbegun\n</stdout>\n"
    )
    why = "It was stopped: it took longer than 0.5 s."
    assert found.facts == Facts(kind="terminal", exit_code=143, first_error=why)


def test_a_flood_is_cut_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "KEPT_BYTES", 10)
    monkeypatch.setattr(execution, "MOST_BYTES", 2**20)

    cut = output(tmp_path, shell("printf first; head -c 1000 /dev/zero; printf 'xlast!'"))
    stopped = output(tmp_path, ToolConfig(command="yes"))

    assert text_of(cut) == "first\n[… 1,001 bytes were not kept …]\nlast!"
    assert not cut.is_error
    assert stopped.is_error
    assert text_of(stopped).startswith("It was stopped: it printed more than 1 MiB.")


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("no-such-program", {}, "there is no program 'no-such-program', neither in PATH"),
        ("own.py", {}, "there is no program 'own.py'; the file in the workspace is './own.py'"),
        ("./own.py", {}, "cannot run './own.py': Permission denied"),
        ("./missing", {}, "cannot run './missing': No such file"),
        ("echo {{tool.arguments.x}}", {"x": "a\0b"}, "zero byte"),
        ("echo {{tool.arguments.x}}", {"x": "\ud800"}, "not valid Unicode"),
        ("echo {{tool.arguments.x}}", {"x": "x" * 2**20}, "too long for a command line"),
    ],
)
def test_what_cannot_be_run_is_said(command: str, arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()

    with pytest.raises(JpError) as raised:
        output(tmp_path, ToolConfig(command=command), **arguments)

    assert said in raised.value.message


def test_a_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(JpError, match="there is no directory"):
        output(tmp_path / "gone", ToolConfig(command="true"))


def test_a_tool_without_a_command_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match="'t' has no command"):
        LocalTool("t", ToolConfig())


def preview(root: Path, settings: ToolConfig, **arguments: Any) -> str | None:
    return anyio.run(lambda: LocalTool("t", settings).preview(invocation(root, settings, **arguments)))


def test_a_person_sees_the_command_before_it_runs(tmp_path: Path) -> None:
    command = ToolConfig(command="grep -- {{tool.arguments.x}} .")

    assert preview(tmp_path, command, x="a; rm") == "grep -- 'a; rm' ."
    assert preview(tmp_path, command) is None
    assert preview(tmp_path, ToolConfig(command="cat", input="json"), x="a") is None


# run_command


def commanded(root: Path, settings: ToolConfig, **arguments: Any) -> ToolOutput:
    async def run() -> ToolOutput:
        with anyio.fail_after(PATIENCE):
            return await RunCommand(FREE).run(invocation(root, settings, **arguments))

    return anyio.run(run)


def test_the_models_command_runs_in_a_shell_in_the_root(tmp_path: Path) -> None:
    found = commanded(tmp_path, ToolConfig(), command="pwd | tr a-z A-Z; echo err >&2; test -t 0 || cat")

    assert not found.is_error
    assert text_of(found) == (
        f"<exit_code>0</exit_code>\n<stdout>\n{str(tmp_path).upper()}\n</stdout>\n<stderr>\nerr\n</stderr>\n"
    )
    assert found.facts == Facts(kind="terminal", exit_code=0)


def test_a_command_of_the_model_that_fails_is_an_error(tmp_path: Path) -> None:
    found = commanded(tmp_path, ToolConfig(), command="echo 'error: first'; echo 'error: second'; kill -9 $$")

    assert found.is_error
    assert "<exit_code>137 (SIGKILL)</exit_code>" in text_of(found)
    assert found.facts == Facts(kind="terminal", exit_code=137, first_error="error: first")


@pytest.mark.parametrize(
    ("limit", "wanted", "seconds"), [(None, 1, 1), (1.0, 500, 1), (1.0, None, 1), (1.0, 0, 1), (0.0, 1, 1)]
)
def test_the_model_may_say_how_long_within_what_the_configuration_allows(
    *, limit: float | None, wanted: int | None, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float | None] = []

    async def execute(line: Any, *, timeout_secs: float | None, **more: Any) -> Any:
        asked.append(timeout_secs)
        raise JpError("not run")

    monkeypatch.setattr("jp.tool.local.execute", execute)
    arguments = {"command": "true", **({} if wanted is None else {"timeout": wanted})}
    with pytest.raises(JpError):
        commanded(tmp_path, ToolConfig(timeout_secs=limit), **arguments)

    assert asked == [seconds]

"""`jp query --schema` over Anthropic's protocol: what goes over the wire, and what is made of what comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import anthropic_wire as wire
from forked import prepare, run_jp
from jp.conversation.entries import ChatResponse
from jp.provider.schemas import in_words
from loopback import Loopback, Reply
from running import Result
from stage import make_workspace, only_log

ENVIRONMENT = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
PERSON = '{"name": "Ann", "age": 30}'
PRINTED = '{"name":"Ann","age":30}\n'
STRICT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "additionalProperties": False,
    "required": ["name", "age"],
}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path) -> None:
    make_workspace(tmp_path)


def words(
    server: Loopback, *arguments: str, schema: str | None = "name, age int", model: str = "claude-haiku-4-5"
) -> list[str]:
    settings = (f"providers.llm.anthropic.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    wanted = () if schema is None else ("--schema", schema)
    return ["query", *cfg, "--model", f"anthropic/{model}", *wanted, *arguments, "who?"]


def ask(
    server: Loopback, cwd: Path, *arguments: str, schema: str | None = "name, age int", model: str = "claude-haiku-4-5"
) -> Result:
    return run_jp(*words(server, *arguments, schema=schema, model=model), cwd=cwd, env=ENVIRONMENT)


def played(*bodies: bytes) -> Loopback:
    return Loopback(*(Reply(body=body) for body in bodies))


def texts(body: dict[str, Any]) -> list[list[str]]:
    """The texts of each message of a request."""
    return [[block.get("text", block["type"]) for block in message["content"]] for message in body["messages"]]


def bodies(server: Loopback) -> list[dict[str, Any]]:
    return [request.json() for request in server.requests]


def data(root: Path) -> list[Any]:
    return [entry.data for entry in only_log(root) if isinstance(entry, ChatResponse) and entry.reasoning is None]


def test_the_answer_is_held_to_the_schema_by_the_api(tmp_path: Path) -> None:
    answer = wire.answer(wire.thinking(0, "hm"), wire.text(1, *PERSON))

    with played(answer, wire.message("You are welcome.")) as server:
        result = ask(server, tmp_path, "--hide-reasoning")
        ask(server, tmp_path, "--id", "last", schema=None)

    first, second = bodies(server)
    assert result == (0, PRINTED, "")
    assert first["output_config"] == {"format": {"type": "json_schema", "schema": STRICT}}
    assert texts(first) == [["who?"]]
    assert "output_config" not in second
    assert texts(second) == [["who?"], ["thinking", '{"name":"Ann","age":30}'], ["who?"]]


@pytest.mark.parametrize(
    ("schema", "answer", "printed"),
    [
        ('{"type": "array", "items": {"type": "integer"}}', "[1, 2]", "[1,2]\n"),
        ('{"anyOf": [{"type": "integer"}, {"type": "null"}]}', "null", "null\n"),
    ],
)
def test_an_answer_that_is_no_object_is_wrapped_for_the_api_alone(
    tmp_path: Path, schema: str, answer: str, printed: str
) -> None:
    with played(wire.message(*f'{{"wrapped_answer": {answer}}}'), wire.message("So it is.")) as server:
        result = ask(server, tmp_path, schema=schema)
        ask(server, tmp_path, "--id", "last", schema=None)

    first, second = bodies(server)
    wanted = first["output_config"]["format"]["schema"]
    assert result == (0, printed, "")
    assert (wanted["type"], list(wanted["properties"]), wanted["required"]) == (
        "object",
        ["wrapped_answer"],
        ["wrapped_answer"],
    )
    assert data(tmp_path)[0] == json.loads(answer)
    assert texts(second)[1] == [printed.strip()]


BOUNDED = '{"type": "object", "properties": {"age": {"type": "integer", "maximum": 100}}, "required": ["age"]}'


def test_what_the_api_does_not_hold_is_held_here_and_asked_for_once_more(tmp_path: Path) -> None:
    with played(wire.message('{"age": 130}'), wire.message('{"age": 30}')) as server:
        result = ask(server, tmp_path, schema=BOUNDED)

    first, second = bodies(server)
    assert (result.code, result.stdout) == (0, '{"age":30}\n')
    assert first["output_config"]["format"]["schema"]["properties"]["age"] == {
        "type": "integer",
        "description": "{maximum: 100}",
    }
    assert second["output_config"] == first["output_config"]
    said = texts(second)
    assert said[:2] == [["who?"], ['{"age":130}']]
    assert "- /age: 130 does not have maximum 100" in said[2][0]


OPEN = '{"type": "object", "additionalProperties": {"type": "integer"}}'
RECURSIVE = '{"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}}'


@pytest.mark.parametrize(
    ("schema", "model"),
    [(OPEN, "claude-haiku-4-5"), (RECURSIVE, "claude-haiku-4-5"), ('{"type": "object"}', "claude-opus-4-1")],
    ids=["a map", "recursion", "a model without schemas"],
)
def test_what_cannot_be_held_by_the_api_is_said_in_words(tmp_path: Path, schema: str, model: str) -> None:
    with played(wire.message("Here:\n```json\n{}\n```"), wire.message("So it is.")) as server:
        result = ask(server, tmp_path, schema=schema, model=model)
        ask(server, tmp_path, "--id", "last", schema=None, model=model)

    first, second = bodies(server)
    said = in_words(json.loads(schema))
    assert result == (0, "{}\n", "")
    assert "output_config" not in first
    assert texts(first) == [["who?", said]]
    assert texts(second) == [["who?", said], ["Here:\n```json\n{}\n```"], ["who?"]]


def test_an_answer_at_its_longest_output_is_not_continued(tmp_path: Path) -> None:
    with played(wire.answer(wire.text(0, '{"name": "Ann", "age": 3'), reason="max_tokens")) as server:
        result = ask(server, tmp_path)

    assert (result.code, result.stdout) == (9, "")
    assert "was cut off" in result.stderr
    assert len(server.requests) == 1
    assert data(tmp_path) == ['{"name": "Ann", "age": 3']


def test_an_answer_that_breaks_off_is_asked_for_anew_with_the_same_bytes(tmp_path: Path) -> None:
    whole = wire.message(*PERSON)
    cut = whole[: whole.index(b'"g"')]

    with Loopback(Reply(body=cut), Reply(body=whole)) as server:
        result = ask(server, tmp_path)

    assert (result.code, result.stdout) == (0, PRINTED)
    assert "retry 1 of 5" in result.stderr
    assert server.requests[0].body == server.requests[1].body


def test_a_refusal_is_no_answer(tmp_path: Path) -> None:
    with played(wire.answer(wire.text(0, "{}"), reason="refusal")) as server:
        result = ask(server, tmp_path)

    assert (result.code, result.stdout, len(server.requests)) == (13, "", 1)


def test_tools_run_before_the_answer_under_the_same_schema(tmp_path: Path) -> None:
    (tmp_path / "ann.txt").write_text("thirty\n", encoding="utf-8")
    called = wire.answer(
        wire.text(0, '{"name": "", "age": 0}'),
        wire.tool_use(1, "fs_read_file", '{"path":"ann.txt"}'),
        reason="tool_use",
    )

    with played(called, wire.message(PERSON)) as server:
        result = ask(
            server, tmp_path, "--cfg", "conversation.tools.fs_read_file.enable:=true", "--approve-all", "--quiet"
        )

    first, second = bodies(server)
    assert result == (0, PRINTED, "")
    assert first["output_config"] == second["output_config"] != {}


def test_the_log_alone_makes_every_request_anew(tmp_path: Path) -> None:
    replies: Sequence[bytes] = [
        wire.message('{"age": 130}'),
        wire.message('{"age": 30}'),
        wire.message("You are welcome."),
        wire.message('{"wrapped_answer": 1}'),
    ]

    with played(*replies) as server:
        prepare(
            words(server, schema=BOUNDED),
            words(server, "--id", "last", schema=None),
            words(server, "--id", "last", schema='{"type": "integer"}'),
            cwd=tmp_path,
            env=ENVIRONMENT,
        )

    printed = [run_jp("conversation", "print", "last", "--as-sent", str(turn), cwd=tmp_path) for turn in range(4)]
    assert [result.stdout.strip().encode() for result in printed] == [request.body for request in server.requests]
    assert [result.stderr for result in printed] == [""] * 4

"""`jp query` against a server that speaks Anthropic's protocol: recorded streams, errors, what is sent and kept."""

from __future__ import annotations

import json
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest

import anthropic_wire as wire
import chat_wire
from forked import prepare, run_jp
from loopback import JSON, Loopback, Reply, sse
from running import Result

DATA = os.environ.get("JP_TEST_DATA", "")
CASES = (
    "test_chat_completion_stream",
    "test_image_attachment",
    "test_opus_4_6_adaptive_thinking",
    "test_request_chaining",
)
"""Every recording with a streamed answer and without a tool."""

KEY = "sk-ant-test-0123456789"
ENVIRONMENT = {"ANTHROPIC_API_KEY": KEY}


def words_for(server: Loopback, *arguments: str) -> list[str]:
    settings = (f"providers.llm.anthropic.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    return ["query", *cfg, "--model", "anthropic/claude-haiku-4-5", *arguments]


def query(server: Loopback, cwd: Path, *arguments: str) -> Result:
    return run_jp(*words_for(server, *arguments), cwd=cwd, env=ENVIRONMENT)


def message(*events: dict[str, Any], stop: str = "end_turn") -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 1}
    head: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "usage": usage,
    }
    return sse(
        {"type": "message_start", "message": {**head, "usage": usage}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def text_block(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": index},
    ]


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no recordings")
@pytest.mark.parametrize("case", CASES)
def test_a_recorded_answer_comes_out_as_it_was_expected(case: str, tmp_path: Path) -> None:
    recording = json.loads((Path(DATA) / "recordings" / "anthropic" / f"{case}.json").read_bytes())
    chance = random.Random(case)
    bodies = [exchange["response"]["body"].encode() for exchange in recording["exchanges"]]
    replies = [
        Reply(body=body, cuts=tuple(sorted({chance.randrange(len(body)) for _ in range(40)}))) for body in bodies
    ]

    with Loopback(*replies) as server:
        result = query(server, tmp_path, "--format", "json", "go on")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    said = "".join(line["message"] for line in lines if line["type"] == "chat_response" and "message" in line)
    thought = "".join(line["reasoning"] for line in lines if line["type"] == "chat_response" and "reasoning" in line)
    (turn,) = recording["expected"]["turns"]
    assert (result.code, result.stderr) == (0, "")
    assert said == turn["message_text"]
    assert thought == (turn["reasoning"]["text"] or "")
    assert len(server.requests) == len(bodies)
    finishes = [line["finish"] for line in lines if line["type"] == "cycle_end"]
    native = {"end_turn": "stop", "max_tokens": "length"}
    assert finishes == [native[name] for name in turn["finish"]["native"]]


def test_an_answer_is_streamed_and_its_request_is_what_was_typed(tmp_path: Path) -> None:
    with Loopback(Reply(body=message(*text_block("Hello")))) as server:
        result = query(server, tmp_path, "Hi")

    body = server.requests[0].json()
    assert result == (0, "Hello\n", "")
    assert server.requests[0].target == "/v1/messages"
    assert server.requests[0].headers["x-api-key"] == KEY
    assert body["model"] == "claude-haiku-4-5"
    assert body["stream"] is True


def refusal(words: str, *, status: int = 400, kind: str = "invalid_request_error") -> Reply:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words}}).encode()
    return Reply(status=status, headers=JSON, body=body)


def check_error(result: Result, code: int, hint: str) -> None:
    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert f"\nhint: {hint}" in result.stderr
    assert "asks to wait" not in result.stderr
    assert KEY not in result.stderr


@pytest.mark.parametrize(
    ("reply", "code", "hint"),
    [
        (refusal("messages: something is off"), 5, "`jp query --dry-run --format json …` shows what is sent"),
        (
            refusal("prompt is too long: 300000 tokens > 200000 maximum"),
            7,
            "no compaction makes it much shorter: `jp conversation undo ",
        ),
        (refusal("Your credit balance is too low to access the API"), 6, "check the account's plan, credit and limits"),
        (refusal("messages.1.content.0: Invalid `signature` in `thinking` block"), 5, "use another model"),
        (refusal("no", status=401, kind="authentication_error"), 4, "check the key in ANTHROPIC_API_KEY"),
        (refusal("model: claude-haiku-4-5", status=404, kind="not_found_error"), 3, "near: 'anthropic/"),
    ],
    ids=["invalid", "too long", "credit", "reasoning", "bad key", "no model"],
)
def test_an_error_of_the_provider_has_its_exit_code_and_a_hint(
    tmp_path: Path, reply: Reply, code: int, hint: str
) -> None:
    with Loopback(reply) as server:
        result = query(server, tmp_path, "Hi")

    check_error(result, code, hint)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (refusal("slow down", status=429, kind="rate_limit_error"), 6),
        (Reply(body=sse({"type": "error", "error": {"type": "overloaded_error", "message": "…"}})), 5),
    ],
    ids=["rate", "event"],
)
def test_so_has_one_that_may_pass(tmp_path: Path, reply: Reply, code: int) -> None:
    with Loopback(reply) as server:
        result = query(server, tmp_path, "--cfg", "assistant.request.max_retries=0", "Hi")

    check_error(result, code, "try again in a while")


def test_an_overloaded_provider_is_asked_again(tmp_path: Path) -> None:
    overloaded = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).encode()
    failing = Reply(status=529, headers=(*JSON, ("retry-after", "0")), body=overloaded)

    with Loopback(failing, failing, Reply(body=message(*text_block("Hello")))) as server:
        result = query(server, tmp_path, "Hi")

    assert (result.code, result.stdout) == (0, "Hello\n")
    assert "retry 1 of 5" in result.stderr
    assert server.requests[0].body == server.requests[1].body == server.requests[2].body


def test_a_wait_that_is_too_long_is_left_to_the_user(tmp_path: Path) -> None:
    limited = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}).encode()

    with Loopback(Reply(status=429, headers=(*JSON, ("retry-after", "3600")), body=limited)) as server:
        result = query(server, tmp_path, "Hi")

    assert result.code == 6
    assert "hint: the provider asks to wait 3,600 s: try again then" in result.stderr
    assert len(server.requests) == 1


def test_a_stream_that_is_cut_in_a_character_is_continued(tmp_path: Path) -> None:
    whole = message(*text_block("The answer is forty-twö"))
    cut = whole.index("ö".encode()) + 1

    with Loopback(
        Reply(body=message(*text_block("The answer is for"))[: -len(message()) // 2], ends="close"),
        Reply(body=whole[:cut], ends="close"),
        Reply(body=message(*text_block("swer is forty-twö."))),
    ) as server:
        result = query(server, tmp_path, "Hi")

    assert result.code == 0
    assert result.stdout == "The answer is forty-twö.\n"
    assert len(server.requests) == 3


def test_a_refusal_leaves_no_answer_in_the_next_request(tmp_path: Path) -> None:
    with Loopback(
        Reply(body=message(*text_block("I could"), stop="refusal")), Reply(body=message(*text_block("Hello")))
    ) as server:
        refused = query(server, tmp_path, "one")
        answered = query(server, tmp_path, "--id", ".", "two")

    assert (refused.code, answered.code) == (13, 0)
    assert b"I could" not in server.requests[1].body


def test_the_second_request_starts_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content " * 200, encoding="utf-8")

    with Loopback(Reply(body=message(*text_block("One"))), Reply(body=message(*text_block("Two")))) as server:
        query(server, tmp_path, "--attach", "a.txt", "first")
        query(server, tmp_path, "--id", ".", "--attach", "a.txt", "second")

    def messages(number: int) -> list[Any]:
        body: Any = json.loads(server.requests[number].body, object_hook=without_marker)
        return body["messages"]

    def without_marker(value: dict[str, Any]) -> dict[str, Any]:
        value.pop("cache_control", None)
        return value

    assert messages(1)[: len(messages(0))] == messages(0)
    assert server.requests[1].body.count(b"content content") == server.requests[0].body.count(b"content content")


def test_a_file_that_the_provider_cannot_take_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").write_bytes(b"PK\x03\x04" + bytes(100))

    with Loopback() as server:
        result = query(server, tmp_path, "--attach", "archive.zip", "Hi")

    assert result.code == 10
    assert "archive.zip" in result.stderr
    assert "\nhint: " in result.stderr
    assert server.requests == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").exists()


def test_a_parameter_that_cannot_be_sent_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Loopback() as server:
        result = query(server, tmp_path, "--param", "other.model=x", "Hi")

    assert (result.code, result.stderr) == (
        3,
        "error: 'model' cannot be set by `other`\nhint: remove it from `assistant.model.parameters.other`\n",
    )
    assert server.requests == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").exists()


def test_a_parameter_that_is_not_sent_is_said_once(tmp_path: Path) -> None:
    arguments = ("--model", "anthropic/claude-opus-4-8", "--param", "temperature=0.5", "Hi")

    with Loopback(Reply(body=message(*text_block("Hello")))) as server:
        sent = query(server, tmp_path, *arguments)
        shown = query(server, tmp_path, "--dry-run", *arguments)

    said = "note: 'temperature' not sent: 'claude-opus-4-8' takes none\n"
    assert sent == (0, "Hello\n", said)
    assert shown.stderr == said
    assert "temperature" not in server.requests[0].json()


@pytest.mark.parametrize(("choice", "attach"), [("fs_read_file", ()), ("required", ("--attach", "cmd:true"))])
def test_a_choice_of_a_tool_that_is_not_enabled_is_refused_before_anything_is_written(
    tmp_path: Path, choice: str, attach: tuple[str, ...]
) -> None:
    with Loopback() as server:
        result = query(server, tmp_path, "--cfg", f"assistant.tool_choice={choice}", *attach, "Hi")

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        f"error: 'assistant.tool_choice' is '{choice}', but no tool is enabled\n"
        "hint: offer one with --tool=NAME, or let the model choose: --tool-use auto\n"
    )
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").exists()


def test_a_choice_of_an_unknown_tool_names_those_that_there_are(tmp_path: Path) -> None:
    tools = ("--cfg", "conversation.tools.fs_read_file.enable=true")
    with Loopback() as server:
        result = query(server, tmp_path, *tools, "--cfg", "assistant.tool_choice=fs_raed", "Hi")

    assert result.code == 3
    assert "'assistant.tool_choice' is 'fs_raed', but the enabled tools are: 'fs_read_file'" in result.stderr


def tool_use(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    ]


def texts(said: dict[str, Any]) -> list[str]:
    return [block.get("text", "") for block in said["content"]]


def test_a_model_that_cannot_be_forced_is_asked_for_a_call_until_it_comes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content\n", encoding="utf-8")
    settings = ("conversation.tools.fs_read_file.enable=true", "assistant.tool_choice=fs_read_file")
    arguments = (*(word for setting in settings for word in ("--cfg", setting)), "--approve", "fs_read_file")
    replies = (
        message(*text_block("I would rather not.")),
        message(*tool_use("fs_read_file", {"path": "a.txt"}), stop="tool_use"),
        message(*text_block("It is content.")),
    )

    with Loopback(*[Reply(body=body) for body in replies]) as server:
        result = query(server, tmp_path, "--model", "anthropic/claude-fable-5", *arguments, "What is in a.txt?")

    bodies: list[dict[str, Any]] = [request.json() for request in server.requests]
    asked = [[texts(said) for said in body["messages"]] for body in bodies]
    plea = "Call the tool 'fs_read_file' now."
    assert result.code == 0
    assert "asking again, 1 of 3" in result.stderr
    assert asked[0] == [["What is in a.txt?", plea]]
    assert asked[1][:2] == [["What is in a.txt?", plea], ["I would rather not."]]
    assert asked[1][2][0].startswith("You answered without calling a tool")
    assert asked[2][0] == ["What is in a.txt?"]
    assert [body.get("tool_choice") for body in bodies] == [None, None, None]


def test_a_model_that_never_calls_what_it_has_to_is_an_error(tmp_path: Path) -> None:
    settings = ("conversation.tools.fs_read_file.enable=true", "assistant.tool_choice=required")
    arguments = [word for setting in settings for word in ("--cfg", setting)]

    with Loopback(*[Reply(body=message(*text_block("No.")))] * 4) as server:
        result = query(server, tmp_path, "--model", "anthropic/claude-fable-5", *arguments, "Hi")

    assert (result.code, result.stdout) == (13, "No.\n\nNo.\n\nNo.\n\nNo.\n")
    assert len(server.requests) == 4
    assert "error: the model called no tool, although 'assistant.tool_choice' is 'required'\nhint: " in result.stderr


def thinking(text: str, signature: str, index: int = 0) -> list[dict[str, Any]]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = ({"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": signature})
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thoughts(body: dict[str, Any]) -> list[tuple[str, str]]:
    blocks = [block for said in body["messages"] if said["role"] == "assistant" for block in said["content"]]
    return [(block["type"], block.get("signature", "")) for block in blocks]


def test_reasoning_that_is_rejected_is_not_sent_from_then_on_by_any_process(tmp_path: Path) -> None:
    reasoning = ("--reasoning", "high")
    replies = [
        Reply(body=message(*thinking("Hm.", "sig-1"), *text_block("One", 1))),
        Reply(body=message(*thinking("Hm!", "sig-2"), *text_block("Two", 1))),
        refusal("messages.1.content.0: Invalid `signature` in `thinking` block"),
        Reply(body=message(*text_block("Three"))),
        Reply(body=message(*text_block("Four"))),
    ]
    with Loopback(*replies) as server:
        first = words_for(server, "--new", *reasoning, "1")
        prepare(first, words_for(server, "--id", "last", *reasoning, "2"), cwd=tmp_path, env=ENVIRONMENT)
        third = query(server, tmp_path, "--id", "last", *reasoning, "3")
        fourth = query(server, tmp_path, "--id", "last", *reasoning, "4")

    sent = [thoughts(request.json()) for request in server.requests]
    one, two = [("thinking", "sig-1"), ("text", "")], [("thinking", "sig-2"), ("text", "")]
    repaired = [("text", ""), *two]
    assert third == (
        0,
        "Three\n",
        "note: the provider does not take earlier reasoning back as the model's own: it is not sent from now on\n",
    )
    assert fourth == (0, "Four\n", "")
    assert sent == [[], one, [*one, *two], repaired, [*repaired, ("text", "")]]


def test_an_answer_that_fills_the_context_window_is_kept_and_not_continued(tmp_path: Path) -> None:
    with Loopback(Reply(body=message(*text_block("Half"), stop="model_context_window_exceeded"))) as server:
        result = query(server, tmp_path, "Hi")

    (log,) = (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").glob("*/events.jsonl")
    assert (result.code, result.stdout) == (7, "Half\n")
    assert "is full" in result.stderr
    assert "\nhint: " in result.stderr
    assert '"message":"Half"' in log.read_text(encoding="utf-8")


def test_answers_are_not_chained_where_the_configuration_says_so(tmp_path: Path) -> None:
    arguments = ("--cfg", "providers.llm.anthropic.chain_on_max_tokens=false", "Hi")
    with Loopback(Reply(body=message(*text_block("Half"), stop="max_tokens"))) as server:
        result = query(server, tmp_path, *arguments)

    assert (result.code, result.stdout) == (14, "Half\n")
    assert len(server.requests) == 1


def test_an_error_in_a_stream_is_retried_within_the_longest_wait(tmp_path: Path) -> None:
    overloaded = sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    arguments = ("--cfg", "assistant.request.max_backoff_secs=0", "Hi")

    with Loopback(Reply(body=overloaded), Reply(body=message(*text_block("Hello")))) as server:
        result = query(server, tmp_path, *arguments)

    assert (result.code, result.stdout) == (0, "Hello\n")
    assert "retry 1 of 5 in 0.0 s" in result.stderr


def test_an_unreachable_server_is_a_provider_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = ("--cfg", f"providers.llm.anthropic.base_url=http://127.0.0.1:{port}")
    patience = ("--cfg", "assistant.request.max_retries=1", "--cfg", "assistant.request.base_backoff_ms=1")

    result = run_jp("query", *address, *patience, "-m", "anthropic/x", "Hi", cwd=tmp_path, env=ENVIRONMENT)

    assert (result.code, result.stdout) == (5, "")
    assert "127.0.0.1" in result.stderr


EFFORTS = "output_config.effort: 'max' is not supported by this model. Supported values are: 'low', 'medium', 'high'"


def test_an_effort_that_is_refused_is_replaced_by_the_nearest_that_is_accepted(tmp_path: Path) -> None:
    with Loopback(refusal(EFFORTS), Reply(body=message(*text_block("Done")))) as server:
        result = query(server, tmp_path, "--new", "--model", "anthropic/claude-opus-5-5", "--reasoning", "max", "Hi")

    assert result == (0, "Done\n", "note: reasoning 'max' sent as 'high': the provider rejected it\n")
    bodies: list[Any] = [request.json() for request in server.requests]
    assert [body["output_config"]["effort"] for body in bodies] == ["max", "high"]


def test_a_model_at_openrouter_that_always_reasons_is_asked_for_the_least_of_it(tmp_path: Path) -> None:
    words = "Reasoning is mandatory for this endpoint and cannot be disabled."
    refused = Reply(status=400, headers=JSON, body=json.dumps({"error": {"message": words, "code": 400}}).encode())
    with Loopback(refused, Reply(body=chat_wire.answer(*chat_wire.says("Done")))) as server:
        address = ("--cfg", f"providers.llm.openrouter.base_url={server.url}")
        asking = ("query", *address, "--new", "--model", "openrouter/z-ai/glm-5", "--reasoning", "off", "Hi")
        result = run_jp(*asking, cwd=tmp_path, env={"OPENROUTER_API_KEY": KEY})
        logged = run_jp("conversation", "print", "--as-sent", "0", cwd=tmp_path, env={"OPENROUTER_API_KEY": KEY})

    bodies: list[Any] = [request.json() for request in server.requests]
    assert (result.code, result.stdout) == (0, "Done\n")
    assert "note: reasoning 'off' sent as 'minimal': the provider rejected it\n" in result.stderr
    assert [body["reasoning"] for body in bodies] == [{"enabled": False}, {"effort": "minimal"}]
    assert json.loads(logged.stdout) == bodies[-1]


def test_a_number_of_reasoning_tokens_that_is_rejected_is_brought_within_the_bounds(tmp_path: Path) -> None:
    refused = refusal("thinking.budget_tokens: Input should be greater than or equal to 4096")
    with Loopback(refused, Reply(body=message(*text_block("Done")))) as server:
        result = query(server, tmp_path, "--new", "--model", "anthropic/claude-haiku-4-5", "--reasoning", "2000", "Hi")

    assert result == (0, "Done\n", "note: reasoning 2000 sent as 4096: the provider rejected it\n")
    bodies: list[Any] = [request.json() for request in server.requests]
    assert [body["thinking"]["budget_tokens"] for body in bodies] == [2000, 4096]


def test_sampling_that_is_refused_is_omitted(tmp_path: Path) -> None:
    temperature = ("--cfg", "assistant.model.parameters.temperature=0.5")
    model = ("--model", "anthropic/claude-opus-4-5")
    refused = refusal("temperature: Extra inputs are not permitted")
    with Loopback(refused, Reply(body=message(*text_block("Done")))) as server:
        result = query(server, tmp_path, "--new", *model, *temperature, "Hi")

    assert result == (0, "Done\n", "note: temperature 0.5 not sent: the provider rejected it\n")
    assert [request.json().get("temperature") for request in server.requests] == [0.5, None]


def test_a_second_refusal_ends_the_turn(tmp_path: Path) -> None:
    with Loopback(refusal(EFFORTS), refusal(EFFORTS.replace("'high'", "'low'"))) as server:
        result = query(server, tmp_path, "--new", "--model", "anthropic/claude-opus-5-5", "--reasoning", "max", "Hi")

    assert result.code != 0
    assert "Supported values are" in result.stderr
    assert len(server.requests) == 2


def test_all_requests_of_a_turn_go_over_one_connection(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content", encoding="utf-8")
    calls = [
        Reply(
            body=wire.call("fs_read_file", json.dumps({"path": "a.txt", "offset": number}), call_id=f"toolu_{number}")
        )
        for number in range(5)
    ]
    with Loopback(*calls, Reply(body=wire.message("Done"))) as server:
        result = query(server, tmp_path, "--new", "--tool=fs_read_file", "--approve-all", "Read it.")

        assert (len(server.requests), server.connections) == (6, 1)
    assert (result.code, result.stdout) == (0, "Done\n")


def test_a_dry_run_connects_to_nothing(tmp_path: Path) -> None:
    with Loopback() as server:
        assert query(server, tmp_path, "--new", "--dry-run", "hello").code == 0

        assert server.connections == 0

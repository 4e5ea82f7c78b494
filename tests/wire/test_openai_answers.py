"""Responses that no recording has: what the API may send, and what it sends when it fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

import openai_wire as wire
from certificates import WITHOUT_CERTIFICATES
from jp.cli.terminal.wording import worded
from jp.conversation.entries import InputChange, JsonObject, Usage
from jp.conversation.thread import Thread, ToolDefinition, UserText
from jp.provider.base import BlockEnd, Finished, InputReport, Part, ReasoningDelta, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.transport import HttpRequest, Limits
from loopback import HTML, JSON, Loopback, Reply, sse
from provider_at import Ending, provider_at, receive
from stories import Told, told

ASKED = Thread(model="gpt-5.6", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
AT_ONCE = replace(ASKED, model="gpt-5.5-pro")
POINT: JsonObject = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
    "required": ["x"],
}
STRUCTURED = replace(ASKED, schema=POINT)
WITH_TOOL = replace(ASKED, tools=(ToolDefinition(name="draw", description="", parameters=POINT),))


def answered(*replies: Reply, thread: Thread = ASKED, **request: Any) -> list[Ending]:
    """What came of one request for each reply."""
    with Loopback(*replies) as server:
        provider = provider_at(server.url, provider="openai", model=thread.model, **request)
        return [anyio.run(receive, provider, thread) for _ in replies]


def parts_of(body: bytes, cuts: Sequence[int] = (), *, thread: Thread = ASKED) -> list[Part]:
    (ending,) = answered(Reply(body=body, cuts=tuple(cuts)), thread=thread)
    assert ending.error is None
    return ending.parts


def at_once(response: JsonObject) -> Reply:
    return Reply(headers=JSON, body=msgspec.json.encode(response))


def failure(reply: Reply, *, thread: Thread = ASKED) -> ProviderError:
    (ending,) = answered(reply, thread=thread)
    assert ending.error is not None
    return ending.error


def failed(status: int, code: str | None, message: str, *headers: tuple[str, str]) -> ProviderError:
    error = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return failure(Reply(status=status, headers=(*JSON, *headers), body=msgspec.json.encode(error)))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_value", "invalid_request"),
        (401, "invalid_api_key", "authentication"),
        (403, "unsupported_country_region_territory", "authentication"),
        (404, "model_not_found", "model_not_found"),
        (413, None, "context_too_long"),
        (429, "rate_limit_exceeded", "rate_limit"),
        (500, "server_error", "transient"),
        (503, "server_is_overloaded", "transient"),
        (529, None, "transient"),
    ],
)
def test_every_status_has_a_kind_and_a_sentence(status: int, code: str | None, kind: str) -> None:
    error = failed(status, code, "The model `gpt-5.6` did not")

    assert (error.kind, error.status) == (kind, status)
    assert error.message == f"openai answered {status}: The model `gpt-5.6` did not"
    assert error.hint


def test_pauses_are_kept_however_they_are_asked_for() -> None:
    limit = ("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "1m30s")

    assert failed(429, "rate_limit_exceeded", "slow", ("retry-after-ms", "1500")).retry_after == 1.5
    assert failed(429, "rate_limit_exceeded", "slow", *limit).retry_after == 90.0
    assert failed(429, "rate_limit_exceeded", "Please try again in 2.398s.").retry_after == 2.398


def test_an_unknown_model_is_told_its_neighbours() -> None:
    with Loopback(Reply(status=404, headers=JSON, body=b'{"error":{"message":"The model does not exist"}}')) as server:
        provider = provider_at(server.url, provider="openai", model="gpt-6-luna")
        error = anyio.run(receive, provider, replace(ASKED, model="gpt-6-lunar")).error

    assert error is not None
    assert "'openai/gpt-6-luna'" in error.hint


@pytest.mark.parametrize("status", [403, 502])
def test_a_page_of_a_proxy_is_told_by_its_title(status: int) -> None:
    page = b"<html><head><title>Bad\n gateway</title></head><body>p</body></html>"

    assert failure(Reply(status=status, headers=HTML, body=page)).message == f"openai answered {status}: Bad gateway"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "Sorry", "param": None}, "transient"),
        (
            {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow"}},
            "rate_limit",
        ),
        ({"type": "error", "code": "insufficient_quota", "message": "no money"}, "quota"),
        (wire.ending("failed", error={"code": "server_error", "message": "Sorry"}), "transient"),
        (wire.ending("failed", error={"code": "rate_limit_exceeded", "message": "in 3s"}), "rate_limit"),
        (wire.ending("failed", error={"code": "vector_store_timeout", "message": "no"}), "other"),
        (wire.ending("failed"), "transient"),
        ({"type": "response.failed"}, "transient"),
    ],
)
def test_an_error_in_a_stream_comes_after_what_was_said(error: wire.Event, kind: str) -> None:
    item = wire.message("Hello")
    body = sse(*wire.start(), wire.added(0, item), wire.delta("output_text", 0, "Hel"), error)
    (ending,) = answered(Reply(body=body))

    assert [part.text for part in ending.parts if isinstance(part, TextDelta)] == ["Hel"]
    assert ending.error is not None
    assert ending.error.kind == kind
    assert ending.error.least_wait == 3.0
    assert ending.error.message.startswith("openai reported an error")


def test_a_stream_that_ends_too_early_is_cut() -> None:
    item = wire.message("Hello")
    for body in (sse(*wire.start()), sse(*wire.start(), *wire.item(0, item)), b"data: [DONE]\n\n"):
        assert failure(Reply(body=body)).kind == "cut"


@pytest.mark.parametrize("code", ["invalid_prompt", "bio_policy", "misalignment_policy_violation"])
def test_a_failure_of_policy_is_a_refusal(code: str) -> None:
    body = sse(*wire.start(), wire.ending("failed", error={"code": code, "message": "Not this."}))

    assert parts_of(body)[-1] == Finished("refused", "Not this.")


def test_a_refusal_is_explained_and_is_no_answer() -> None:
    body = wire.answer(wire.refusal("I cannot help with that."))
    parts = parts_of(body, thread=STRUCTURED)

    assert told(parts).blocks == []
    assert parts[-1] == Finished("refused", "I cannot help with that.")
    whole = wire.response("completed", wire.refusal("No."))
    (ending,) = answered(at_once(whole), thread=AT_ONCE)
    assert ending.parts[-1] == Finished("refused", "No.")


@pytest.mark.parametrize(
    ("reason", "finished"),
    [
        ("max_output_tokens", Finished("length")),
        ("content_filter", Finished("refused", "content_filter")),
        ("max_messages", Finished("length", "max_messages")),
        (None, Finished("length")),
    ],
)
def test_an_incomplete_answer_says_why(reason: str | None, finished: Finished) -> None:
    details: JsonObject = {} if reason is None else wire.incomplete(reason)
    body = wire.answer(wire.message("Hel", status="incomplete"), status="incomplete", **details)
    parts = parts_of(body)

    assert told(parts).blocks == [Told("message", "Hel")]
    assert parts[-1] == finished


def test_what_was_open_when_an_answer_ended_too_early_is_ended_except_a_call() -> None:
    call = wire.call("draw", '{"x":')
    body = sse(
        *wire.item(0, wire.message("Hel"))[:-1],
        *wire.item(1, call)[:-1],
        wire.ending("incomplete", **wire.incomplete("max_output_tokens")),
    )
    parts = parts_of(body)

    assert [part for part in parts if isinstance(part, BlockEnd)] == [BlockEnd(0)]
    assert parts[-1] == Finished("length")


def test_half_a_call_and_half_a_thought_are_not_kept() -> None:
    thought = wire.reasoning("Hm", encrypted="half")
    call = wire.call("draw", '{"x":', status="incomplete")
    details = wire.incomplete("max_output_tokens")
    body = wire.answer({**thought, "status": "incomplete"}, call, status="incomplete", **details)
    ends = [part for part in parts_of(body) if isinstance(part, BlockEnd)]

    assert ends == [BlockEnd(0, {"provider": "openai", "model": "gpt-5.6", "item_id": "rs_1"})]


def test_parts_of_a_summary_stand_apart() -> None:
    story = told(parts_of(wire.answer(wire.reasoning("First.", "Then."), wire.message("a", "b"))))

    assert story.blocks == [Told("reasoning", "First.\n\nThen."), Told("message", "ab")]


def test_a_summary_and_a_text_are_not_both_shown() -> None:
    item = wire.reasoning("Sum")
    events: list[wire.Event] = [
        *wire.start(),
        wire.added(0, item),
        wire.delta("reasoning_text", 0, "long", content_index=0),
        wire.delta("reasoning_summary_text", 0, "short", summary_index=0),
        wire.delta("reasoning_text", 0, " text", content_index=0),
        wire.done(0, item),
        wire.ending("completed", item),
    ]
    shown = [part.text for part in parts_of(sse(*events)) if isinstance(part, ReasoningDelta)]

    assert shown == ["long", " text"]


def test_sealed_reasoning_is_kept_though_nothing_of_it_is_shown() -> None:
    parts = parts_of(wire.answer(wire.reasoning(), wire.reasoning(encrypted=None, item_id="rs_2"), wire.message("a")))
    metadata = {"provider": "openai", "model": "gpt-5.6", "item_id": "rs_1", "encrypted_content": "sealed"}

    assert told(parts).blocks == [Told("reasoning", ""), Told("message", "a")]
    assert BlockEnd(0, metadata) in parts


def test_parallel_calls_come_apart_and_ids_are_unique() -> None:
    body = wire.answer(
        wire.call("run", '{"a":1}', call_id="c"),
        wire.call("look", "{}", call_id="c"),
        {**wire.call("look", "{}"), "call_id": None, "id": None},
    )
    story = told(parts_of(body))

    assert [(block.call_id, block.name, block.arguments) for block in story.blocks] == [
        ("c", "run", {"a": 1}),
        ("c_1", "look", {}),
        ("call_2", "look", {}),
    ]
    assert story.finish == "tools"
    assert story.usage == Usage(input=10, output=20, cache_read=60, cache_write=30, reasoning=5)


HOSTED: list[wire.Item] = [
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"id": "ci_1", "type": "code_interpreter_call", "code": "1", "outputs": None, "content": {"odd": 1}},
    {"id": "mcp_1", "type": "mcp_call", "name": "run", "arguments": 7, "output": "x"},
    {"type": "from_the_future"},
]


@pytest.mark.parametrize("hosted", HOSTED)
def test_items_of_tools_that_the_provider_hosts_are_survived(hosted: wire.Item) -> None:
    said = wire.message("Found it.")
    events: list[wire.Event] = [
        *wire.start(),
        {"type": "response.output_item.added", "output_index": 0, "item": hosted},
        {"type": "response.web_search_call.searching", "output_index": 0, "delta": {"odd": 1}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        wire.done(0, hosted),
        *wire.item(1, said),
        {"type": "response.output_text.annotation.added", "output_index": 1, "annotation": {}},
        wire.ending("completed", hosted, said),
    ]

    assert told(parts_of(sse(*events))).blocks == [Told("message", "Found it.")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way_and_comments_say_nothing(end: str) -> None:
    body = f": keep-alive{end}{end}".encode() + wire.answer(wire.message("äb", "c"), end=end)

    assert told(parts_of(body, range(0, len(body), 3))).blocks == [Told("message", "äbc")]


@pytest.mark.parametrize(
    "events",
    [
        [
            wire.done(0, wire.reasoning("R")),
            wire.done(1, wire.message("M")),
            wire.done(2, wire.call("draw", '{"x":1}')),
        ],
        [],
        [wire.added(0, wire.reasoning("R")), wire.added(1, wire.message("M"))],
    ],
    ids=["only done", "only the whole", "announced only"],
)
def test_what_no_delta_tells_is_read_from_the_items(events: list[wire.Event]) -> None:
    items = (wire.reasoning("R"), wire.message("M"), wire.call("draw", '{"x":1}'))
    story = told(parts_of(sse(*wire.start(), *events, wire.ending("completed", *items))))

    assert [(block.kind, block.text) for block in story.blocks] == [
        ("reasoning", "R"),
        ("message", "M"),
        ("tool_call", '{"x":1}'),
    ]


def test_what_is_open_when_all_is_complete_is_complete() -> None:
    item = wire.call("draw", '{"x":1}')
    body = sse(*wire.start(), wire.added(0, item), wire.delta("function_call_arguments", 0, '{"x":1}'), wire.ending())
    story = told(parts_of(body))

    assert [block.arguments for block in story.blocks] == [{"x": 1}]
    assert story.finish == "tools"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.delta", "output_index": 0, "delta": {"odd": 1}},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": "odd"}},
        {"type": "response.completed", "response": {"output": "odd"}},
        {"type": 7},
    ],
)
def test_what_has_to_be_understood_and_is_not_is_worth_a_retry(event: wire.Event) -> None:
    data = msgspec.json.encode(event)

    assert failure(Reply(body=b"data: " + data + b"\n\n")).kind == "transient"


def test_what_is_told_twice_counts_once_and_tokens_may_be_unknown() -> None:
    item = wire.message("M")
    for usage in (None, "odd", {"input_tokens": "many"}):
        body = sse(*wire.item(0, item), *wire.item(0, item), wire.ending("completed", item, usage=usage))
        story = told(parts_of(body))

        assert story.blocks == [Told("message", "M")]
        assert story.usage == Usage()


def test_an_event_may_be_named_by_its_line_alone() -> None:
    body = wire.answer(wire.message("a")).replace(b'"type":"response.output_text.delta",', b"")

    assert told(parts_of(body)).blocks == [Told("message", "a")]


def test_a_model_that_does_not_stream_is_read_in_the_same_way() -> None:
    items = (wire.reasoning("R"), wire.message("M", phase="final_answer"), wire.call("draw", '{"x":1}'))
    with Loopback(at_once(wire.response("completed", *items))) as server:
        ending = anyio.run(receive, provider_at(server.url, provider="openai"), AT_ONCE)
        (request,) = server.wait_for_requests(1)

    assert request.json()["stream"] is False
    assert request.headers["accept"] == "application/json"
    assert ending.error is None
    assert [(block.kind, block.text) for block in told(ending.parts).blocks] == [
        ("reasoning", "R"),
        ("message", "M"),
        ("tool_call", '{"x":1}'),
    ]
    assert ending.parts[-1] == Finished("tools")


def test_a_whole_answer_may_be_an_error() -> None:
    busy = failure(at_once({"error": {"code": "server_error", "message": "Sorry"}}), thread=AT_ONCE)
    lost = failure(at_once(wire.response("failed", error={"code": "server_error", "message": "x"})), thread=AT_ONCE)
    odd = failure(Reply(headers=JSON, body=b"[]"), thread=AT_ONCE)
    half = failure(Reply(headers=JSON, body=b'{"status":"comp'), thread=AT_ONCE)

    assert [error.kind for error in (busy, lost, odd, half)] == ["transient", "transient", "transient", "cut"]


@pytest.mark.parametrize(("thread", "seconds"), [(ASKED, [1.0, None]), (AT_ONCE, [1800.0, None])])
def test_a_whole_answer_is_waited_for_longer_than_a_next_event(
    monkeypatch: pytest.MonkeyPatch, thread: Thread, seconds: list[float | None]
) -> None:
    waits: list[tuple[float | None, float | None]] = []

    def post(request: HttpRequest, limits: Limits) -> None:
        del request
        waits.append((limits.first_byte_timeout, limits.idle_timeout))
        raise ProviderError("nobody is asked", kind="other")

    monkeypatch.setattr("jp.provider.http.post", post)
    for configured in (1, 0):
        provider = provider_at(
            "http://127.0.0.1:9",
            provider="openai",
            first_byte_timeout_secs=configured,
            stream_idle_timeout_secs=configured,
        )
        anyio.run(receive, provider, thread)

    assert waits == [(limit, limit) for limit in seconds]


@pytest.mark.parametrize(
    ("written", "meant"),
    [('{"x":1,"label":null}', '{"x":1}'), ('{"x":1,"label":"a"}', '{"x":1,"label":"a"}'), ('{"x":1,"la', '{"x":1,"la')],
    ids=["left out", "there", "cut off"],
)
def test_an_answer_fits_the_schema_that_was_asked_for(written: str, meant: str) -> None:
    plan = wire.message("I plan.", phase="commentary")

    assert told(parts_of(wire.answer(plan, wire.message(written)), thread=STRUCTURED)).blocks == [
        Told("message", "I plan."),
        Told("data", meant),
    ]


def test_an_answer_that_is_no_object_is_unwrapped_as_it_streams() -> None:
    thread = replace(ASKED, schema={"type": "array", "items": {"type": "integer"}})

    assert told(parts_of(wire.answer(wire.message('{"wrapped_answer":[1,2]}')), thread=thread)).blocks == [
        Told("data", "[1,2]")
    ]


def test_arguments_fit_the_schema_of_the_tool() -> None:
    story = told(parts_of(wire.answer(wire.call("draw", '{"x":1,"label":null}')), thread=WITH_TOOL))

    assert [block.text for block in story.blocks] == ['{"x":1}']


def test_a_server_of_the_user_s_own_keeps_what_it_made_under_its_own_name() -> None:
    with Loopback(Reply(body=wire.answer(wire.reasoning("R"), wire.message("M")))) as server:
        provider = provider_at(f"{server.url}/api/v1", provider="mine", model="local", kind="openai")
        ending = anyio.run(receive, provider, replace(ASKED, model="local"))
        (request,) = server.wait_for_requests(1)

    assert (request.method, request.target) == ("POST", "/api/v1/responses")
    assert request.headers["authorization"] == "Bearer test-key-0123456789"
    assert ending.error is None
    assert [part.metadata["provider"] for part in ending.parts if isinstance(part, BlockEnd) and part.metadata] == [
        "mine",
        "mine",
    ]


def test_no_key_is_in_any_error() -> None:
    error = failed(401, "invalid_api_key", "Incorrect API key provided: test-key-0123456789.")

    assert "test-key" not in error.message + error.hint


def test_the_sdk_reads_the_same_from_what_we_made_up() -> None:
    from openai import DefaultHttpxClient, OpenAI

    items = (wire.reasoning("R", "S"), wire.message("a", "b"), wire.call("draw", '{"x":1}'))
    body = wire.answer(*items)
    reaching = DefaultHttpxClient(verify=WITHOUT_CERTIFICATES)
    with (
        Loopback(otherwise=Reply(body=body)) as server,
        OpenAI(api_key="test", base_url=f"{server.url}/v1", max_retries=0, http_client=reaching) as client,
    ):
        events = client.responses.create(model="gpt-5.6", input="Hi", stream=True)
        (response,) = [event.response for event in events if event.type == "response.completed"]

    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert response.output_text == told(parts_of(body)).blocks[1].text


def test_reasoning_that_was_removed_from_the_request_is_told() -> None:
    removed = {"type": "reasoning", "action": "removed", "id": "rs_7", "reason": "prefix_mismatch"}

    parts = parts_of(wire.answer(wire.message("Hello"), input_transformations=[removed]))

    changes = (InputChange(type="reasoning_removed", path="rs_7", reason="prefix_mismatch"),)
    assert InputReport(changes) in parts


def test_who_cannot_have_summaries_is_told_how_to_do_without() -> None:
    error = failed(400, "unsupported_value", "Your organization must be verified to generate reasoning summaries.")

    assert error.kind == "invalid_request"
    assert "`jp config set providers.llm.openai.reasoning_summary=none`" in worded(error.hint)

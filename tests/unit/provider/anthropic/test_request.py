from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from anthropic_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource, TextBlock
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.errors import ConfigurationError
from jp.provider.anthropic.request import render
from jp.provider.base import Sections, SentMessage, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.schemas import in_words

HI = UserText(text="Hi", turn=0)
RUN = ToolDefinition(name="run", description="Run it.", parameters={"type": "object", "properties": {}})
LOOK = ToolDefinition(name="look", description=" ", parameters={})
TOOLS = (LOOK, RUN)
MARK = {"type": "ephemeral"}


SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}

NO_ROOM = "it takes 1024 tokens at least, and the longest output, 1000, holds the answer too"


def thread(*events: ViewEvent, model: str = "claude-haiku-4-5", tools: Sequence[ToolDefinition] = ()) -> Thread:
    return Thread(model=model, system=("Be brief.", " "), tools=tuple(tools), events=events or (HI,))


def rendered(asked: Thread, parameters: Parameters | None = None, *, betas: Sequence[str] = ()) -> WireRequest:
    request = render(asked if parameters is None else replace(asked, parameters=parameters), betas=betas)
    assert_accepted(request.body)
    return request


def body(asked: Thread, parameters: Parameters | None = None) -> JsonObject:
    return rendered(asked, parameters).body


def called(origin: str) -> ToolCall:
    return ToolCall(call_id=origin, name="run", arguments={}, turn=0, origin=origin)


def result(origin: str) -> ToolResult:
    return ToolResult(call=origin, call_id=origin, name="run", content=(TextBlock(text="ok"),), turn=0)


def attached(name: str, turn: int = 0) -> UserResource:
    return UserResource(resource=Resource(uri=f"u:{name}", text=name), turn=turn)


def marked(request: JsonObject) -> list[str]:
    """Where the cache markers are: `section` or `message.block`."""
    places = [name for name in ("tools", "system") for block in request.get(name, ()) if "cache_control" in block]
    for number, message in enumerate(request["messages"]):
        places += [f"{number}.{i}" for i, block in enumerate(message["content"]) if "cache_control" in block]
    return places


def test_a_request_is_a_stream_of_as_much_as_the_model_can_write() -> None:
    request = rendered(thread())

    assert request.path == "/v1/messages"
    assert request.headers == (("anthropic-version", "2023-06-01"),)
    assert request.body == {
        "model": "claude-haiku-4-5",
        "max_tokens": 64_000,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]}],
    }


@pytest.mark.parametrize(
    ("model", "configured", "sent"),
    [("claude-opus-4-8", None, 128_000), ("claude-new-1", None, 32_000), ("qwen3", None, 8_192), ("qwen3", 5, 5)],
)
def test_the_longest_output_is_configured_known_or_safe(model: str, configured: int | None, sent: int) -> None:
    assert body(thread(model=model), Parameters(max_tokens=configured))["max_tokens"] == sent


def test_an_empty_thread_is_no_request() -> None:
    with pytest.raises(ProviderError, match="no message to send") as caught:
        render(thread(UserText(text=" ", turn=0)))

    assert caught.value.kind == "invalid_request"


def test_tools_have_a_schema_of_type_object_and_stream_their_arguments() -> None:
    assert body(thread(tools=TOOLS))["tools"] == [
        {"name": "look", "input_schema": {"type": "object"}, "eager_input_streaming": True},
        {
            "name": "run",
            "description": "Run it.",
            "input_schema": {"type": "object", "properties": {}},
            "eager_input_streaming": True,
            "cache_control": MARK,
        },
    ]


def test_other_servers_get_plain_tools() -> None:
    assert "eager_input_streaming" not in body(thread(model="qwen3", tools=TOOLS))["tools"][0]


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        ("auto", TOOLS, None),
        ("none", TOOLS, {"type": "none"}),
        ("required", TOOLS, {"type": "any"}),
        ("run", TOOLS, {"type": "tool", "name": "run"}),
        ("run", (RUN,), {"type": "any"}),
        ("required", (), None),
        ("run", (), None),
    ],
)
def test_the_choice_of_tool(choice: str, tools: tuple[ToolDefinition, ...], sent: JsonObject | None) -> None:
    assert body(thread(tools=tools), Parameters(tool_choice=choice)).get("tool_choice") == sent


def test_a_forced_tool_is_not_thought_about() -> None:
    request = body(thread(tools=TOOLS), Parameters(tool_choice="run", reasoning="high"))

    assert request["thinking"] == {"type": "disabled"}
    assert request["tool_choice"] == {"type": "tool", "name": "run"}


@pytest.mark.parametrize(
    ("choice", "tools", "plea"),
    [
        ("run", TOOLS, "Call the tool 'run' now."),
        ("required", TOOLS, "Call one of the tools now."),
        ("required", (RUN,), "Call the tool 'run' now."),
    ],
)
def test_a_model_that_cannot_be_forced_is_asked(choice: str, tools: tuple[ToolDefinition, ...], plea: str) -> None:
    request = body(thread(model="claude-opus-5-5", tools=tools), Parameters(tool_choice=choice))

    assert "tool_choice" not in request
    assert request["messages"][-1]["content"][-1]["text"] == plea
    assert request["thinking"]["type"] == "adaptive"


def test_nobody_is_asked_behind_a_trailing_answer() -> None:
    asked = thread(HI, AssistantText(text="Yes", turn=0), model="claude-opus-5-5", tools=TOOLS)

    assert body(asked, Parameters(tool_choice="run"))["messages"][-1]["content"][-1]["text"] == "Yes"


def test_an_effort_and_a_schema_share_one_object() -> None:
    asked = replace(thread(model="claude-opus-4-8"), schema=SCHEMA)

    assert body(asked, Parameters(reasoning="max"))["output_config"] == {
        "effort": "max",
        "format": {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}},
    }


@pytest.mark.parametrize(
    ("model", "schema"),
    [("claude-opus-4-1", SCHEMA), ("claude-opus-4-8", {"type": "object"}), ("elsewhere", SCHEMA)],
    ids=["a model without schemas", "a schema that the grammar cannot hold", "another server"],
)
def test_a_schema_that_the_answer_cannot_be_held_to_is_said_in_words(model: str, schema: JsonObject) -> None:
    question = UserText(text="Who?", turn=0, schema=schema)

    request = body(replace(thread(question, model=model), schema=schema))

    assert "output_config" not in request
    assert [block["text"] for block in request["messages"][0]["content"]] == ["Who?", in_words(schema)]


def test_a_schema_that_the_answer_is_held_to_is_not_said_in_words() -> None:
    question = UserText(text="Who?", turn=0, schema=SCHEMA)

    request = body(replace(thread(question, model="claude-opus-4-8"), schema=SCHEMA))

    assert [block["text"] for block in request["messages"][0]["content"]] == ["Who?"]


def test_what_was_said_of_a_schema_stays_where_it_was_said() -> None:
    question = UserText(text="Who?", turn=0, schema={"type": "object"})
    later = (question, AssistantData(text="{}", turn=0), UserText(text="And now?", turn=1))

    request = body(thread(*later, model="claude-opus-4-8"))

    texts = [[block["text"] for block in message["content"]] for message in request["messages"]]
    assert texts == [["Who?", in_words({"type": "object"})], ["{}"], ["And now?"]]


def test_thoughts_that_no_longer_fit_are_dropped_by_the_api() -> None:
    request = rendered(thread(model="claude-opus-5-5"), betas=["own-beta"])

    assert request.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert request.headers[1] == ("anthropic-beta", "own-beta,thinking-binding-controls-2026-08-01")


def test_betas_are_sent_once() -> None:
    assert rendered(thread(), betas=["a", "b", "a"]).headers[1] == ("anthropic-beta", "a,b")


@pytest.mark.parametrize(
    ("model", "parameters", "sentences"),
    [
        ("claude-haiku-4-5", Parameters(temperature=0.5), ()),
        (
            "claude-haiku-4-5",
            Parameters(temperature=0.5, top_k=1, reasoning="low"),
            ("'temperature', 'top_k' not sent: 'claude-haiku-4-5' takes none while it reasons",),
        ),
        ("claude-opus-4-8", Parameters(top_p=0.5), ("'top_p' not sent: 'claude-opus-4-8' takes none",)),
        ("claude-opus-4-8", Parameters(reasoning="max"), ()),
        ("claude-opus-4-6", Parameters(reasoning="high"), ()),
        (
            "claude-opus-4-6",
            Parameters(reasoning="xhigh"),
            ("reasoning 'xhigh' sent as 'high', the most that 'claude-opus-4-6' knows",),
        ),
        ("claude-opus-5", Parameters(reasoning="off"), ()),
        ("claude-fable-5", Parameters(reasoning="off"), ("'claude-fable-5' cannot wholly be kept from reasoning",)),
        ("claude-haiku-4-5", Parameters(reasoning=5000), ()),
        ("claude-haiku-4-5", Parameters(reasoning="max", max_tokens=3000), ()),
        ("claude-haiku-4-5", Parameters(reasoning="off", max_tokens=1000), ()),
        (
            "claude-haiku-4-5",
            Parameters(reasoning="max", max_tokens=1000),
            (f"reasoning 'max' not sent: {NO_ROOM}",),
        ),
        (
            "claude-haiku-4-5",
            Parameters(reasoning=5000, max_tokens=3000),
            ("reasoning 5000 sent as 2700: the longest output, 3000, holds the answer too",),
        ),
        (
            "claude-haiku-4-5",
            Parameters(reasoning=500),
            ("reasoning 500 sent as 1024, the least that 'claude-haiku-4-5' takes",),
        ),
        (
            "claude-opus-4-8",
            Parameters(reasoning=5000),
            ("reasoning 5000 sent as 'low': 'claude-opus-4-8' takes no number of tokens",),
        ),
    ],
)
def test_what_is_not_sent_as_it_was_asked_for_is_said(
    model: str, parameters: Parameters, sentences: tuple[str, ...]
) -> None:
    assert render(replace(thread(model=model), parameters=parameters)).omitted == sentences


def test_that_a_forced_call_is_not_reasoned_about_is_said() -> None:
    forced = Parameters(reasoning="high", tool_choice="required")

    assert rendered(thread(tools=TOOLS), forced).omitted == (
        "reasoning 'high' not sent: 'claude-haiku-4-5' does not reason about a call that it has to make",
    )
    assert rendered(thread(tools=TOOLS), replace(forced, reasoning=None)).omitted == ()


def test_that_an_answer_is_gone_on_with_without_reasoning_is_said() -> None:
    asked = thread(HI, called("c"), result("c"), tools=TOOLS)

    assert rendered(asked, Parameters(reasoning="high")).omitted == (
        "reasoning 'high' not sent: 'claude-haiku-4-5' goes on without it",
    )


SAMPLING = Parameters(temperature=0.5, top_p=0.9, top_k=5)


def test_sampling_is_left_to_the_model_while_it_thinks() -> None:
    assert {"temperature": 0.5, "top_p": 0.9, "top_k": 5}.items() <= body(thread(), SAMPLING).items()
    assert "temperature" not in body(thread(), replace(SAMPLING, reasoning="low"))
    assert "top_p" not in body(thread(model="claude-opus-4-8"), SAMPLING)
    assert "top_k" not in body(thread(), Parameters(temperature=0.5))


def test_blank_stop_words_are_not_sent() -> None:
    assert body(thread(), Parameters(stop_words=("END", "\n")))["stop_sequences"] == ["END"]
    assert "stop_sequences" not in body(thread(), Parameters(stop_words=(" ",)))


def test_what_only_the_api_knows_is_merged_last() -> None:
    other = {"service_tier": "auto", "output_config": {"effort": "low"}, "max_tokens": 9}
    asked = replace(thread(model="claude-opus-4-8"), schema=SCHEMA)
    request = body(asked, Parameters(reasoning="max", other=other))

    assert request["service_tier"] == "auto"
    assert request["max_tokens"] == 9
    assert request["output_config"]["effort"] == "low"
    assert "format" in request["output_config"]


@pytest.mark.parametrize("name", ["model", "messages", "tools", "system", "stream", "cache_control"])
def test_what_the_log_says_cannot_be_overwritten(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}' cannot be set by `other`"):
        render(replace(thread(), parameters=Parameters(other={name: []})))


def test_an_answer_that_called_without_a_thought_is_gone_on_with_without_one() -> None:
    bare = thread(HI, called("c1"), result("c1"), tools=TOOLS)
    signed = {"provider": "anthropic", "model": "claude-haiku-4-5", "signature": "s"}
    thought = AssistantReasoning(text="hm", turn=0, metadata=signed)
    thoughtful = thread(HI, thought, called("c1"), result("c1"), tools=TOOLS)
    talked = thread(HI, AssistantText(text="a", turn=0), UserText(text="b", turn=1))
    reasoning = Parameters(reasoning="high")

    assert body(bare, reasoning)["thinking"]["type"] == "disabled"
    assert body(thoughtful, reasoning)["thinking"]["type"] == "enabled"
    assert body(talked, reasoning)["thinking"]["type"] == "enabled"


def test_markers_stand_at_the_prefix_the_resource_and_both_ends() -> None:
    events = (
        attached("x"),
        HI,
        AssistantText(text="a", turn=0),
        attached("y", 1),
        UserText(text="b", turn=1),
        called("c1"),
        result("c1"),
        called("c2"),
        result("c2"),
    )

    assert marked(body(thread(*events, tools=TOOLS))) == ["system", "2.0", "4.0", "6.0"]


def test_without_a_system_the_tools_are_the_prefix() -> None:
    assert marked(body(replace(thread(tools=TOOLS), system=()))) == ["tools", "0.0"]


def test_a_trailing_answer_is_an_end_too() -> None:
    request = body(thread(HI, AssistantText(text="a \n", turn=0)))

    assert marked(request) == ["system", "0.0", "1.0"]
    assert request["messages"][-1]["content"][0]["text"] == "a"


def test_a_mark_that_is_left_keeps_the_tools_over_a_change_of_the_system() -> None:
    assert marked(body(thread(HI, tools=TOOLS))) == ["tools", "system", "0.0"]


def test_a_plea_is_not_marked_since_the_next_request_has_none() -> None:
    """What is kept behind it would never be read: the next request would find nothing of the conversation."""
    asked = thread(attached("x"), HI, model="claude-opus-5-5", tools=TOOLS)
    answered = replace(asked, events=(*asked.events, called("c1"), result("c1")))

    first, second = body(asked, Parameters(tool_choice="run")), body(answered)

    assert first["messages"][0]["content"][2]["text"] == "Call the tool 'run' now."
    assert marked(first) == ["tools", "system", "0.0", "0.1"]
    assert marked(second) == ["system", "0.0", "0.1", "2.0"]


def test_one_cycle_with_many_calls_has_a_mark_to_look_back_to() -> None:
    calls = [called(f"c{number}") for number in range(30)]
    results = [result(f"c{number}") for number in range(30)]

    assert marked(body(thread(HI, *calls, *results))) == ["system", "0.0", "2.11", "2.29"]


def test_the_marker_says_how_long() -> None:
    long = body(thread(), Parameters(cache="long"))

    assert long["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert marked(body(thread(), Parameters(cache="off"))) == []


def test_sections_are_what_is_cached_without_the_markers() -> None:
    tool = ToolDefinition(name="run", description="Run.", parameters={"type": "object"})
    request = render(thread(HI, called("c1"), result("c1"), tools=(tool,)))

    assert request.sections == Sections(
        tools=(b'{"description":"Run.","eager_input_streaming":true,"input_schema":{"type":"object"},"name":"run"}',),
        system=(b'{"text":"Be brief.","type":"text"}',),
        messages=(
            SentMessage((b'"user"', b'{"text":"Hi","type":"text"}')),
            SentMessage((b'"assistant"', b'{"id":"c1","input":{},"name":"run","type":"tool_use"}')),
            SentMessage((
                *(b'"user"', b'{"content":[{"text":"ok","type":"text"}],"tool_use_id":"c1","type":"tool_result"}'),
            )),
        ),
    )


def test_a_bare_request_has_no_other_sections() -> None:
    assert render(replace(thread(), system=())).sections.system == ()


def test_arguments_called_like_a_marker_are_kept() -> None:
    call = ToolCall(call_id="c1", name="run", arguments={"cache_control": 1}, turn=0, origin="c1")

    assert b'"input":{"cache_control":1}' in render(thread(HI, call)).sections.messages[1][1]


def test_the_same_thread_gives_the_same_bytes() -> None:
    asked = thread(attached("x"), HI, called("c1"), result("c1"), tools=TOOLS)

    assert msgspec.json.encode(render(asked).body) == msgspec.json.encode(render(asked).body)

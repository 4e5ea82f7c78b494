"""Threads as requests of the Responses API."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.resource import ImageBlock, Resource, TextBlock
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
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.openai.request import render
from jp.provider.openai.vendor import OpenaiAdapter
from jp.provider.schemas import in_words
from openai_oracle import assert_accepted

HI = UserText(text="Hi", turn=0)
POINT: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
OPEN: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
DRAW = ToolDefinition(name="draw", description="Draw it.", parameters=POINT)
SET = ToolDefinition(name="set", description=" ", parameters=OPEN)
MARK = {"mode": "explicit"}
MODEL = "gpt-5.6"


def thread(*events: ViewEvent, model: str = MODEL, tools: Sequence[ToolDefinition] = ()) -> Thread:
    return Thread(model=model, system=("Be brief.", " "), tools=tuple(tools), events=events or (HI,))


def rendered(asked: Thread, parameters: Parameters | None = None) -> WireRequest:
    request = render(asked if parameters is None else replace(asked, parameters=parameters))
    assert_accepted(request.body)
    return request


def body(asked: Thread, parameters: Parameters | None = None) -> JsonObject:
    return rendered(asked, parameters).body


def items(*events: ViewEvent, model: str = MODEL, provider: str = "openai") -> list[JsonObject]:
    asked = replace(thread(*events, model=model), system=(), parameters=Parameters(cache="off"))
    request = render(asked, provider=provider)
    assert_accepted(request.body)
    return request.body["input"]


def made(model: str = MODEL, **opaque: str) -> JsonObject:
    return {"provider": "openai", "model": model, **opaque}


def thought(text: str = "Hm", *, item_id: str = "rs_1", **more: str) -> AssistantReasoning:
    metadata = made(item_id=item_id, **({"encrypted_content": "sealed"} | more))
    return AssistantReasoning(text=text, turn=0, metadata=metadata)


def said(text: str = "Yes", **opaque: str) -> AssistantText:
    return AssistantText(text=text, turn=0, metadata=made(**opaque) if opaque else None)


def called(origin: str = "c1") -> ToolCall:
    return ToolCall(call_id=origin, name="draw", arguments={"x": 1}, turn=0, origin=origin)


def result(origin: str = "c1", *, is_error: bool = False) -> ToolResult:
    content = (TextBlock(text="ok"),)
    return ToolResult(call=origin, call_id=origin, name="draw", content=content, turn=0, is_error=is_error)


def image(uri: str, mime_type: str = "image/png", turn: int = 0) -> UserResource:
    return UserResource(resource=Resource(uri=uri, mime_type=mime_type, blob=b"x"), turn=turn)


def user(*texts: str) -> JsonObject:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def assistant(text: str, **more: object) -> JsonObject:
    return {"type": "message", "role": "assistant", "content": text, **more}


REASONED: JsonObject = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm"}],
    "encrypted_content": "sealed",
}


def test_a_request_holds_everything_and_leaves_nothing_behind() -> None:
    request = rendered(replace(thread(), conversation="jp-c1"))

    assert (request.path, request.framing, request.headers) == ("/v1/responses", "sse", ())
    assert request.body == {
        "model": "gpt-5.6",
        "stream": True,
        "store": False,
        "truncation": "disabled",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto", "context": "all_turns"},
        "prompt_cache_key": "jp-c1",
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "Be brief.", "prompt_cache_breakpoint": MARK}],
            },
            user("Hi"),
        ],
    }


def test_a_model_that_does_not_stream_answers_at_once() -> None:
    request = rendered(thread(model="gpt-5.5-pro-2026-04-23"))

    assert (request.framing, request.body["stream"]) == ("json", False)


def test_an_empty_thread_is_no_request() -> None:
    with pytest.raises(ProviderError, match="no message to send") as caught:
        render(thread(UserText(text=" ", turn=0)))

    assert caught.value.kind == "invalid_request"


@pytest.mark.parametrize(
    ("model", "asks"), [("gpt-4.1", False), ("o3", True), ("qwen3", False), ("gpt-oss-20b", False)]
)
def test_sealed_reasoning_is_asked_of_models_that_have_it(model: str, *, asks: bool) -> None:
    assert ("include" in body(thread(model=model))) is asks


def test_tools_are_strict_where_that_forbids_nothing() -> None:
    strict = body(thread(tools=(DRAW, SET)))["tools"]

    assert [tool["strict"] for tool in strict] == [True, False]
    assert strict[0]["parameters"]["required"] == ["x", "y"]
    assert strict[0]["description"] == "Draw it."
    assert strict[1] == {"type": "function", "name": "set", "parameters": OPEN, "strict": False}
    assert not any(tool["strict"] for tool in body(thread(model="qwen3", tools=(DRAW, SET)))["tools"])
    bare = ToolDefinition(name="bare", description="", parameters={})
    assert body(thread(tools=(bare,)))["tools"][0]["parameters"] == {"type": "object"}


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("draw", {"type": "function", "name": "draw"}),
    ],
)
def test_the_choice_of_tool_is_sent_where_there_are_tools(choice: str, wire: object) -> None:
    assert body(thread(tools=(DRAW,)), Parameters(tool_choice=choice)).get("tool_choice") == wire
    assert "tool_choice" not in body(thread(), Parameters(tool_choice=choice))


def test_what_was_asked_and_attached_together_is_one_message() -> None:
    later = UserText(text="And?", turn=1, origin="r1")
    attached = UserResource(resource=Resource(uri="u:a", text="A"), turn=0)

    assert items(HI, attached, later) == [user('<attachment uri="u:a">\nA\n</attachment>', "Hi"), user("And?")]


def test_images_and_documents_are_sent_as_they_are() -> None:
    pdf = UserResource(resource=Resource(uri="file:///a/b", name="b", mime_type="application/pdf", blob=b"x"), turn=0)
    (asked,) = items(image("u:p"), pdf, HI)

    assert asked["content"] == [
        {"type": "input_text", "text": "u:p (u:p):"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,eA=="},
        {"type": "input_text", "text": "b (file:///a/b):"},
        {"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,eA=="},
        {"type": "input_text", "text": "Hi"},
    ]


@pytest.mark.parametrize(
    ("model", "mime_type", "types"),
    [
        (MODEL, "audio/wav", "text, PDF, JPEG, PNG, GIF and WebP can be attached"),
        ("qwen3", "application/pdf", "text, JPEG, PNG, GIF and WebP can be attached"),
        ("gpt-oss-20b", "image/png", "text can be attached"),
    ],
)
def test_what_a_model_does_not_take_is_an_error_when_it_is_new(model: str, mime_type: str, types: str) -> None:
    with pytest.raises(ProviderError, match="'u:x' is") as caught:
        render(thread(image("u:x", mime_type), HI, model=model))

    assert caught.value.kind == "unsupported"
    assert caught.value.hint.startswith(types)


def test_what_a_model_does_not_take_is_a_note_when_it_is_old() -> None:
    (first, _) = items(image("u:x", "audio/wav"), HI, UserText(text="And?", turn=1, origin="r1"))

    assert first["content"][0]["text"] == "[u:x: audio/wav, 1 bytes, cannot be shown to this model]"


def test_reasoning_goes_back_with_what_it_was_for() -> None:
    whole: JsonObject = {"type": "output_text", "text": "Yes", "annotations": []}

    assert items(HI, thought(), said(item_id="msg_1", phase="final_answer")) == [
        user("Hi"),
        REASONED,
        assistant("", content=[whole], id="msg_1", status="completed", phase="final_answer"),
    ]


def test_an_id_goes_with_the_reasoning_that_is_gone() -> None:
    """As after a compaction: the API would miss what belongs to the message."""
    assert items(HI, said(item_id="msg_1", phase="commentary"))[1:] == [assistant("Yes", phase="commentary")]


def test_reasoning_that_nothing_follows_is_not_sent() -> None:
    again = UserText(text="And?", turn=1, origin="r1")

    assert items(HI, thought())[1:] == []
    assert items(HI, thought(), again)[1:] == [user("And?")]
    assert items(HI, thought(), said(" "), again)[1:] == [user("And?")]


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        made(item_id="rs_1"),
        made(encrypted_content="sealed"),
        made("gpt-5.5", item_id="rs_1", encrypted_content="sealed"),
        {**made(item_id="rs_1", encrypted_content="sealed"), "provider": "mine"},
    ],
    ids=["nothing", "not sealed", "no id", "another model", "another provider"],
)
def test_reasoning_of_others_is_not_sent(metadata: JsonObject | None) -> None:
    foreign = AssistantReasoning(text="Hm", turn=0, metadata=metadata)

    assert items(HI, foreign, said(item_id="msg_1"))[1:] == [assistant("Yes")]


def test_a_server_gets_back_what_it_made_under_its_own_name() -> None:
    own = AssistantReasoning(
        text="", turn=0, metadata={**made(item_id="rs_1", encrypted_content="sealed"), "provider": "mine"}
    )

    assert items(HI, own, said(), provider="mine")[1] == {**REASONED, "summary": []}


def test_snapshots_of_a_model_take_each_other_s_reasoning() -> None:
    assert items(HI, thought(), said(), model="gpt-5.6-2026-07-09")[1] == REASONED


def test_calls_and_results_go_back_without_what_the_server_has_forgotten() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "draw", "arguments": '{"x":1}'}

    assert items(HI, thought(), called(), result(is_error=True))[1:] == [
        REASONED,
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "Error: ok"},
    ]


def test_a_long_id_of_another_provider_is_shortened() -> None:
    call_id = items(HI, called("c" * 100), result("c" * 100))[1]["call_id"]

    assert call_id == "c" * 56


def test_an_image_of_a_tool_is_shown_where_the_model_takes_it() -> None:
    content = (TextBlock(text="See:"), ImageBlock(mime_type="image/png", blob=b"x"))
    shown = replace(result(), content=content)
    output = items(HI, called(), shown)[-1]["output"]

    assert output == [
        {"type": "input_text", "text": "See:"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,eA=="},
    ]
    assert items(HI, called(), shown, model="qwen3")[-1]["output"].startswith("See:\n[content: image/png")


def test_data_is_told_as_it_was_written() -> None:
    assert items(HI, AssistantData(text='{"a":1}', turn=0))[1] == assistant('{"a":1}')


def test_an_answer_is_held_to_its_schema() -> None:
    form = body(replace(thread(), schema=POINT), Parameters(other={"text": {"verbosity": "low"}}))["text"]

    assert form["verbosity"] == "low"
    assert (form["format"]["type"], form["format"]["name"], form["format"]["strict"]) == ("json_schema", "answer", True)
    assert form["format"]["schema"]["required"] == ["x", "y"]


@pytest.mark.parametrize(("model", "schema"), [("qwen3", POINT), (MODEL, OPEN)], ids=["a server", "an open schema"])
def test_what_a_model_cannot_be_held_to_is_said_in_words(model: str, schema: JsonObject) -> None:
    asked = UserText(text="Hi", turn=0, schema=schema)
    request = body(replace(thread(asked, model=model), schema=schema))

    assert "text" not in request
    assert request["input"][-1] == user("Hi", in_words(schema))
    assert body(thread(UserText(text="Hi", turn=0, schema=POINT)))["input"][-1] == user("Hi")


def marked(request: JsonObject) -> list[str]:
    """The texts at which the cache is asked for."""
    parts = [part for item in request["input"] if isinstance(item.get("content"), list) for part in item["content"]]
    return [part["text"] for part in parts if "prompt_cache_breakpoint" in part]


def test_breakpoints_stand_where_the_prompt_stays_the_same() -> None:
    attached = [UserResource(resource=Resource(uri=f"u:{name}", text=name), turn=0) for name in "ab"]
    request = thread(*attached, HI)

    assert marked(body(request)) == ["Be brief.", '<attachment uri="u:b">\nb\n</attachment>']
    assert marked(body(replace(request, model="gpt-5.5"))) == []
    assert marked(body(replace(request, model="gpt-7-nova"))) != []
    assert marked(body(replace(request, system=()))) == ['<attachment uri="u:b">\nb\n</attachment>']


@pytest.mark.parametrize(
    ("model", "cache", "sent"),
    [
        (MODEL, "off", {"prompt_cache_options": {"mode": "explicit"}}),
        (MODEL, "long", {"prompt_cache_key": "jp-c1"}),
        ("gpt-5.5", "off", {}),
        ("gpt-5.5", "short", {"prompt_cache_key": "jp-c1"}),
        ("gpt-5.5", "long", {"prompt_cache_key": "jp-c1", "prompt_cache_retention": "24h"}),
        ("gpt-4o", "long", {"prompt_cache_key": "jp-c1"}),
        ("qwen3", "off", {}),
    ],
)
def test_the_cache_is_asked_for_as_the_family_knows_it(model: str, cache: str, sent: JsonObject) -> None:
    policy = msgspec.convert({"cache": cache}, Parameters)
    request = rendered(replace(thread(model=model), conversation="jp-c1"), policy)

    assert {name: value for name, value in request.body.items() if name.startswith("prompt_cache")} == sent
    if cache == "off":
        assert marked(request.body) == []
        assert any("cache 'off'" in sentence for sentence in request.omitted) is (model != MODEL)


def test_a_key_of_the_cache_is_no_longer_than_the_api_takes() -> None:
    assert body(replace(thread(), conversation="c" * 100))["prompt_cache_key"] == "c" * 64


def test_a_request_is_seen_without_its_markers() -> None:
    attached = UserResource(resource=Resource(uri="u:a", text="A"), turn=0)
    request = rendered(thread(attached, HI, thought(), said(item_id="msg_1"), called(), result(), tools=(DRAW,)))
    off = rendered(replace(thread(attached, HI), tools=(DRAW,)), Parameters(cache="off"))
    found = request.sections

    assert found.system == (b'{"text":"Be brief.","type":"input_text"}',)
    assert len(found.tools) == 1
    assert [message[0] for message in found.messages] == [
        *(b'"user"', b'"reasoning"', b'"assistant"', b'"function_call"', b'"function_call_output"'),
    ]
    assert off.sections.messages[0] == found.messages[0]
    assert render(replace(thread(), system=())).sections.system == ()


def test_other_parameters_are_merged_and_what_the_log_says_stays() -> None:
    request = body(thread(), Parameters(other={"reasoning": {"mode": "pro"}, "service_tier": "flex"}))

    assert request["reasoning"] == {"summary": "auto", "context": "all_turns", "mode": "pro"}
    assert request["service_tier"] == "flex"
    for name in ("store", "previous_response_id", "input", "include"):
        with pytest.raises(ConfigurationError, match=name):
            render(replace(thread(), parameters=Parameters(other={name: True})))


def test_the_rejected_reasoning_is_found_by_its_id() -> None:
    asked = thread(HI, replace(thought(), origin="e1"), replace(thought(item_id="rs_2"), origin="e2"), said())
    error = ProviderError("The encrypted content for item rs_2 could not be verified.", kind="rejected_reasoning")

    assert OpenaiAdapter().locate_rejected(asked, error) == ("e2",)
    assert OpenaiAdapter(provider="mine").locate_rejected(asked, error) == ()

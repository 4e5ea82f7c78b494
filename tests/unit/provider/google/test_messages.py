from __future__ import annotations

import pytest

from google_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, TextBlock
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
from jp.provider.errors import ProviderError
from jp.provider.google.request import UNSIGNED, render

MODEL = "gemini-3.8-flash"
HI = UserText(text="Hi", turn=0, origin="r0")
MADE: JsonObject = {"provider": "google", "model": MODEL}
SIGNED: JsonObject = {**MADE, "signature": "c2ln"}
FOREIGN: JsonObject = {"provider": "anthropic", "model": "claude", "signature": "x"}
PNG = b"\x89PNG"


def contents(*events: ViewEvent, model: str = MODEL, provider: str = "google") -> list[JsonObject]:
    thread = Thread(model=model, system=(), tools=(), events=events)
    request = render(thread, provider=provider)
    assert_accepted(request.body)
    return request.body["contents"]


def call(origin: str, metadata: JsonObject | None = None, *, name: str = "run") -> ToolCall:
    return ToolCall(call_id=origin, name=name, arguments={"a": 1}, turn=0, origin=origin, metadata=metadata)


def result(origin: str, *content: TextBlock | ImageBlock | ResourceBlock, is_error: bool = False) -> ToolResult:
    return ToolResult(call=origin, call_id=origin, name="run", content=content, turn=0, is_error=is_error)


def answered(origin: str, *, text: str = "ok") -> JsonObject:
    return {"functionResponse": {"id": origin, "name": "run", "response": {"output": text}}}


def called(origin: str, signature: str | None = None) -> JsonObject:
    part: JsonObject = {"functionCall": {"id": origin, "name": "run", "args": {"a": 1}}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def test_signatures_stay_on_the_parts_that_they_came_with() -> None:
    found = contents(
        HI,
        AssistantReasoning(text="hm", turn=0, metadata=MADE),
        AssistantReasoning(text="hm, hm", turn=0, metadata=SIGNED),
        AssistantText(text="Let me look", turn=0, metadata={**MADE, "signature": "dGV4dA=="}),
        AssistantReasoning(text="", turn=0, metadata={**SIGNED, "part": "text"}),
        call("c1", {**MADE, "signature": "Y2FsbA=="}),
        call("c2", MADE),
        result("c1", TextBlock(text="ok")),
        result("c2", TextBlock(text="ok")),
    )

    assert found == [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "hm, hm", "thought": True, "thoughtSignature": "c2ln"},
                {"text": "Let me look", "thoughtSignature": "dGV4dA=="},
                {"text": "", "thoughtSignature": "c2ln"},
                called("c1", "Y2FsbA=="),
                called("c2"),
            ],
        },
        {"role": "user", "parts": [answered("c1"), answered("c2")]},
    ]


@pytest.mark.parametrize("metadata", [None, FOREIGN, {**SIGNED, "model": "gemini-3.1-pro-preview"}])
def test_what_another_model_made_or_what_was_stripped_goes_unsigned(metadata: JsonObject | None) -> None:
    found = contents(
        HI,
        AssistantReasoning(text="hm", turn=0, metadata=metadata),
        AssistantReasoning(text=" ", turn=0, metadata=metadata),
        AssistantText(text="Let me look", turn=0, metadata=metadata),
        call("c1", metadata),
        result("c1", TextBlock(text="ok")),
    )

    assert found[1]["parts"] == [
        {"text": "Let me look"},
        called("c1", UNSIGNED),
    ]


def test_a_server_of_the_user_s_own_has_signatures_of_its_own() -> None:
    events = (HI, call("c1", {**SIGNED, "provider": "mine"}), result("c1"))

    assert contents(*events, provider="mine")[1]["parts"] == [called("c1", "c2ln")]
    assert contents(*events)[1]["parts"] == [called("c1", UNSIGNED)]


def test_structured_output_is_text() -> None:
    data = AssistantData(text='{"a":1}', turn=0, metadata=SIGNED)

    assert contents(HI, data, HI)[1]["parts"] == [{"text": '{"a":1}', "thoughtSignature": "c2ln"}]


def test_an_answer_does_not_end_with_a_thought() -> None:
    thoughts = [AssistantReasoning(text=text, turn=0, metadata=SIGNED) for text in ("hm", "")]

    assert contents(HI, AssistantText(text="Well", turn=0), *thoughts)[1]["parts"] == [{"text": "Well"}]
    assert contents(HI, thoughts[1], HI) == [{"role": "user", "parts": [{"text": "Hi"}, {"text": "Hi"}]}]


def test_the_user_speaks_first_and_an_empty_text_is_not_sent() -> None:
    events = (AssistantText(text="Hello", turn=0), AssistantText(text=" ", turn=0), UserText(text="\n", turn=1), HI)

    assert contents(*events) == [
        {"role": "user", "parts": [{"text": "[Earlier messages are not shown.]"}]},
        {"role": "model", "parts": [{"text": "Hello"}]},
        {"role": "user", "parts": [{"text": "Hi"}]},
    ]


def test_answers_to_calls_stand_apart_from_what_the_user_says() -> None:
    found = contents(HI, call("c1"), result("c1"), UserText(text="Go on", turn=0))

    assert [(content["role"], len(content["parts"])) for content in found[2:]] == [("user", 1), ("user", 1)]
    assert found[2]["parts"] == [answered("c1", text="")]


def test_calls_with_the_same_id_are_told_apart() -> None:
    twice = [call("c1"), result("c1"), broken_call("c2", "c1"), result("c2")]
    found = contents(HI, *twice)

    assert [content["parts"][0]["functionCall"]["id"] for content in found[1::2]] == ["c1", "c1_2"]
    assert [content["parts"][0]["functionResponse"]["id"] for content in found[2::2]] == ["c1", "c1_2"]


def broken_call(origin: str, call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, name="run", arguments='{"broken', turn=0, origin=origin)


def test_an_error_is_told_as_one() -> None:
    found = contents(HI, call("c1"), result("c1", TextBlock(text="no such file"), is_error=True))

    assert found[2]["parts"][0]["functionResponse"]["response"] == {"error": "no such file"}


def test_images_stand_in_the_result_where_the_model_takes_them() -> None:
    picture = ImageBlock(mime_type="image/png", blob=PNG)
    inline = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    events = (HI, call("c1"), call("c2"), result("c1", TextBlock(text="See"), picture), result("c2"), HI)

    new, old = contents(*events), contents(*events, model="gemini-2.5-pro")

    assert new[2]["parts"][0] == {
        "functionResponse": {"id": "c1", "name": "run", "response": {"output": "See"}, "parts": [inline]}
    }
    assert new[3]["parts"] == [{"text": "Hi"}]
    assert old[2]["parts"] == [answered("c1", text="See"), answered("c2", text="")]
    assert old[3]["parts"] == [{"text": "What 'run' (c1) returned besides text:"}, inline, {"text": "Hi"}]
    assert contents(*events[:-1], model="gemini-2.5-pro") == [*old[:3], {"role": "user", "parts": old[3]["parts"][:2]}]


def test_what_may_not_stand_in_a_result_becomes_a_note() -> None:
    resource = Resource(uri="u:1", mime_type="audio/wav", blob=b"RIFF")
    found = contents(HI, call("c1"), result("c1", ResourceBlock(resource=resource)))

    text = found[2]["parts"][0]["functionResponse"]["response"]["output"]
    assert text == "[u:1: audio/wav, 4 bytes, cannot be shown to this model]"


def attached(mime_type: str, origin: str = "r0") -> UserResource:
    return UserResource(resource=Resource(uri="u:1", mime_type=mime_type, blob=PNG, name="one"), turn=0, origin=origin)


@pytest.mark.parametrize("mime_type", ["image/png", "application/pdf", "audio/mpeg", "video/mp4"])
def test_pictures_documents_and_recordings_stand_before_the_question(mime_type: str) -> None:
    assert contents(HI, attached(mime_type))[0]["parts"] == [
        {"text": "one (u:1):"},
        {"inlineData": {"mimeType": mime_type, "data": "iVBORw=="}},
        {"text": "Hi"},
    ]


def test_an_attached_text_stands_between_tags() -> None:
    resource = UserResource(resource=Resource(uri="u:1", text="x = 1"), turn=0, origin="r0")

    assert contents(resource, HI)[0]["parts"][0] == {"text": '<attachment uri="u:1">\nx = 1\n</attachment>'}


def test_a_new_attachment_that_the_model_does_not_take_is_an_error_and_an_older_one_a_note() -> None:
    with pytest.raises(ProviderError, match="'image/gif', which google does not accept") as caught:
        contents(attached("image/gif"), HI)

    assert caught.value.kind == "unsupported"
    assert caught.value.hint.startswith("text, PDF, PNG, JPEG, WebP, the usual formats of audio and video can be")
    assert contents(attached("image/gif"), HI, UserText(text="?", turn=1, origin="r1"))[0]["parts"][0] == {
        "text": "[u:1: image/gif, 4 bytes, cannot be shown to this model]"
    }


def test_a_model_of_which_nothing_is_known_takes_pictures_and_text() -> None:
    with pytest.raises(ProviderError) as caught:
        contents(attached("application/pdf"), HI, model="other")

    assert caught.value.hint.startswith("text, PNG, JPEG, WebP can be attached")


@pytest.mark.parametrize(
    ("model", "with_tools", "in_words"),
    [(MODEL, False, False), (MODEL, True, False), ("gemini-2.5-pro", True, True), ("gemini-2.5-pro", False, False)],
)
def test_a_schema_beside_tools_is_told_in_words_where_the_model_cannot_be_held_to_it(
    model: str, *, with_tools: bool, in_words: bool
) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = (ToolDefinition(name="run", description="", parameters={}),) if with_tools else ()
    asked = UserText(text="Hi", turn=0, schema=schema)
    body = render(Thread(model=model, system=(), tools=tools, events=(asked,), schema=schema)).body

    assert (len(body["contents"][0]["parts"]) == 2) is in_words
    assert ("responseJsonSchema" in body.get("generationConfig", {})) is not in_words


def test_there_has_to_be_something_to_send() -> None:
    with pytest.raises(ProviderError, match="no message to send"):
        render(Thread(model=MODEL, system=(), tools=(), events=(), parameters=Parameters()))

from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread, UserText
from jp.provider.adapters import create_adapter
from jp.provider.asking import object_at
from jp.provider.parts import DataDelta, Finished, TextDelta

ASKED = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
GOOGLE = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'
OPENAI = (
    b'{"type":"response.completed","response":{"status":"completed","output":'
    b'[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}'
)


def test_what_is_no_object_holds_nothing() -> None:
    body: JsonObject = {"a": {"b": 1}, "c": [], "d": None}

    assert [object_at(body, name) for name in "acde"] == [{"b": 1}, {}, {}, {}]


@pytest.mark.parametrize(
    ("provider", "other", "answer"),
    [
        ("google", {"generationConfig": []}, GOOGLE),
        ("openai", {"text": "plain"}, OPENAI),
        ("openai", {"text": {"format": None}}, OPENAI),
        ("openai", {"text": {"format": {"name": "answer"}}}, OPENAI),
    ],
)
def test_an_answer_is_read_whatever_a_parameter_made_of_the_request(
    provider: str, other: dict[str, object], answer: bytes
) -> None:
    adapter = create_adapter(LlmConfig(), provider, kind=provider)
    decoder = adapter.decoder(adapter.render(replace(ASKED, parameters=Parameters(other=other))))
    parts = [*decoder.feed("", answer), *decoder.close()]

    assert parts[-1] == Finished("stop")
    assert {TextDelta(0, "Hi"), DataDelta(0, "Hi")} & {
        part for part in parts if isinstance(part, TextDelta | DataDelta)
    }

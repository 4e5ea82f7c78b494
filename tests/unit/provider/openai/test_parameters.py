"""How OpenAI's models are asked to reason, and what they are not sent."""

from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters
from jp.provider.models import find_model
from jp.provider.openai.request import omitted, reasoning_of, sampling_sent


def parameters(**values: object) -> Parameters:
    return msgspec.convert(values, Parameters)


def asked(model: str, wanted: object) -> JsonObject | None:
    return reasoning_of(parameters(reasoning=wanted), find_model("openai", model)).wire


def sentences(model: str, **values: object) -> tuple[str, ...]:
    found, given = find_model("openai", model), parameters(**values)
    return omitted(given, found, reasoning_of(given, found))


SHOWN = {"summary": "auto"}
KEPT = {"summary": "auto", "context": "all_turns"}


@pytest.mark.parametrize(
    ("model", "wanted", "wire"),
    [
        ("gpt-5.6", None, KEPT),
        ("gpt-5.6", "auto", KEPT),
        ("gpt-5.6", "off", {"effort": "none"}),
        ("gpt-5.6", "none", {"effort": "none"}),
        ("gpt-5.6", "xlow", {"effort": "low", **KEPT}),
        ("gpt-5.6", "max", {"effort": "max", **KEPT}),
        ("gpt-6-astra", "off", {"effort": "low", **KEPT}),
        ("gpt-5.5", "max", {"effort": "xhigh", **SHOWN}),
        ("gpt-5.4", None, None),
        ("gpt-5.4", "auto", {"effort": "medium", **SHOWN}),
        ("gpt-5.4", "off", {"effort": "none"}),
        ("gpt-5.1", "xhigh", {"effort": "high", **SHOWN}),
        ("gpt-5", "off", {"effort": "minimal", **SHOWN}),
        ("gpt-5-pro", "low", {"effort": "high", **SHOWN}),
        ("gpt-5.4-pro", "off", {"effort": "medium", **SHOWN}),
        ("o3", 5000, {"effort": "low", **SHOWN}),
        ("gpt-5.6", 120_000, {"effort": "max", **KEPT}),
        ("gpt-4.1", "high", None),
        ("gpt-4.1", "off", None),
        ("gpt-7-nova", "high", {"effort": "high", **KEPT}),
        ("gpt-5.3-chat-latest", "high", None),
        ("chatgpt-x", None, None),
        ("o9", "off", {"effort": "low", **SHOWN}),
        ("gpt-oss-20b", None, None),
        ("gpt-oss-20b", "high", {"effort": "high"}),
        ("qwen3", None, None),
        ("qwen3", "off", None),
        ("qwen3", "auto", {"effort": "medium"}),
    ],
)
def test_a_model_is_asked_to_reason_as_it_knows(model: str, wanted: object, wire: JsonObject | None) -> None:
    assert asked(model, wanted) == wire


def test_who_cannot_have_summaries_does_without() -> None:
    model = find_model("openai", "gpt-5.6")

    assert reasoning_of(Parameters(), model, summary="none").wire == {"context": "all_turns"}
    assert reasoning_of(Parameters(), find_model("openai", "gpt-5.5"), summary="none").wire is None
    assert reasoning_of(Parameters(), model, summary="concise").wire == {**KEPT, "summary": "concise"}


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("gpt-5.6", None, {}),
        ("gpt-5.4", None, {"temperature": 0.5}),
        ("gpt-5.4", "off", {"temperature": 0.5}),
        ("gpt-5.4", "low", {}),
        ("gpt-4.1", None, {"temperature": 0.5}),
        ("qwen3", "low", {"temperature": 0.5}),
    ],
)
def test_a_temperature_is_sent_to_models_that_take_one(model: str, wanted: object, sent: JsonObject) -> None:
    given, found = parameters(temperature=0.5, reasoning=wanted), find_model("openai", model)

    assert sampling_sent(given, found, reasoning_of(given, found)) == sent


@pytest.mark.parametrize(
    ("model", "values", "sentence"),
    [
        ("gpt-5.6", {"temperature": 0.5, "top_p": 1}, "'temperature', 'top_p' not sent: 'gpt-5.6' takes none"),
        (
            "gpt-5.4",
            {"temperature": 0.5, "reasoning": "low"},
            "'temperature' not sent: 'gpt-5.4' takes none while it reasons",
        ),
        ("gpt-4.1", {"top_k": 5}, "'top_k' not sent: the Responses API knows none"),
        (
            "gpt-4.1",
            {"top_k": 5, "stop_words": ["END"]},
            "'top_k', 'stop_words' not sent: the Responses API knows none",
        ),
        ("gpt-5", {"reasoning": "off"}, "'gpt-5' cannot wholly be kept from reasoning"),
        ("gpt-4.1", {"reasoning": "high"}, "reasoning 'high' not sent: 'gpt-4.1' does not reason"),
        ("gpt-5.5", {"reasoning": "max"}, "reasoning 'max' sent as 'xhigh', the most that 'gpt-5.5' knows"),
        ("o3", {"reasoning": 5000}, "reasoning 5000 sent as 'low': 'o3' takes no number of tokens"),
    ],
)
def test_what_is_not_sent_as_it_was_asked_for_is_said(model: str, values: JsonObject, sentence: str) -> None:
    assert sentences(model, **values) == (sentence,)


@pytest.mark.parametrize(
    "values", [{}, {"reasoning": "auto"}, {"reasoning": "off"}, {"reasoning": "high"}, {"stop_words": [" "]}]
)
def test_what_is_sent_as_it_was_asked_for_needs_no_words(values: JsonObject) -> None:
    assert sentences("gpt-5.6", **values) == ()

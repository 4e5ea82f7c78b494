from __future__ import annotations

from typing import Any

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.thread import (
    AssistantReasoning,
    Parameters,
    Thread,
    ToolCall,
    ToolResult,
    UserText,
    ViewEvent,
)
from jp.provider.models import model_for
from jp.provider.openrouter.request import Reasoning, reasoning_of

OFF: JsonObject = {"enabled": False}
HIDDEN: JsonObject = {"effort": "minimal", "exclude": True}
OPUS = "anthropic/claude-opus-5"
"""It reasons by itself, and can be kept from it."""
HAIKU = "anthropic/claude-haiku-4.5"
"""It reasons only where it is asked to."""
ASKED = UserText(text="q", turn=0)


MANDATORY: JsonObject = {"thinking_off": "never", "thinks_by_default": True, "levels": ["low", "high"]}
"""What OpenRouter may list of a model that jp does not know."""


def reasoning(
    wanted: Any, *, model: str = OPUS, forced: bool = False, events: tuple[ViewEvent, ...] = (ASKED,), **more: Any
) -> Reasoning:
    parameters = Parameters(reasoning=wanted, **more)
    thread = Thread(model=model, system=(), tools=(), events=events, parameters=parameters)
    return reasoning_of(thread, model_for("openrouter", thread), forced=forced)


@pytest.mark.parametrize(
    ("wanted", "wire", "omitted"),
    [
        (None, None, ()),
        ("auto", {"enabled": True}, ()),
        ("off", OFF, ()),
        ("none", OFF, ()),
        ("xlow", {"effort": "minimal"}, ()),
        ("low", {"effort": "low"}, ()),
        ("medium", {"effort": "medium"}, ()),
        ("high", {"effort": "high"}, ()),
        ("xhigh", {"effort": "xhigh"}, ()),
        ("max", {"effort": "max"}, ()),
        (5000, {"max_tokens": 5000}, ()),
        (5, {"max_tokens": 1024}, ("reasoning 5 sent as 1024: the least that there is",)),
    ],
)
def test_what_is_wanted_has_its_form(wanted: Any, wire: JsonObject | None, omitted: tuple[str, ...]) -> None:
    found = reasoning(wanted)

    assert (found.wire, found.omitted) == (wire, omitted)


def test_max_is_sent_as_xhigh_to_a_model_that_is_not_known_to_take_it() -> None:
    found = reasoning("max", model="z-ai/glm-5")

    assert found.wire == {"effort": "xhigh"}
    assert found.omitted == ("reasoning 'max' sent as 'xhigh', the most that the model is known to take",)


def test_thoughts_leave_room_for_an_answer() -> None:
    found = reasoning(50_000, max_tokens=20_000)

    assert found.wire == {"max_tokens": 18_000}
    assert found.omitted == ("reasoning 50000 sent as 18000: the longest output, 20000, holds the answer too",)


@pytest.mark.parametrize(
    ("model", "wanted", "active"),
    [(OPUS, None, True), (OPUS, "off", False), (HAIKU, None, False), (HAIKU, "low", True), ("z-ai/glm", None, False)],
)
def test_it_is_known_whether_a_model_reasons(model: str, wanted: Any, *, active: bool) -> None:
    assert reasoning(wanted, model=model).is_active is active


def test_a_model_that_cannot_be_kept_from_reasoning_does_it_unseen() -> None:
    assert reasoning("off", model="openai/gpt-5-mini") == Reasoning(
        wire=HIDDEN, is_active=True, omitted=("'openai/gpt-5-mini' cannot wholly be kept from reasoning",)
    )


@pytest.mark.parametrize(("wanted", "omitted"), [(None, False), ("auto", False), ("off", False), ("high", True)])
def test_a_model_that_does_not_reason_is_not_asked_to(wanted: Any, *, omitted: bool) -> None:
    found = reasoning(wanted, model="openai/gpt-4o")
    why = ("reasoning 'high' not sent: 'openai/gpt-4o' does not reason",)

    assert found == Reasoning(wire=None, is_active=False, omitted=why if omitted else ())


@pytest.mark.parametrize(
    ("model", "wanted", "wire"),
    [
        (OPUS, None, OFF),
        (OPUS, "high", OFF),
        (HAIKU, None, None),
        (HAIKU, "high", OFF),
        ("openai/gpt-5.6", "high", {"effort": "high"}),
        ("anthropic/claude-fable-5", "high", {"effort": "high"}),
    ],
)
def test_a_call_that_is_forced_is_not_reasoned_about_at_anthropic(model: str, wanted: Any, wire: object) -> None:
    assert reasoning(wanted, model=model, forced=True).wire == wire


def test_reasoning_that_was_asked_for_and_is_not_sent_is_said() -> None:
    assert reasoning("high", forced=True).omitted == (
        f"reasoning 'high' not sent: {OPUS!r} does not reason about this call",
    )
    assert reasoning("auto", forced=True).omitted == ()


CALL = ToolCall(call_id="c", name="run", arguments={}, turn=0, origin="c")
DONE = ToolResult(call="c", call_id="c", name="run", content=(), turn=0)
OWN = AssistantReasoning(text="hm", turn=0, metadata={"provider": "openrouter", "model": OPUS, "reasoning_details": []})
FOREIGN = AssistantReasoning(text="hm", turn=0)
AGAIN = UserText(text="continue", turn=0, synthetic=True)


@pytest.mark.parametrize(
    ("events", "wire"),
    [
        ((ASKED, OWN, CALL, DONE), {"effort": "high"}),
        ((ASKED, FOREIGN, CALL, DONE), OFF),
        ((ASKED, CALL, DONE), OFF),
        ((ASKED, CALL, DONE, AGAIN), OFF),
        ((ASKED, OWN, CALL, DONE, CALL, DONE), OFF),
        ((ASKED, CALL, DONE, OWN, CALL, DONE), {"effort": "high"}),
        ((ASKED, CALL, DONE, ASKED), {"effort": "high"}),
        ((CALL, CALL), OFF),
        ((), {"effort": "high"}),
    ],
)
def test_an_answer_that_called_without_a_thought_goes_on_without_one(
    events: tuple[ViewEvent, ...], wire: JsonObject
) -> None:
    assert reasoning("high", events=events).wire == wire


@pytest.mark.parametrize(
    ("wanted", "wire", "told"),
    [
        ("off", {"effort": "low", "exclude": True}, "cannot wholly be kept from reasoning"),
        ("xlow", {"effort": "low"}, ""),
        ("medium", {"effort": "low"}, "reasoning 'medium' sent as 'low', the nearest that OpenRouter lists"),
        ("high", {"effort": "high"}, ""),
        ("max", {"effort": "high"}, "reasoning 'max' sent as 'high'"),
        ("auto", {"enabled": True}, ""),
        (None, None, ""),
    ],
)
def test_a_model_is_sent_only_levels_that_are_listed_for_it(wanted: Any, wire: JsonObject | None, told: str) -> None:
    found = reasoning(wanted, model="acme/thinker", abilities=MANDATORY)

    assert found.wire == wire
    assert found.is_active
    assert told in " ".join(found.omitted)
    assert bool(told) is bool(found.omitted)


def test_a_model_that_takes_no_number_of_tokens_is_sent_a_level() -> None:
    found = reasoning(20_000, model="acme/thinker", abilities={**MANDATORY, "budgets": False}, max_tokens=30_000)

    assert found.wire == {"effort": "high"}
    assert found.omitted == ("reasoning 20000 sent as 'high': the model takes no number of tokens",)


def test_abilities_that_only_a_newer_version_knows_do_not_count() -> None:
    assert reasoning("off", model="acme/thinker", abilities={"thinking_off": "tomorrow"}).wire == OFF


def test_the_latest_of_a_vendors_models_is_treated_as_one_of_that_vendor() -> None:
    events = (ASKED, ToolCall(call_id="c", name="t", arguments={}, origin="o", turn=0))
    found = reasoning("high", model="~anthropic/claude-opus-latest", events=events)

    assert found.wire == OFF

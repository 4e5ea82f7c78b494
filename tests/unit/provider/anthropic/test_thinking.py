from __future__ import annotations

from typing import Literal

import pytest
from msgspec.structs import replace

from jp.conversation.thread import Effort, Parameters
from jp.provider.anthropic.request import Thinking, thinking_of
from jp.provider.models import find_model

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
BOUND = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
DISABLED = {"type": "disabled"}


def asked(
    model: str,
    reasoning: Literal["off", "auto"] | Effort | int | None,
    max_tokens: int = 10_000,
    *,
    plain: bool = False,
) -> Thinking:
    found = find_model("anthropic", model)
    return thinking_of(Parameters(reasoning=reasoning), found, max_tokens=max_tokens, plain=plain)


def budget(reasoning: Literal["off", "auto"] | Effort | int | None, max_tokens: int = 10_000) -> int | None:
    wire = asked("claude-haiku-4-5", reasoning, max_tokens).wire or {}
    return wire.get("budget_tokens")


@pytest.mark.parametrize(
    ("reasoning", "tokens"),
    [
        ("xlow", 1024),
        ("low", 2000),
        ("medium", 5000),
        ("auto", 5000),
        ("high", 8000),
        ("xhigh", 9000),
        ("max", 9000),
        (3000, 3000),
        (1, 1024),
        (50_000, 9000),
    ],
)
def test_a_budget_is_a_share_of_the_longest_output(reasoning: Effort | int, tokens: int) -> None:
    assert budget(reasoning) == tokens


def test_a_budget_leaves_room_for_an_answer() -> None:
    assert budget("max", 64_000) == 62_976
    assert budget(1024, 1152) == 1024


def test_where_no_budget_fits_there_is_no_thinking() -> None:
    assert asked("claude-haiku-4-5", "max", 1100) == Thinking(wire=DISABLED)


@pytest.mark.parametrize(
    ("model", "reasoning", "effort"),
    [
        ("claude-opus-4-8", "auto", None),
        ("claude-opus-4-8", "xlow", "low"),
        ("claude-opus-4-8", "low", "low"),
        ("claude-opus-4-8", "medium", "medium"),
        ("claude-opus-4-8", "high", "high"),
        ("claude-opus-4-8", "xhigh", "xhigh"),
        ("claude-opus-4-8", "max", "max"),
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-6", "max", "max"),
        ("claude-opus-9", "max", "max"),
        ("claude-opus-4-8", 9500, "max"),
        ("claude-opus-4-8", 8500, "xhigh"),
        ("claude-opus-4-8", 6000, "high"),
        ("claude-opus-4-8", 3000, "medium"),
        ("claude-opus-4-8", 1500, "low"),
    ],
)
def test_an_effort_is_one_that_the_model_knows(model: str, reasoning: Effort | int, effort: str | None) -> None:
    assert asked(model, reasoning) == Thinking(wire=ADAPTIVE, is_active=True, effort=effort)


def test_a_model_without_higher_levels_gets_its_highest() -> None:
    model = find_model("anthropic", "claude-opus-4-6")
    plain = replace(model, abilities=replace(model.abilities, levels=("low", "medium", "high")))

    assert thinking_of(Parameters(reasoning="max"), plain, max_tokens=9, plain=False).effort == "high"


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-haiku-4-5", Thinking()),
        ("claude-opus-4-8", Thinking()),
        ("claude-opus-5", Thinking(wire=ADAPTIVE, is_active=True)),
        ("claude-opus-5-5", Thinking(wire=BOUND, is_active=True)),
        ("claude-opus-9", Thinking(wire=ADAPTIVE, is_active=True)),
        ("qwen3", Thinking()),
    ],
)
def test_unasked_a_model_does_what_it_does_by_default_but_visibly(model: str, thinking: Thinking) -> None:
    assert asked(model, None) == thinking


@pytest.mark.parametrize("reasoning", ["off", "none"])
@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-haiku-4-5", Thinking(wire=DISABLED)),
        ("claude-opus-5", Thinking(wire=DISABLED)),
        ("claude-opus-9", Thinking(wire=DISABLED)),
        ("claude-sonnet-5-5", Thinking(wire={"type": "between_tools"}, is_active=True)),
        ("claude-fable-5", Thinking(is_active=True)),
    ],
)
def test_off_is_said_where_it_can_be(model: str, reasoning: Effort, thinking: Thinking) -> None:
    assert asked(model, reasoning) == thinking


@pytest.mark.parametrize(
    ("model", "reasoning", "thinking"),
    [
        ("claude-haiku-4-5", "high", Thinking(wire=DISABLED)),
        ("claude-opus-5", None, Thinking(wire=DISABLED)),
        ("claude-opus-4-8", None, Thinking()),
        ("claude-fable-5", None, Thinking(wire=ADAPTIVE, is_active=True)),
    ],
)
def test_a_request_that_cannot_be_thought_about_is_not(
    model: str, reasoning: Effort | None, thinking: Thinking
) -> None:
    assert asked(model, reasoning, plain=True) == thinking

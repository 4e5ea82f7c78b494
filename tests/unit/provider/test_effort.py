from __future__ import annotations

from typing import Any

import pytest

from jp.conversation.thread import Effort, Parameters
from jp.provider.base import Level
from jp.provider.corrections import corrected_parameters
from jp.provider.parameters import effort_of, is_off, nearest_level


@pytest.mark.parametrize(
    ("tokens", "effort"), [(100, "low"), (200, "low"), (201, "medium"), (501, "high"), (801, "xhigh"), (901, "max")]
)
def test_a_number_of_tokens_is_an_effort_by_its_share_of_the_output(tokens: int, effort: str) -> None:
    assert effort_of(Parameters(reasoning=tokens), 1000) == effort


def test_who_leaves_it_to_the_model_asks_for_no_effort() -> None:
    assert [effort_of(Parameters(reasoning=wanted), 1000) for wanted in (None, "auto", "off")] == [None, None, None]
    assert effort_of(Parameters(reasoning="xlow"), 1000) == "xlow"


@pytest.mark.parametrize(
    ("effort", "levels", "level"),
    [
        ("medium", ("low", "medium", "high"), "medium"),
        ("max", ("low", "medium", "high"), "high"),
        ("xhigh", ("low", "high", "max"), "high"),
        ("xlow", ("minimal", "low"), "minimal"),
        ("xlow", ("low", "high"), "low"),
        ("low", ("medium", "high"), "medium"),
        ("none", ("none", "low"), "none"),
        ("xlow", ("none", "high"), "high"),
        ("high", ("none",), None),
        ("high", (), None),
    ],
)
def test_an_effort_becomes_the_highest_level_that_is_not_above_it(
    effort: Effort, levels: tuple[Level, ...], level: Level | None
) -> None:
    assert nearest_level(effort, levels) == level


def test_a_model_is_kept_from_thinking_by_two_words() -> None:
    assert all(is_off(Parameters(reasoning=wanted)) for wanted in ("off", "none"))
    assert not any(is_off(Parameters(reasoning=wanted)) for wanted in (None, "auto", "xlow", 1))


@pytest.mark.parametrize(
    ("asked", "message", "sent"),
    [
        ("none", "Unsupported value: 'none' is not supported. Supported values are: 'low', 'medium', 'high'.", "low"),
        ("off", "Reasoning is mandatory for this endpoint and cannot be disabled.", "xlow"),
        ("max", "reasoning_effort must be one of none, low, high", "high"),
        ("xlow", "effort: expected low or high", "low"),
        ("high", "Unsupported value: effort 'high' is not supported", None),
        ("high", "effort: expected low or high", None),
        ("high", "the prompt must be one of low quality", None),
        ("xlow", "effort: expected minimal or low", None),
        ("auto", "effort: expected low or high", None),
        (5000, "effort: expected low or high", None),
        (99, "The thinking budget 99 is invalid. Please choose a value between 512 and 24576.", 512),
        (99999, "The thinking budget 99999 is invalid. Please choose a value between 512 and 24576.", 24576),
        (600, "thinking.budget_tokens: Input should be greater than or equal to 1024", 1024),
        (9000, "reasoning.max_tokens must be at most 8192", 8192),
        (600, "thinking.budget_tokens: Input should be less than or equal to 1024", None),
        (600, "max_output_tokens: Input should be greater than or equal to 1024", None),
        (None, "effort: expected low or high", None),
    ],
)
def test_a_refused_effort_becomes_the_nearest_that_the_refusal_names(asked: Any, message: str, sent: Any) -> None:
    correction = corrected_parameters(Parameters(reasoning=asked), message)

    assert (correction and correction.parameters) == (None if sent is None else Parameters(reasoning=sent))


@pytest.mark.parametrize(
    ("field", "asked", "message", "sent"),
    [
        ("temperature", 1.5, "temperature must be between 0 and 1", 1.0),
        ("temperature", 0.5, "temperature must be between 0 and 1", None),
        ("top_p", 0.5, "`top_p` is deprecated for this model", None),
        ("top_k", 900, "top_k must be between 1 and 64", 64),
        ("temperature", 1.5, "temperature: range: 0..1", 1.0),
        ("temperature", 1.5, "temperature: Input should be less than or equal to 1", 1.0),
        ("top_p", 0.0, "top_p: Input should be greater than or equal to 0.01", 0.01),
    ],
)
def test_refused_sampling_is_brought_within_bounds_or_omitted(field: str, asked: Any, message: str, sent: Any) -> None:
    correction = corrected_parameters(Parameters(**{field: asked}), message)

    assert correction is not None
    assert correction.parameters == Parameters(**{field: sent})


def test_a_refusal_of_what_was_not_set_corrects_nothing() -> None:
    assert corrected_parameters(Parameters(top_p=0.5), "temperature: Extra inputs are not permitted") is None

from __future__ import annotations

import pytest

from jp.conversation.thread import Effort, Parameters
from jp.provider.abilities import Level
from jp.provider.effort import effort_of, is_off, nearest_level


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

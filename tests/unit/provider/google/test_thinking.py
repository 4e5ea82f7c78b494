from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Effort, Parameters
from jp.provider.base import Abilities, Model, ModelDetails
from jp.provider.google.request import takes_sampling, thinking_of, unmet
from jp.provider.models import find_model

SHOWN: JsonObject = {"includeThoughts": True}


def asked(model: str, reasoning: Effort | int | str | None, max_tokens: int | None = None) -> tuple[object, list[str]]:
    """What is sent, and what is said about it."""
    parameters = Parameters(reasoning=reasoning, max_tokens=max_tokens)  # type: ignore[arg-type] # a word of the table
    found = find_model("google", model)
    thinking = thinking_of(parameters, found)
    return thinking.wire, list(unmet(parameters, found, thinking))


@pytest.mark.parametrize(
    ("model", "reasoning", "wire"),
    [
        ("gemini-3.8-flash", None, SHOWN),
        ("gemini-3.8-flash", "auto", SHOWN),
        ("gemini-3.8-flash", "low", {**SHOWN, "thinkingLevel": "LOW"}),
        ("gemini-3.8-flash", "xlow", {**SHOWN, "thinkingLevel": "LOW"}),
        ("gemini-3.8-flash", "high", {**SHOWN, "thinkingLevel": "HIGH"}),
        ("gemini-3.5-flash", "xlow", {**SHOWN, "thinkingLevel": "MINIMAL"}),
        ("gemini-4-neon", "xhigh", {**SHOWN, "thinkingLevel": "XHIGH"}),
        ("gemini-3-pro-preview", "medium", {**SHOWN, "thinkingLevel": "LOW"}),
        ("gemini-next", "medium", {**SHOWN, "thinkingLevel": "MEDIUM"}),
        ("gemini-2.5-pro", None, SHOWN),
        ("gemini-2.5-flash", "auto", {**SHOWN, "thinkingBudget": -1}),
        ("gemini-2.5-flash", "low", {**SHOWN, "thinkingBudget": 13107}),
        ("gemini-2.5-flash", "medium", {**SHOWN, "thinkingBudget": 24576}),
        ("gemini-2.5-pro", "medium", {**SHOWN, "thinkingBudget": 32768}),
        ("gemini-2.5-flash", 700, {**SHOWN, "thinkingBudget": 700}),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash-lite", None, None),
        ("gemini-2.5-flash-lite", "none", {"thinkingBudget": 0}),
        ("gemini-2.0-flash", None, None),
        ("gemini-2.0-flash", "off", None),
        ("gemma-4-31b-it", None, None),
    ],
)
def test_a_model_is_asked_to_think_in_its_own_way(model: str, reasoning: str | int | None, wire: object) -> None:
    assert asked(model, reasoning) == (wire, [])


@pytest.mark.parametrize(
    ("model", "reasoning", "wire", "sentence"),
    [
        (
            "gemini-3.8-flash",
            "off",
            {"thinkingLevel": "LOW"},
            "'gemini-3.8-flash' cannot wholly be kept from reasoning",
        ),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}, "'gemini-2.5-pro' cannot wholly be kept from reasoning"),
        (
            "gemini-3.8-flash",
            "max",
            {**SHOWN, "thinkingLevel": "HIGH"},
            "reasoning 'max' sent as 'high', the most that 'gemini-3.8-flash' knows",
        ),
        (
            "gemini-3.8-flash",
            60_000,
            {**SHOWN, "thinkingLevel": "HIGH"},
            "reasoning 60000 sent as 'high': 'gemini-3.8-flash' takes no number of tokens",
        ),
        (
            "gemini-2.5-flash",
            60_000,
            {**SHOWN, "thinkingBudget": 24576},
            "reasoning 60000 sent as 24576, the most that 'gemini-2.5-flash' takes",
        ),
        (
            "gemini-2.5-flash-lite",
            1,
            {**SHOWN, "thinkingBudget": 512},
            "reasoning 1 sent as 512, the least that 'gemini-2.5-flash-lite' takes",
        ),
        ("gemma-4-31b-it", "high", None, "reasoning 'high' not sent: 'gemma-4-31b-it' goes on without it"),
    ],
)
def test_what_is_sent_otherwise_is_said(model: str, reasoning: str | int, wire: object, sentence: str) -> None:
    assert asked(model, reasoning) == (wire, [sentence])


def test_a_budget_is_a_share_of_the_longest_output() -> None:
    assert asked("gemini-2.5-flash", "low", max_tokens=1000)[0] == {**SHOWN, "thinkingBudget": 200}
    assert asked("gemini-2.5-other", "xlow")[0] == {**SHOWN, "thinkingBudget": 6553}


def odd(abilities: Abilities) -> Model:
    return Model(details=ModelDetails(provider="google", id="odd"), abilities=abilities)


def test_a_family_may_be_without_levels_or_bounds() -> None:
    bare = odd(Abilities(thinking="levels", levels=(), thinking_off="never", sampling=True))
    free = odd(Abilities(thinking="budget", thinks_by_default=True, most_budget=None))

    assert thinking_of(Parameters(reasoning="off"), bare).wire is None
    assert thinking_of(Parameters(reasoning="max"), bare).wire == SHOWN
    assert thinking_of(Parameters(reasoning="max"), free).wire == {**SHOWN, "thinkingBudget": 65_536}
    assert not takes_sampling(bare, thinking_of(Parameters(reasoning="high"), bare))

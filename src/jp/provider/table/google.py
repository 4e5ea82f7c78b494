"""Google's models, newest first.

Where a price is introductory, the one that follows it stands here, so that nothing costs more than is said. Gemini has
no price for writing to its cache: it keeps what it wants, by itself.
"""

from __future__ import annotations

import msgspec

from jp.provider.base import Abilities, Level, Model, ModelDetails

_WINDOW, _OUTPUT = 1_048_576, 65_536
_LONG_PROMPT = 200_000


def _levels(*levels: Level, sampling: bool = True) -> Abilities:
    """A model that always thinks, as much as one of `levels` says."""
    return Abilities(
        thinking="levels",
        thinking_off="never",
        thinks_by_default=True,
        levels=levels,
        sampling=sampling,
        sampling_while_thinking=True,
        recordings=True,
    )


_FLASH_3 = _levels("minimal", "low", "medium", "high")
_GEMINI_3 = _levels("low", "medium", "high")
_GEMINI_4 = _levels("low", "medium", "high", sampling=False)
_GEMINI_4_X = _levels("low", "medium", "high", "xhigh", sampling=False)
_BUDGET = Abilities(
    thinking="budget",
    thinks_by_default=True,
    levels=(),
    least_budget=1,
    most_budget=24_576,
    sampling=True,
    sampling_while_thinking=True,
    structured_with_tools=False,
    media_in_results=False,
    recordings=True,
)
_LITE_2_5 = msgspec.structs.replace(_BUDGET, thinks_by_default=False, least_budget=512)
_PRO_2_5 = msgspec.structs.replace(_BUDGET, thinking_off="never", least_budget=128, most_budget=32_768)
_THOUGHTLESS = msgspec.structs.replace(_BUDGET, thinking="none", thinks_by_default=False)
_PLAIN = Abilities(thinking="none", levels=(), sampling=True, structured=False, documents=False, media_in_results=False)


class _Price(msgspec.Struct, frozen=True):
    """USD for a million tokens; None is unknown. With `has_long`, long prompts cost more."""

    input: float
    output: float
    read: float | None = None
    has_long: bool = False


def _gemini(name: str, price: _Price, abilities: Abilities, limits: tuple[int, int] = (_WINDOW, _OUTPUT)) -> Model:
    details = ModelDetails(
        provider="google",
        id=name,
        context_window=limits[0],
        max_output=limits[1],
        input_price=price.input,
        output_price=price.output,
        cache_read_price=price.read,
        long_prompt=_LONG_PROMPT if price.has_long else None,
        long_prompt_factor=2.0 if price.has_long else 1.0,
        long_prompt_output_factor=1.5 if price.has_long else None,
    )
    return Model(details=msgspec.structs.replace(details, successor=_SUCCESSORS.get(name)), abilities=abilities)


_SUCCESSORS = {"gemini-3.7-flash": "gemini-3.8-flash"}
"""Deprecated models, and which answers for them: ai.google.dev/gemini-api/docs/models/gemini-3.7-flash, 2026-10-09."""

_GEMMA = (262_144, 32_768)
_FREE = _Price(0.0, 0.0, 0.0)
"""Google has no paid tier for it."""

MODELS = (
    _gemini("gemini-4-neon", _Price(3.0, 15.0), _GEMINI_4_X),
    _gemini("gemini-4-carbon", _Price(4.0, 20.0), _GEMINI_4),
    _gemini("gemini-4-hydrogen", _Price(1.5, 7.5), _GEMINI_4_X),
    _gemini("gemini-4-argon", _Price(4.0, 20.0, 0.2), _GEMINI_4),
    _gemini("gemini-3.8-flash", _Price(1.5, 7.5, 0.15), _GEMINI_3),
    _gemini("gemini-3.7-flash", _Price(1.5, 7.5, 0.15), _GEMINI_3),
    _gemini("gemini-3.6-flash", _Price(1.5, 7.5, 0.15), _FLASH_3),
    _gemini("gemini-3.5-flash", _Price(1.5, 9.0, 0.15), _FLASH_3),
    _gemini("gemini-3.5-flash-lite", _Price(0.3, 2.5), _FLASH_3),
    _gemini("gemini-3.1-pro-preview", _Price(2.0, 12.0, 0.2, has_long=True), _GEMINI_3),
    _gemini("gemini-3.1-flash-lite", _Price(0.25, 1.5, 0.025), _FLASH_3),
    _gemini("gemini-3-flash-preview", _Price(0.5, 3.0, 0.05), _FLASH_3),
    _gemini("gemini-2.5-pro", _Price(1.25, 10.0, 0.125, has_long=True), _PRO_2_5),
    _gemini("gemini-2.5-flash", _Price(0.3, 2.5, 0.03), _BUDGET),
    _gemini("gemini-2.5-flash-lite", _Price(0.1, 0.4, 0.01), _LITE_2_5),
    _gemini("gemma-4-31b-it", _FREE, _PLAIN, _GEMMA),
    _gemini("gemma-4-26b-a4b-it", _FREE, _PLAIN, _GEMMA),
)

SMALL = "gemini-3.5-flash-lite"
"""The cheap model, for what jp itself has to ask."""

_INFERRED = (
    ("gemini-2.5-flash-lite", _LITE_2_5),
    ("gemini-2.5-pro", _PRO_2_5),
    ("gemini-2.5", _BUDGET),
    ("gemini-2", _THOUGHTLESS),
    ("gemini-3-pro", _levels("low", "high")),
    ("gemini-3", _GEMINI_3),
    ("gemini-", _GEMINI_4),
)
"""What a name begins with, the more special first."""


def is_own(name: str) -> bool:
    """Whether the provider itself has the model, rather than a server that only speaks its protocol."""
    return name.startswith(("gemini-", "gemma-"))


def inferred(name: str) -> Abilities:
    """What a model that is not in the table can be expected to do.

    One that is called `gemini-…` is taken for newer than the table unless it says that it is older; any other is
    expected to do what every model does.
    """
    return next((abilities for start, abilities in _INFERRED if name.startswith(start)), _PLAIN)

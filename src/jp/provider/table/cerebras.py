"""Cerebras' models: open ones, which come and go."""

from __future__ import annotations

from jp.provider.base import Abilities, Level, Model, ModelDetails

_EFFORTS: tuple[Level, ...] = ("low", "medium", "high")

_GPT_OSS = Abilities(
    thinking="levels",
    thinking_off="never",
    thinks_by_default=True,
    levels=_EFFORTS,
    sampling=True,
    sampling_while_thinking=True,
    images=False,
    documents=False,
)
_GLM = Abilities(
    thinking="levels",
    thinks_by_default=True,
    levels=("none", *_EFFORTS),
    sampling=True,
    sampling_while_thinking=True,
    images=False,
    documents=False,
)
_SEEING = Abilities(
    thinking="levels",
    thinks_by_default=False,
    levels=("none", *_EFFORTS),
    sampling=True,
    sampling_while_thinking=True,
    documents=False,
)


def _model(name: str, abilities: Abilities, *, prices: tuple[float | None, float | None] = (None, None)) -> Model:
    """A model of the paid tiers; without a payment its window is half as long."""
    details = ModelDetails(
        provider="cerebras",
        id=name,
        context_window=131_072,
        max_output=40_960,
        input_price=prices[0],
        output_price=prices[1],
    )
    return Model(details=details, abilities=abilities)


MODELS = (
    _model("gemma-4-31b", _SEEING),
    _model("zai-glm-4.7", _GLM, prices=(2.25, 2.75)),
    _model("gpt-oss-120b", _GPT_OSS, prices=(0.35, 0.75)),
)

SMALL = "gpt-oss-120b"
"""The cheap model, for what jp itself has to ask."""

_NEW = Abilities(
    thinking="levels",
    levels=("none", *_EFFORTS),
    sampling=True,
    sampling_while_thinking=True,
    documents=False,
)
_SILENT = Abilities(thinking="none", levels=(), sampling=True, images=False, documents=False)


def is_own(name: str) -> bool:
    """Whether the provider itself has the model: it serves models of many makers."""
    return bool(name)


def inferred(name: str) -> Abilities:
    """What a model that is not in the table can be expected to do: to reason, unless it is known not to."""
    if name.startswith("gpt-oss"):
        return _GPT_OSS
    if name.startswith("zai-glm"):
        return _GLM
    return _SILENT if name.startswith("llama") or "-instruct" in name else _NEW

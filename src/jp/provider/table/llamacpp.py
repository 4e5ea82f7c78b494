"""What models of llama.cpp can be expected to do: a server has the one that it was started with."""

from __future__ import annotations

from msgspec.structs import replace

from jp.provider.base import Abilities, Model

MODELS: tuple[Model, ...] = ()

SMALL = ""
"""None: there is no other model."""

_ANY = Abilities(levels=(), sampling=True, sampling_while_thinking=True, documents=False)
_GPT_OSS = replace(
    _ANY,
    thinking="levels",
    thinking_off="never",
    thinks_by_default=True,
    levels=("low", "medium", "high"),
    images=False,
)


def is_own(name: str) -> bool:
    """Whether the provider itself has the model: it has one, under whatever name."""
    return bool(name)


def inferred(name: str) -> Abilities:
    """What a model can be expected to do: everything but to be told how much to think, which one family knows."""
    return _GPT_OSS if "gpt-oss" in name.lower() else _ANY

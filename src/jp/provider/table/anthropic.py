"""Anthropic's models, newest first."""

from __future__ import annotations

import msgspec

from jp.provider.base import Abilities, Model, ModelDetails

_MILLION = 1_000_000

_BUDGET = Abilities(thinking="budget", levels=(), sampling=True)
_CLAUDE_4_1 = Abilities(thinking="budget", levels=(), sampling=True, structured=False)
_CLAUDE_4_6 = Abilities(levels=("low", "medium", "high", "max"), sampling=True)
_CLAUDE_4_7 = Abilities()
_CLAUDE_5 = Abilities(thinks_by_default=True)
_FABLE_5 = Abilities(thinks_by_default=True, thinking_off="never", forced_tools=False)
_BOUND = Abilities(thinks_by_default=True, thinking_off="never", forced_tools=False, bound_thinking=True)
# Fable 5.1 reads Opus 5 and, on Anthropic's own API, Opus 5.5; nobody else reads what Fable 5.2 produced
# (platform.claude.com, build-with-claude/preserved-thinking and models/fable-5-2, looked up 2026-11-22).
_FABLE_5_1 = msgspec.structs.replace(_BOUND, reads=("claude-opus-5", "claude-opus-5-5"))
_SONNET_5_5 = Abilities(thinks_by_default=True, thinking_off="between_tools", forced_tools=False, bound_thinking=True)
_HAIKU_5_5 = Abilities(thinks_by_default=True, bound_thinking=True)


class _Price(msgspec.Struct, frozen=True):
    """USD for a million tokens; a cache read costs `read` times the input."""

    input: float
    output: float
    read: float = 0.1
    long_prompt: int | None = None
    long_prompt_factor: float = 1.0


def _claude(name: str, limits: tuple[int, int], price: _Price, abilities: Abilities) -> Model:
    details = ModelDetails(
        provider="anthropic",
        id=name,
        context_window=limits[0],
        max_output=limits[1],
        input_price=price.input,
        output_price=price.output,
        cache_read_price=round(price.input * price.read, 6),
        cache_write_price=round(price.input * 1.25, 6),
        cache_write_long_price=round(price.input * 2, 6),
        long_prompt=price.long_prompt,
        long_prompt_factor=price.long_prompt_factor,
    )
    return Model(details=details, abilities=abilities)


_LARGE = (_MILLION, 128_000)
_SMALL = (200_000, 64_000)
"""The context window and the longest output, in tokens."""

_OPUS = _Price(5.0, 25.0)
_FABLE = _Price(10.0, 50.0)
_SONNET_4 = _Price(3.0, 15.0)

MODELS = (
    # A cache read costs 0.20 USD: docs.apiyi.com and docs.laozhang.ai, both 2026-11-10.
    _claude("claude-fable-5-2", _LARGE, _Price(8.0, 40.0, read=0.025), _BOUND),
    _claude("claude-fable-5-1", _LARGE, _Price(10.0, 50.0, read=0.025), _FABLE_5_1),
    _claude("claude-opus-5-5", _LARGE, _Price(4.0, 20.0, read=0.05), _BOUND),
    _claude("claude-sonnet-5-5", _LARGE, _Price(2.0, 10.0, read=0.05), _SONNET_5_5),
    _claude(
        "claude-haiku-5-5",
        _LARGE,
        _Price(0.1, 0.5, long_prompt=100_000, long_prompt_factor=5.0),
        _HAIKU_5_5,
    ),
    _claude("claude-fable-5", _LARGE, _FABLE, _FABLE_5),
    _claude("claude-opus-5", _LARGE, _OPUS, _CLAUDE_5),
    _claude("claude-sonnet-5", _LARGE, _Price(2.0, 10.0), _CLAUDE_5),
    _claude("claude-opus-4-8", _LARGE, _OPUS, _CLAUDE_4_7),
    _claude("claude-opus-4-7", _LARGE, _OPUS, _CLAUDE_4_7),
    _claude("claude-opus-4-6", _LARGE, _OPUS, _CLAUDE_4_6),
    _claude("claude-sonnet-4-6", _LARGE, _SONNET_4, _CLAUDE_4_6),
    _claude("claude-opus-4-5", _SMALL, _OPUS, _BUDGET),
    _claude("claude-haiku-4-5", _SMALL, _Price(1.0, 5.0), _BUDGET),
    _claude("claude-sonnet-4-5", (_MILLION, 64_000), _SONNET_4, _BUDGET),
    _claude("claude-opus-4-1", (200_000, 32_000), _Price(15.0, 75.0), _CLAUDE_4_1),
)

SMALL = "claude-haiku-5-5"
"""The cheap model, for what jp itself has to ask."""

_NEW_CLAUDE = Abilities(thinks_by_default=True)
_FOREIGN = Abilities(sampling=True, structured=False)


def is_own(name: str) -> bool:
    """Whether the provider itself has the model, rather than a server that only speaks its protocol."""
    return name.startswith("claude-")


def inferred(name: str) -> Abilities:
    """What a model that is not in the table can be expected to do.

    One that is called `claude-…` is taken for newer than the table, any other for another server's that speaks the
    same protocol; both are expected to think adaptively.
    """
    return _NEW_CLAUDE if is_own(name) else _FOREIGN

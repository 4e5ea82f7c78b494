"""The model table: what is known of models without asking anybody, and what their tokens cost."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.conversation.entries import Usage
from jp.provider.base import ModelDetails

TABLE_DATE = "2026-11-20"
"""When the table was last compared with what the providers publish."""

_MILLION = 1_000_000
_DATE = "-20260102"
"""How the date of a snapshot stands at the end of a name."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model family can do, apart from the wire format and from the account.

    `thinking` is how much of it is asked for: by an effort (`adaptive`) or by a number of tokens (`budget`).
    `thinking_off` is how it is turned off. `efforts` are the levels above `high` that it knows. `forced_tools` and
    `sampling` tell whether a choice of tool and a temperature are accepted at all, `bound_thinking` whether a
    signature covers everything that came before it, `structured` whether an answer can be held to a schema.
    """

    thinking: Literal["adaptive", "budget"] = "adaptive"
    thinking_off: Literal["disabled", "between_tools", "never"] = "disabled"
    thinks_by_default: bool = False
    efforts: tuple[Literal["xhigh", "max"], ...] = ("xhigh", "max")
    forced_tools: bool = True
    sampling: bool = False
    bound_thinking: bool = False
    structured: bool = True


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model, from the table or inferred from its name (`known` is false)."""

    details: ModelDetails
    abilities: Abilities
    known: bool = True


_BUDGET = Abilities(thinking="budget", efforts=(), sampling=True)
_CLAUDE_4_1 = Abilities(thinking="budget", efforts=(), sampling=True, structured=False)
_CLAUDE_4_6 = Abilities(efforts=("max",), sampling=True)
_CLAUDE_4_7 = Abilities()
_CLAUDE_5 = Abilities(thinks_by_default=True)
_FABLE_5 = Abilities(thinks_by_default=True, thinking_off="never", forced_tools=False)
_BOUND = Abilities(thinks_by_default=True, thinking_off="never", forced_tools=False, bound_thinking=True)
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

_MODELS = (
    _claude("claude-fable-5-2", _LARGE, _Price(8.0, 40.0), _BOUND),
    _claude("claude-fable-5-1", _LARGE, _Price(10.0, 50.0, read=0.025), _BOUND),
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

_TABLE = {(model.details.provider, model.details.id): model for model in _MODELS}

_SMALL_MODELS = {"anthropic": "claude-haiku-5-5"}
"""The cheap model of a provider, for what jp itself has to ask."""

_NEW_CLAUDE = Abilities(thinks_by_default=True)
_FOREIGN = Abilities(sampling=True, structured=False)


def canonical_name(name: str) -> str:
    """A model's name without the date of its snapshot."""
    stem, dash, date = name[: -len(_DATE)], name[-len(_DATE) : 1 - len(_DATE)], name[1 - len(_DATE) :]
    return stem if dash == "-" and date.isdigit() else name


def find_model(provider: str, name: str) -> Model:
    """What is known of a model.

    One that is not in the table is taken for newer than the table where it is called `claude-…`, and for another
    server's that speaks the same protocol otherwise; both are expected to think adaptively.
    """
    found = _TABLE.get((provider, name)) or _TABLE.get((provider, canonical_name(name)))
    if found is not None:
        return found
    abilities = _NEW_CLAUDE if name.startswith("claude-") else _FOREIGN
    return Model(details=ModelDetails(provider=provider, id=name), abilities=abilities, known=False)


def small_model(provider: str, beside: str) -> str | None:
    """The cheap model that whoever uses the model `beside` of a provider has, too; None where none is known.

    A server that only speaks the provider's protocol has models of other names.
    """
    small = _SMALL_MODELS.get(provider)
    if small is None or not (find_model(provider, beside).known or beside.startswith("claude-")):
        return None
    return small


def known_names(provider: str) -> tuple[str, ...]:
    """The models of a provider that the table holds, newest first."""
    return tuple(name for owner, name in _TABLE if owner == provider)


def near_names(name: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Up to three of `candidates` that are spelled most like `name`, best first."""
    import difflib

    return tuple(difflib.get_close_matches(name, candidates, n=3, cutoff=0.6))


def cost(usage: Usage, details: ModelDetails, *, long_cache: bool = False) -> float | None:
    """What the tokens of one request cost in USD, None where a price that is needed is unknown.

    Reasoning is part of the output. `long_cache` says that cache entries were written to be kept for an hour.
    """
    write = details.cache_write_long_price if long_cache else details.cache_write_price
    classes = (
        (usage.input, details.input_price),
        (usage.output, details.output_price),
        (usage.cache_read, details.cache_read_price),
        (usage.cache_write, write),
    )
    total = 0.0
    for tokens, price in classes:
        if tokens and price is None:
            return None
        total += tokens * (price or 0.0)
    prompt = usage.input + usage.cache_read + usage.cache_write
    is_long = details.long_prompt is not None and prompt > details.long_prompt
    return total / _MILLION * (details.long_prompt_factor if is_long else 1.0)

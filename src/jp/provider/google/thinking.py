"""How a model is asked to think: at a level, with a number of tokens, or not at all. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters
from jp.provider.abilities import Abilities, Model
from jp.provider.effort import SHARES, effort_of, is_off, nearest_level

_DYNAMIC = -1
"""The budget of a model that decides itself."""

_UNKNOWN_OUTPUT = 65_536
"""What an effort is a share of, for a model that the table does not know."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking on the wire, and whether the model may think."""

    wire: JsonObject | None = None
    is_active: bool = False


def longest_output(parameters: Parameters, model: Model) -> int:
    """How many tokens the model may write, thoughts included."""
    return parameters.max_tokens or model.details.max_output or _UNKNOWN_OUTPUT


def thinking_of(parameters: Parameters, model: Model) -> Thinking:
    """How the model thinks about a request. What it thinks by itself is made visible."""
    abilities = model.abilities
    wanted = parameters.reasoning
    if abilities.thinking not in {"budget", "levels"}:
        return Thinking()
    if is_off(parameters):
        return _off(abilities)
    if wanted is None and not abilities.thinks_by_default:
        return Thinking()
    visible: JsonObject = {"includeThoughts": True}
    if abilities.thinking == "budget":
        budget = None if wanted is None else _budget(parameters, model)
        return Thinking(wire=visible if budget is None else {**visible, "thinkingBudget": budget}, is_active=True)
    effort = effort_of(parameters, longest_output(parameters, model))
    level = None if effort is None else nearest_level(effort, abilities.levels)
    return Thinking(wire=visible if level is None else {**visible, "thinkingLevel": level.upper()}, is_active=True)


def _off(abilities: Abilities) -> Thinking:
    """As little as the model can: some cannot be kept from it."""
    cannot = abilities.thinking_off == "never"
    if abilities.thinking == "budget":
        return Thinking(wire={"thinkingBudget": abilities.least_budget if cannot else 0}, is_active=cannot)
    least = next(iter(abilities.levels), None)
    return Thinking(wire=None if least is None else {"thinkingLevel": least.upper()}, is_active=True)


def _budget(parameters: Parameters, model: Model) -> int:
    """A number of tokens that the model takes."""
    if parameters.reasoning == "auto":
        return _DYNAMIC
    longest = longest_output(parameters, model)
    if isinstance(parameters.reasoning, int):
        wanted = parameters.reasoning
    else:
        wanted = longest * SHARES[effort_of(parameters, longest) or "medium"] // 100
    abilities = model.abilities
    most = wanted if abilities.most_budget is None else min(wanted, abilities.most_budget)
    return max(abilities.least_budget, most)


def unmet(parameters: Parameters, model: Model, thinking: Thinking) -> Iterator[str]:
    """Sentences about reasoning that is not sent as it was asked for."""
    name, wanted = model.details.id, parameters.reasoning
    if is_off(parameters):
        if thinking.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif wanted is not None and thinking.wire is None:
        yield f"reasoning {wanted!r} not sent: {name!r} goes on without it"
    elif isinstance(wanted, int):
        yield from _changed_number(wanted, thinking, name)
    elif wanted in {"xhigh", "max"}:
        level = str((thinking.wire or {}).get("thinkingLevel", wanted)).lower()
        if level != wanted:
            yield f"reasoning {wanted!r} sent as {level!r}, the most that {name!r} knows"


def _changed_number(wanted: int, thinking: Thinking, name: str) -> Iterator[str]:
    wire = thinking.wire or {}
    if "thinkingLevel" in wire:
        yield f"reasoning {wanted} sent as {wire['thinkingLevel'].lower()!r}: {name!r} takes no number of tokens"
        return
    sent: int = wire["thinkingBudget"]
    if sent != wanted:
        bound = "most" if sent < wanted else "least"
        yield f"reasoning {wanted} sent as {sent}, the {bound} that {name!r} takes"

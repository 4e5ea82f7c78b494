"""How a model is asked to think: by an effort, by a number of tokens, or not at all. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Effort, Parameters
from jp.provider.abilities import Model
from jp.provider.effort import SHARES, effort_of, is_off, nearest_level

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""What lets a request say that thoughts whose signature no longer fits are to be dropped."""

_LEAST_BUDGET = 1024


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking on the wire. `is_active` says whether the model may think; `effort` goes into the output's config."""

    wire: JsonObject | None = None
    is_active: bool = False
    effort: str | None = None


def _off(model: Model) -> Thinking:
    """Explicitly off: a model that thinks by default would go on thinking, unseen and billed."""
    match model.abilities.thinking_off:
        case "disabled":
            return Thinking(wire={"type": "disabled"})
        case "between_tools":
            return Thinking(wire={"type": "between_tools"}, is_active=True)
        case "never":
            return Thinking(is_active=True)
        case _:
            assert_never(model.abilities.thinking_off)


def _adaptive(effort: Effort | None, model: Model) -> Thinking:
    wire: JsonObject = {"type": "adaptive", "display": "summarized"}
    if model.abilities.bound_thinking:
        # A compaction changes what came before a signature; without this, the whole request is refused then.
        wire["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    return Thinking(
        wire=wire, is_active=True, effort=None if effort is None else nearest_level(effort, model.abilities.levels)
    )


def _ceiling(max_tokens: int) -> int:
    return max_tokens - min(_LEAST_BUDGET, max_tokens // 10)


def _budget(parameters: Parameters, max_tokens: int) -> Thinking:
    """A number of tokens below the longest output, so that an answer fits behind the thoughts."""
    ceiling = _ceiling(max_tokens)
    if ceiling < _LEAST_BUDGET:
        return Thinking(wire={"type": "disabled"})
    if isinstance(parameters.reasoning, int):
        wanted = parameters.reasoning
    else:
        wanted = max_tokens * SHARES[effort_of(parameters, max_tokens) or "medium"] // 100
    tokens = max(_LEAST_BUDGET, min(wanted, ceiling))
    return Thinking(wire={"type": "enabled", "budget_tokens": tokens, "display": "summarized"}, is_active=True)


def thinking_of(parameters: Parameters, model: Model, *, max_tokens: int, plain: bool) -> Thinking:
    """How the model thinks about a request.

    `plain` says that it must not, where that can be helped: a tool is forced, or the answer that it goes on with
    did not begin with a thought, which the API demands of models with a budget.
    """
    abilities = model.abilities
    thinks = abilities.thinks_by_default if parameters.reasoning is None else True
    if is_off(parameters):
        return _off(model)
    if not thinks:
        return Thinking()
    if plain and abilities.thinking_off == "disabled":
        return _off(model)
    if abilities.thinking == "budget":
        return _budget(parameters, max_tokens)
    return _adaptive(effort_of(parameters, max_tokens), model)


def unmet(parameters: Parameters, model: Model, thinking: Thinking, *, max_tokens: int, forced: bool) -> Iterator[str]:
    """Sentences about reasoning that is not sent as it was asked for. `forced`: the model is made to call a tool."""
    name, wanted = model.details.id, parameters.reasoning
    if is_off(parameters):
        if thinking.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif wanted is not None and not thinking.is_active:
        yield f"reasoning {wanted!r} not sent: {_hindrance(model, max_tokens=max_tokens, forced=forced)}"
    elif isinstance(wanted, int):
        yield from _changed_number(wanted, thinking, name, max_tokens)
    elif wanted in {"xhigh", "max"} and thinking.effort not in {None, wanted}:
        yield f"reasoning {wanted!r} sent as {thinking.effort!r}, the most that {name!r} knows"


def _hindrance(model: Model, *, max_tokens: int, forced: bool) -> str:
    if model.abilities.thinking == "budget" and _ceiling(max_tokens) < _LEAST_BUDGET:
        return f"it takes {_LEAST_BUDGET} tokens at least, and the longest output, {max_tokens}, holds the answer too"
    name = model.details.id
    return f"{name!r} does not reason about a call that it has to make" if forced else f"{name!r} goes on without it"


def _changed_number(wanted: int, thinking: Thinking, name: str, max_tokens: int) -> Iterator[str]:
    sent = None if thinking.wire is None else thinking.wire.get("budget_tokens")
    if sent is None:
        yield f"reasoning {wanted} sent as {thinking.effort!r}: {name!r} takes no number of tokens"
    elif sent < wanted:
        yield f"reasoning {wanted} sent as {sent}: the longest output, {max_tokens}, holds the answer too"
    elif sent > wanted:
        yield f"reasoning {wanted} sent as {sent}, the least that {name!r} takes"

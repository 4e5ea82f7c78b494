"""How a model of Ollama is asked to think: not at all, at all, or by a level. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jp.conversation.thread import Parameters
from jp.provider.abilities import Model
from jp.provider.effort import effort_of, is_off, nearest_level

_ASSUMED_OUTPUT = 16_384
"""What a share of the longest output is taken of, where that is not set."""


def think_of(parameters: Parameters, model: Model) -> bool | str:
    """What `think` has to be. It is always said: a server that is not told decides by its version."""
    abilities, wanted = model.abilities, parameters.reasoning
    if abilities.thinking == "none":
        return False
    if is_off(parameters):
        return _least(model)
    if wanted is None and not abilities.thinks_by_default:
        return False
    effort = effort_of(parameters, parameters.max_tokens or _ASSUMED_OUTPUT)
    level = nearest_level(effort or "medium", abilities.levels)
    return True if level is None else level


def _least(model: Model) -> bool | str:
    if model.abilities.thinking_off != "never":
        return False
    return next(iter(model.abilities.levels), True)


def unmet(parameters: Parameters, model: Model, think: bool | str) -> Iterator[str]:  # noqa: FBT001 - it is data
    """Sentences about reasoning that is not sent as it was asked for."""
    name, wanted = model.details.id, parameters.reasoning
    if wanted is None:
        return
    if is_off(parameters):
        if think is not False:
            yield f"{name!r} cannot be kept from reasoning"
    elif think is False:
        yield f"reasoning {wanted!r} not sent: {name!r} does not reason"
    elif wanted != "auto" and think is True:
        yield f"reasoning {wanted!r} sent as on: {name!r} knows no efforts"
    elif wanted not in {"auto", think}:
        yield f"reasoning {wanted!r} sent as {think!r}"

"""Models at OpenRouter: those of the vendors whose models jp knows, under the names that they have there.

OpenRouter charges what the vendor does, where it routes to the vendor. Open models cost what the server does that is
chosen for a request, so what those cost is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from jp.provider.base import Abilities, Model
from jp.provider.table import anthropic, google, openai

_VERSION = re.compile(r"-(\d)-(\d)$")
_UNDOTTED = re.compile(r"-(\d)\.(\d)$")


def _dotted(name: str) -> str:
    """Anthropic's models have a point in their version here: `claude-haiku-4.5`."""
    return _VERSION.sub(r"-\1.\2", name)


def _routed(vendor: str, models: Iterable[Model]) -> Iterable[Model]:
    for model in models:
        name = _dotted(model.details.id) if vendor == "anthropic" else model.details.id
        yield Model(
            details=replace(model.details, provider="openrouter", id=f"{vendor}/{name}", shutdown=None, successor=None),
            abilities=_as_routed(model.abilities),
        )


def _as_routed(abilities: Abilities) -> Abilities:
    """OpenRouter reads PDF for every model, and streams the answers of all."""
    return replace(abilities, documents=True, streams=True)


MODELS = (
    *_routed("anthropic", anthropic.MODELS),
    *_routed("openai", (model for model in openai.MODELS if not model.details.id.startswith("gpt-oss"))),
    *_routed("google", (model for model in google.MODELS if model.details.id.startswith("gemini-"))),
)

SMALL = f"google/{google.SMALL}"
"""The cheap model, for what jp itself has to ask."""

_ANY = Abilities(
    thinking="levels",
    levels=("minimal", "low", "medium", "high", "xhigh"),
    sampling=True,
    sampling_while_thinking=True,
    recordings=True,
)
"""What is expected of a model of which nothing is known: what it does not take, OpenRouter leaves out or refuses."""

_INFERRED: dict[str, Callable[[str], Abilities]] = {
    "anthropic": anthropic.inferred,
    "openai": openai.inferred,
    "google": google.inferred,
}


def is_own(name: str) -> bool:
    """Whether the name is one of a model here: it says whose model it is."""
    return "/" in name


def inferred(name: str) -> Abilities:
    """What a model that is not in the table can be expected to do.

    The variant of one that is in the table (`:nitro`, `:free`) can do the same. A newer one of a known vendor can do
    what one of that vendor's can, any other all that OpenRouter can.
    """
    base, _, _ = name.partition(":")
    known = next((model.abilities for model in MODELS if model.details.id == base), None)
    if known is not None:
        return known
    vendor, _, bare = base.partition("/")
    infer = _INFERRED.get(vendor)
    return _ANY if infer is None else _as_routed(infer(_UNDOTTED.sub(r"-\1-\2", bare)))

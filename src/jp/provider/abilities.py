"""What a model family can do, apart from the wire format and from the account."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.provider.base import ModelDetails

Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model is asked to think, in the words of the vendors, least first."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model family can do.

    `thinking` is how much of it is asked for: by the model itself with an effort as a hint (`adaptive`), by a number
    of tokens (`budget`), by one of its `levels`, or never (`none`). `thinking_off` is how it is turned off;
    `between_tools` and `never` leave some of it. `levels` are those that it knows, least first. `least_budget` and
    `most_budget` bound a number of tokens. `forced_tools` and `sampling` tell whether a choice of tool and a
    temperature are accepted at all, `sampling_while_thinking` whether they go together with thinking,
    `bound_thinking` whether reasoning is taken back only behind the prefix that it was produced behind, `reads` the
    other models of the provider whose reasoning it takes, `structured` whether an answer can be held to a schema,
    `structured_with_tools` whether beside tools as well. `images`, `documents` (PDF) and `recordings` (audio and video)
    are what can be attached besides text, `media_in_results` whether these may stand in a tool's result. `streams` is
    false for a model that only answers as a whole.
    """

    thinking: Literal["none", "adaptive", "budget", "levels"] = "adaptive"
    thinking_off: Literal["disabled", "between_tools", "never"] = "disabled"
    thinks_by_default: bool = False
    levels: tuple[Level, ...] = ("low", "medium", "high", "xhigh", "max")
    least_budget: int = 1024
    most_budget: int | None = None
    tools: bool = True
    forced_tools: bool = True
    sampling: bool = False
    sampling_while_thinking: bool = False
    bound_thinking: bool = False
    reads: tuple[str, ...] = ()
    structured: bool = True
    structured_with_tools: bool = True
    images: bool = True
    documents: bool = True
    recordings: bool = False
    media_in_results: bool = True
    streams: bool = True


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model, from the table or inferred from its name (`known` is false)."""

    details: ModelDetails
    abilities: Abilities
    known: bool = True

"""Compaction: what is left out of what the model is shown, and when (RFD 064, D17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from jp.config.direction import Harmless, NeedsTrust
from jp.config.kinds import Count, Section

ToolCallMode = Literal["digest", "strip", "strip-requests", "strip-responses", "omit"]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1, description="a number of more than 0 and at most 1")]


class SummaryConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A summary that stands for whole turns."""

    policy: Harmless[Literal["summarize"] | None] = None
    """`summarize` has one written."""
    model: Annotated[str | None, NeedsTrust(lasting=True)] = None
    """Who writes it, as `provider/name` or an alias. Without it, the conversation's own model."""
    instructions: Harmless[str | None] = None
    """What to pay attention to, besides what every summary holds."""


class ToolCallsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What becomes of tool calls, each half by itself (RFD 064)."""

    policy: Harmless[Literal["digest", "strip", "omit"]]
    """`digest` or `strip` the halves that are named, or `omit` whole calls."""
    request: Harmless[bool] = False
    """Whether arguments are shortened."""
    response: Harmless[bool] = False
    """Whether results are."""


class ProfileConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a compaction does under this name. A summary goes before everything else."""

    reasoning: Harmless[Literal["strip"] | None] = None
    """`strip` leaves the model's reasoning out."""
    tool_calls: Harmless[ToolCallMode | ToolCallsConfig | None] = None
    """`digest`: large arguments are shortened, results become a line of facts with evidence; `strip`: results become a
    status line; `strip-requests`, `strip-responses`: one of both; `omit`: calls are hidden."""
    resources: Harmless[Literal["superseded"] | None] = None
    """`superseded` leaves out copies of what was delivered anew later."""
    summary: SummaryConfig = SummaryConfig()
    budget: Harmless[Count | str | None] = None
    """How many tokens the view is to have then, such as `40k`, or which share of what it has, such as `25%`. No more
    is left out than that takes."""


class AutoConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compaction without being asked, between turns and inside of long ones."""

    enabled: Harmless[bool] = False
    """Whether there is any."""
    trigger_ratio: Harmless[Ratio] = 0.75
    """From which share of the window on, without what is reserved for the answer."""
    target_ratio: Harmless[Ratio | None] = None
    """Down to which share of the window it goes, in one step. Unset, it is half of `trigger_ratio`."""
    profile: Harmless[str] = "default"
    """What is done."""
    min_turns: Harmless[Count] = 5
    """Conversations of no more turns are left alone, but for what a long turn piles up."""


class CompactionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What compactions do that do not say otherwise."""

    default_profile: Harmless[str] = "default"
    """The profile where none is named."""
    keep_last: Harmless[Count | str] = 3
    """What stays as it is: the newest turns, those of a duration such as `2h`, or those worth tokens such as `20k`."""
    keep_first: Harmless[Count | str] = 0
    """The same at the beginning."""
    auto: AutoConfig = AutoConfig()
    profiles: dict[str, ProfileConfig] = {}


PROFILES: Mapping[str, ProfileConfig] = {
    "default": ProfileConfig(reasoning="strip", tool_calls="digest", resources="superseded"),
    "heavy": ProfileConfig(summary=SummaryConfig(policy="summarize")),
    "light": ProfileConfig(reasoning="strip"),
}
"""The profiles that come with jp. One of the same name in the configuration stands in its place."""


def profiles_of(config: CompactionConfig) -> dict[str, ProfileConfig]:
    """Every profile by its name."""
    return {**PROFILES, **config.profiles}

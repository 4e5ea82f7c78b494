"""What a command wishes for: a profile, or policies in its place, and which turns. Pure."""

from __future__ import annotations

import msgspec

from jp.cli.compacting.bounds import (
    Budget,
    configured_budget,
    configured_keep,
    parse_bound,
    parse_budget,
    parse_keep,
    parse_turn_bounds,
)
from jp.compaction.hints import tool_policy
from jp.compaction.planning import PolicyWish, wish_of
from jp.compaction.ranges import Bound, KeepTurns, RangeWish, check_choice
from jp.config.compaction import CompactionConfig, ProfileConfig, ToolCallMode, profiles_of
from jp.errors import ConfigurationError, UsageError
from jp.likeness import nearest

_MODES: dict[str, ToolCallMode] = {
    "digest": "digest",
    "strip": "strip",
    "strip-requests": "strip-requests",
    "strip-responses": "strip-responses",
    "omit": "omit",
}
_NOTHING = KeepTurns(0)


class RangeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say which turns, as they were written."""

    start: str | None = None
    end: str | None = None
    keep_first: str | None = None
    keep_last: str | None = None
    turn: str | None = None


class PolicyFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what is done. `summary` is what a summary has to pay attention to, None without one."""

    reasoning: bool = False
    tools: str | None = None
    resources: str | None = None
    summary: str | None = None

    @property
    def are_given(self) -> bool:
        """Whether there is any: then they stand in place of a profile."""
        return self.reasoning or (self.tools, self.resources, self.summary) != (None, None, None)


class SummaryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes a summary, the conversation's own model without a `model`, and what to pay attention to.

    `is_local`: it is made of the log alone, without a model.
    """

    model: str | None = None
    instructions: str = ""
    is_local: bool = False


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, to which turns. `name` is that of the profile, empty for options.

    With a `budget`, only as much as it takes to reach it; `is_firm` says that the newest turns are kept whatever it is.
    """

    name: str
    wish: PolicyWish
    bounds: RangeWish
    summary: SummaryOrder = SummaryOrder()
    budget: Budget | None = None
    is_firm: bool = False


def order_of(
    config: CompactionConfig,
    *,
    profile: str | None = None,
    policies: PolicyFlags | None = None,
    ranges: RangeFlags | None = None,
    model: str | None = None,
    budget: str | None = None,
) -> Order:
    """What options and configuration come to.

    Raises:
        UsageError: options contradict each other, or are not understood.
        ConfigurationError: a profile is unknown, or the configuration not understood.
    """
    flags = policies or PolicyFlags()
    if profile is not None and flags.are_given:
        raise UsageError("--profile and options that say what to do exclude each other", hint="leave one of them out")
    ranges = ranges or RangeFlags()
    bounds = bounds_of(config, ranges)
    is_firm = ranges.keep_last is not None
    asked = None if budget is None else parse_budget(budget, option="--budget")
    if flags.are_given:
        return Order(
            name="",
            wish=_flagged(flags),
            bounds=bounds,
            summary=SummaryOrder(model=model, instructions=flags.summary or ""),
            budget=asked,
            is_firm=is_firm,
        )
    name = profile or config.default_profile
    found = _profile(config, name)
    instructions = found.summary.instructions or ""
    summary = SummaryOrder(model=model or found.summary.model, instructions=instructions)
    if asked is None and found.budget is not None:
        asked = configured_budget(found.budget, key=f"conversation.compaction.profiles.{name}.budget")
    return Order(name=name, wish=wish_of(found), bounds=bounds, summary=summary, budget=asked, is_firm=is_firm)


def bounds_of(config: CompactionConfig, flags: RangeFlags) -> RangeWish:
    """Which turns; where options say nothing of an end, what the configuration keeps there is kept.

    Raises:
        UsageError: options contradict each other, or are not understood.
        ConfigurationError: the configuration is not understood.
    """
    _check_ranges(flags)
    keep_first = configured_keep(config.keep_first, key="conversation.compaction.keep_first")
    keep_last = configured_keep(config.keep_last, key="conversation.compaction.keep_last")
    if flags.turn is not None:
        start, end = parse_turn_bounds(flags.turn, option="--turn")
        check_choice(start, end)
        return RangeWish(start=start, end=end, keep_first=_NOTHING, keep_last=_NOTHING)
    first = _bound(flags.start, "--from")
    last = _bound(flags.end, "--to")
    check_choice(first, last)
    if flags.keep_first is not None:
        keep_first = parse_keep(flags.keep_first, option="--keep-first")
    if flags.keep_last is not None:
        keep_last = parse_keep(flags.keep_last, option="--keep")
    return RangeWish(
        start=first,
        end=last,
        keep_first=keep_first if first is None else _NOTHING,
        keep_last=keep_last if last is None else _NOTHING,
    )


def _check_ranges(flags: RangeFlags) -> None:
    exclusive = (
        ("--turn", flags.turn, "--from", flags.start),
        ("--turn", flags.turn, "--to", flags.end),
        ("--turn", flags.turn, "--keep-first", flags.keep_first),
        ("--turn", flags.turn, "--keep", flags.keep_last),
        ("--from", flags.start, "--keep-first", flags.keep_first),
        ("--to", flags.end, "--keep", flags.keep_last),
    )
    for one, is_one, other, is_other in exclusive:
        if is_one is not None and is_other is not None:
            raise UsageError(f"{one} and {other} exclude each other", hint="leave one of them out")


def _bound(text: str | None, option: str) -> Bound | None:
    return None if text is None else parse_bound(text, option=option)


def _flagged(flags: PolicyFlags) -> PolicyWish:
    mode = None if flags.tools is None else _MODES.get(flags.tools)
    if flags.tools is not None and mode is None:
        raise UsageError(f"--tools cannot be {flags.tools!r}", hint=f"it is one of {', '.join(_MODES)}")
    if flags.resources not in {None, "superseded"}:
        raise UsageError(f"--resources cannot be {flags.resources!r}", hint="it is `superseded`")
    return PolicyWish(
        reasoning=flags.reasoning,
        tools=None if mode is None else tool_policy(mode),
        resources=flags.resources is not None,
        summary=flags.summary is not None,
    )


def _profile(config: CompactionConfig, name: str) -> ProfileConfig:
    profiles = profiles_of(config)
    found = profiles.get(name)
    if found is not None:
        return found
    near = nearest(name, profiles)
    known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(profiles))}"
    raise ConfigurationError(f"there is no compaction profile {name!r}", hint=known)

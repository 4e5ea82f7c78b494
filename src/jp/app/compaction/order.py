"""The compaction that a command asks for: a profile or policies, and which turns. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from jp.app.values import parse_duration
from jp.compaction.fact_lines import tool_policy
from jp.compaction.overlays import (
    Ago,
    AtTurn,
    BeforeLast,
    Bound,
    Keep,
    KeepFor,
    KeepTokens,
    KeepTurns,
    RangeRequest,
    SinceCompaction,
    check_choice,
)
from jp.compaction.planning import PolicyRequest, requested_policies
from jp.config.layers import Resolved
from jp.config.model import CompactionConfig, ProfileConfig, ToolCallMode, profiles_of
from jp.config.schema import key_text
from jp.conversation.entries import Compaction, SummaryPolicy
from jp.errors import ConfigurationError, UsageError
from jp.remedies import Option, join, phrase
from jp.render.tables import Table
from jp.suggestions import closest_names

_TOKENS = re.compile(r"([0-9]+(?:\.[0-9]+)?)k(?: ?tokens)?|([0-9]+) ?tokens")
_PERCENT = re.compile(r"[0-9]+(?:\.[0-9]+)? ?%")
_WHOLE = 100


def parse_bound(text: str, *, option: str | Option) -> Bound:
    """Return a bound of a range of turns. Numbers are turns, from 0 on; negative ones count back from the last.

    Raises:
        UsageError: it is none; it names `option`.
    """
    plain = text.strip()
    if plain == "last":
        return SinceCompaction()
    number = plain.removeprefix("-")
    if number.isascii() and number.isdecimal():
        return BeforeLast(int(number)) if plain.startswith("-") else AtTurn(int(plain))
    try:
        return Ago(_seconds(plain, option))
    except UsageError:
        hint = (
            "a bound is the number of a turn (0 is the first), -3 (three turns before the last one), 5h (five hours "
            f"ago){', or last (what follows the last compaction)' if option is Option.START else ''}; to name a "
            "conversation by its title, write it before the options"
        )
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint=hint) from None


def parse_turn_bounds(text: str, *, option: str | Option) -> tuple[Bound, Bound]:
    """Return `3`, `2..5`, `2..`, `..-2`: from one turn to another.

    Raises:
        UsageError: it is none; it names `option`.
    """
    first, dots, last = text.partition("..")
    start: Bound = AtTurn(0) if dots and not first else _turn(first, text, option)
    if not dots:
        return start, start
    return start, BeforeLast(0) if not last else _turn(last, text, option)


def parse_keep(value: int | str, *, option: str | Option) -> Keep:
    """Return how much stays as it is: turns, the turns of a duration, or those worth so many tokens.

    Raises:
        UsageError: it is none of these; it names `option`.
    """
    if isinstance(value, int):
        return KeepTurns(value)
    plain = value.strip().lower()
    if plain.isascii() and plain.isdecimal():
        return KeepTurns(int(plain))
    tokens = _TOKENS.fullmatch(plain)
    if tokens is not None:
        return KeepTokens(round(float(tokens[1]) * 1000) if tokens[1] else int(tokens[2]))
    try:
        return KeepFor(_seconds(plain, option))
    except UsageError:
        hint = "write a number of turns, a duration such as 2h, or tokens such as 20k"
        raise UsageError(phrase(option, f" cannot be {value!r}"), hint=hint) from None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Target size of a view: a number of tokens, or a percentage of its present size."""

    tokens: int = 0
    percent: float = 0.0

    def of(self, now: int) -> int:
        """Return the tokens, where the view has `now`."""
        return self.tokens or int(now * self.percent / 100)


def parse_budget(value: int | str, *, option: str | Option) -> Budget:
    """Return what a budget says: `40k`, `40000`, `25%`.

    Raises:
        UsageError: it is none; it names `option`.
    """
    plain = str(value).strip().lower()
    tokens = _TOKENS.fullmatch(plain)
    found = Budget()
    if tokens is not None:
        found = Budget(tokens=round(float(tokens[1]) * 1000) if tokens[1] else int(tokens[2]))
    elif plain.isascii() and plain.isdecimal():
        found = Budget(tokens=int(plain))
    elif _PERCENT.fullmatch(plain) and float(plain.rstrip(" %")) < _WHOLE:
        found = Budget(percent=float(plain.rstrip(" %")))
    if not (found.tokens or found.percent):
        hint = "a budget is a number of tokens, such as 40k or 40000, or a share of what there is, such as 25%"
        raise UsageError(phrase(option, f" cannot be {str(value)!r}"), hint=hint)
    return found


def configured_budget(value: int | str, *, key: str) -> Budget:
    """Return the same from the configuration.

    Raises:
        ConfigurationError: it is none; it names `key`.
    """
    try:
        return parse_budget(value, option=key)
    except UsageError as error:
        raise ConfigurationError(error.message, hint=error.hint) from None


def configured_keep(value: int | str, *, key: str) -> Keep:
    """Return the same from the configuration.

    Raises:
        ConfigurationError: it is none; it names `key`.
    """
    try:
        return parse_keep(value, option=key)
    except UsageError as error:
        raise ConfigurationError(error.message, hint=error.hint) from None


def _seconds(text: str, option: str | Option) -> float:
    """Return a duration, which has to have a unit: without one a number is turns."""
    if text[-1:].isdigit():
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint="a duration has a unit, such as 90s")
    return parse_duration(text, option=option)


def _turn(number: str, text: str, option: str | Option) -> Bound:
    """Return a turn of a range of turns, in which -1 is the last one as in all of them."""
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or number == "-0":
        hint = phrase("write N, A..B, A.. or ..B, such as ", option, " 2..5; -1 is the last turn")
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint=hint)
    return BeforeLast(int(digits) - 1) if number.startswith("-") else AtTurn(int(number))


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
        """True if any policy is given: then they replace a profile."""
        return self.reasoning or (self.tools, self.resources, self.summary) != (None, None, None)


class SummaryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The model that writes a summary, the conversation's own without a `model`, and what it pays attention to.

    `is_local`: it is made of the log alone, without a model.
    """

    model: str | None = None
    instructions: str = ""
    is_local: bool = False


class CompactionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to be made, and the turns they apply to. `name` is that of the profile, empty for options.

    With a `budget`, only as much as it takes to reach it; `is_firm` says that the newest turns are kept whatever it is.
    """

    name: str
    wish: PolicyRequest
    bounds: RangeRequest
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
) -> CompactionOrder:
    """Return the order that options and configuration add up to.

    Raises:
        UsageError: options contradict each other, or are not understood.
        ConfigurationError: a profile is unknown, or the configuration not understood.
    """
    flags = policies or PolicyFlags()
    if profile is not None and flags.are_given:
        raise UsageError(
            phrase(Option.PROFILE, " and options that say what to do exclude each other"), hint="remove one of them"
        )
    ranges = ranges or RangeFlags()
    bounds = bounds_of(config, ranges)
    is_firm = ranges.keep_last is not None
    asked = None if budget is None else parse_budget(budget, option=Option.BUDGET)
    if flags.are_given:
        return CompactionOrder(
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
    return CompactionOrder(
        name=name, wish=requested_policies(found), bounds=bounds, summary=summary, budget=asked, is_firm=is_firm
    )


def bounds_of(config: CompactionConfig, flags: RangeFlags) -> RangeRequest:
    """Return the range of turns; an end that options do not name keeps what the configuration keeps there.

    Raises:
        UsageError: options contradict each other, or are not understood.
        ConfigurationError: the configuration is not understood.
    """
    _check_ranges(flags)
    keep_first = configured_keep(config.keep_first, key="conversation.compaction.keep_first")
    keep_last = configured_keep(config.keep_last, key="conversation.compaction.keep_last")
    if flags.turn is not None:
        start, end = parse_turn_bounds(flags.turn, option=Option.TURN)
        check_choice(start, end)
        return RangeRequest(start=start, end=end, keep_first=_NOTHING, keep_last=_NOTHING)
    first = _bound(flags.start, Option.START)
    last = _bound(flags.end, Option.END)
    check_choice(first, last)
    if flags.keep_first is not None:
        keep_first = parse_keep(flags.keep_first, option=Option.KEEP_FIRST)
    if flags.keep_last is not None:
        keep_last = parse_keep(flags.keep_last, option=Option.KEEP_LAST)
    return RangeRequest(
        start=first,
        end=last,
        keep_first=keep_first if first is None else _NOTHING,
        keep_last=keep_last if last is None else _NOTHING,
    )


class ListedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that can be named. `source` says in words which layer says it last, or that it is built in."""

    name: str
    profile: ProfileConfig
    source: str
    is_default: bool


def listed_profiles(resolved: Resolved) -> tuple[ListedProfile, ...]:
    """Return every profile, by name."""
    config = resolved.config.conversation.compaction
    return tuple(
        ListedProfile(
            name=name,
            profile=profile,
            source=_source_of(resolved, name) if name in config.profiles else "built in",
            is_default=name == config.default_profile,
        )
        for name, profile in sorted(profiles_of(config).items())
    )


def _source_of(resolved: Resolved, name: str) -> str:
    key = key_text(("conversation", "compaction", "profiles", name))
    said = [origin.text for known, origin in resolved.origins.items() if f"{known}.".startswith(f"{key}.")]
    return join(", ", dict.fromkeys(said)) or "the configuration"


def _check_ranges(flags: RangeFlags) -> None:
    exclusive = (
        (Option.TURN, flags.turn, Option.START, flags.start),
        (Option.TURN, flags.turn, Option.END, flags.end),
        (Option.TURN, flags.turn, Option.KEEP_FIRST, flags.keep_first),
        (Option.TURN, flags.turn, Option.KEEP_LAST, flags.keep_last),
        (Option.START, flags.start, Option.KEEP_FIRST, flags.keep_first),
        (Option.END, flags.end, Option.KEEP_LAST, flags.keep_last),
    )
    for one, is_one, other, is_other in exclusive:
        if is_one is not None and is_other is not None:
            raise UsageError(phrase(one, " and ", other, " exclude each other"), hint="remove one of them")


def _bound(text: str | None, option: str | Option) -> Bound | None:
    return None if text is None else parse_bound(text, option=option)


def _flagged(flags: PolicyFlags) -> PolicyRequest:
    mode = None if flags.tools is None else _MODES.get(flags.tools)
    if flags.tools is not None and mode is None:
        raise UsageError(
            phrase(Option.TOOL_POLICY, f" cannot be {flags.tools!r}"), hint=f"it is one of {', '.join(_MODES)}"
        )
    if flags.resources not in {None, "superseded"}:
        raise UsageError(phrase(Option.RESOURCES, f" cannot be {flags.resources!r}"), hint="it is `superseded`")
    return PolicyRequest(
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
    near = closest_names(name, profiles)
    known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(profiles))}"
    raise ConfigurationError(f"there is no compaction profile {name!r}", hint=known)


def policies_text(overlay: Compaction) -> str:
    """Return the effects of an overlay, in words."""
    if overlay.summary is not None:
        return "summary"
    said: list[str] = []
    if overlay.reasoning is not None:
        said.append("reasoning")
    tools = overlay.tool_calls
    if tools is not None:
        halves = {(True, True): "tools", (True, False): "tool requests", (False, True): "tool responses"}
        halved = halves.get((tools.request, tools.response), "tools")
        how = {"omit": "tools omitted", "digest": f"{halved} digested", "strip": halved}
        said.append(how[tools.policy])
    if overlay.resources is not None:
        said.append("superseded resources")
    return " + ".join(said) or "nothing"


def profiles_table(listed: Sequence[ListedProfile]) -> Table:
    """Return the profiles as a table, with the default one marked."""
    rows = [
        (f"{one.name} (default)" if one.is_default else one.name, policies_text(_overlay_of(one)), one.source)
        for one in listed
    ]
    return Table(head=("PROFILE", "WHAT IT DOES", "FROM"), rows=rows, keys=frozenset({0}))


def profiles_value(listed: Sequence[ListedProfile]) -> dict[str, Any]:
    """Return the same as data."""
    profiles = [{"name": one.name, "source": one.source, "policies": _policies_value(one.profile)} for one in listed]
    return {"default_profile": next((one.name for one in listed if one.is_default), None), "profiles": profiles}


def _policies_value(profile: ProfileConfig) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(profile)
    if profile.tool_calls is not None:
        value["tool_calls"] = msgspec.structs.asdict(tool_policy(profile.tool_calls))
    return {name: said for name, said in value.items() if said not in (None, {})}


def _overlay_of(listed: ListedProfile) -> Compaction:
    wish = requested_policies(listed.profile)
    return Compaction(
        from_turn=0,
        to_turn=0,
        summary=SummaryPolicy(text="") if wish.summary else None,
        reasoning="strip" if wish.reasoning else None,
        tool_calls=wish.tools,
        resources="superseded" if wish.resources else None,
    )

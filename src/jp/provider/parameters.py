"""Errors that a stream reports in place of an event. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Effort, Parameters
from jp.errors import ConfigurationError
from jp.provider.base import Level
from jp.provider.errors import ProviderError

SHARES: dict[Effort, int] = {"none": 0, "xlow": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 100}
"""Thinking tokens for an effort, in percent of the longest output."""

_EFFORTS: tuple[tuple[int, Effort], ...] = ((90, "max"), (80, "xhigh"), (50, "high"), (20, "medium"))
"""Efforts for more thinking tokens than this, in percent of the longest output."""

_RANKS: dict[Level | Effort, int] = {
    "none": 0,
    "minimal": 1,
    "xlow": 1,
    "low": 2,
    "medium": 3,
    "high": 4,
    "xhigh": 5,
    "max": 6,
}


def is_off(parameters: Parameters) -> bool:
    """Whether the model is not to think."""
    return parameters.reasoning in {"off", "none"}


def effort_of(parameters: Parameters, max_tokens: int) -> Effort | None:
    """The effort that is asked for, None where the model decides or is not to think."""
    match parameters.reasoning:
        case None | "auto" | "off":
            return None
        case int(tokens):
            return _effort_for(100 * tokens / max_tokens)
        case effort:
            return effort


def _effort_for(percent: float) -> Effort:
    for least, effort in _EFFORTS:
        if percent > least:
            return effort
    return "low"


def nearest_level(effort: Effort, levels: Sequence[Level]) -> Level | None:
    """The highest of a vendor's levels, least first, that is not above an effort; where all are, the least.

    Who wants to think at all is not given `none`. None where there are no levels.
    """
    usable: list[Level] = [level for level in levels if level != "none" or effort == "none"]
    below: list[Level] = [level for level in usable if _RANKS[level] <= _RANKS[effort]]
    return below[-1] if below else next(iter(usable), None)


_LEVELS: tuple[Level, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_LEVEL = re.compile(r"\b(none|minimal|low|medium|high|xhigh|max)\b")
_ABOUT_EFFORT = re.compile(
    r"effort|reasoning|thinking|unsupported value: '(?:none|minimal|low|medium|high|xhigh|max)'", re.IGNORECASE
)
_ACCEPTED = re.compile(
    r"(?<!not )\b(?:supported|supports|allowed|accepted|expected|must be|one of|should be)", re.IGNORECASE
)
_MANDATORY = re.compile(r"(?:reasoning|thinking).{0,60}(?:mandatory|cannot be (?:disabled|turned off))", re.IGNORECASE)
_BOUNDS = re.compile(r"between (\d+(?:\.\d+)?) and (\d+(?:\.\d+)?)", re.IGNORECASE)


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that a provider's refusal asks for, and what to tell the user of the change."""

    parameters: Parameters
    note: str


def corrected_parameters(parameters: Parameters, message: str) -> Correction | None:
    """Return the nearest parameters that a refusal's message accepts; None where it is about none that were set."""
    return _corrected_sampling(parameters, message) or _corrected_effort(parameters, message)


def _corrected_sampling(parameters: Parameters, message: str) -> Correction | None:
    for field in ("temperature", "top_p", "top_k"):
        asked = getattr(parameters, field)
        if asked is None or re.search(rf"\b{field}\b", message) is None:
            continue
        bounds = _BOUNDS.search(message)
        sent = None if bounds is None else min(max(asked, float(bounds[1])), float(bounds[2]))
        if sent is None or sent == asked or field == "top_k":
            changed, how = replace(parameters, **{field: None}), "not sent"
        else:
            changed, how = replace(parameters, **{field: sent}), f"sent as {sent:g}"
        return Correction(parameters=changed, note=f"{field} {asked:g} {how}: the provider refused it")
    return None


def _corrected_effort(parameters: Parameters, message: str) -> Correction | None:
    asked = parameters.reasoning
    if not isinstance(asked, str) or asked == "auto" or _ABOUT_EFFORT.search(message) is None:
        return None
    wanted: Effort = "none" if asked == "off" else asked
    accepted = _ACCEPTED.split(message)[1:]
    named: set[str] = {found[1] for rest in accepted[-1:] for found in _LEVEL.finditer(rest)}
    if not named and wanted == "none" and _MANDATORY.search(message):
        named = {"minimal"}
    level = nearest_level(wanted, [level for level in _LEVELS if level in named])
    sent: Effort | None = "xlow" if level == "minimal" else level
    if sent is None or sent == wanted:
        return None
    note = f"reasoning {asked!r} sent as {level!r}: the provider refused it"
    return Correction(parameters=replace(parameters, reasoning=sent), note=note)


def sampling_of(parameters: Parameters) -> JsonObject:
    """`temperature`, `top_p` and `top_k`, as far as they are set."""
    wanted = {"temperature": parameters.temperature, "top_p": parameters.top_p, "top_k": parameters.top_k}
    return {name: value for name, value in wanted.items() if value is not None}


def not_sent(names: Collection[str], why: str) -> str:
    """The sentence about parameters that are left out."""
    return f"{', '.join(map(repr, names))} not sent: {why}"


def cache_not_sent(policy: CachePolicy, why: str) -> tuple[str, ...]:
    """The sentence about a policy of the prompt cache that cannot be asked for, none for what all do unasked."""
    return () if policy == "short" else (f"cache {policy!r} not sent: {why}",)


def object_at(body: JsonObject, name: str) -> JsonObject:
    """An object of a request; empty where there is none, or where a parameter has made it something else."""
    value: object = body.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def merged(body: JsonObject, other: JsonObject, *, protected: Collection[str]) -> JsonObject:
    """`body` with the parameters that only the provider knows; objects are merged, everything else is replaced.

    `protected` are names that these cannot set: it would not be what the log says was sent.

    Raises:
        ConfigurationError: `other` sets what is not its to set.
    """
    if stolen := sorted(set(protected).intersection(other)):
        message = f"{', '.join(map(repr, stolen))} cannot be set by a parameter"
        hint = "take it out of `assistant.model.parameters.other`"
        raise ConfigurationError(message, hint=hint)
    result = dict(body)
    for name, value in other.items():
        old = result.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[name] = {**cast("JsonObject", old), **value} if both else value
    return result


LEAST_WAIT = 3.0
"""Seconds that an overload takes to pass; inside a stream no header can say how long."""


def reported(data: bytes, provider: str, model: str) -> ProviderError:
    """The error that a stream reports in place of an event."""
    from jp.provider.classification import Origin, Reply, classify

    error = classify(Reply(body=data), Origin(provider=provider, model=model), now=0.0)
    error.least_wait = LEAST_WAIT
    return error

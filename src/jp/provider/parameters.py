"""Parameters of requests that vendors share, and errors that a stream reports in place of an event. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Effort, Parameters
from jp.errors import ConfigurationError
from jp.provider.base import Level
from jp.provider.errors import ProviderError

SHARES: dict[Effort, int] = {"none": 0, "xlow": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 100}
"""Budgets of reasoning by effort, in percent of the output limit."""

_EFFORTS: tuple[tuple[int, Effort], ...] = ((90, "max"), (80, "xhigh"), (50, "high"), (20, "medium"))
"""Efforts by the least budget of reasoning, in percent of the output limit."""

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
    """Return whether reasoning is turned off."""
    return parameters.reasoning in {"off", "none"}


def effort_of(parameters: Parameters, max_tokens: int) -> Effort | None:
    """Return the requested effort, None if the model decides or reasoning is off."""
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
    """Return the highest of a vendor's levels that is not above an effort, else the least one; None without levels.

    `levels` are sorted, least first. A request for reasoning never gets `none`.
    """
    usable: list[Level] = [level for level in levels if level != "none" or effort == "none"]
    below: list[Level] = [level for level in usable if _RANKS[level] <= _RANKS[effort]]
    return below[-1] if below else next(iter(usable), None)


def sampling_of(parameters: Parameters) -> JsonObject:
    """Return `temperature`, `top_p` and `top_k` if they are set."""
    wanted = {"temperature": parameters.temperature, "top_p": parameters.top_p, "top_k": parameters.top_k}
    return {name: value for name, value in wanted.items() if value is not None}


def not_sent(names: Collection[str], why: str) -> str:
    """Return the note about parameters that are not sent."""
    return f"{', '.join(map(repr, names))} not sent: {why}"


def cache_not_sent(policy: CachePolicy, why: str) -> tuple[str, ...]:
    """Return the note about a cache policy that the provider does not have; none for the default one."""
    return () if policy == "short" else (f"cache {policy!r} not sent: {why}",)


def call_request(wanted: str, names: Sequence[str]) -> str:
    """Return words that ask for a call where the API cannot require it; `wanted` is "required" or one of `names`."""
    if wanted == "required" and len(names) > 1:
        return "Call one of the tools now."
    return f"Call the tool {names[0] if wanted == 'required' else wanted!r} now."


def object_at(body: JsonObject, name: str) -> JsonObject:
    """Return an object of a request; an empty one if it is missing or a parameter replaced it."""
    value: object = body.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def merged(body: JsonObject, other: JsonObject, *, protected: Collection[str]) -> JsonObject:
    """Return `body` with parameters of the provider; objects are merged, other values replaced.

    Args:
        body: the body of a request.
        other: the provider's own parameters.
        protected: names that `other` cannot set: the log would not say what was sent.

    Raises:
        ConfigurationError: `other` sets a protected name.
    """
    if stolen := sorted(set(protected).intersection(other)):
        message = f"{', '.join(map(repr, stolen))} cannot be set by `other`"
        hint = "remove it from `assistant.model.parameters.other`"
        raise ConfigurationError(message, hint=hint)
    result = dict(body)
    for name, value in other.items():
        old = result.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[name] = {**cast("JsonObject", old), **value} if both else value
    return result


LEAST_WAIT = 3.0
"""Seconds that an overload usually lasts; an error inside a stream has no header with a time to wait."""


def stream_error(data: bytes, provider: str, model: str) -> ProviderError:
    """Return the error that a stream reports in place of an event."""
    from jp.provider.classification import Origin, Reply, classify

    error = classify(Reply(body=data), Origin(provider=provider, model=model), now=0.0)
    error.least_wait = LEAST_WAIT
    return error

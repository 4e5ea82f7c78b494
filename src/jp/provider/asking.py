"""What every request says in the same way: sampling, and what only the provider knows. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Parameters
from jp.errors import ConfigurationError


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

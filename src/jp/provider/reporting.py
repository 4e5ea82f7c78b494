"""Errors that a stream reports in place of an event. Pure."""

from __future__ import annotations

from jp.provider.errors import ProviderError

LEAST_WAIT = 3.0
"""Seconds that an overload takes to pass; inside a stream no header can say how long."""


def reported(data: bytes, provider: str, model: str) -> ProviderError:
    """The error that a stream reports in place of an event."""
    from jp.provider.classification import Origin, Reply, classify

    error = classify(Reply(body=data), Origin(provider=provider, model=model), now=0.0)
    error.least_wait = LEAST_WAIT
    return error

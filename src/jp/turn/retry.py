"""How long to wait before a retry. Pure."""

from __future__ import annotations

import msgspec

from jp.provider.errors import ProviderError


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how patiently a failed request is sent again, within one cycle."""

    max_retries: int = 5
    base_seconds: float = 1.0
    max_seconds: float = 60.0


def waiting_time(policy: RetryPolicy, error: ProviderError, *, retry: int, jitter: float) -> float | None:
    """Seconds to wait after `error` before retry number `retry` (from 1), None where waiting is not worth it.

    Exponential with jitter in the upper half (`jitter` from 0 to 1), so that many clients do not return at once.
    What the provider asks for is the least; where it asks for more than `max_seconds`, a person decides. What its
    kind of error is known to take is waited for as far as `max_seconds` allows.
    """
    asked = error.retry_after or 0.0
    if retry > policy.max_retries or asked > policy.max_seconds:
        return None
    backoff = min(policy.max_seconds, policy.base_seconds * 2 ** (retry - 1))
    return max(backoff * (0.5 + jitter / 2), min(policy.max_seconds, error.least_wait), asked)

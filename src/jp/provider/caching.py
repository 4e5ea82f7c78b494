"""What is known of providers' prompt caches. Pure."""

from __future__ import annotations

import msgspec

from jp.provider.models import canonical_name


class CacheFacts(msgspec.Struct, frozen=True, kw_only=True):
    """When a prompt can be expected to be read from a provider's cache.

    It needs at least `minimum` tokens, and is kept for `short_secs` or `long_secs` after it was used last. `is_certain`
    is false where nobody says that there is a cache: then one is expected only once it has shown itself.
    """

    minimum: int = 1024
    short_secs: float = 300.0
    long_secs: float = 3600.0
    is_certain: bool = True

    def lifetime(self, policy: str) -> float:
        """For how many seconds a prompt is kept under a policy, `short` or `long`."""
        return self.long_secs if policy == "long" else self.short_secs


_CERTAIN = frozenset({"anthropic", "cerebras", "google", "openai", "openrouter", "script"})
_MINIMUM = {
    "claude-haiku-4-5": 4096,
    "claude-opus-4-5": 4096,
    "claude-opus-4-6": 4096,
    "claude-sonnet-4-6": 2048,
}
"""Models that take more than the usual minimum."""


def cache_facts(kind: str, name: str) -> CacheFacts:
    """What is known of the cache for a model. `kind` is a provider of this version, as for `find_model`."""
    return CacheFacts(minimum=_MINIMUM.get(canonical_name(name), 1024), is_certain=kind in _CERTAIN)

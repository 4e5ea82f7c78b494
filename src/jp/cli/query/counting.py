"""`jp query --dry-run --exact`: the tokens of a request, counted by the provider that would get it."""

from __future__ import annotations

from jp.cli.query.wiring import Wiring
from jp.errors import UsageError
from jp.provider.base import WireRequest
from jp.provider.counting import COUNTING, count_request, counted
from jp.provider.http import HttpProvider
from jp.provider.registry import cloud_of, kind_of


async def count_tokens(wiring: Wiring, request: WireRequest) -> int:
    """How many tokens the provider counts in `request`. It is asked for nothing else.

    Raises:
        UsageError: it does not count.
        AuthenticationError: there is no key.
        ProviderError: it was asked in vain.
    """
    settings, name = wiring.config.providers.llm, wiring.model.provider
    provider = wiring.provider if wiring.cap is None else wiring.cap.inner
    cloud = cloud_of(settings, name)
    asking = count_request(kind_of(settings, name), request, platform=None if cloud is None else cloud.platform)
    if asking is None or not isinstance(provider, HttpProvider):
        who = repr(name) if cloud is None else f"{name!r} ({cloud.title})"
        counting = ", ".join(COUNTING)
        raise UsageError(
            f"{who} does not count tokens, so --exact is of no use",
            hint=f"leave --exact out for an estimate; those that count are: {counting}",
        )
    return counted(name, await provider.ask(asking))

"""Providers in front of another one, and what they measure: estimates beside reported usage."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from jp.conversation.entries import Usage
from jp.conversation.thread import Thread
from jp.conversation.turns import prompt_tokens
from jp.provider.base import Part, Provider, UsageReport, WireRequest
from jp.provider.errors import ProviderError


class RelayingProvider:
    """A base class for provider wrappers: forwards everything except `stream`, which a subclass implements."""

    def __init__(self, inner: Provider) -> None:
        self.inner = inner

    @property
    def id(self) -> str:
        """See the port."""
        return self.inner.id

    @property
    def renderer(self) -> int:
        """See the port."""
        return self.inner.renderer

    def render(self, thread: Thread) -> WireRequest:
        """See the port."""
        return self.inner.render(thread)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """See the port."""
        return self.inner.locate_rejected(thread, error)


class Measured(msgspec.Struct, frozen=True):
    """The tokens of one prompt, as they were estimated and as `model` of the provider has reported them."""

    model: str
    estimated: int
    reported: int


class MeasuringProvider(RelayingProvider):
    """A provider that remembers what it reported. Nothing is estimated before a request is answered."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.measured: list[Measured] = []

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """See the port."""
        usage = Usage()
        try:
            async with aclosing(self.inner.stream(request)) as parts:
                async for part in parts:
                    usage = part.usage if isinstance(part, UsageReport) else usage
                    yield part
        finally:
            self._remember(request, prompt_tokens(usage))

    def _remember(self, request: WireRequest, reported: int) -> None:
        if not reported:
            return
        from jp.turn.prompt_size import prompt_size

        size = prompt_size(request.sections)
        # What a picture or a document costs, words are not to blame for.
        if not size.encoded:
            self.measured.append(Measured(request.model, size.total, reported))

"""A provider in front of another one, which answers for it."""

from __future__ import annotations

from jp.conversation.thread import Thread
from jp.provider.base import Provider, Sections, WireRequest
from jp.provider.errors import ProviderError


class RelayingProvider:
    """All of a provider but its stream: that is where who stands in front of another one does what it is for."""

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

    def sections(self, request: WireRequest) -> Sections:
        """See the port."""
        return self.inner.sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """See the port."""
        return self.inner.locate_rejected(thread, error)

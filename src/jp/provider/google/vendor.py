"""Describe the vendor, and adapt its API."""

from __future__ import annotations

from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.google.request import PROVIDER, RENDERER, locate, render, sections
from jp.provider.parameters import object_at


class GoogleAdapter:
    """Gemini's `streamGenerateContent`. `provider` is under what name it is known, `store` see `render`."""

    renderer = RENDERER

    def __init__(self, *, provider: str = PROVIDER, store: bool | None = False) -> None:
        self.id = provider
        self._store = store

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, provider=self.id, store=self._store)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the signatures that `error` can be about. This is hardly ever asked for."""
        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.google.response import GoogleDecoder

        config = object_at(request.body, "generationConfig")
        return GoogleDecoder(
            model=request.model, provider=self.id, is_structured=config.get("responseMimeType") == "application/json"
        )

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key: in the address it would be in every proxy's log."""
        return (("x-goog-api-key", key),)

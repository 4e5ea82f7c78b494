"""Describe the vendor, and adapt its API."""

from __future__ import annotations

from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.openai.request import PROVIDER, RENDERER, Summary, locate, render, sections


class OpenaiAdapter:
    """OpenAI's Responses API. `provider` is under what name it is known, `summary` how much reasoning is shown.

    `store` lets the server keep requests and answers.
    """

    renderer = RENDERER

    def __init__(self, *, provider: str = PROVIDER, summary: Summary = "auto", store: bool = False) -> None:
        self.id = provider
        self._store = store
        self._summary: Summary = summary

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, provider=self.id, summary=self._summary, store=self._store)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the reasoning that `error` is about. This is hardly ever asked for."""
        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.openai.response import OpenaiDecoder

        return OpenaiDecoder(request, provider=self.id)

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key."""
        return (("authorization", f"Bearer {key}"),)

"""Describe the vendor, and adapt its API."""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.anthropic.messages import PROVIDER
from jp.provider.anthropic.request import RENDERER, render, sections
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError


class AnthropicAdapter:
    """Anthropic's Messages API.

    `provider` is under what name it is known. `betas` are sent with every request; `chains` says whether an answer at
    its longest output is to be continued.
    """

    renderer = RENDERER

    def __init__(self, betas: Sequence[str] = (), *, provider: str = PROVIDER, chains: bool = True) -> None:
        self.id = provider
        self._betas = tuple(betas)
        self._chains = chains

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, betas=self._betas, provider=self.id)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the reasoning that `error` is about. This is hardly ever asked for."""
        from jp.provider.anthropic.messages import locate

        return locate(self.render(thread), thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.anthropic.response import AnthropicDecoder
        from jp.provider.schemas import is_wrapped

        wanted: JsonObject | None = request.body.get("output_config", {}).get("format")
        return AnthropicDecoder(
            model=request.model,
            provider=self.id,
            is_structured=wanted is not None,
            is_wrapped=wanted is not None and is_wrapped(wanted),
            chains=self._chains,
        )

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key."""
        return (("x-api-key", key),)

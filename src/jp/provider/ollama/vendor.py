"""Describe the vendor, and adapt its API."""

from __future__ import annotations

from jp.config.model import LlmConfig
from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.ollama.request import PROVIDER, RENDERER, Server, render, sections

_CLOUD = "https://ollama.com"


class OllamaAdapter:
    """Ollama's chat API.

    `provider` is under what name the server is known, `context_window` how many tokens of a conversation it is asked
    to hold, `keep_alive` how long it is asked to keep the model in memory, None for as long as it likes. One that
    `is_hosted` gives each model its whole window, whatever it is asked for.
    """

    renderer = RENDERER

    def __init__(
        self,
        *,
        context_window: int,
        provider: str = PROVIDER,
        keep_alive: str | None = None,
        is_hosted: bool = False,
    ) -> None:
        self.id = provider
        self._server = Server(
            provider=provider, context_window=context_window, keep_alive=keep_alive, is_hosted=is_hosted
        )

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, self._server)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """None: reasoning goes back as text, and nothing about it can be rejected."""
        del thread, error
        return ()

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.ollama.response import OllamaDecoder

        return OllamaDecoder(request, provider=self.id)

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key, for servers behind a gateway and for Ollama's own cloud."""
        return (("authorization", f"Bearer {key}"),)


def adapter_of(settings: LlmConfig, provider: str) -> OllamaAdapter:
    """The adapter of a provider that speaks as Ollama does: itself, or a server of the user's own."""
    own = settings.ollama if provider == PROVIDER else settings.servers[provider]
    return OllamaAdapter(
        context_window=own.context_window or settings.ollama.context_window,
        provider=provider,
        keep_alive=own.keep_alive,
        is_hosted=(own.base_url or "").startswith(_CLOUD),
    )

"""What the HTTP provider needs of a server that speaks Chat Completions."""

from __future__ import annotations

from collections.abc import Callable

from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, Sections, WireRequest
from jp.provider.chat.quirks import Server
from jp.provider.chat.request import RENDERER, Asked, render, sections
from jp.provider.errors import ProviderError


class ChatAdapter:
    """A server that speaks Chat Completions.

    `asks` says of each thread what only this server is asked; `revision` grows whenever it says it otherwise.
    """

    def __init__(self, server: Server, asks: Callable[[Thread], Asked] | None = None, *, revision: int = 0) -> None:
        self.id = server.provider
        self.renderer = RENDERER + revision
        self._server = server
        self._asks = asks

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, self._server, Asked() if self._asks is None else self._asks(thread))

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Nothing: what these servers say of places is not about the messages that they were sent."""
        return ()

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.chat.response import ChatDecoder

        return ChatDecoder.of(request, self._server)

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key."""
        return (("authorization", f"Bearer {key}"),)

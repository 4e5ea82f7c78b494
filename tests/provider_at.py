"""A provider that talks to a scripted server, and what came of a request."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import msgspec

from jp.config.model import AppConfig
from jp.conversation.thread import Thread
from jp.provider.base import Provider
from jp.provider.errors import ProviderError
from jp.provider.parts import Part
from jp.provider.registry import ModelId, create_provider

KEY = "test-key-0123456789"
_ACCOUNT = frozenset({"beta_headers"})


class Ending(msgspec.Struct):
    """All parts of an answer, and the error that followed them."""

    parts: list[Part]
    error: ProviderError | None = None


def provider_at(url: str, **settings: object) -> Provider:
    """Anthropic's provider; `settings` are those of its account, or of `assistant.request`."""
    account = {name: value for name, value in settings.items() if name in _ACCOUNT}
    request = {name: value for name, value in settings.items() if name not in _ACCOUNT}
    values = {
        "assistant": {"request": request},
        "providers": {"llm": {"anthropic": {"base_url": url, **account}}},
    }
    config = msgspec.convert(values, AppConfig)
    model = ModelId("anthropic", "claude-haiku-4-5")
    return create_provider(config, model, environ={"ANTHROPIC_API_KEY": KEY}, root=Path())


async def receive(provider: Provider, thread: Thread) -> Ending:
    """Send `thread` and read to the end."""
    ending = Ending([])
    try:
        async with aclosing(provider.stream(provider.render(thread))) as parts:
            async for part in parts:
                ending.parts.append(part)
    except ProviderError as error:
        ending.error = error
    return ending

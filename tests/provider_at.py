"""A provider that talks to a scripted server, and what came of a request."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import msgspec

from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.config.model import RequestConfig
from jp.conversation.thread import Thread
from jp.provider.base import Part, Provider
from jp.provider.errors import ProviderError
from jp.provider.registry import ModelId, create_provider

KEY = "test-key-0123456789"


class Ending(msgspec.Struct):
    """All parts of an answer, and the error that followed them."""

    parts: list[Part]
    error: ProviderError | None = None


def provider_at(
    url: str, *, provider: str = "anthropic", model: str = "claude-haiku-4-5", **settings: object
) -> Provider:
    """A provider whose account is at `url`; `settings` are those of the account, or of `assistant.request`."""
    request = {name: value for name, value in settings.items() if name in RequestConfig.__struct_fields__}
    account = {name: value for name, value in settings.items() if name not in request}
    values = {
        "assistant": {"request": request},
        "providers": {"llm": {provider: {"base_url": url, "api_key_env": "JP_TEST_KEY", **account}}},
    }
    config = config_of(read_partial(values))
    return create_provider(config, ModelId(provider, model), environ={"JP_TEST_KEY": KEY}, root=Path())


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

"""Ollama: models on the user's own hardware, and in Ollama's cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jp.config.model import LlmConfig
from jp.conversation.thread import Thread
from jp.provider.base import ResponseDecoder, WireRequest
from jp.provider.errors import ErrorKind, ProviderError
from jp.provider.vendor import LocalServer, ModelList, Vendor

if TYPE_CHECKING:
    from jp.provider.listing import Fields, ListedModel, Page
    from jp.provider.ollama.request import RenderCache
    from jp.provider.vendor import ListingServer

_CLOUD = "https://ollama.com"


class OllamaAdapter:
    """Ollama's chat API.

    Attributes:
        provider: the name of the server.
        context_window: the context window in tokens that is requested.
        keep_alive: the time that the server keeps the model in memory, None for its default.
        is_hosted: whether it is Ollama's cloud, which ignores `context_window`: each model has its whole window.
    """

    renderer = 2

    def __init__(
        self,
        *,
        context_window: int,
        provider: str = "ollama",
        keep_alive: str | None = None,
        is_hosted: bool = False,
    ) -> None:
        from jp.provider.ollama.request import Server

        self.id = provider
        self._server = Server(
            provider=provider, context_window=context_window, keep_alive=keep_alive, is_hosted=is_hosted
        )
        self._growth: RenderCache | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        from jp.provider.ollama.request import RenderCache, render

        self._growth = self._growth or RenderCache()
        return render(thread, self._server, self._growth)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return nothing: reasoning is sent back as text, which no server rejects."""
        del thread, error
        return ()

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`."""
        from jp.provider.ollama.response import OllamaDecoder

        return OllamaDecoder(request, provider=self.id)


def _adapter(settings: LlmConfig, provider: str) -> OllamaAdapter:
    own = settings.ollama if provider == "ollama" else settings.servers[provider]
    return OllamaAdapter(
        context_window=own.context_window or settings.ollama.context_window,
        provider=provider,
        keep_alive=own.keep_alive,
        is_hosted=(own.base_url or "").startswith(_CLOUD),
    )


def _held_window(settings: LlmConfig, provider: str) -> int:
    own = settings.servers.get(provider)
    return (None if own is None or provider == "ollama" else own.context_window) or settings.ollama.context_window


def _hints(provider: str, model: str) -> Mapping[ErrorKind, str]:
    setting = f"`providers.llm.{provider}.context_window`"
    return {
        "model_not_found": f"`ollama pull {model}` downloads it, `ollama list` shows the downloaded models",
        "context_too_long": f"set {setting} higher if the model and the memory allow it, or send less",
    }


def _read(body: object) -> Page | None:
    from jp.provider.listing import read_page

    return read_page(body, "models", listed)


def listed(entry: Fields) -> ListedModel:
    """Return a model from an entry of the server's list or from the details of one model."""
    from jp.provider.listing import ListedModel, fields, name, texts, tokens

    found = name(entry.get("model") or entry.get("name"))
    able = texts(entry.get("capabilities"))
    trained = (value for key, value in fields(entry.get("model_info")).items() if key.endswith(".context_length"))
    return ListedModel(
        id=found,
        aliases=(found.removesuffix(":latest"),) if found.endswith(":latest") else (),
        context_window=tokens(fields(entry.get("details")).get("context_length"), *trained),
        tools="tools" in able if able else None,
        images="vision" in able if able else None,
        thinks="thinking" in able if able else None,
        answers="completion" in able if able else None,
    )


_AT_ONCE = 4


async def _complete(server: ListingServer, models: tuple[ListedModel, ...]) -> tuple[ListedModel, ...]:
    """Return the models with the details of `/api/show` for those with incomplete entries."""
    from anyio import CapacityLimiter, create_task_group
    from msgspec.structs import replace

    from jp.provider.listing import fields

    found = {model.id: model for model in models}
    places = CapacityLimiter(_AT_ONCE)

    async def show(model: ListedModel) -> None:
        async with places:
            body = await server.post_optional("/api/show", {"model": model.id})
        shown = listed({**fields(body), "model": model.id})
        found[model.id] = replace(shown, context_window=shown.context_window or model.context_window)

    async with create_task_group() as tasks:
        for model in models:
            if model.context_window is None or model.answers is None:
                tasks.start_soon(show, model)
    return tuple(found.values())


VENDOR = Vendor(
    id="ollama",
    create_adapter=_adapter,
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
    server=LocalServer(port=11434, variable="OLLAMA_HOST"),
    is_local=True,
    models=ModelList(path="/api/tags", overrides=True, read=_read, complete=_complete),
    hints=_hints,
    held_window=_held_window,
)

"""Asking a provider for its models: all pages of its list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec
from msgspec.structs import replace

from jp.errors import JpError
from jp.provider.catalogue.asking import list_path, server_root
from jp.provider.catalogue.listed import Listed, Page
from jp.provider.catalogue.pages import read_ollama, read_page, with_properties
from jp.provider.catalogue.server import Server
from jp.provider.catalogue.values import fields
from jp.provider.errors import ProviderError

_MOST_PAGES = 100
_PATIENCE_SECS = 120.0
_AT_ONCE = 4


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """All models that a provider lists. `skipped` entries of its list say nothing usable."""

    models: tuple[Listed, ...]
    skipped: int


async def fetch_models(server: Server, *, sdk: bool = True, patience_secs: float = _PATIENCE_SECS) -> Fetched:
    """All models that a provider lists.

    Where its vendor's SDK is installed, and `sdk` says so, that turns the pages. The account's own limits hold for
    each request, `patience_secs` for all of them.

    Raises:
        ProviderError: the list did not come, or not all of it.
        ConfigurationError: the address, a proxy or a certificate variable cannot be used.
    """
    from anyio import fail_after

    try:
        with fail_after(patience_secs):
            return await _fetch(server, sdk=sdk)
    except TimeoutError:
        message = f"{server.provider} did not list its models within {patience_secs:,.0f} s"
        raise ProviderError(message, kind="timeout", hint="try again in a while") from None


async def _fetch(server: Server, *, sdk: bool) -> Fetched:
    pages = await _pages_of_sdk(server) if sdk else None
    if pages is None:
        pages = [page async for page in _pages(server)]
    models: dict[str, Listed] = {}
    for page in pages:
        for model in page.models:
            models.setdefault(model.id, model)
    found = tuple(models.values())
    if server.kind == "ollama":
        found = await _shown(server, found)
    return Fetched(models=found, skipped=sum(page.skipped for page in pages))


async def _pages_of_sdk(server: Server) -> list[Page] | None:
    """What the vendor's SDK lists; None where there is none, or where it cannot cope with what came."""
    from jp.provider.catalogue.sdk import bodies_of_sdk, has_sdk

    if not has_sdk(server):
        return None
    try:
        return [_read(server, body) for body in await bodies_of_sdk(server)]
    except JpError:
        raise
    except Exception:  # noqa: BLE001  an SDK may raise anything, and is not needed
        return None


async def _pages(server: Server) -> AsyncGenerator[Page, None]:
    cursor, seen = "", set[str]()
    while len(seen) < _MOST_PAGES:
        page = _read(server, await server.get(list_path(server.kind, cursor)))
        yield await _with_properties(server, page) if server.kind == "llamacpp" else page
        cursor = page.next
        if not cursor or cursor in seen:
            return
        seen.add(cursor)


def _read(server: Server, body: object) -> Page:
    page = read_page(server.kind, body)
    if page is None:
        server.refuse()
    return page


async def _with_properties(server: Server, page: Page) -> Page:
    properties = await _optional(lambda: server.get_at(f"{server_root(server.base_url)}/props"))
    return with_properties(page, properties)


async def _optional(ask: Callable[[], Awaitable[object]]) -> object:
    """What `ask` gets, None where it fails: not all versions of a server know it, and the list stands without it."""
    try:
        return await ask()
    except ProviderError:
        return None


async def _shown(server: Server, models: tuple[Listed, ...]) -> tuple[Listed, ...]:
    """Ollama's models, each with what the server shows of it where its list says too little, as that of old ones."""
    from anyio import CapacityLimiter, create_task_group

    found = {model.id: model for model in models}
    places = CapacityLimiter(_AT_ONCE)

    async def show(model: Listed) -> None:
        async with places:
            body = await _optional(lambda: server.post("/api/show", {"model": model.id}))
        shown = read_ollama({**fields(body), "model": model.id})
        found[model.id] = replace(shown, context_window=shown.context_window or model.context_window)

    async with create_task_group() as tasks:
        for model in models:
            if model.context_window is None or model.answers is None:
                tasks.start_soon(show, model)
    return tuple(found.values())

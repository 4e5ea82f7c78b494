"""Lists of models through the vendors' SDKs, where they are installed.

An SDK asks and turns pages; what goes over the wire and what came of it is ours: the same headers, proxies,
certificates, limits and errors as without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jp.errors import JpError
from jp.provider.catalogue.asking import server_root

if TYPE_CHECKING:
    import httpx2

    from jp.provider.catalogue.server import Server

_MODULES = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}
_PAGE_SIZE = 1000
_NO_KEY = "-"
"""What an SDK believes to be the key: it needs none, since our headers are sent."""


def has_sdk(server: Server) -> bool:
    """Whether there is an SDK for a provider; a server that only speaks as one may not have all that an SDK expects."""
    from importlib.util import find_spec

    module = _MODULES.get(server.kind, "") if server.provider == server.kind else ""
    try:
        return bool(module) and find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


async def bodies_of_sdk(server: Server) -> list[object]:
    """The pages of the provider's list, as JSON.

    Raises:
        JpError: they did not come.
        Exception: the SDK does not understand them, or not us.
    """
    from importlib import import_module

    from anyio.to_thread import run_sync

    # Importing takes a second, in which others are asked.
    module = await run_sync(import_module, _MODULES[server.kind], abandon_on_cancel=True)
    async with _client(server) as client:
        try:
            match server.kind:
                case "anthropic":
                    return await _anthropic(module, server, client)
                case "openai":
                    return await _openai(module, server, client)
                case _:
                    return await _google(module, server, client)
        except Exception as error:
            raise _ours(error) from error


def _ours(error: Exception) -> Exception:
    """Our own error, around which an SDK has put its own; else that one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, JpError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def _client(server: Server) -> httpx2.AsyncClient:
    """A client that hands each request to `server`."""
    import httpx2
    import msgspec

    class Transport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = await server.get_at(str(request.url))
            return httpx2.Response(
                200, headers={"content-type": "application/json"}, content=msgspec.json.encode(body), request=request
            )

    return httpx2.AsyncClient(transport=Transport(), trust_env=False)


async def _anthropic(module: Any, server: Server, client: httpx2.AsyncClient) -> list[object]:
    sdk = module.AsyncAnthropic(
        api_key=_NO_KEY, base_url=server_root(server.base_url), http_client=client, max_retries=0
    )
    return await _all_pages(await sdk.models.list(limit=_PAGE_SIZE))


async def _openai(module: Any, server: Server, client: httpx2.AsyncClient) -> list[object]:
    base_url = f"{server_root(server.base_url)}/v1"
    sdk = module.AsyncOpenAI(api_key=_NO_KEY, base_url=base_url, http_client=client, max_retries=0)
    return await _all_pages(await sdk.models.list())


async def _all_pages(page: Any) -> list[object]:
    pages: list[object] = [page.model_dump(mode="json", by_alias=True)]
    while page.has_next_page():
        page = await page.get_next_page()
        pages.append(page.model_dump(mode="json", by_alias=True))
    return pages


async def _google(module: Any, server: Server, client: httpx2.AsyncClient) -> list[object]:
    import logging

    # It warns of variables that do not count here.
    logging.getLogger("google_genai").setLevel(logging.ERROR)
    base_url, _, version = server.base_url.rstrip("/").rpartition("/")
    options = {"base_url": base_url, "api_version": version, "httpx_async_client": client}
    sdk = module.Client(api_key=_NO_KEY, vertexai=False, http_options=options)
    found = await sdk.aio.models.list(config={"page_size": _PAGE_SIZE})
    models = [model.model_dump(mode="json", by_alias=True, exclude_none=True) async for model in found]
    return [{"models": models}]

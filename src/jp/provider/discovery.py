"""Discovery of models: requests for providers' lists, and the models that a new user can use."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NoReturn

import msgspec
from msgspec.structs import replace

from jp import __version__
from jp.config.model import LlmConfig
from jp.errors import JpError
from jp.provider.errors import ProviderError
from jp.provider.http import Account, joined
from jp.provider.listing import ListedModel, Page
from jp.provider.registry import account_of, address_of, vendors
from jp.provider.transport import HttpRequest, HttpResponse, Limits, get, post
from jp.provider.vendor import LocalServer, ModelList, Vendor

if TYPE_CHECKING:
    from http.client import HTTPConnection

    import httpx2


def list_path(models: ModelList, cursor: str = "") -> str:
    """Return the path of the first page of a list, or of the page at `cursor`."""
    if not cursor:
        return models.path
    from urllib.parse import quote

    return f"{models.path}&{models.cursor}={quote(cursor, safe='')}"


_MOST_BYTES = 32 * 1024 * 1024
_SUCCESS = range(200, 300)


class Server:
    """The server of a provider."""

    def __init__(self, provider: str, vendor: Vendor, account: Account, limits: Limits) -> None:
        self.provider = provider
        self.vendor = vendor
        self.base_url = account.base_url
        self._account = account
        self._limits = replace(limits, max_response_bytes=_MOST_BYTES)

    async def get(self, path: str) -> object:
        """Return the JSON at a path below the base URL.

        Raises:
            ProviderError: the request failed.
        """
        return await self.get_at(joined(self.base_url, path))

    async def get_at(self, url: str) -> object:
        """Return the JSON at a URL, requested with the account's key.

        Raises:
            ProviderError: the request failed.
        """
        return await self._answer(get(HttpRequest(url=url, headers=self._headers()), self._limits))

    async def post(self, path: str, body: object) -> object:
        """Return the JSON response to `body`.

        Raises:
            ProviderError: the request failed.
        """
        headers = (*self._headers(), ("content-type", "application/json"))
        request = HttpRequest(url=joined(self.base_url, path), headers=headers, body=msgspec.json.encode(body))
        return await self._answer(post(request, self._limits))

    async def get_optional(self, url: str) -> object:
        """Return the JSON at a URL, None if the request failed: not every version of a server has it."""
        try:
            return await self.get_at(url)
        except ProviderError:
            return None

    async def post_optional(self, path: str, body: object) -> object:
        """Return the JSON response to `body`, None if the request failed."""
        try:
            return await self.post(path, body)
        except ProviderError:
            return None

    def refuse(self) -> NoReturn:
        """Raise the error for a response that is not a list of models.

        Raises:
            ProviderError: always.
        """
        raise ProviderError(
            f"{self.provider} did not respond with a list of models",
            kind="other",
            hint=f"check `{self._account.base_url_setting}`; the list of models is requested there",
        )

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("accept", "application/json"),
            ("user-agent", f"jp/{__version__}"),
            *self.vendor.models.headers,
            *self._account.key_headers,
            *self._account.headers,
        )

    async def _answer(self, exchange: AbstractAsyncContextManager[HttpResponse]) -> object:
        try:
            async with exchange as response:
                return await self._json(response)
        except ProviderError as error:
            if error.kind == "connect" and self._account.reach_hint:
                error.hint = self._account.reach_hint
            raise

    async def _json(self, response: HttpResponse) -> object:
        is_page = response.headers.get("content-type", "").startswith("text/html")
        if response.status not in _SUCCESS or is_page:
            raise await self._error(response)
        body = b"".join([chunk async for chunk in response.chunks()])
        try:
            return msgspec.json.decode(body)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            self.refuse()

    async def _error(self, response: HttpResponse) -> ProviderError:
        from jp.provider.classification import Origin, Reply, classify

        account = self._account
        origin = Origin(
            provider=self.provider,
            key_hint=account.key_hint,
            base_url_setting=account.base_url_setting,
            secrets=() if account.key is None else (account.key,),
        )
        reply = Reply(body=await response.error_body(), status=response.status, headers=response.headers)
        error = classify(reply, origin, now=time.time())
        if error.kind in {"invalid_request", "model_not_found"}:
            error.hint = f"check `{account.base_url_setting}`; the list of models is requested there"
        return error


def has_sdk(server: Server) -> bool:
    """Return whether an SDK can list the models.

    A server that only speaks the vendor's protocol may lack what the SDK expects.
    """
    return bool(server.vendor.models.sdk) and server.provider == server.vendor.id


async def bodies_of_sdk(server: Server) -> list[object]:
    """Return the pages of the provider's list as JSON, requested by the vendor's SDK.

    Raises:
        JpError: a request failed.
        Exception: the SDK cannot read the list, or its API differs from the expected one.
    """
    from importlib import import_module

    from anyio.to_thread import run_sync

    models = server.vendor.models
    # Importing takes a second, in which others are asked.
    module = await run_sync(import_module, models.sdk, abandon_on_cancel=True)
    async with _client(server) as client:
        try:
            return [] if models.list_with_sdk is None else await models.list_with_sdk(module, server, client)
        except Exception as error:
            raise _own_error(error) from error


def _own_error(error: Exception) -> Exception:
    """Return jp's own error that an SDK has wrapped, else the error itself."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, JpError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def _client(server: Server) -> httpx2.AsyncClient:
    """Return a client that passes each request to `server`."""
    import httpx2
    import msgspec

    class Transport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = await server.get_at(str(request.url))
            return httpx2.Response(
                200, headers={"content-type": "application/json"}, content=msgspec.json.encode(body), request=request
            )

    return httpx2.AsyncClient(transport=Transport(), trust_env=False)


_MOST_PAGES = 100
_PATIENCE_SECS = 120.0


class FetchedModels(msgspec.Struct, frozen=True, kw_only=True):
    """All models that a provider lists. `skipped` counts entries of its list that are not usable."""

    models: tuple[ListedModel, ...]
    skipped: int


async def fetch_models(server: Server, *, sdk: bool = True, patience_secs: float = _PATIENCE_SECS) -> FetchedModels:
    """Return all models that a provider lists.

    Args:
        server: the provider's server; the account's limits apply to each request.
        sdk: let the vendor's SDK fetch the pages if it is installed.
        patience_secs: the limit for all requests together.

    Raises:
        ProviderError: a page could not be fetched.
        ConfigurationError: the URL, a proxy or a certificate variable cannot be used.
    """
    from anyio import fail_after

    try:
        with fail_after(patience_secs):
            return await _fetch(server, sdk=sdk)
    except TimeoutError:
        message = f"{server.provider} did not list its models within {patience_secs:,.0f} s"
        raise ProviderError(message, kind="timeout", hint="try again in a while") from None


async def _fetch(server: Server, *, sdk: bool) -> FetchedModels:
    pages = await _pages_of_sdk(server) if sdk else None
    if pages is None:
        pages = [page async for page in _pages(server)]
    models: dict[str, ListedModel] = {}
    for page in pages:
        for model in page.models:
            models.setdefault(model.id, model)
    found = tuple(models.values())
    if server.vendor.models.complete is not None:
        found = await server.vendor.models.complete(server, found)
    return FetchedModels(models=found, skipped=sum(page.skipped for page in pages))


async def _pages_of_sdk(server: Server) -> list[Page] | None:
    """Return the pages that the vendor's SDK lists; None if there is no SDK or it cannot read the response."""
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
        page = _read(server, await server.get(list_path(server.vendor.models, cursor)))
        yield page
        cursor = page.next
        if not cursor or cursor in seen:
            return
        seen.add(cursor)


def _read(server: Server, body: object) -> Page:
    page = server.vendor.models.read(body)
    if page is None:
        server.refuse()
    return page


PATIENCE_SECS = 0.3
_LARGEST_LIST = 1024 * 1024
_OK = 200


class RunningServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that responded. `models` may be empty."""

    provider: str
    address: str
    models: tuple[str, ...]


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def running_servers(
    servers: Mapping[str, LocalServer],
    environ: Mapping[str, str],
    *,
    configured: Mapping[str, str] | None = None,
    declared: Mapping[str, str] | None = None,
    patience_secs: float = PATIENCE_SECS,
) -> tuple[RunningServer, ...]:
    """Return the servers that respond within `patience_secs`, all requested at once.

    `configured` are the base URLs of those that are not at their default URL, `declared` those of the user's own.
    """
    if not servers and not declared:
        return ()

    from threading import Thread
    from time import monotonic

    found: dict[str, RunningServer] = {}

    def ask(provider: str, address: str) -> None:
        models = _models_at(address, patience_secs)
        if models is not None:
            found[provider] = RunningServer(provider=provider, address=address, models=tuple(models))

    addresses = {provider: address_of(server, environ) for provider, server in servers.items()} | {
        **(configured or {}),
        **(declared or {}),
    }
    # A DNS lookup has no timeout: threads that still run when time is up are abandoned.
    threads = [Thread(target=ask, args=each, daemon=True) for each in addresses.items()]
    deadline = monotonic() + patience_secs
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - monotonic()))
    answered = dict(found)
    return tuple(answered[provider] for provider in addresses if provider in answered)


def _models_at(address: str, timeout: float) -> Sequence[str] | None:
    """Return the models that a server lists; None if no such server responds."""
    from http.client import HTTPException
    from urllib.parse import urlsplit

    connection = _connection(address, timeout)
    path = urlsplit(address).path.rstrip("/")
    try:
        connection.request("GET", joined(path, "/v1/models"), headers={"accept": "application/json"})
        response = connection.getresponse()
        body = response.read(_LARGEST_LIST)
        if response.status != _OK:
            return None
        return [model.id for model in msgspec.json.decode(body, type=_Models).data]
    except (OSError, HTTPException, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None
    finally:
        connection.close()


def _connection(address: str, timeout: float) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    scheme, _, rest = address.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    return (HTTPSConnection if scheme == "https" else HTTPConnection)(host, timeout=timeout)


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A usable model and the reason in words, never with a key."""

    model: str
    because: str


def proposals(
    settings: LlmConfig,
    environ: Mapping[str, str],
    *,
    has_stored_key: Callable[[str], bool],
    known: Sequence[Vendor] | None = None,
    is_declared: bool = False,
) -> tuple[Proposal, ...]:
    """Return one model for each usable provider, in the order of `known`, by default all.

    `has_stored_key` is called only if the environment has no key. Servers get a third of a second, all at once. With
    `is_declared`, only servers that the configuration names are asked, also those with a name of the user's own.
    """
    known = vendors() if known is None else known
    servers = {vendor.id: vendor.server for vendor in known if vendor.server is not None}
    addresses = _configured(settings, servers)
    own: dict[str, str] = {}
    if is_declared:
        servers = {provider: server for provider, server in servers.items() if provider in addresses}
        own = _declared(settings)
    running = running_servers(servers, environ, configured=addresses, declared=own)
    found = [proposal for vendor in known for proposal in _by_key(vendor, settings, environ, has_stored_key)]
    for server in running:
        if models := _chat_models(server.models):
            because = f"a server responds at {server.address}"
            found.append(Proposal(model=f"{server.provider}/{models[0]}", because=because))
    order = [*(vendor.id for vendor in known), *own]
    return tuple(sorted(found, key=lambda proposal: order.index(proposal.model.partition("/")[0])))


def _declared(settings: LlmConfig) -> dict[str, str]:
    """Return the URLs of servers with a name of the user's own that need no key."""
    return {
        name: server.base_url
        for name, server in settings.servers.items()
        if server.base_url and server.api_key_env is None and name not in {vendor.id for vendor in vendors()}
    }


def _configured(settings: LlmConfig, servers: Collection[str]) -> dict[str, str]:
    """Return the URLs of servers that are not at their default URL."""
    addresses: dict[str, str] = {}
    for provider in servers:
        account, usual = account_of(settings, provider), account_of(LlmConfig(), provider)
        if account is not None and account.base_url and (usual is None or account.base_url != usual.base_url):
            addresses[provider] = account.base_url
    return addresses


def _chat_models(models: Sequence[str]) -> Sequence[str]:
    """Return the models of a server that may answer a question, judging by their names."""
    return [model for model in models if "embed" not in model.lower()]


def _by_key(
    vendor: Vendor, settings: LlmConfig, environ: Mapping[str, str], has_stored_key: Callable[[str], bool]
) -> Iterator[Proposal]:
    if not (vendor.proposed and vendor.key_variables):
        return
    account = account_of(settings, vendor.id)
    configured = () if account is None or account.api_key_env is None else (account.api_key_env,)
    variable = next((name for name in (*configured, *vendor.key_variables) if environ.get(name, "").strip()), None)
    if variable is not None:
        yield Proposal(model=vendor.proposed, because=f"{variable} is set")
    elif has_stored_key(vendor.id):
        yield Proposal(model=vendor.proposed, because="its key is stored")

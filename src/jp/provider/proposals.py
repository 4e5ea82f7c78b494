"""Models that a new user can use: those of providers with a key, and those of local servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.config.model import LlmConfig
from jp.provider.registry import account_of, address_of, vendors
from jp.provider.vendor import LocalServer, Vendor

if TYPE_CHECKING:
    from http.client import HTTPConnection


PATIENCE_SECS = 0.3
_MOST_BYTES = 1024 * 1024
_SUCCESS = 200


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
    patience_secs: float = PATIENCE_SECS,
) -> tuple[RunningServer, ...]:
    """Return the servers that respond within `patience_secs`, all requested at once.

    `configured` are the base URLs of those that are not at their default URL.
    """
    if not servers:
        return ()

    from threading import Thread
    from time import monotonic

    found: dict[str, RunningServer] = {}

    def ask(provider: str, address: str) -> None:
        models = _models_at(address, patience_secs)
        if models is not None:
            found[provider] = RunningServer(provider=provider, address=address, models=tuple(models))

    addresses = {provider: address_of(server, environ) for provider, server in servers.items()} | {**(configured or {})}
    # A DNS lookup has no timeout: threads that still run when time is up are abandoned.
    threads = [Thread(target=ask, args=each, daemon=True) for each in addresses.items()]
    deadline = monotonic() + patience_secs
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - monotonic()))
    answered = dict(found)
    return tuple(answered[provider] for provider in servers if provider in answered)


def _models_at(address: str, timeout: float) -> Sequence[str] | None:
    """Return the models that a server lists; None if no such server responds."""
    from http.client import HTTPException
    from urllib.parse import urlsplit

    connection = _connection(address, timeout)
    path = urlsplit(address).path.rstrip("/").removesuffix("/v1")
    try:
        connection.request("GET", f"{path}/v1/models", headers={"accept": "application/json"})
        response = connection.getresponse()
        body = response.read(_MOST_BYTES)
        if response.status != _SUCCESS:
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
) -> tuple[Proposal, ...]:
    """Return one model for each usable provider, in the order of `known`, by default all.

    `has_stored_key` is called only if the environment has no key. Servers get a third of a second, all at once.
    """
    known = vendors() if known is None else known
    servers = {vendor.id: vendor.server for vendor in known if vendor.server is not None}
    addresses = _configured(settings, servers)
    running = {server.provider: server for server in running_servers(servers, environ, configured=addresses)}
    found: list[Proposal] = []
    for vendor in known:
        found += _by_key(vendor, settings, environ, has_stored_key)
        server = running.get(vendor.id)
        models = () if server is None else _conversing(server.models)
        if server is not None and models:
            model = f"{vendor.id}/{models[0]}"
            found.append(Proposal(model=model, because=f"a server responds at {server.address}"))
    return tuple(found)


def _configured(settings: LlmConfig, servers: Collection[str]) -> dict[str, str]:
    """Return the URLs of servers that are not at their default URL."""
    addresses: dict[str, str] = {}
    for provider in servers:
        account, usual = account_of(settings, provider), account_of(LlmConfig(), provider)
        if account is not None and account.base_url and (usual is None or account.base_url != usual.base_url):
            addresses[provider] = account.base_url
    return addresses


def _conversing(models: Sequence[str]) -> Sequence[str]:
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

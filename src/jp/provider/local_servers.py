"""Servers of models on the user's own machine: which of them listen, and with which models.

Only addresses that are declared are asked: the configured one, that in a server's own environment variable, else its
usual one, on loopback. All are asked at once, and who does not answer in time is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.provider.server_address import LocalServer, address_of

if TYPE_CHECKING:
    from http.client import HTTPConnection

PATIENCE_SECS = 0.3
_MOST_BYTES = 1024 * 1024
_SUCCESS = 200


class RunningServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answered. `models` may be empty."""

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
    """Which of the providers' servers answer within `patience_secs`, all asked at once.

    `configured` are the base URLs of those that are somewhere else than usual.
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
    # Looking up a name knows no timeout: who is still at it when time is up is left behind.
    threads = [Thread(target=ask, args=each, daemon=True) for each in addresses.items()]
    deadline = monotonic() + patience_secs
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - monotonic()))
    answered = dict(found)
    return tuple(answered[provider] for provider in servers if provider in answered)


def _models_at(address: str, timeout: float) -> Sequence[str] | None:
    """The models that a server lists; None where nobody answers as such a server does."""
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

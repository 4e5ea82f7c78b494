"""Who makes requests for a cloud: the SDK of its vendor, in a thread of its own, so that nobody waits who need not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

from jp.provider.base import WireRequest
from jp.provider.clouds import Cloud
from jp.provider.errors import ProviderError
from jp.provider.framing import Frames
from jp.provider.transport import HttpRequest

T = TypeVar("T")

_LEAST_TIMEOUT = 60.0
"""Seconds: an import and several calls for credentials take longer than a server that streams is silent."""

_PACKAGES: dict[tuple[str, str], tuple[str, ...]] = {
    ("anthropic", "bedrock"): ("anthropic", "boto3", "botocore"),
    ("anthropic", "vertex"): ("anthropic", "google.auth", "requests"),
    ("anthropic", "foundry"): ("anthropic",),
    ("openai", "azure"): ("openai",),
    ("google", "vertex"): ("google.genai",),
}


def check_packages(cloud: Cloud) -> None:
    """Refuse a cloud whose SDK is not there, without importing it.

    Raises:
        ConfigurationError: a package is not installed.
    """
    for name in _PACKAGES[cloud.kind, cloud.platform]:
        if not is_installed(name):
            from jp.provider.sdk.failures import missing_package

            raise missing_package(cloud, name)


def is_installed(name: str) -> bool:
    """Whether a package is there; it is not imported, only what is above it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


class CloudSigner:
    """Signs requests for one cloud; see `jp.provider.http.Signer`.

    `headers` are the user's own. `patience` is how many seconds a server may be silent, None where there is no limit.
    """

    def __init__(
        self, cloud: Cloud, *, key: str | None, headers: tuple[tuple[str, str], ...], patience: float | None
    ) -> None:
        self._cloud = cloud
        self._key = key
        self._headers = headers
        self._timeout = None if patience is None else max(patience, _LEAST_TIMEOUT)

    async def sign(self, request: WireRequest) -> HttpRequest:
        """See the port."""

        def sign() -> HttpRequest:
            from jp.provider.sdk.clients import signed

            return signed(self._cloud, request, key=self._key, headers=self._headers)

        try:
            async with asyncio.timeout(self._timeout):
                return await _aside(sign)
        except TimeoutError:
            message = f"{self._cloud.title}'s credentials did not come in time"
            hint = "`assistant.request.stream_idle_timeout_secs` says how long jp waits"
            raise ProviderError(message, kind="timeout", hint=hint) from None
        except Exception as error:
            from jp.provider.sdk.failures import failure

            raise failure(error, self._cloud) from error

    def frames(self, headers: Mapping[str, str]) -> Frames | None:
        """See the port."""
        from jp.provider.sdk.event_stream import CONTENT_TYPE, EventStreamFrames

        return EventStreamFrames() if headers.get("content-type", "").startswith(CONTENT_TYPE) else None


async def _aside(work: Callable[[], T]) -> T:
    """What `work` gives, in a thread that neither a cancelled task nor the end of the process waits for."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(outcome.set_result, work())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            settle = partial(outcome.set_exception, error)
        with suppress(RuntimeError):  # nobody is there any more
            loop.call_soon_threadsafe(lambda: outcome.done() or settle())

    threading.Thread(target=run, daemon=True).start()
    return await outcome

"""A provider's server, asked for something else than an answer: over the transport that queries take."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from jp import __version__
from jp.provider.catalogue.asking import key_headers
from jp.provider.errors import ProviderError
from jp.provider.http import Account, joined
from jp.provider.transport import HttpRequest, HttpResponse, Limits, get, post

_MOST_BYTES = 32 * 1024 * 1024
_SUCCESS = range(200, 300)


class Server:
    """A provider's server, which is asked what it is and has."""

    def __init__(self, provider: str, kind: str, account: Account, limits: Limits) -> None:
        self.provider = provider
        self.kind = kind
        self.base_url = account.base_url
        self._account = account
        self._limits = replace(limits, max_response_bytes=_MOST_BYTES)

    async def get(self, path: str) -> object:
        """The JSON at a path below the base URL.

        Raises:
            ProviderError: it did not come.
        """
        return await self.get_at(joined(self.base_url, path))

    async def get_at(self, url: str) -> object:
        """The JSON at an address, with the account's key.

        Raises:
            ProviderError: it did not come.
        """
        return await self._answer(get(HttpRequest(url=url, headers=self._headers()), self._limits))

    async def post(self, path: str, body: object) -> object:
        """The JSON that answers `body`.

        Raises:
            ProviderError: it did not come.
        """
        headers = (*self._headers(), ("content-type", "application/json"))
        request = HttpRequest(url=joined(self.base_url, path), headers=headers, body=msgspec.json.encode(body))
        return await self._answer(post(request, self._limits))

    def refuse(self) -> NoReturn:
        """Say that what came is no list of models.

        Raises:
            ProviderError: always.
        """
        raise ProviderError(
            f"{self.provider} answered with something else than its models",
            kind="other",
            hint=f"check `{self._account.base_url_setting}`: that is where they are looked for",
        )

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("accept", "application/json"),
            ("user-agent", f"jp/{__version__}"),
            *key_headers(self.kind, self._account.key),
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
            error.hint = f"check `{account.base_url_setting}`: that is where the models are looked for"
        return error

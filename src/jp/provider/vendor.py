"""What every vendor's folder says of itself: one `Vendor` in its `vendor.py`, imported by the registry when asked for.

A `vendor.py` imports its `request.py` and `response.py` on use: commands that only list providers load neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from jp.config.entries import Platform
from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError

if TYPE_CHECKING:
    import httpx2

    from jp.provider.base import Provider
    from jp.provider.errors import ErrorKind
    from jp.provider.http import Adapter
    from jp.provider.listing import Listed, Page


class _Count(msgspec.Struct):
    """What providers answer; each has one of these."""

    input_tokens: int | None = None
    total_tokens: int | None = msgspec.field(name="totalTokens", default=None)


def count_at(request: WireRequest, path: str, names: Collection[str], *, body: JsonObject | None = None) -> WireRequest:
    """Return what asks at `path` for the tokens of those fields of a request, or of `body`, that have `names`."""
    whole = request.body if body is None else body
    return replace(
        request, path=path, body={name: value for name, value in whole.items() if name in names}, framing="json"
    )


def counted(provider: str, body: bytes) -> int:
    """Return the tokens that a provider has counted.

    Raises:
        ProviderError: it does not say how many.
    """
    try:
        count = msgspec.json.decode(body, type=_Count)
    except (msgspec.DecodeError, UnicodeDecodeError):
        count = _Count()
    tokens = count.total_tokens if count.input_tokens is None else count.input_tokens
    if tokens is None:
        raise ProviderError(f"{provider} answered the request for a count without one", kind="transient")
    return tokens


_TITLES: dict[Platform, str] = {"bedrock": "Bedrock", "vertex": "Vertex AI", "foundry": "Foundry", "azure": "Azure"}


class LocalServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server usually listens, and the variable that says otherwise; it lists models as OpenAI's API does."""

    port: int
    variable: str = ""


def read_chat_models(body: object) -> Page | None:
    """Read a list of models as servers that speak Chat Completions write it."""
    from jp.provider.listing import read_chat_models

    return read_chat_models(body)


class ListingServer(Protocol):
    """A server that is asked for its models."""

    base_url: str

    async def get_optional(self, url: str) -> object:
        """Return the JSON at an address, None where it did not come."""
        ...

    async def post_optional(self, path: str, body: object) -> object:
        """Return the JSON that answers `body`, None where it did not come."""
        ...


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """How a vendor lists its models.

    `path` is below the base URL, `cursor` the parameter that asks for the next page, `headers` are sent besides the
    key. `read` returns None for what is no page. Everybody may ask for a list that `is_public`. What one that
    `overrides` says of a model's abilities goes before jp's own table. `complete` asks the
    server for what the list does not say. With the vendor's SDK installed (the package `sdk`), `list_with_sdk` returns
    the pages.
    """

    path: str = "/v1/models"
    cursor: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    is_public: bool = False
    read: Callable[[object], Page | None] = read_chat_models
    overrides: bool = False
    complete: Callable[[ListingServer, tuple[Listed, ...]], Awaitable[tuple[Listed, ...]]] | None = None
    sdk: str = ""
    list_with_sdk: Callable[[Any, ListingServer, httpx2.AsyncClient], Awaitable[list[object]]] | None = None


class CloudOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's models in a cloud.

    `packages` have to be installed. `variables` are where the SDK finds what the settings do not say, `resource` a
    variable with the name of a resource and the address that it stands in, `defaults` what there is a default for, and
    `required` what there is none for, each with an example. `key_variable` is empty where the cloud takes no key.
    """

    packages: tuple[str, ...]
    variables: Mapping[str, tuple[str, ...]] = {}
    resource: tuple[str, str] = ("", "")
    defaults: Mapping[str, str] = {}
    required: Mapping[str, str] = {}
    key_variable: str = ""
    counts: bool = True


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """An account with a cloud. `provider` is under what name it is known, `vendor` whose models it has there."""

    provider: str
    vendor: Vendor
    platform: Platform
    endpoint: str | None = None
    region: str | None = None
    project: str | None = None
    profile: str | None = None
    api_version: str | None = None

    @property
    def title(self) -> str:
        """What the cloud is called."""
        return _TITLES[self.platform]

    @property
    def key_variable(self) -> str:
        """The variable that usually holds its key; empty where it takes none."""
        return self.offer.key_variable

    @property
    def offer(self) -> CloudOffer:
        """What the vendor has there."""
        return self.vendor.clouds[self.platform]

    def setting(self, name: str) -> str:
        """The full name of one of its settings."""
        return f"providers.llm.{self.provider}.{name}"


class CloudCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the vendor's SDK is to send to a cloud through a client; `headers` are the user's own, too."""

    cloud: Cloud
    request: WireRequest
    key: str | None
    headers: Mapping[str, str]
    client: httpx2.Client


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """All that jp knows of a provider, apart from its models (`models.json`) and the settings of its account.

    Attributes:
        id: The provider's name; for a server of the user's own, the name it has in the configuration.
        create_adapter: Makes the adapter for the provider of that name.
        create_provider: Makes the whole provider for a model, where it talks to no server.
        key_variables: Where it is usual to keep its key; `needs_key` says whether a request needs one.
        key_header: The header that carries the key, and what stands before it.
        proposed: The model that a new user with a key is offered, empty where there is none.
        server: What listens on the user's own machine.
        is_local: Whether it runs on hardware of the user: it costs nothing and may take its time.
        calls_tools: Whether all its models call tools, also those that are not in its table.
        models: How it lists its models.
        clouds: Where else its models are; `send` has the vendor's SDK send a request there.
        count: Returns what asks for the tokens of a request; its second argument is the cloud.
        hints: Returns hints by the kind of the error, for a provider's name and a model.
        settings_hints: Words of an error, the setting that lets the request through, and why.
        held_window: Returns how many tokens the server called by a name is told to hold.
    """

    id: str
    create_adapter: Callable[[LlmConfig, str], Adapter] | None = None
    create_provider: Callable[[LlmConfig, str, Path], Provider] | None = None
    key_variables: tuple[str, ...] = ()
    needs_key: bool = True
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    proposed: str = ""
    server: LocalServer | None = None
    is_local: bool = False
    calls_tools: bool = False
    models: ModelList = ModelList()
    clouds: Mapping[Platform, CloudOffer] = {}
    send: Callable[[CloudCall], None] | None = None
    count: Callable[[WireRequest, str | None], WireRequest] | None = None
    hints: Callable[[str, str], Mapping[ErrorKind, str]] | None = None
    settings_hints: tuple[tuple[bytes, str, str], ...] = ()
    held_window: Callable[[LlmConfig, str], int | None] | None = None

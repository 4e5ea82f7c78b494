"""Description of a vendor: one `Vendor` in each vendor's `vendor.py`, imported by the registry on use.

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
    from jp.provider.listing import ListedModel, Page


class _Count(msgspec.Struct):
    """The count in a provider's response; each provider has one of these fields."""

    input_tokens: int | None = None
    total_tokens: int | None = msgspec.field(name="totalTokens", default=None)


def count_at(request: WireRequest, path: str, names: Collection[str], *, body: JsonObject | None = None) -> WireRequest:
    """Return a request to count tokens at `path`, with the fields of a request, or of `body`, that have `names`."""
    whole = request.body if body is None else body
    return replace(
        request, path=path, body={name: value for name, value in whole.items() if name in names}, framing="json"
    )


def read_token_count(provider: str, body: bytes) -> int:
    """Return the tokens that a provider has counted.

    Raises:
        ProviderError: the response has no count.
    """
    try:
        count = msgspec.json.decode(body, type=_Count)
    except (msgspec.DecodeError, UnicodeDecodeError):
        count = _Count()
    tokens = count.total_tokens if count.input_tokens is None else count.input_tokens
    if tokens is None:
        raise ProviderError(f"{provider} did not return a token count", kind="transient")
    return tokens


_TITLES: dict[Platform, str] = {"bedrock": "Bedrock", "vertex": "Vertex AI", "foundry": "Foundry", "azure": "Azure"}


class LocalServer(msgspec.Struct, frozen=True, kw_only=True):
    """The default URL of a server and the variable that overrides it; the server lists models as OpenAI's API does."""

    port: int
    variable: str = ""


def read_chat_models(body: object) -> Page | None:
    """Return the page of a list of models in the format of Chat Completions servers."""
    from jp.provider.listing import read_chat_models

    return read_chat_models(body)


class ListingServer(Protocol):
    """A server that lists its models."""

    base_url: str

    async def get_optional(self, url: str) -> object:
        """Return the JSON at a URL, None if the request failed."""
        ...

    async def post_optional(self, path: str, body: object) -> object:
        """Return the JSON response to `body`, None if the request failed."""
        ...


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The API by which a vendor lists its models.

    Attributes:
        path: the path below the base URL.
        cursor: the parameter of the next page.
        headers: headers besides the key.
        read: a parser that returns None for a value that is not a page.
        is_public: whether no key is needed.
        overrides: whether its abilities of a model override jp's own table.
        complete: a function that requests what the list lacks.
        sdk: the package of the vendor's SDK.
        list_with_sdk: a function that returns the pages with the vendor's SDK.
    """

    path: str = "/v1/models"
    cursor: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    is_public: bool = False
    read: Callable[[object], Page | None] = read_chat_models
    overrides: bool = False
    complete: Callable[[ListingServer, tuple[ListedModel, ...]], Awaitable[tuple[ListedModel, ...]]] | None = None
    sdk: str = ""
    list_with_sdk: Callable[[Any, ListingServer, httpx2.AsyncClient], Awaitable[list[object]]] | None = None


class CloudOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's models in a cloud.

    Attributes:
        packages: packages that have to be installed.
        variables: variables of the SDK for settings that the configuration lacks.
        resource: a variable with the name of a resource, and the URL that contains it.
        defaults: default values of settings.
        required: settings without a default value, each with an example.
        key_variable: the variable of the key; empty if the cloud takes none.
    """

    packages: tuple[str, ...]
    variables: Mapping[str, tuple[str, ...]] = {}
    resource: tuple[str, str] = ("", "")
    defaults: Mapping[str, str] = {}
    required: Mapping[str, str] = {}
    key_variable: str = ""
    counts: bool = True


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """An account with a cloud. `provider` is its name, `vendor` the one whose models are used."""

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
        """The name of the cloud in messages."""
        return _TITLES[self.platform]

    @property
    def key_variable(self) -> str:
        """The default variable of its key; empty if it takes none."""
        return self.offer.key_variable

    @property
    def offer(self) -> CloudOffer:
        """The vendor's offer in the cloud."""
        return self.vendor.clouds[self.platform]

    def setting(self, name: str) -> str:
        """Return the full name of one of its settings."""
        return f"providers.llm.{self.provider}.{name}"


class CloudCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the vendor's SDK sends to a cloud; `headers` include those of the configuration."""

    cloud: Cloud
    request: WireRequest
    key: str | None
    headers: Mapping[str, str]
    client: httpx2.Client


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, without its models (`models.json`) and the settings of its account.

    Attributes:
        id: The provider's name; for a server of the user's own, the name in the configuration.
        create_adapter: Returns the adapter for the provider with a name.
        create_provider: Returns the whole provider for a model, for one without a server.
        key_variables: The default variables of its key; `needs_key` means that a request needs one.
        key_header: The header of the key, and the prefix of its value.
        proposed: The model that is proposed to a new user with a key, empty if there is none.
        server: The server on the user's own machine.
        is_local: Whether it runs on the user's hardware: it costs nothing and may be slow.
        calls_tools: Whether all its models call tools, including those that are not in its table.
        models: The list of its models.
        clouds: The clouds with its models; `send` has the vendor's SDK send a request there.
        count: Returns the request that counts the tokens of a request; its second argument is the cloud.
        hints: Returns hints by the kind of the error, for a provider's name and a model.
        settings_hints: Words of an error, the setting that lets the request through, and the reason.
        held_window: Returns the context window that the server with a name is configured with.
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

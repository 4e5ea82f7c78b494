"""Registry of vendors: from a model id to its vendor, and to a provider for an account.

Only this module lists the vendors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from jp.config.entries import CloudAccount, ModelFactsConfig
from jp.config.model import AppConfig, LlmConfig, RequestConfig, resolve_alias
from jp.errors import ConfigurationError
from jp.provider.base import Provider
from jp.provider.keys import FoundKey, StoredKeys, find_key, hint_for_rejected, hint_for_required, missing_key
from jp.provider.models import known_names
from jp.provider.transport import Limits
from jp.provider.vendor import LocalServer, Vendor
from jp.remedies import Option, SetSettings, UseOption, phrase
from jp.suggestions import closest_names

if TYPE_CHECKING:
    from jp.provider.http import Account, Adapter
    from jp.provider.vendor import Cloud


_FOLDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google",
    "openrouter": "openrouter",
    "cerebras": "cerebras",
    "ollama": "ollama",
    "llamacpp": "llamacpp",
    "script": "script",
    "openai-compatible": "chat",
}
"""Folders of the kinds of providers. The last kind is the default of a server of the user's own."""

*_PROVIDERS, _COMPATIBLE = _FOLDERS
PROVIDERS = tuple(_PROVIDERS)
KINDS = tuple(_FOLDERS)


@cache
def vendor_of(kind: str) -> Vendor:
    """Return the vendor of a kind of provider, importing its module on use."""
    return import_module(f"jp.provider.{_FOLDERS[kind]}.vendor").VENDOR


def vendors() -> tuple[Vendor, ...]:
    """Return the vendor of every provider of this version."""
    return tuple(map(vendor_of, PROVIDERS))


def built_in(provider: str) -> Vendor | None:
    """Return the vendor with a name, None for a server of the user's own or an unknown name."""
    return vendor_of(provider) if provider in PROVIDERS else None


def is_loopback(base_url: str) -> bool:
    """Return whether a URL is on this machine: `localhost`, or a loopback IP address."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(server: LocalServer, environ: Mapping[str, str]) -> str:
    """Return the base URL of a server; for one that listens on all interfaces, the loopback URL."""
    from urllib.parse import urlsplit

    declared = environ.get(server.variable, "").strip() if server.variable else ""
    text = declared if "://" in declared else f"http://{declared}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, text = "", None, ""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - nothing is bound here
        host = "127.0.0.1"
    scheme = "https" if text.startswith("https://") else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port or server.port}"


_TYPO_SIMILARITY = 0.8
"""Similarity of two names that differ in one or two letters."""

_LOCAL_IDLE_SECS = 600.0
_FIRST_BYTE_SECS = 120.0

_HINT = "a model is `provider/name`, such as `anthropic/claude-sonnet-5-5`, or an alias of `providers.llm.aliases`"


class ModelId(msgspec.Struct, frozen=True):
    """A model of a provider. `name` may contain slashes."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


_ENDPOINT = "/chat/completions"
"""Path that some servers' pages include in their base URL."""


class _AccountSettings(Protocol):
    @property
    def base_url(self) -> str | None: ...

    @property
    def api_key_env(self) -> str | None: ...

    @property
    def models(self) -> Mapping[str, ModelFactsConfig]: ...


def account_of(settings: LlmConfig, provider: str) -> _AccountSettings | None:
    """Return the settings of a provider's account; None for a provider without a server."""
    if provider in PROVIDERS:
        return None if vendor_of(provider).create_adapter is None else getattr(settings, provider)
    return settings.servers.get(provider)


def _quoted(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _unknown_alias(text: str, aliases: Mapping[str, str]) -> ConfigurationError:
    full = {name: f"{provider}/{name}" for provider in PROVIDERS for name in known_names(provider)}
    near = closest_names(text, (*aliases, *full), most=3)
    meant = _quoted(tuple(full.get(name, name) for name in near))
    hint = f"did you mean {meant}?" if meant else _HINT
    return ConfigurationError(f"{text!r} is neither a model nor an alias", hint=hint)


def _unknown_provider(provider: str, own: Collection[str] = ()) -> ConfigurationError:
    known = (*PROVIDERS, *own)
    near = closest_names(provider, known, most=3)
    name = provider if provider.replace("-", "").replace("_", "").isalnum() else "NAME"
    server = SetSettings((f"providers.llm.{name}.base_url=https://…/v1",), scope="user")
    listed = phrase(f"known are {', '.join(map(repr, known))}; declare another server: `", server, "`")
    hint = f"did you mean {_quoted(near)}?" if near else listed
    return ConfigurationError(f"there is no provider {provider!r}", hint=hint)


def parse_model_id(text: str, settings: LlmConfig) -> ModelId:
    """Return the model that `text` names: `provider/name`, or an alias, which may name another alias.

    Raises:
        ConfigurationError: it names no model, or an unknown provider.
    """
    resolved = resolve_alias(text, settings.aliases)
    provider, slash, name = resolved.partition("/")
    if not slash:
        raise _unknown_alias(resolved, settings.aliases)
    if not name or not provider:
        raise ConfigurationError(f"{resolved!r} is not a model", hint=_HINT)
    if provider not in PROVIDERS and provider not in settings.servers:
        raise _unknown_provider(provider, settings.servers)
    return ModelId(provider, name)


def vendor_in(settings: LlmConfig, provider: str) -> Vendor:
    """Return the vendor with a name, or that of the kind of a server that the user has declared.

    Raises:
        ConfigurationError: the name is unknown.
    """
    own = settings.servers.get(provider)
    if provider in PROVIDERS:
        return vendor_of(provider)
    if own is None:
        raise _unknown_provider(provider, settings.servers)
    variables = () if own.api_key_env is None else (own.api_key_env,)
    return msgspec.structs.replace(
        vendor_of(own.kind),
        id=provider,
        key_variables=variables,
        needs_key=own.api_key_env is not None,
        proposed="",
        server=None,
    )


def key_variables(settings: LlmConfig, provider: str) -> tuple[str, ...]:
    """Return the environment variables for a provider's key: the configured one before the default ones."""
    if (cloud := cloud_of(settings, provider)) is not None:
        return _cloud_variables(settings, cloud)
    vendor = vendor_in(settings, provider)
    account = account_of(settings, provider)
    configured = () if account is None or account.api_key_env is None else (account.api_key_env,)
    return tuple(dict.fromkeys((*configured, *vendor.key_variables)))


def _cloud_variables(settings: LlmConfig, cloud: Cloud) -> tuple[str, ...]:
    """Return the variables for the key of a cloud, if it takes one; those of the vendor's own API are not for it."""
    account, usual = account_of(settings, cloud.provider), account_of(LlmConfig(), cloud.provider)
    configured = None if account is None else account.api_key_env
    vendors = None if usual is None else usual.api_key_env
    named = () if configured in {None, vendors} else (configured,)
    return tuple(filter(None, (*named, cloud.key_variable))) if cloud.key_variable else ()


def misspelled_servers(settings: LlmConfig, provider: str) -> tuple[str, ...]:
    """Return servers of the user's own whose names are misspellings of a provider of this version."""
    names = (name for name, own in settings.servers.items() if name.isalpha() and own.kind != provider)
    candidates = tuple(names) if provider in PROVIDERS else ()
    return tuple(
        name for name in candidates if provider in closest_names(name, PROVIDERS, most=3, alike=_TYPO_SIMILARITY)
    )


def cloud_of(settings: LlmConfig, provider: str) -> Cloud | None:
    """Return the cloud of an account, None for the vendor's own API.

    Raises:
        ConfigurationError: the settings of the cloud are incomplete or contradict each other.
    """
    account = account_of(settings, provider)
    if not isinstance(account, CloudAccount) or account.transport == "http":
        return None
    from jp.provider.clouds import create_cloud

    kinds = tuple(kind for kind in _FOLDERS if vendor_of(kind).clouds)
    return create_cloud(account, provider, vendor=vendor_of(kind_of(settings, provider)), kinds=kinds)


def kind_of(settings: LlmConfig, provider: str) -> str:
    """Return the provider of this version whose protocol and model abilities another one has."""
    own = settings.servers.get(provider)
    return provider if own is None or provider in PROVIDERS else own.kind


def create_provider(
    config: AppConfig,
    model: ModelId,
    *,
    environ: Mapping[str, str],
    root: Path,
    stored: StoredKeys | None = None,
    needs_key: bool = True,
) -> Provider:
    """Return the provider of `model`. It begins to connect where requests share connections.

    Args:
        config: the configuration of the conversation.
        model: the model with its provider.
        environ: the environment.
        root: the folder that the path of a scenario is relative to.
        stored: stored keys, read if the environment has none.
        needs_key: false for a provider that only renders requests.

    Raises:
        AuthenticationError: the provider needs a key and there is none.
        ConfigurationError: the provider is unknown, or its settings are malformed.
    """
    settings = config.providers.llm
    vendor = vendor_in(settings, model.provider)
    if vendor.create_provider is not None:
        return vendor.create_provider(settings, model.name, root)

    from jp.provider.http import HttpProvider

    kind = kind_of(settings, model.provider)
    adapter = create_adapter(settings, model.provider, kind=kind)
    if (cloud := cloud_of(settings, model.provider)) is not None:
        from jp.provider.clouds import cloud_key, create

        variables = _cloud_variables(settings, cloud)
        found = cloud_key(cloud, variables, environ=environ, stored=stored) if needs_key else None
        headers = _headers(settings, model.provider)
        limits = limits_for(kind, "", config.assistant.request)
        return create(cloud, adapter, limits, headers=headers, key=found, environ=environ if needs_key else None)
    found = _key(settings, vendor, environ, stored) if needs_key else None
    account = _account(settings, vendor, environ, found)
    replies = tuple(
        (words, phrase(f"{why}: `", SetSettings((f"providers.llm.{kind}.{change}",)), "`"))
        for words, change, why in vendor.settings_hints
    )
    account = msgspec.structs.replace(account, reply_hints=replies)
    if vendor.hints is not None:
        account = msgspec.structs.replace(account, hints=vendor.hints(model.provider, model.name))
    provider = HttpProvider(adapter, account, limits_for(kind, account.base_url, config.assistant.request))
    if needs_key:
        provider.connect()
    return provider


def create_account(
    settings: LlmConfig,
    provider: str,
    *,
    environ: Mapping[str, str],
    stored: StoredKeys | None = None,
    needs_key: bool = True,
) -> Account:
    """Return the account with a provider, for requests other than model requests.

    `needs_key` is false for endpoints that are public.

    Raises:
        AuthenticationError: the provider needs a key and there is none.
        ConfigurationError: the provider is unknown, its settings are malformed, or it is in a cloud.
    """
    if (cloud := cloud_of(settings, provider)) is not None:
        message = f"{provider!r} is in a cloud ({cloud.title}), which lists its models only on its web pages"
        model = UseOption(Option.MODEL, f"{provider}/NAME")
        raise ConfigurationError(message, hint=phrase("use any of them with `", model, "`"))
    vendor = vendor_in(settings, provider)
    if not needs_key:
        vendor = msgspec.structs.replace(vendor, needs_key=False)
    return _account(settings, vendor, environ, _key(settings, vendor, environ, stored))


def _account(settings: LlmConfig, vendor: Vendor, environ: Mapping[str, str], found: FoundKey | None) -> Account:
    from jp.provider.http import Account

    where = _address_setting(vendor.id)
    variable = next(iter(key_variables(settings, vendor.id)), "")
    return Account(
        base_url=_base_url(settings, vendor, environ),
        base_url_setting=where,
        key=None if found is None else found.key,
        key_variable=variable,
        key_header=vendor.key_header,
        needs_key=vendor.needs_key,
        key_hint=hint_for_required(vendor.id, variable) if found is None else hint_for_rejected(vendor.id, found),
        reach_hint=_reach_hint(vendor, where),
        headers=_headers(settings, vendor.id),
    )


def base_url_of(settings: LlmConfig, provider: str, environ: Mapping[str, str]) -> str:
    """Return the base URL of a provider's requests.

    Raises:
        ConfigurationError: the provider is unknown, or no URL is configured.
    """
    return _base_url(settings, vendor_in(settings, provider), environ)


def _address_setting(provider: str) -> str:
    return f"providers.llm.{provider}.base_url"


def _base_url(settings: LlmConfig, vendor: Vendor, environ: Mapping[str, str]) -> str:
    where = _address_setting(vendor.id)
    account = account_of(settings, vendor.id)
    configured = None if account is None else account.base_url
    if configured is not None:
        return configured.rstrip("/").removesuffix(_ENDPOINT)
    if vendor.server is not None:
        return address_of(vendor.server, environ)
    hint = phrase("set it, such as `", SetSettings((f"{where}=http://127.0.0.1:8000/v1",)), "`")
    raise ConfigurationError(f"{where!r} is not set", hint=hint)


def _headers(settings: LlmConfig, provider: str) -> tuple[tuple[str, str], ...]:
    own = settings.servers.get(provider)
    return () if own is None or provider in PROVIDERS else tuple(own.headers.items())


def _reach_hint(vendor: Vendor, where: str) -> str:
    is_anothers = vendor.server is None and vendor.id in PROVIDERS
    return "" if is_anothers else f"is the server running? `{where}` sets its URL"


def _key(settings: LlmConfig, vendor: Vendor, environ: Mapping[str, str], stored: StoredKeys | None) -> FoundKey | None:
    variables = key_variables(settings, vendor.id)
    if not vendor.needs_key:
        found = find_key(vendor.id, variables, environ=environ, stored=None)
        if found is not None or stored is None or not stored.may_have(vendor.id):
            return found
    found = find_key(vendor.id, variables, environ=environ, stored=stored)
    if found is None and vendor.needs_key:
        raise missing_key(vendor.id, variables[0])
    return found


def limits_for(kind: str, base_url: str, request: RequestConfig) -> Limits:
    """Return the limits of a response of a server of a kind.

    Servers on the user's own machine have no first-byte timeout unless one is set: they may have to load the model and
    to read a long prompt before the first byte.
    """
    limits = limits_of(request)
    is_at_home = vendor_of(kind).is_local
    is_local = is_at_home or is_loopback(base_url)
    first_byte = request.first_byte_timeout_secs
    if first_byte is None:
        first_byte = 0 if is_local else _FIRST_BYTE_SECS
    idle = limits.idle_timeout
    if is_at_home and request.stream_idle_timeout_secs == RequestConfig().stream_idle_timeout_secs:
        idle = _LOCAL_IDLE_SECS
    return msgspec.structs.replace(limits, first_byte_timeout=first_byte or None, idle_timeout=idle)


def limits_of(request: RequestConfig) -> Limits:
    """Return the limits of a request with an immediate response, such as one for a list of models."""
    idle = request.stream_idle_timeout_secs or None
    return Limits(
        connect_timeout=request.connect_timeout_secs or None,
        first_byte_timeout=idle,
        idle_timeout=idle,
        max_response_bytes=request.max_response_bytes,
    )


def create_adapter(settings: LlmConfig, provider: str, *, kind: str) -> Adapter:
    """Return the adapter of a provider, whose kind decides the protocol.

    Raises:
        ConfigurationError: the kind has no adapter.
    """
    vendor = vendor_of(kind) if kind in _FOLDERS else None
    if vendor is None or vendor.create_adapter is None:
        raise ConfigurationError(f"this version does not support {provider!r}", hint="use another model")
    return vendor.create_adapter(settings, provider)

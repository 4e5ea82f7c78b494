"""From a model id to a provider and its adapter. Each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from jp.config.accounts import CloudAccount, GoogleConfig, ModelFactsConfig, OpenaiConfig, ServerConfig
from jp.config.model import AppConfig, LlmConfig, RequestConfig, resolve_alias
from jp.errors import ConfigurationError
from jp.likeness import nearest
from jp.provider.base import Provider
from jp.provider.errors import ErrorKind
from jp.provider.http import Adapter
from jp.provider.keys import FoundKey, StoredKeys, find_key, hint_for_rejected, hint_for_wanted, missing_key
from jp.provider.models import known_names
from jp.provider.transport import Limits

if TYPE_CHECKING:
    from jp.provider.clouds import Cloud
    from jp.provider.http import Account


class LocalServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server usually listens, and the variable that says otherwise; it lists models as OpenAI's API does."""

    port: int
    variable: str = ""


def is_loopback(base_url: str) -> bool:
    """Return whether an address is this machine's: `localhost`, or a loopback address."""
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
    """The base URL of a server. Who listens everywhere is asked on loopback."""
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


def hints_of(kind: str, provider: str, model: str) -> Mapping[ErrorKind, str]:
    """Hints by the kind of the error. `kind` is what the server called `provider` speaks, `model` what is asked."""
    match kind:
        case "ollama":
            setting = f"`providers.llm.{provider}.context_window`"
            return {
                "model_not_found": f"`ollama pull {model}` gets it, `ollama list` says which are there",
                "context_too_long": f"set {setting} higher, as far as the model and the memory go, or send less",
            }
        case "llamacpp":
            return {"context_too_long": "start the server with more room (`llama-server --ctx-size …`), or send less"}
        case "openai-compatible":
            return {
                "invalid_request": f"`providers.llm.{provider}` has settings for what a server does not take, such as "
                "`structured`; `jp query --dry-run --format json …` shows what is sent"
            }
        case _:
            return {}


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the commands that set jp up have to know of a provider.

    `key_variables` are where it is usual to keep its key, none where it knows of none; whether it `needs_key` is
    another matter. `proposed` is the model that somebody who has just begun is offered, empty where that takes more
    than a key. `server` is what listens on the user's own machine.
    """

    id: str
    key_variables: tuple[str, ...] = ()
    needs_key: bool = True
    proposed: str = ""
    server: LocalServer | None = None


FACTS = (
    ProviderFacts(id="anthropic", key_variables=("ANTHROPIC_API_KEY",), proposed="anthropic/claude-sonnet-5-5"),
    ProviderFacts(id="openai", key_variables=("OPENAI_API_KEY",), proposed="openai/gpt-6.1-sol"),
    ProviderFacts(id="google", key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"), proposed="google/gemini-3.8-flash"),
    ProviderFacts(
        id="openrouter", key_variables=("OPENROUTER_API_KEY",), proposed="openrouter/anthropic/claude-sonnet-5.5"
    ),
    ProviderFacts(id="cerebras", key_variables=("CEREBRAS_API_KEY",), proposed="cerebras/gpt-oss-120b"),
    ProviderFacts(
        id="ollama",
        key_variables=("OLLAMA_API_KEY",),
        needs_key=False,
        server=LocalServer(port=11434, variable="OLLAMA_HOST"),
    ),
    ProviderFacts(id="llamacpp", key_variables=("LLAMACPP_API_KEY",), needs_key=False, server=LocalServer(port=8080)),
    ProviderFacts(id="script", needs_key=False),
)
"""The providers of this version; what `jp init` and `jp keys` know of them comes from here."""

_SLIP = 0.8
"""How alike two names are that differ by a letter or two."""

_AT_HOME = frozenset({"ollama", "llamacpp"})
_PATIENCE_AT_HOME_SECS = 600.0
_FIRST_BYTE_SECS = 120.0

PROVIDERS = tuple(facts.id for facts in FACTS)

_HINT = "a model is `provider/name`, such as `anthropic/claude-sonnet-5-5`, or an alias of `providers.llm.aliases`"


class ModelId(msgspec.Struct, frozen=True):
    """A model of a provider. `name` may contain slashes."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


_SERVER = "declare another server: `jp config set --in user providers.llm.{name}.base_url=https://…/v1`"

_ENDPOINT = "/chat/completions"
"""Some servers' pages give it with their address."""


class _AccountSettings(Protocol):
    @property
    def base_url(self) -> str | None: ...

    @property
    def api_key_env(self) -> str | None: ...

    @property
    def models(self) -> Mapping[str, ModelFactsConfig]: ...


def account_of(settings: LlmConfig, provider: str) -> _AccountSettings | None:
    """The settings of a provider's account; `script` has none."""
    if provider in PROVIDERS:
        return None if provider == "script" else getattr(settings, provider)
    return settings.servers.get(provider)


def _quoted(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _unknown_alias(text: str, aliases: Mapping[str, str]) -> ConfigurationError:
    full = {name: f"{provider}/{name}" for provider in PROVIDERS for name in known_names(provider)}
    near = nearest(text, (*aliases, *full), most=3)
    meant = _quoted(tuple(full.get(name, name) for name in near))
    hint = f"did you mean {meant}?" if meant else _HINT
    return ConfigurationError(f"{text!r} is neither a model nor an alias", hint=hint)


def _unknown_provider(provider: str, own: Collection[str] = ()) -> ConfigurationError:
    known = (*PROVIDERS, *own)
    near = nearest(provider, known, most=3)
    server = _SERVER.format(name=provider if provider.replace("-", "").replace("_", "").isalnum() else "NAME")
    hint = f"did you mean {_quoted(near)}?" if near else f"known are {', '.join(map(repr, known))}; {server}"
    return ConfigurationError(f"there is no provider {provider!r}", hint=hint)


def parse_model_id(text: str, settings: LlmConfig) -> ModelId:
    """The model that `text` names: `provider/name`, or an alias of one, or of another alias.

    Raises:
        ConfigurationError: it names none, or a provider that nobody knows.
    """
    resolved = resolve_alias(text, settings.aliases)
    provider, slash, name = resolved.partition("/")
    if not slash:
        raise _unknown_alias(resolved, settings.aliases)
    if not name or not provider:
        raise ConfigurationError(f"{resolved!r} is no model", hint=_HINT)
    if provider not in PROVIDERS and provider not in settings.servers:
        raise _unknown_provider(provider, settings.servers)
    return ModelId(provider, name)


def facts_of(provider: str) -> ProviderFacts:
    """What is known of a provider.

    Raises:
        ConfigurationError: this version does not know it.
    """
    for facts in FACTS:
        if facts.id == provider:
            return facts
    raise _unknown_provider(provider)


def facts_in(settings: LlmConfig, provider: str) -> ProviderFacts:
    """What is known of a provider, or of a server that the user has declared.

    Raises:
        ConfigurationError: nobody knows it.
    """
    own = settings.servers.get(provider)
    if provider in PROVIDERS:
        return facts_of(provider)
    if own is None:
        raise _unknown_provider(provider, settings.servers)
    variables = () if own.api_key_env is None else (own.api_key_env,)
    return ProviderFacts(id=provider, key_variables=variables, needs_key=own.api_key_env is not None)


def key_variables(settings: LlmConfig, provider: str) -> tuple[str, ...]:
    """The environment variables that may hold a provider's key: the configured one goes before the usual ones."""
    if (cloud := cloud_of(settings, provider)) is not None:
        return _cloud_variables(settings, cloud)
    facts = facts_in(settings, provider)
    account = account_of(settings, provider)
    configured = () if account is None or account.api_key_env is None else (account.api_key_env,)
    return tuple(dict.fromkeys((*configured, *facts.key_variables)))


def _cloud_variables(settings: LlmConfig, cloud: Cloud) -> tuple[str, ...]:
    """Those for the key of a cloud, if it takes one: the usual ones of the vendor's own API are not for it."""
    account, usual = account_of(settings, cloud.provider), account_of(LlmConfig(), cloud.provider)
    configured = None if account is None else account.api_key_env
    vendors = None if usual is None else usual.api_key_env
    named = () if configured in {None, vendors} else (configured,)
    return tuple(filter(None, (*named, cloud.key_variable))) if cloud.key_variable else ()


def misspelt(settings: LlmConfig, provider: str) -> tuple[str, ...]:
    """Servers of the user's own that are named like a provider of this version but for a slip."""
    names = (name for name, own in settings.servers.items() if name.isalpha() and own.kind != provider)
    candidates = tuple(names) if provider in PROVIDERS else ()
    return tuple(name for name in candidates if provider in nearest(name, PROVIDERS, most=3, alike=_SLIP))


def cloud_of(settings: LlmConfig, provider: str) -> Cloud | None:
    """The cloud that an account is with, None where it is with the vendor itself.

    Raises:
        ConfigurationError: the settings say that there is one, and not which, or one that cannot be.
    """
    account = account_of(settings, provider)
    if not isinstance(account, CloudAccount) or account.transport == "http":
        return None
    from jp.provider.clouds import create_cloud

    return create_cloud(account, provider, kind=kind_of(settings, provider))


def kind_of(settings: LlmConfig, provider: str) -> str:
    """Which provider of this version another one is like: what it speaks, and whose abilities its models have."""
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
    """The provider of `model`.

    `root` is what a scenario's path is relative to. `stored` is asked for a key where the environment has none.
    `needs_key` is false for who only renders requests.

    Raises:
        AuthenticationError: the provider needs a key and there is none.
        ConfigurationError: the provider is unknown, or its settings are malformed.
    """
    settings = config.providers.llm
    if model.provider == "script":
        from jp.provider.script.provider import create

        return create(model.name, root=root, scenario=settings.script.scenario)
    facts = facts_in(settings, model.provider)

    from jp.provider.http import HttpProvider

    kind = kind_of(settings, model.provider)
    adapter = create_adapter(settings, model.provider, kind=kind)
    if (cloud := cloud_of(settings, model.provider)) is not None:
        from jp.provider.sdk.signer import cloud_key, create

        variables = _cloud_variables(settings, cloud)
        found = cloud_key(cloud, variables, environ=environ, stored=stored) if needs_key else None
        headers = _headers(settings, model.provider)
        limits = limits_for(kind, "", config.assistant.request)
        return create(cloud, adapter, limits, headers=headers, key=found, environ=environ if needs_key else None)
    found = _key(settings, facts, environ, stored) if needs_key else None
    account = _account(settings, facts, environ, found)
    account = msgspec.structs.replace(account, hints=hints_of(kind, model.provider, model.name))
    return HttpProvider(adapter, account, limits_for(kind, account.base_url, config.assistant.request))


def create_account(
    settings: LlmConfig,
    provider: str,
    *,
    environ: Mapping[str, str],
    stored: StoredKeys | None = None,
    needs_key: bool = True,
) -> Account:
    """The account with a provider, to ask it something else than for an answer.

    `needs_key` is false for what it tells everybody.

    Raises:
        AuthenticationError: the provider needs a key and there is none.
        ConfigurationError: the provider is unknown, or its settings are malformed, or it is in a cloud.
    """
    if (cloud := cloud_of(settings, provider)) is not None:
        message = f"{provider!r} is in a cloud ({cloud.title}), which tells its models on its own pages only"
        raise ConfigurationError(message, hint=f"use one of them all the same: `--model {provider}/NAME`")
    facts = facts_in(settings, provider)
    if not needs_key:
        facts = msgspec.structs.replace(facts, needs_key=False)
    return _account(settings, facts, environ, _key(settings, facts, environ, stored))


def _account(settings: LlmConfig, facts: ProviderFacts, environ: Mapping[str, str], found: FoundKey | None) -> Account:
    from jp.provider.http import Account

    where = _address_setting(facts.id)
    variable = next(iter(key_variables(settings, facts.id)), "")
    return Account(
        base_url=_base_url(settings, facts, environ),
        base_url_setting=where,
        key=None if found is None else found.key,
        key_variable=variable,
        needs_key=facts.needs_key,
        key_hint=hint_for_wanted(facts.id, variable) if found is None else hint_for_rejected(facts.id, found),
        reach_hint=_reach_hint(facts, where),
        headers=_headers(settings, facts.id),
    )


def base_url_of(settings: LlmConfig, provider: str, environ: Mapping[str, str]) -> str:
    """Where a provider's requests go.

    Raises:
        ConfigurationError: the provider is unknown, or nothing says where it is.
    """
    return _base_url(settings, facts_in(settings, provider), environ)


def _address_setting(provider: str) -> str:
    return f"providers.llm.{provider}.base_url"


def _base_url(settings: LlmConfig, facts: ProviderFacts, environ: Mapping[str, str]) -> str:
    where = _address_setting(facts.id)
    account = account_of(settings, facts.id)
    configured = None if account is None else account.base_url
    if configured is not None:
        return configured.rstrip("/").removesuffix(_ENDPOINT)
    if facts.server is not None:
        return address_of(facts.server, environ)
    hint = f"set it, such as `jp config set {where}=http://127.0.0.1:8000/v1`"
    raise ConfigurationError(f"{where!r} is not set", hint=hint)


def _headers(settings: LlmConfig, provider: str) -> tuple[tuple[str, str], ...]:
    own = settings.servers.get(provider)
    return () if own is None or provider in PROVIDERS else tuple(own.headers.items())


def _reach_hint(facts: ProviderFacts, where: str) -> str:
    is_anothers = facts.server is None and facts.id in PROVIDERS
    return "" if is_anothers else f"is the server running? `{where}` says where it is looked for"


def _key(
    settings: LlmConfig, facts: ProviderFacts, environ: Mapping[str, str], stored: StoredKeys | None
) -> FoundKey | None:
    variables = key_variables(settings, facts.id)
    if not facts.needs_key:
        found = find_key(facts.id, variables, environ=environ, stored=None)
        if found is not None or stored is None or not stored.may_have(facts.id):
            return found
    found = find_key(facts.id, variables, environ=environ, stored=stored)
    if found is None and facts.needs_key:
        raise missing_key(facts.id, variables[0])
    return found


def limits_for(kind: str, base_url: str, request: RequestConfig) -> Limits:
    """Return the bounds of an answer of a server that speaks as `kind` does.

    Servers of a user's own machine have no limit for the first byte unless one is set: they may have to load the
    model and to read a long prompt, without a byte.
    """
    limits = limits_of(request)
    is_local = kind in _AT_HOME or is_loopback(base_url)
    first_byte = request.first_byte_timeout_secs
    if first_byte is None:
        first_byte = 0 if is_local else _FIRST_BYTE_SECS
    idle = limits.idle_timeout
    if kind in _AT_HOME and request.stream_idle_timeout_secs == RequestConfig().stream_idle_timeout_secs:
        idle = _PATIENCE_AT_HOME_SECS
    return msgspec.structs.replace(limits, first_byte_timeout=first_byte or None, idle_timeout=idle)


def limits_of(request: RequestConfig) -> Limits:
    """Return the bounds of a request that is answered at once, such as one for a list of models."""
    idle = request.stream_idle_timeout_secs or None
    return Limits(
        connect_timeout=request.connect_timeout_secs or None,
        first_byte_timeout=idle,
        idle_timeout=idle,
        max_response_bytes=request.max_response_bytes,
    )


def create_adapter(settings: LlmConfig, provider: str, *, kind: str) -> Adapter:
    """The adapter of a provider that speaks as `kind` does: itself, or for a server of the user's own, another.

    Raises:
        ConfigurationError: nobody speaks so.
    """
    match kind:
        case "anthropic":
            from jp.provider.anthropic.vendor import AnthropicAdapter

            own = settings.anthropic
            return AnthropicAdapter(own.beta_headers, provider=provider, chains=own.chain_on_max_tokens)
        case "openai":
            from jp.provider.openai.vendor import OpenaiAdapter

            summary = settings.openai.reasoning_summary
            return OpenaiAdapter(provider=provider, summary=summary, store=_may_store(settings, provider))
        case "ollama":
            from jp.provider.ollama.vendor import adapter_of

            return adapter_of(settings, provider)
        case "google":
            from jp.provider.google.vendor import GoogleAdapter

            # Vertex AI does not know the field: nothing is kept there unless the project says so.
            in_cloud = _account_of(settings, provider).transport == "sdk"
            return GoogleAdapter(provider=provider, store=None if in_cloud else _may_store(settings, provider))
        case _:
            return _speaking_chat(settings, provider, kind=kind)


def _account_of(settings: LlmConfig, provider: str) -> OpenaiConfig | GoogleConfig | ServerConfig:
    """The account of one that speaks as OpenAI or Google do."""
    match provider:
        case "openai":
            return settings.openai
        case "google":
            return settings.google
        case _:
            return settings.servers[provider]


def _may_store(settings: LlmConfig, provider: str) -> bool:
    return _account_of(settings, provider).store


def _speaking_chat(settings: LlmConfig, provider: str, *, kind: str) -> Adapter:
    """The adapter of one that speaks Chat Completions."""
    match kind:
        case "openai-compatible":
            from jp.provider.compatible import request as compatible

            return compatible.create(settings.servers[provider], provider)
        case "cerebras":
            from jp.provider.cerebras.request import CerebrasAdapter

            return CerebrasAdapter()
        case "llamacpp":
            from jp.provider.llamacpp import request as llamacpp

            return llamacpp.create(settings, provider)
        case "openrouter":
            from jp.provider.openrouter import request

            return request.create(settings.openrouter)
        case _:
            raise ConfigurationError(f"this version does not talk to {provider!r}", hint="use another model")

"""From a model id to a provider. The only place that knows all of them; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.config.aliases import resolve_alias
from jp.config.model import AppConfig, RequestConfig
from jp.errors import ConfigurationError
from jp.provider.base import Provider
from jp.provider.keys import FoundKey, StoredKeys, find_key, hint_for_rejected, missing_key
from jp.provider.models import known_names, near_names
from jp.provider.transport import Limits

if TYPE_CHECKING:
    from jp.provider.local_servers import LocalServer


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the commands that set jp up have to know of a provider.

    `key_variables` are where it is usual to keep its key, none where it needs none. `proposed` is the model that
    somebody who has just begun is offered, empty where that takes more than a key. `server` is what listens on the
    user's own machine.
    """

    id: str
    key_variables: tuple[str, ...] = ()
    proposed: str = ""
    server: LocalServer | None = None


FACTS = (
    ProviderFacts(id="anthropic", key_variables=("ANTHROPIC_API_KEY",), proposed="anthropic/claude-sonnet-5-5"),
    ProviderFacts(id="script"),
)
"""The providers of this version; what `jp init` and `jp keys` know of them comes from here."""

PROVIDERS = tuple(facts.id for facts in FACTS)

_LATER = frozenset({"openai", "google", "openrouter", "cerebras", "llamacpp", "ollama"})
_HINT = "a model is `provider/name`, such as `anthropic/claude-sonnet-5-5`, or an alias of `providers.llm.aliases`"


class ModelId(msgspec.Struct, frozen=True):
    """A model of a provider. `name` may contain slashes."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


def _quoted(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _unknown_alias(text: str, aliases: Mapping[str, str]) -> ConfigurationError:
    full = {name: f"{provider}/{name}" for provider in PROVIDERS for name in known_names(provider)}
    near = near_names(text, (*aliases, *full))
    meant = _quoted(tuple(full.get(name, name) for name in near))
    hint = f"did you mean {meant}?" if meant else _HINT
    return ConfigurationError(f"{text!r} is neither a model nor an alias", hint=hint)


def _unknown_provider(provider: str) -> ConfigurationError:
    if provider in _LATER:
        message = f"this version does not talk to {provider!r}"
        return ConfigurationError(message, hint=f"it talks to {_quoted(PROVIDERS)}")
    near = near_names(provider, PROVIDERS)
    hint = f"did you mean {_quoted(near)}?" if near else f"this version talks to {_quoted(PROVIDERS)}"
    return ConfigurationError(f"there is no provider {provider!r}", hint=hint)


def parse_model_id(text: str, aliases: Mapping[str, str]) -> ModelId:
    """The model that `text` names: `provider/name`, or an alias of one, or of another alias.

    Raises:
        ConfigurationError: it names none, or a provider that this version does not know.
    """
    resolved = resolve_alias(text, aliases)
    provider, slash, name = resolved.partition("/")
    if not slash:
        raise _unknown_alias(resolved, aliases)
    if not name or not provider:
        raise ConfigurationError(f"{resolved!r} is no model", hint=_HINT)
    if provider not in PROVIDERS:
        raise _unknown_provider(provider)
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


def key_variables(config: AppConfig, provider: str) -> tuple[str, ...]:
    """The environment variables that may hold a provider's key: the configured one goes before the usual ones."""
    usual = facts_of(provider).key_variables
    match provider:
        case "anthropic":
            return tuple(dict.fromkeys((config.providers.llm.anthropic.api_key_env, *usual)))
        case _:
            return usual


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
    match model.provider:
        case "anthropic":
            return _anthropic(config, _key(config, "anthropic", environ, stored) if needs_key else None)
        case "script":
            from jp.provider.script.provider import create

            return create(model.name, root=root, scenario=config.providers.llm.script.scenario)
        case other:
            raise _unknown_provider(other)


def _anthropic(config: AppConfig, key: FoundKey | None) -> Provider:
    from jp.provider.anthropic.adapter import AnthropicAdapter
    from jp.provider.http import Account, HttpProvider

    settings = config.providers.llm.anthropic
    account = Account(
        base_url=settings.base_url.rstrip("/").removesuffix("/v1"),
        base_url_setting="providers.llm.anthropic.base_url",
        key=None if key is None else key.key,
        key_variable=settings.api_key_env,
        key_hint="" if key is None else hint_for_rejected("anthropic", key),
    )
    adapter = AnthropicAdapter(settings.beta_headers, chains=settings.chain_on_max_tokens)
    return HttpProvider(adapter, account, _limits(config.assistant.request))


def _key(config: AppConfig, provider: str, environ: Mapping[str, str], stored: StoredKeys | None) -> FoundKey:
    variables = key_variables(config, provider)
    found = find_key(provider, variables, environ=environ, stored=stored)
    if found is None:
        raise missing_key(provider, variables[0])
    return found


def _limits(request: RequestConfig) -> Limits:
    return Limits(
        connect_timeout=request.connect_timeout_secs or None,
        idle_timeout=request.stream_idle_timeout_secs or None,
        max_response_bytes=request.max_response_bytes,
    )

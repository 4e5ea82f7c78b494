"""From a model id to a provider. The only place that knows all of them; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from jp.config.aliases import resolve_alias
from jp.config.model import AppConfig, RequestConfig
from jp.errors import ConfigurationError
from jp.provider.base import Provider
from jp.provider.models import known_names, near_names
from jp.provider.transport import Limits

PROVIDERS = ("anthropic", "script")
"""The providers of this version."""

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


def create_provider(
    config: AppConfig, model: ModelId, *, environ: Mapping[str, str], root: Path, needs_key: bool = True
) -> Provider:
    """The provider of `model`.

    `root` is what a scenario's path is relative to. `needs_key` is false for who only renders requests.

    Raises:
        AuthenticationError: the provider needs a key and there is none.
        ConfigurationError: the provider is unknown, or its settings are malformed.
    """
    match model.provider:
        case "anthropic":
            return _anthropic(config, environ, needs_key=needs_key)
        case "script":
            from jp.provider.script.provider import create

            return create(model.name, root=root, scenario=config.providers.llm.script.scenario)
        case other:
            raise _unknown_provider(other)


def _anthropic(config: AppConfig, environ: Mapping[str, str], *, needs_key: bool) -> Provider:
    from jp.provider.anthropic.adapter import AnthropicAdapter
    from jp.provider.http import Account, HttpProvider, missing_key

    settings = config.providers.llm.anthropic
    key = _key(environ, settings.api_key_env)
    if key is None and needs_key:
        raise missing_key("anthropic", settings.api_key_env)
    account = Account(
        base_url=settings.base_url.rstrip("/").removesuffix("/v1"),
        base_url_setting="providers.llm.anthropic.base_url",
        key=key,
        key_variable=settings.api_key_env,
    )
    adapter = AnthropicAdapter(settings.beta_headers, chains=settings.chain_on_max_tokens)
    return HttpProvider(adapter, account, _limits(config.assistant.request))


def _key(environ: Mapping[str, str], variable: str) -> str | None:
    """The key in `variable`, None where there is none.

    Raises:
        ConfigurationError: it has characters that no header can carry; it is not shown.
    """
    key = environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        message = f"the key in {variable!r} has characters that no key has"
        raise ConfigurationError(message, hint=f"export {variable}=… again")
    return key or None


def _limits(request: RequestConfig) -> Limits:
    return Limits(
        connect_timeout=request.connect_timeout_secs or None,
        idle_timeout=request.stream_idle_timeout_secs or None,
        max_response_bytes=request.max_response_bytes,
    )

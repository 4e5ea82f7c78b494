"""From a kind of provider to its adapter: the only place that knows all of them. Each is imported on use."""

from __future__ import annotations

from jp.config.accounts import GoogleConfig, OpenaiConfig, ServerConfig
from jp.config.model import LlmConfig
from jp.errors import ConfigurationError
from jp.provider.http import Adapter


def create_adapter(settings: LlmConfig, provider: str, *, kind: str) -> Adapter:
    """The adapter of a provider that speaks as `kind` does: itself, or for a server of the user's own, another.

    Raises:
        ConfigurationError: nobody speaks so.
    """
    match kind:
        case "anthropic":
            from jp.provider.anthropic.adapter import AnthropicAdapter

            own = settings.anthropic
            return AnthropicAdapter(own.beta_headers, provider=provider, chains=own.chain_on_max_tokens)
        case "openai":
            from jp.provider.openai.adapter import OpenaiAdapter

            summary = settings.openai.reasoning_summary
            return OpenaiAdapter(provider=provider, summary=summary, store=_may_store(settings, provider))
        case "ollama":
            from jp.provider.ollama.adapter import adapter_of

            return adapter_of(settings, provider)
        case "google":
            from jp.provider.google.adapter import GoogleAdapter

            # Vertex AI does not know the field: nothing is kept there unless the project says so.
            in_cloud = _account(settings, provider).transport == "sdk"
            return GoogleAdapter(provider=provider, store=None if in_cloud else _may_store(settings, provider))
        case _:
            return _speaking_chat(settings, provider, kind=kind)


def _account(settings: LlmConfig, provider: str) -> OpenaiConfig | GoogleConfig | ServerConfig:
    """The account of one that speaks as OpenAI or Google do."""
    match provider:
        case "openai":
            return settings.openai
        case "google":
            return settings.google
        case _:
            return settings.servers[provider]


def _may_store(settings: LlmConfig, provider: str) -> bool:
    return _account(settings, provider).store


def _speaking_chat(settings: LlmConfig, provider: str, *, kind: str) -> Adapter:
    """The adapter of one that speaks Chat Completions."""
    match kind:
        case "openai-compatible":
            from jp.provider.compatible import server

            return server.create(settings.servers[provider], provider)
        case "cerebras":
            from jp.provider.cerebras.server import CerebrasAdapter

            return CerebrasAdapter()
        case "llamacpp":
            from jp.provider.llamacpp import server as llamacpp

            return llamacpp.create(settings, provider)
        case "openrouter":
            from jp.provider.openrouter import adapter

            return adapter.create(settings.openrouter)
        case _:
            raise ConfigurationError(f"this version does not talk to {provider!r}", hint="use another model")

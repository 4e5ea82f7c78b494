"""From a kind of provider to its adapter: the only place that knows all of them. Each is imported on use."""

from __future__ import annotations

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

            return OpenaiAdapter(provider=provider, summary=settings.openai.reasoning_summary)
        case "ollama":
            from jp.provider.ollama.adapter import adapter_of

            return adapter_of(settings, provider)
        case "google":
            from jp.provider.google.adapter import GoogleAdapter

            return GoogleAdapter(provider=provider)
        case _:
            return _speaking_chat(settings, provider, kind=kind)


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

"""Accounts with providers: endpoints, keys, and settings of single servers."""

from __future__ import annotations

from typing import Annotated, Literal

from jp.config.direction import (
    CloudName,
    Defining,
    Guarded,
    Harmless,
    Ordered,
    Positive,
    Price,
    Section,
    Url,
    VariableName,
)

Stored = Annotated[bool, Ordered(order=(False, True))]
"""`true` lets a vendor keep requests."""

Platform = Literal["bedrock", "vertex", "foundry", "azure"]
ServerKind = Literal["openai-compatible", "anthropic", "openai", "google", "ollama", "llamacpp"]


class ModelFactsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of a model, for estimates, bills and limits; they change no request."""

    context_window: Harmless[Positive | None] = None
    """The size of the context window, in tokens."""
    max_output: Harmless[Positive | None] = None
    """The longest output, in tokens."""
    input_price: Guarded[Price | None] = None
    """USD for a million tokens of uncached input."""
    output_price: Guarded[Price | None] = None
    """USD for a million tokens of output, reasoning included."""
    cache_read_price: Guarded[Price | None] = None
    """USD for a million tokens that are read from the provider's cache."""
    cache_write_price: Guarded[Price | None] = None
    """USD for a million tokens that are written to the provider's cache."""


class Account(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all accounts."""

    models: dict[str, ModelFactsConfig] = {}


class CloudAccount(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of accounts whose models are also on a cloud."""

    transport: Guarded[Literal["http", "sdk"]] = "http"
    """`http`: jp authenticates requests with a key; `sdk`: the vendor's SDK does, as a cloud requires."""
    platform: Guarded[Platform | None] = None
    """With `transport = "sdk"`, the cloud: Claude is on any but `azure`, GPT on `azure`, Gemini on `vertex`."""
    endpoint: Guarded[Url | None] = None
    """The API's URL on the cloud: on Azure and Foundry that of your resource; elsewhere it replaces the usual one."""
    region: Guarded[CloudName | None] = None
    """The region of Bedrock or Vertex. Unset, the environment or the profile decides."""
    project: Guarded[CloudName | None] = None
    """The project of Vertex. Unset, the environment or the credentials decide."""
    profile: Guarded[str | None] = None
    """The profile of the AWS configuration with the credentials for Bedrock."""
    api_version: Guarded[CloudName | None] = None
    """The dated version of Azure's API, for resources without `/openai/v1`."""


class AnthropicConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Anthropic."""

    api_key_env: Guarded[VariableName] = "ANTHROPIC_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.anthropic.com"
    """The API's URL, without the version."""
    beta_headers: Guarded[tuple[str, ...]] = ()
    """Names for the header `anthropic-beta`."""
    chain_on_max_tokens: Harmless[bool] = True
    """Continue a response that reached its token limit."""


class OpenaiConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with OpenAI."""

    api_key_env: Guarded[VariableName] = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.openai.com/v1"
    """The API's URL, with the version."""
    reasoning_summary: Harmless[Literal["auto", "concise", "detailed", "none"]] = "auto"
    """The detail of reasoning summaries; organizations that OpenAI has not verified need `none`."""
    store: Stored = False
    """Let OpenAI keep requests and responses."""


class GoogleConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Google (Gemini)."""

    api_key_env: Guarded[VariableName] = "GEMINI_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://generativelanguage.googleapis.com/v1beta"
    """The API's URL, with the version."""
    store: Stored = False
    """Let Google keep requests and responses in the logs of your project."""


class OpenrouterConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with OpenRouter."""

    api_key_env: Guarded[VariableName] = "OPENROUTER_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://openrouter.ai/api/v1"
    """The API's URL, with the version."""
    app_name: Harmless[str | None] = None
    """The name of these requests on OpenRouter's own pages."""
    app_referrer: Harmless[str | None] = None
    """The URL under which OpenRouter's own pages count these requests."""
    store: Stored = False
    """Let requests go to vendors that keep them and may train on them."""


class CerebrasConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Cerebras."""

    api_key_env: Guarded[VariableName] = "CEREBRAS_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.cerebras.ai/v1"
    """The API's URL, with the version."""


class OllamaConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of Ollama."""

    api_key_env: Guarded[VariableName] = "OLLAMA_API_KEY"
    """The environment variable that holds a key, if the server needs one."""
    base_url: Guarded[Url | None] = None
    """The server's URL. Unset, that of `OLLAMA_HOST`, else the usual port of this machine."""
    context_window: Harmless[Positive] = 16384
    """The context window that the server allocates (`num_ctx`), in tokens; it silently drops the rest."""
    keep_alive: Harmless[str | None] = None
    """The time for which the server keeps a model in memory after a response, such as `10m`."""


class LlamacppConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of llama.cpp."""

    api_key_env: Guarded[VariableName] = "LLAMACPP_API_KEY"
    """The environment variable that holds a key, if the server needs one."""
    base_url: Guarded[Url] = "http://127.0.0.1:8080/v1"
    """The API's URL, with the version."""
    reasoning_format: Harmless[Literal["auto", "deepseek", "none"]] = "auto"
    """The server's handling of reasoning; jp separates the text that remains in `<think>` tags."""


class ServerConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any other server, under a name of your own; `NAME/model` is then a model's id."""

    kind: Guarded[ServerKind] = "openai-compatible"
    """Its API: OpenAI's Chat Completions, as most servers have, or that of a provider."""
    base_url: Defining[Url | None] = None
    """The API's URL, with the version; there is no default."""
    api_key_env: Guarded[VariableName | None] = None
    """The environment variable that holds the key. Unset, none is sent unless one is stored under the name."""
    headers: Guarded[dict[str, str]] = {}
    """Further headers of each request."""
    store: Stored = False
    """Let the server keep requests and responses (`openai`, `google`)."""
    max_tokens_name: Harmless[Literal["max_tokens", "max_completion_tokens"]] = "max_tokens"
    """The server's name for the output limit (`openai-compatible`)."""
    system_role: Harmless[Literal["system", "developer", "user"]] = "system"
    """The role of the system prompt (`openai-compatible`)."""
    reasoning: Harmless[Literal["none", "effort", "enable_thinking"]] = "none"
    """The way to request reasoning: none, by `reasoning_effort`, or by the chat template's `enable_thinking`."""
    return_reasoning: Harmless[Literal["none", "reasoning_content", "reasoning", "text"]] = "none"
    """The form of earlier reasoning in requests: none, one of these fields, or text between `<think>` tags."""
    structured: Harmless[Literal["json_schema", "json_object_schema", "json_object", "none"]] = "json_schema"
    """The way to request structured output."""
    tool_choice: Harmless[bool] = True
    """The server knows `tool_choice`."""
    images: Harmless[bool] = True
    """Its models take images."""
    stream_usage: Harmless[bool] = True
    """Request token counts (`stream_options`)."""
    call_ids: Harmless[Literal["any", "short"]] = "any"
    """The call ids that it accepts: any, or nine letters and digits (`short`), as in Mistral's API."""
    user_after_tool: Harmless[bool] = True
    """A user message may follow a tool result directly; Mistral's API does not allow it."""
    context_window: Harmless[Positive | None] = None
    """The context window that the server allocates (`ollama`), in tokens. Unset, as many as `ollama`'s own."""
    keep_alive: Harmless[str | None] = None
    """The time for which the server keeps a model in memory after a response (`ollama`), such as `10m`."""
    reasoning_format: Harmless[Literal["auto", "deepseek", "none"]] = "auto"
    """The server's handling of reasoning (`llamacpp`)."""


class ScriptConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedded provider, which plays a scenario."""

    scenario: Harmless[str | None] = None
    """The scenario's path from the workspace's root; a model's name may name one instead."""

"""Accounts with providers: where requests go, who pays, and what is peculiar to a server."""

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
"""Whether a vendor may keep requests."""

Platform = Literal["bedrock", "vertex", "foundry", "azure"]
ServerKind = Literal["openai-compatible", "anthropic", "openai", "google", "ollama", "llamacpp"]


class ModelFactsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What you know better of a model, for estimates, bills and limits; no request is made of it."""

    context_window: Harmless[Positive | None] = None
    """The most tokens that a request and its answer may have together."""
    max_output: Harmless[Positive | None] = None
    """The longest output, in tokens."""
    input_price: Guarded[Price | None] = None
    """USD for a million tokens of input that no cache takes part in."""
    output_price: Guarded[Price | None] = None
    """USD for a million tokens of output, reasoning included."""
    cache_read_price: Guarded[Price | None] = None
    """USD for a million tokens that are read from the provider's cache."""
    cache_write_price: Guarded[Price | None] = None
    """USD for a million tokens that are written to the provider's cache."""


class Account(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all accounts share."""

    models: dict[str, ModelFactsConfig] = {}


class CloudAccount(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What accounts share whose models a cloud has, too."""

    transport: Guarded[Literal["http", "sdk"]] = "http"
    """Who authenticates requests: jp with a key (`http`), or the vendor's SDK as a cloud wants it (`sdk`)."""
    platform: Guarded[Platform | None] = None
    """With `transport = "sdk"`, the cloud: Claude is on any but `azure`, GPT on `azure`, Gemini on `vertex`."""
    endpoint: Guarded[Url | None] = None
    """Where requests to the cloud go: Azure's and Foundry's address of your resource; elsewhere, another than usual."""
    region: Guarded[CloudName | None] = None
    """The region of Bedrock or Vertex; without it, what the environment or the profile says."""
    project: Guarded[CloudName | None] = None
    """The project of Vertex; without it, what the environment or the credentials say."""
    profile: Guarded[str | None] = None
    """The profile of the AWS configuration whose credentials Bedrock is shown."""
    api_version: Guarded[CloudName | None] = None
    """The dated version of Azure's API, for resources without `/openai/v1`."""


class AnthropicConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Anthropic."""

    api_key_env: Guarded[VariableName] = "ANTHROPIC_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.anthropic.com"
    """Where requests go, without the version."""
    beta_headers: Guarded[tuple[str, ...]] = ()
    """Names for the header `anthropic-beta`."""
    chain_on_max_tokens: Harmless[bool] = True
    """Whether a response that reached its token limit is continued."""


class OpenaiConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with OpenAI."""

    api_key_env: Guarded[VariableName] = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.openai.com/v1"
    """Where requests go, with the version."""
    reasoning_summary: Harmless[Literal["auto", "concise", "detailed", "none"]] = "auto"
    """How much is shown of reasoning; organizations that OpenAI has not verified have to do without (`none`)."""
    store: Stored = False
    """Whether OpenAI may keep requests and answers."""


class GoogleConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Google (Gemini)."""

    api_key_env: Guarded[VariableName] = "GEMINI_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://generativelanguage.googleapis.com/v1beta"
    """Where requests go, with the version."""
    store: Stored = False
    """Whether Google may keep requests and answers in the logs of your project."""


class OpenrouterConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with OpenRouter."""

    api_key_env: Guarded[VariableName] = "OPENROUTER_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://openrouter.ai/api/v1"
    """Where requests go, with the version."""
    app_name: Harmless[str | None] = None
    """What OpenRouter's own pages call the requests that come from here."""
    app_referrer: Harmless[str | None] = None
    """The address under which OpenRouter's own pages count the requests that come from here."""
    store: Stored = False
    """Whether requests may go to vendors that keep them, and may train on them."""


class CerebrasConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Cerebras."""

    api_key_env: Guarded[VariableName] = "CEREBRAS_API_KEY"
    """The environment variable that holds the key."""
    base_url: Guarded[Url] = "https://api.cerebras.ai/v1"
    """Where requests go, with the version."""


class OllamaConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of Ollama."""

    api_key_env: Guarded[VariableName] = "OLLAMA_API_KEY"
    """The environment variable that holds a key, where the server wants one."""
    base_url: Guarded[Url | None] = None
    """Where requests go; without it, what `OLLAMA_HOST` says, else the usual port of this machine."""
    context_window: Harmless[Positive] = 16384
    """How many tokens the server holds of a conversation (`num_ctx`); it would silently forget what is beyond."""
    keep_alive: Harmless[str | None] = None
    """How long the server keeps a model in memory after an answer, such as `10m`."""


class LlamacppConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of llama.cpp."""

    api_key_env: Guarded[VariableName] = "LLAMACPP_API_KEY"
    """The environment variable that holds a key, where the server wants one."""
    base_url: Guarded[Url] = "http://127.0.0.1:8080/v1"
    """Where requests go, with the version."""
    reasoning_format: Harmless[Literal["auto", "deepseek", "none"]] = "auto"
    """How the server separates reasoning; what it leaves in the text under `<think>` is separated here."""


class ServerConfig(CloudAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any other server, under a name of your own; `NAME/model` is then a model's id."""

    kind: Guarded[ServerKind] = "openai-compatible"
    """What it speaks: OpenAI's Chat Completions, as most servers do, or what that provider speaks."""
    base_url: Defining[Url | None] = None
    """Where requests go, with the version; there is no default."""
    api_key_env: Guarded[VariableName | None] = None
    """The environment variable that holds the key; without it, none is sent unless one is stored under the name."""
    headers: Guarded[dict[str, str]] = {}
    """Further headers of each request."""
    store: Stored = False
    """Whether the server may keep requests and answers (`openai`, `google`)."""
    max_tokens_name: Harmless[Literal["max_tokens", "max_completion_tokens"]] = "max_tokens"
    """What the server calls the longest output (`openai-compatible`)."""
    system_role: Harmless[Literal["system", "developer", "user"]] = "system"
    """In which role the server takes the system prompt (`openai-compatible`)."""
    reasoning: Harmless[Literal["none", "effort", "enable_thinking"]] = "none"
    """How reasoning is asked for: not at all, by `reasoning_effort`, or by the chat template's `enable_thinking`."""
    return_reasoning: Harmless[Literal["none", "reasoning_content", "reasoning", "text"]] = "none"
    """How earlier reasoning goes back: not at all, under one of these names, or as text between `<think>` tags."""
    structured: Harmless[Literal["json_schema", "json_object_schema", "json_object", "none"]] = "json_schema"
    """How the server is held to a schema."""
    tool_choice: Harmless[bool] = True
    """Whether the server knows `tool_choice`."""
    images: Harmless[bool] = True
    """Whether its models take images."""
    stream_usage: Harmless[bool] = True
    """Whether it is asked to report tokens (`stream_options`)."""
    call_ids: Harmless[Literal["any", "short"]] = "any"
    """Which ids of calls it takes back: any, or nine letters and digits (`short`), as Mistral's API does."""
    user_after_tool: Harmless[bool] = True
    """Whether the user may speak directly after a tool's result, which Mistral's API does not let happen."""
    context_window: Harmless[Positive | None] = None
    """How many tokens the server is asked to hold of a conversation (`ollama`); unset, as many as `ollama`'s own."""
    keep_alive: Harmless[str | None] = None
    """How long the server keeps a model in memory after an answer (`ollama`), such as `10m`."""
    reasoning_format: Harmless[Literal["auto", "deepseek", "none"]] = "auto"
    """How the server separates reasoning (`llamacpp`)."""


class ScriptConfig(Account, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedded provider, which plays a scenario."""

    scenario: Harmless[str | None] = None
    """The scenario's path from the workspace's root; a model's name may name one instead."""

"""AppConfig and its sections: frozen, validated, every default in one place.

Only keys that have an effect are here; an unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

JsonObject = dict[str, Any]
CachePolicy = Literal["off", "short", "long"]
Effort = Literal["none", "xlow", "low", "medium", "high", "xhigh", "max"]

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
RunMode = Literal["ask", "unattended", "skip"]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all sections share."""


class ParametersConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is asked. `other` holds everything that only the provider knows, such as `seed`."""

    max_tokens: Positive | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Count | None = None
    stop_words: tuple[str, ...] = ()
    reasoning: Literal["off", "auto"] | Effort | Positive | None = None
    other: JsonObject = {}


class ModelConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model. `id` is `provider/name` or an alias; there is no default."""

    id: str | None = None
    parameters: ParametersConfig = ParametersConfig()


class RequestConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient jp is. A timeout of 0 means none."""

    max_retries: Count = 5
    base_backoff_ms: Count = 1000
    max_backoff_secs: Count = 60
    connect_timeout_secs: Seconds = 20
    stream_idle_timeout_secs: Seconds = 60
    max_response_bytes: Positive = 1024 * 1024
    max_cycles: Positive = 50
    cache: CachePolicy = "short"


class SystemSection(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the system prompt, under a tag or a title. Sections are sorted by `position`, stably."""

    content: str
    tag: str | None = None
    title: str | None = None
    position: int = 0


class Instruction(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of rules for the assistant."""

    title: str | None = None
    description: str | None = None
    position: int = 0
    items: tuple[str, ...] = ()


class AssistantConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who answers."""

    system_prompt: str = "You are a helpful assistant."
    system_prompt_sections: tuple[SystemSection, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    tool_choice: str = "auto"
    model: ModelConfig = ModelConfig()
    request: RequestConfig = RequestConfig()


class DeduplicationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """RFD 067: what is delivered again unchanged becomes a reference."""

    enabled: bool = True
    min_bytes: Count = 300
    lookback_turns: Count = 30


class ToolConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool, or under `*` what holds for all that do not say otherwise. None inherits."""

    enable: bool | None = None
    run: RunMode | None = None


class ConversationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What conversations are created with."""

    attachments: tuple[str, ...] = ()
    max_attachment_bytes: Positive = 10 * 1024 * 1024
    max_input_bytes: Positive = 512 * 1024
    start_local: bool = False
    deduplication: DeduplicationConfig = DeduplicationConfig()
    tools: dict[str, ToolConfig] = {}


class CodeStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fenced code on a terminal. `theme` is a Pygments style."""

    theme: str = "ansi_dark"


class ReasoningStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model's reasoning on a terminal."""

    display: Literal["full", "hidden"] = "full"


class MarkdownStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Markdown on a terminal. `wrap_width` is a maximum; 0 means the terminal's width."""

    wrap_width: Count = 100


class StyleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How things look."""

    code: CodeStyle = CodeStyle()
    markdown: MarkdownStyle = MarkdownStyle()
    reasoning: ReasoningStyle = ReasoningStyle()


class UserConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who asks; `name` is stamped on requests as their author."""

    name: str | None = None


class AnthropicConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The account with Anthropic."""

    api_key_env: str = "ANTHROPIC_API_KEY"
    base_url: str = "https://api.anthropic.com"
    beta_headers: tuple[str, ...] = ()
    chain_on_max_tokens: bool = True


class ScriptConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedded provider. `scenario` is a path from the workspace's root; a model's name may name one instead."""

    scenario: str | None = None


class LlmConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Providers of models. An alias stands for `provider/name` or for another alias."""

    aliases: dict[str, str] = {}
    anthropic: AnthropicConfig = AnthropicConfig()
    script: ScriptConfig = ScriptConfig()


class ProvidersConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom jp talks to."""

    llm: LlmConfig = LlmConfig()


class AppConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything. `inherit = false` in a file ignores the files that come after it."""

    inherit: bool = True
    extends: tuple[str, ...] = ()
    config_load_paths: tuple[str, ...] = ()
    assistant: AssistantConfig = AssistantConfig()
    conversation: ConversationConfig = ConversationConfig()
    providers: ProvidersConfig = ProvidersConfig()
    style: StyleConfig = StyleConfig()
    user: UserConfig = UserConfig()

"""Every setting: frozen, validated, with its default and its direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from jp.config.accounts import (
    AnthropicConfig,
    CerebrasConfig,
    GoogleConfig,
    LlamacppConfig,
    OllamaConfig,
    OpenaiConfig,
    OpenrouterConfig,
    ScriptConfig,
    ServerConfig,
)
from jp.config.direction import (
    Attachments,
    CachePolicy,
    Cost,
    Count,
    Effort,
    Guarded,
    Harmless,
    InsideWorkspace,
    JsonObject,
    Limit,
    MergedText,
    ModelChoice,
    NeedsTrust,
    NewNames,
    Ordered,
    Positive,
    Seconds,
    Section,
    UniqueTexts,
    VariableName,
)
from jp.config.tools import McpServerConfig, ToolConfig
from jp.errors import ConfigurationError

ToolCallMode = Literal["digest", "strip", "strip-requests", "strip-responses", "omit"]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1, description="a number of more than 0 and at most 1")]


class SummaryConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A summary that stands for whole turns."""

    policy: Harmless[Literal["summarize"] | None] = None
    """`summarize` has one written."""
    model: Annotated[str | None, NeedsTrust(lasting=True)] = None
    """Who writes it, as `provider/name` or an alias. Without it, the conversation's own model."""
    instructions: Harmless[str | None] = None
    """What to pay attention to, besides what every summary holds."""


class ToolCallsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What becomes of tool calls, each half by itself (RFD 064)."""

    policy: Harmless[Literal["digest", "strip", "omit"]]
    """`digest` or `strip` the halves that are named, or `omit` whole calls."""
    request: Harmless[bool | None] = None
    """Whether arguments are shortened. Unset, they are where `response` is not true."""
    response: Harmless[bool | None] = None
    """Whether results are. Unset, they are where `request` is not true."""


class ProfileConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a compaction does under this name. A summary goes before everything else."""

    reasoning: Harmless[Literal["strip"] | None] = None
    """`strip` leaves the model's reasoning out."""
    tool_calls: Harmless[ToolCallMode | ToolCallsConfig | None] = None
    """`digest`: large arguments are shortened, results become a line of facts with evidence; `strip`: results become a
    status line; `strip-requests`, `strip-responses`: one of both; `omit`: calls are hidden."""
    resources: Harmless[Literal["superseded"] | None] = None
    """`superseded` leaves out copies of what was delivered anew later."""
    summary: SummaryConfig = SummaryConfig()
    budget: Harmless[Count | str | None] = None
    """How many tokens the view is to have then, such as `40k`, or which share of what it has, such as `25%`. No more
    is left out than that takes."""


class AutoConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compaction without being asked, between turns and inside of long ones."""

    enabled: Harmless[bool] = False
    """Whether there is any."""
    trigger_ratio: Harmless[Ratio] = 0.75
    """From which share of the window on, without what is reserved for the answer."""
    target_ratio: Harmless[Ratio | None] = None
    """Down to which share of the window it goes, in one step. Unset, it is half of `trigger_ratio`."""
    profile: Harmless[str] = "default"
    """What is done."""
    min_turns: Harmless[Count] = 5
    """Conversations of no more turns are left alone, but for what a long turn piles up."""


class CompactionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What compactions do that do not say otherwise."""

    default_profile: Harmless[str] = "default"
    """The profile where none is named."""
    keep_last: Harmless[Count | str] = 3
    """What stays as it is: the newest turns, those of a duration such as `2h`, or those worth tokens such as `20k`."""
    keep_first: Harmless[Count | str] = 0
    """The same at the beginning."""
    auto: AutoConfig = AutoConfig()
    profiles: dict[str, ProfileConfig] = {}


PROFILES: Mapping[str, ProfileConfig] = {
    "default": ProfileConfig(reasoning="strip", tool_calls="digest", resources="superseded"),
    "heavy": ProfileConfig(summary=SummaryConfig(policy="summarize")),
    "light": ProfileConfig(reasoning="strip"),
}
"""The profiles that come with jp. One of the same name in the configuration stands in its place."""


def profiles_of(config: CompactionConfig) -> dict[str, ProfileConfig]:
    """Every profile by its name."""
    return {**PROFILES, **config.profiles}


class ParametersConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is asked. What is not set is left to the provider."""

    max_tokens: Harmless[Positive | None] = None
    """The most tokens that one response may have, reasoning included."""
    temperature: Harmless[float | None] = None
    """How much chance there is in the choice of words."""
    top_p: Harmless[float | None] = None
    """Only words that make up this share of probability are chosen from."""
    top_k: Harmless[Count | None] = None
    """Only this many of the likeliest words are chosen from."""
    stop_words: Harmless[tuple[str, ...]] = ()
    """The response ends before any of these."""
    reasoning: Harmless[Literal["off", "auto"] | Effort | Positive | None] = None
    """How much the model thinks first: off, as it sees fit, an effort, or a budget in tokens."""
    other: Annotated[JsonObject, NeedsTrust(lasting=True)] = {}
    """Parameters that only the provider knows, such as `seed`; they are sent as they are."""


class ModelConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model answers."""

    id: Annotated[str | None, ModelChoice()] = None
    """`provider/name`, or an alias from `providers.llm.aliases`. There is no default: jp never chooses a model."""
    parameters: ParametersConfig = ParametersConfig()


class RequestConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient jp is, and where it stops."""

    max_retries: Harmless[Count] = 5
    """How often a request is repeated after a failure that may pass."""
    base_backoff_ms: Harmless[Count] = 1000
    """How long jp waits before the first repetition, in milliseconds; each further wait is twice as long."""
    max_backoff_secs: Harmless[Count] = 60
    """The longest of these waits, in seconds; where the provider asks for more, jp gives up."""
    connect_timeout_secs: Harmless[Seconds] = 20
    """How long a connection may take to come about, in seconds; 0 means forever."""
    first_byte_timeout_secs: Harmless[Seconds | None] = None
    """The longest wait for the first byte of a response, in seconds; 0 means no limit. Unset, it is 120, and no limit
    for `ollama`, `llamacpp` and servers on this machine."""
    stream_idle_timeout_secs: Harmless[Seconds] = 60
    """The longest wait between two bytes of a response, in seconds; 0 means no limit."""
    max_response_bytes: Annotated[Positive, Limit()] = 1024 * 1024
    """The most bytes that one response may have."""
    max_cycles: Annotated[Positive, Limit()] = 50
    """How many requests one turn may take."""
    max_cost: Annotated[Cost | None, Limit()] = None
    """How much one query may cost, in USD, with all that is asked for it."""
    cache: Harmless[CachePolicy] = "short"
    """How long the provider is asked to keep the prompt: not at all, some minutes, about an hour."""


class SystemSection(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the system prompt, under a tag or a title."""

    content: str
    """The text."""
    tag: str | None = None
    """The text stands between `<tag>` and `</tag>`."""
    title: str | None = None
    """The tag's `title`, or a heading where there is no tag."""
    position: int = 0
    """Sections and instructions are sorted by this number; equal ones keep their order."""


class Instruction(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of rules for the assistant."""

    title: str | None = None
    """What the rules are about."""
    description: str | None = None
    """A sentence before the rules."""
    position: int = 0
    """Sections and instructions are sorted by this number; equal ones keep their order."""
    items: tuple[str, ...] = ()
    """The rules."""


class AssistantConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who answers."""

    system_prompt: Harmless[MergedText] = "You are a helpful assistant."
    """The first words of each request. The default vanishes as soon as a layer adds anything."""
    system_prompt_sections: Harmless[tuple[SystemSection, ...]] = ()
    """Further parts of the system prompt."""
    instructions: Harmless[tuple[Instruction, ...]] = ()
    """Lists of rules, after the system prompt."""
    tool_choice: Annotated[str, Ordered(order=("none", "auto"), lasting=True)] = "auto"
    """Whether tools are called: `auto`, `none`, `required`, or the name of the one that must be."""
    model: ModelConfig = ModelConfig()
    request: RequestConfig = RequestConfig()


class DeduplicationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is delivered again unchanged becomes a reference (RFD 067)."""

    enabled: Harmless[bool] = True
    """Whether references are made at all."""
    min_bytes: Harmless[Count] = 300
    """Smaller content is always sent again."""
    lookback_turns: Harmless[Count] = 30
    """A reference reaches this many turns back."""


class TitleGenerationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Titles by a model: a small request of its own beside one of the first three turns."""

    auto: Annotated[bool | Literal["terminal"], Ordered(order=(False, "terminal", True), lasting=True)] = "terminal"
    """Whether a conversation without a title gets one; `terminal`: only where its cost is shown, at a terminal."""
    model: Annotated[str | None, NeedsTrust(lasting=True)] = None
    """Who writes it, as `provider/name` or an alias. Without it, the cheap model of the provider that answers."""


class TitleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What conversations are called that nobody gave a title."""

    from_heading: Harmless[bool] = True
    """Whether a Markdown heading in the first line of the first request becomes the title."""
    generate: TitleGenerationConfig = TitleGenerationConfig()


class ConversationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What conversations are created with."""

    attachments: Annotated[UniqueTexts, Attachments(schemes=("file", "jp"))] = ()
    """URIs that are attached to the first turn; `!URI` excludes."""
    max_attachment_bytes: Annotated[Positive, Limit()] = 10 * 1024 * 1024
    """The most bytes that one attachment may have."""
    max_input_bytes: Annotated[Positive, Limit()] = 512 * 1024
    """What one turn may attach and pipe in together, in bytes, unless `--yes` is given."""
    start_local: Harmless[bool] = False
    """Whether new conversations are kept in the user's data directory instead of the workspace."""
    deduplication: DeduplicationConfig = DeduplicationConfig()
    compaction: CompactionConfig = CompactionConfig()
    title: TitleConfig = TitleConfig()
    tools: dict[str, ToolConfig] = {}


class CodeStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fenced code on a terminal."""

    theme: Harmless[str] = "ansi_dark"
    """The name of a Pygments style."""


class ReasoningStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model's reasoning on a terminal."""

    display: Harmless[Literal["full", "hidden"]] = "full"
    """Whether it is shown."""


class MarkdownStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Markdown on a terminal."""

    wrap_width: Harmless[Count] = 100
    """The widest that a line of prose gets, in columns; 0 means the terminal's width."""


class StyleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How things look."""

    code: CodeStyle = CodeStyle()
    markdown: MarkdownStyle = MarkdownStyle()
    reasoning: ReasoningStyle = ReasoningStyle()


class UserConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who asks."""

    name: Harmless[str | None] = None
    """Recorded with each request as its author."""


class EditorConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program in which a query is composed."""

    cmd: Guarded[str | None] = None
    """The command, with its arguments; the file's name is added."""
    envs: Guarded[tuple[VariableName, ...]] = ("JP_EDITOR", "VISUAL", "EDITOR")
    """Environment variables that hold such a command; without `editor.cmd` the first that is set counts."""


class TemplateConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Queries that are templates (`--template`)."""

    values: Harmless[JsonObject] = {}
    """What the names in a template stand for."""


class LlmConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Providers of models."""

    aliases: Annotated[dict[str, str], NewNames()] = {}
    """Short names for models. An alias stands for `provider/name` or for another alias."""
    anthropic: AnthropicConfig = AnthropicConfig()
    cerebras: CerebrasConfig = CerebrasConfig()
    google: GoogleConfig = GoogleConfig()
    llamacpp: LlamacppConfig = LlamacppConfig()
    ollama: OllamaConfig = OllamaConfig()
    openai: OpenaiConfig = OpenaiConfig()
    openrouter: OpenrouterConfig = OpenrouterConfig()
    script: ScriptConfig = ScriptConfig()
    servers: Annotated[dict[str, ServerConfig], msgspec.Meta(extra={"rest": True})] = {}


class ProvidersConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom jp talks to."""

    llm: LlmConfig = LlmConfig()
    mcp: dict[str, McpServerConfig] = {}


class AppConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that holds for one command."""

    config_load_paths: Annotated[UniqueTexts, InsideWorkspace()] = ()
    """Directories in which `--cfg NAME` looks for a fragment."""
    assistant: AssistantConfig = AssistantConfig()
    conversation: ConversationConfig = ConversationConfig()
    editor: EditorConfig = EditorConfig()
    providers: ProvidersConfig = ProvidersConfig()
    style: StyleConfig = StyleConfig()
    template: TemplateConfig = TemplateConfig()
    user: UserConfig = UserConfig()


class Extension(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that another one builds on."""

    path: str
    """A path or a pattern, relative to the file that names it."""
    strategy: Literal["before", "after"] = "before"
    """Whether it is merged before the file that names it, so that this one wins, or after."""


class FileConfig(AppConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file may hold: the configuration, and how the file stands to others."""

    inherit: bool = True
    """`false` ignores the configuration files that come after this one."""
    extends: tuple[str | Extension, ...] = ()
    """Files that this one builds on: paths or patterns, or tables with `path` and `strategy`."""


def resolve_alias(name: str, aliases: Mapping[str, str]) -> str:
    """What `name` stands for in the end; a name that is no alias stands for itself.

    An alias is a short name: what is `provider/name` is never one.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    chain = [name]
    while "/" not in name and (name := aliases.get(name, "")) != "":
        if name in chain:
            msg = f"the alias {chain[0]!r} leads in a circle: {' → '.join([*chain, name])}"
            raise ConfigurationError(msg, hint="Point one of them at a model, as `provider/name`.")
        chain.append(name)
    return chain[-1]


def with_model_resolved(config: AppConfig) -> AppConfig:
    """The configuration with the model's id in place of an alias for it.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    model = config.assistant.model
    if model.id is None:
        return config
    found = resolve_alias(model.id, config.providers.llm.aliases)
    return replace(config, assistant=replace(config.assistant, model=replace(model, id=found)))

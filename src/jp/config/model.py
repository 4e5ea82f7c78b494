"""Every setting: frozen, validated, with its default and its direction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from jp.config.entries import (
    AnthropicConfig,
    Attachments,
    CachePolicy,
    CerebrasConfig,
    Cost,
    Count,
    Effort,
    GoogleConfig,
    Guarded,
    Harmless,
    InsideWorkspace,
    JsonObject,
    Limit,
    LlamacppConfig,
    McpServerConfig,
    MergedText,
    ModelChoice,
    NeedsTrust,
    NewNames,
    OllamaConfig,
    OpenaiConfig,
    OpenrouterConfig,
    Ordered,
    Positive,
    ScriptConfig,
    Seconds,
    Section,
    ServerConfig,
    ToolConfig,
    UniqueTexts,
    VariableName,
)
from jp.errors import ConfigurationError

ToolCallMode = Literal["digest", "strip", "strip-requests", "strip-responses", "omit"]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1, description="a number of more than 0 and at most 1")]


class SummaryConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A summary of whole turns."""

    policy: Harmless[Literal["summarize"] | None] = None
    """`summarize` writes one."""
    model: Annotated[str | None, NeedsTrust(lasting=True)] = None
    """The model that writes it, as `provider/name` or an alias. Unset, the conversation's own model."""
    instructions: Harmless[str | None] = None
    """Points to include, besides those of every summary."""


class ToolCallsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The compaction of tool calls, arguments and results separately (RFD 064)."""

    policy: Harmless[Literal["digest", "strip", "omit"]]
    """`digest` or `strip` the halves that are named, or `omit` whole calls."""
    request: Harmless[bool | None] = None
    """Strip arguments. Unset, they are stripped unless `response` is true."""
    response: Harmless[bool | None] = None
    """Strip results. Unset, they are stripped unless `request` is true."""


class ProfileConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The effect of a compaction under this name. A summary comes first."""

    reasoning: Harmless[Literal["strip"] | None] = None
    """`strip` hides the model's reasoning."""
    tool_calls: Harmless[ToolCallMode | ToolCallsConfig | None] = None
    """`digest`: large arguments are shortened, results become a line of facts with evidence; `strip`: results become a
    status line; `strip-requests`, `strip-responses`: one of both; `omit`: calls are hidden."""
    resources: Harmless[Literal["superseded"] | None] = None
    """`superseded` hides older copies of resources that were delivered again."""
    summary: SummaryConfig = SummaryConfig()
    budget: Harmless[Count | str | None] = None
    """The size to compact the view to: tokens such as `40k`, or a share of its present size such as `25%`. No more is
    compacted than that takes."""


class AutoConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Automatic compaction, between turns and inside long ones."""

    enabled: Harmless[bool] = False
    """Compact automatically."""
    trigger_ratio: Harmless[Ratio] = 0.75
    """The share of the context window, without the reserve for the response, at which a compaction starts."""
    target_ratio: Harmless[Ratio | None] = None
    """The share of the context window that one compaction aims for. Unset, it is half of `trigger_ratio`."""
    profile: Harmless[str] = "default"
    """The profile of automatic compactions."""
    min_turns: Harmless[Count] = 5
    """Conversations with no more turns are not compacted, except for the bulk of a long turn."""


class CompactionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults of compactions."""

    default_profile: Harmless[str] = "default"
    """The profile of a compaction that names none."""
    keep_last: Harmless[Count | str] = 3
    """The newest part that is kept: a number of turns, a duration such as `2h`, or tokens such as `20k`."""
    keep_first: Harmless[Count | str] = 0
    """The oldest part that is kept, in the same form."""
    auto: AutoConfig = AutoConfig()
    profiles: dict[str, ProfileConfig] = {}


PROFILES: Mapping[str, ProfileConfig] = {
    "default": ProfileConfig(reasoning="strip", tool_calls="digest", resources="superseded"),
    "heavy": ProfileConfig(summary=SummaryConfig(policy="summarize")),
    "light": ProfileConfig(reasoning="strip"),
}
"""The profiles that come with jp. The configuration can replace them by name."""


def profiles_of(config: CompactionConfig) -> dict[str, ProfileConfig]:
    """Return every profile by its name."""
    return {**PROFILES, **config.profiles}


class ParametersConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a request. Unset ones are the provider's choice."""

    max_tokens: Harmless[Positive | None] = None
    """The output limit of a response in tokens, with reasoning."""
    temperature: Harmless[float | None] = None
    """The randomness of the output."""
    top_p: Harmless[float | None] = None
    """Sample only from tokens that make up this share of probability."""
    top_k: Harmless[Count | None] = None
    """Sample only from this many of the likeliest tokens."""
    stop_words: Harmless[tuple[str, ...]] = ()
    """Texts that end the response."""
    reasoning: Harmless[Literal["off", "auto"] | Effort | Positive | None] = None
    """The amount of reasoning: off, the model's choice, an effort, or a budget in tokens."""
    other: Annotated[JsonObject, NeedsTrust(lasting=True)] = {}
    """Parameters that only the provider knows, such as `seed`; they are sent as they are."""


class ModelConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that answers."""

    id: Annotated[str | None, ModelChoice()] = None
    """`provider/name`, or an alias from `providers.llm.aliases`. Unset, a query uses the model of the
    only account that can be used."""
    parameters: ParametersConfig = ParametersConfig()


class RequestConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries, timeouts and limits of requests."""

    max_retries: Harmless[Count] = 5
    """The number of retries after a failure that may pass."""
    base_backoff_ms: Harmless[Count] = 1000
    """The wait before the first retry, in milliseconds; it doubles with each further one."""
    max_backoff_secs: Harmless[Count] = 60
    """The longest wait before a retry, in seconds; jp gives up if the provider asks for more."""
    connect_timeout_secs: Harmless[Seconds] = 20
    """The connection timeout, in seconds; 0 means no limit."""
    first_byte_timeout_secs: Harmless[Seconds | None] = None
    """The longest wait for the first byte of a response, in seconds; 0 means no limit. Unset, it is 120, and no limit
    for `ollama`, `llamacpp` and servers on this machine."""
    stream_idle_timeout_secs: Harmless[Seconds] = 60
    """The longest wait between two bytes of a response, in seconds; 0 means no limit."""
    max_response_bytes: Annotated[Positive, Limit()] = 1024 * 1024
    """The largest size of a response, in bytes."""
    max_cycles: Annotated[Positive, Limit()] = 50
    """The most requests of one turn."""
    max_cost: Annotated[Cost | None, Limit()] = None
    """The most that one query may cost in USD, with all its requests."""
    cache: Harmless[CachePolicy] = "short"
    """The time for which the provider caches the prompt: not at all, some minutes, about an hour."""


class SystemSection(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the system prompt, under a tag or a title."""

    content: str
    """The text."""
    tag: str | None = None
    """The text is put between `<tag>` and `</tag>`."""
    title: str | None = None
    """The tag's `title`, or a heading where there is no tag."""
    position: int = 0
    """Sections and instructions are sorted by this number; equal ones keep their order."""


class InstructionExample(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A good and a bad way to follow the rules."""

    good: str
    """The way to do it."""
    bad: str
    """The way not to do it."""
    reason: str | None = None
    """The reason why the first is better."""


class Instruction(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of rules for the assistant."""

    title: str | None = None
    """The subject of the rules."""
    description: str | None = None
    """A sentence before the rules."""
    position: int = 0
    """Sections and instructions are sorted by this number; equal ones keep their order."""
    items: tuple[str, ...] = ()
    """The rules."""
    examples: tuple[str | InstructionExample, ...] = ()
    """Examples: texts, or tables with `good`, `bad` and `reason`."""


class AssistantConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The assistant's model, prompt and requests."""

    system_prompt: Harmless[MergedText] = "You are a helpful assistant."
    """The beginning of the system prompt. The default is dropped as soon as a layer adds to it."""
    system_prompt_sections: Harmless[tuple[SystemSection, ...]] = ()
    """Further parts of the system prompt."""
    instructions: Harmless[tuple[Instruction, ...]] = ()
    """Lists of rules, after the system prompt."""
    agents_md: Harmless[bool] = True
    """Add AGENTS.md and CLAUDE.md of a trusted workspace to the system prompt of a new conversation."""
    tool_choice: Annotated[str, Ordered(order=("none", "auto"), lasting=True)] = "auto"
    """The use of tools: `auto`, `none`, `required`, or the name of the one that must be called."""
    model: ModelConfig = ModelConfig()
    request: RequestConfig = RequestConfig()


class DeduplicationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """References in place of content that is delivered again unchanged (RFD 067)."""

    enabled: Harmless[bool] = True
    """Make references."""
    min_bytes: Harmless[Count] = 300
    """Smaller content is always sent again."""
    lookback_turns: Harmless[Count] = 30
    """A reference reaches this many turns back."""


class TitleGenerationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Titles by a model: a small request beside one of the first three turns."""

    auto: Annotated[bool | Literal["terminal"], Ordered(order=(False, "terminal", True), lasting=True)] = "terminal"
    """Generate missing titles; `terminal`: only at a terminal, which shows the cost."""
    model: Annotated[str | None, NeedsTrust(lasting=True)] = None
    """The model that writes it, as `provider/name` or an alias. Unset, the cheap model of the provider that answers."""


class TitleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Titles of conversations that were not given one."""

    from_heading: Harmless[bool] = True
    """Use a Markdown heading in the first line of the first request as the title."""
    generate: TitleGenerationConfig = TitleGenerationConfig()


class ConversationConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that a conversation is created with."""

    attachments: Annotated[UniqueTexts, Attachments(schemes=("file", "jp"))] = ()
    """URIs that are attached to the first turn; `!URI` excludes."""
    max_attachment_bytes: Annotated[Positive, Limit()] = 10 * 1024 * 1024
    """The largest size of an attachment, in bytes."""
    max_input_bytes: Annotated[Positive, Limit()] = 512 * 1024
    """The most bytes that one turn may attach and pipe in together without `--yes`."""
    start_local: Harmless[bool] = False
    """Keep new conversations in the user's data directory instead of the workspace."""
    deduplication: DeduplicationConfig = DeduplicationConfig()
    compaction: CompactionConfig = CompactionConfig()
    title: TitleConfig = TitleConfig()
    tools: dict[str, ToolConfig] = {}


class AttachmentsConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of what can be attached."""

    max_files: Annotated[Positive, Limit()] = 2_000
    """The most files of one directory or glob; more are taken for a mistake."""


class CodeStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fenced code on a terminal."""

    theme: Harmless[str] = "ansi_dark"
    """The name of a Pygments style."""


class ReasoningStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model's reasoning on a terminal."""

    display: Harmless[Literal["full", "hidden"]] = "full"
    """Show it (`full`) or not (`hidden`)."""


class MarkdownStyle(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Markdown on a terminal."""

    wrap_width: Harmless[Count] = 100
    """The widest line of prose, in columns; 0 means the terminal's width."""


class StyleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The appearance of the output."""

    code: CodeStyle = CodeStyle()
    markdown: MarkdownStyle = MarkdownStyle()
    reasoning: ReasoningStyle = ReasoningStyle()
    notification: Harmless[Literal["off", "bell", "osc9", "osc777"]] = "off"
    """The notification when a long turn ends: `bell`, or a desktop notification with `osc9` or `osc777`."""
    notification_secs: Harmless[Seconds] = 10.0
    """Minimum duration of a long turn, in seconds."""


class UserConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The person who asks."""

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
    """The values of the names in a template."""


class LlmConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Providers of models."""

    aliases: Annotated[dict[str, str], NewNames()] = {}
    """Short names for models. An alias names `provider/name` or another alias."""
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
    """Providers of models, and MCP servers."""

    llm: LlmConfig = LlmConfig()
    mcp: dict[str, McpServerConfig] = {}


class AppConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of one command."""

    config_load_paths: Annotated[UniqueTexts, InsideWorkspace()] = ()
    """Directories in which `--cfg NAME` looks for a fragment."""
    assistant: AssistantConfig = AssistantConfig()
    attachments: AttachmentsConfig = AttachmentsConfig()
    conversation: ConversationConfig = ConversationConfig()
    editor: EditorConfig = EditorConfig()
    providers: ProvidersConfig = ProvidersConfig()
    style: StyleConfig = StyleConfig()
    template: TemplateConfig = TemplateConfig()
    user: UserConfig = UserConfig()


class Extension(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that another one extends."""

    path: str
    """A path or a pattern, relative to the file that names it."""
    strategy: Literal["before", "after"] = "before"
    """Merge it before the file that names it, so that this one wins, or after."""


class FileConfig(AppConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a file: settings, and its relation to other files."""

    inherit: bool = True
    """`false` ignores the configuration files that come after this one."""
    extends: tuple[str | Extension, ...] = ()
    """Files that this one extends: paths or patterns, or tables with `path` and `strategy`."""


class ShippedAliases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The aliases that come with jp: `aliases.json`, last compared with the vendors' lists on the day `checked`."""

    checked: str
    aliases: dict[str, str]


@cache
def shipped_aliases() -> Mapping[str, str]:
    """Return the aliases that come with jp. They count where the configuration has no alias of the same name."""
    content = Path(__file__).with_name("aliases.json").read_bytes()
    return msgspec.json.decode(content, type=ShippedAliases).aliases


def all_aliases(settings: LlmConfig) -> dict[str, str]:
    """Return the aliases of the configuration, and those that come with jp."""
    return {**shipped_aliases(), **settings.aliases}


def resolve_alias(name: str, aliases: Mapping[str, str]) -> str:
    """Return the model that `name` is an alias for; a name that is no alias is returned as it is.

    An alias is a short name: `provider/name` is never one. One of `aliases` hides the alias that comes with jp.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    chain = [name]
    while "/" not in name and (name := aliases.get(name) or shipped_aliases().get(name, "")) != "":
        if name in chain:
            msg = f"the alias {chain[0]!r} leads in a circle: {' → '.join([*chain, name])}"
            raise ConfigurationError(msg, hint="point one of them at a model, as `provider/name`")
        chain.append(name)
    return chain[-1]


def with_model_resolved(config: AppConfig) -> AppConfig:
    """Return the configuration with the model's id in place of an alias for it.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    model = config.assistant.model
    if model.id is None:
        return config
    found = resolve_alias(model.id, config.providers.llm.aliases)
    return replace(config, assistant=replace(config.assistant, model=replace(model, id=found)))

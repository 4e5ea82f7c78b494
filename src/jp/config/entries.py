"""Types of settings with their directions, and the tables whose names users choose: accounts, tools, MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

JsonObject = dict[str, Any]
CachePolicy = Literal["off", "short", "long"]
Effort = Literal["none", "xlow", "low", "medium", "high", "xhigh", "max"]

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Price = Annotated[float, msgspec.Meta(ge=0)]
Cost = Annotated[float, msgspec.Meta(gt=0, description="a number of more than 0")]
RunMode = Literal["ask", "unattended", "edit", "skip"]

MergedText = Annotated[str, msgspec.Meta(extra={"merged": True})]
"""A text that layers may add to: it has the long form `{value, strategy, separator, discard_when_merged}`."""

UniqueTexts = Annotated[tuple[str, ...], msgspec.Meta(extra={"dedup": True})]
"""A list in which a repeated element counts once, unless a layer says `dedup = false`."""

_PORT = "(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)"
Url = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"\Ahttps?://([^\s/?#@]*@)?{_HOST}{_PORT}(/[^\s?#]*)?\Z",
        description="an address with http:// or https://",
        examples=["https://api.example.com"],
    ),
]
"""The base URL of an API. Paths are added to it, so it has neither a query nor a fragment."""

CloudName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9._:-]*\Z",
        description="a cloud's name for a region, a project or a version",
        examples=["us-east-1"],
    ),
]
"""A region, a project or a version: it becomes part of an address."""

VariableName = Annotated[
    str,
    msgspec.Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z", description="a variable's name", examples=["MY_API_KEY"]),
]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all sections."""


T = TypeVar("T")


class Neutral(msgspec.Struct, frozen=True):
    """Affects neither consent nor access: any layer may set it."""


class NeedsTrust(msgspec.Struct, frozen=True, kw_only=True):
    """Only the user's own layers set it, and what the user has accepted.

    `defining`: a tool, a server or an account is not there without it. `harmless` are values that any layer may set
    where the user's layers set none. `lasting`: a conversation keeps what `--cfg` says of it.
    """

    defining: bool = False
    harmless: tuple[Any, ...] = ()
    lasting: bool = False


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """May only become stricter. `unset` is what no value amounts to; without it, only the strictest value is stricter.

    A value that `order` does not have is compared with nothing: it needs trust. `lasting` is as in `NeedsTrust`.
    """

    order: tuple[Any, ...]
    unset: Any = msgspec.UNSET
    lasting: bool = False

    def allows(self, value: Any, own: Any) -> bool:
        """Return whether `value` is at least as strict as `own`; None means that nothing is set."""
        value, own = self.said(value), self.said(own)
        if _same(value, own) or _same(value, self.order[0]):
            return True
        rank = self._rank(value)
        return rank is not None and (limit := self._rank(own)) is not None and rank <= limit

    def said(self, value: Any) -> Any:
        """Return the value, or the one that an unset value is equal to."""
        return self.unset if value is None and self.unset is not msgspec.UNSET else value

    def _rank(self, value: Any) -> int | None:
        return next((rank for rank, known in enumerate(self.order) if _same(known, value)), None)


class Limit(msgspec.Struct, frozen=True):
    """A number that may only become smaller; no number is no limit."""

    def allows(self, value: float | None, own: float | None) -> bool:
        """Return whether the limit `value` is at least as strict as `own`."""
        return own is None or (value is not None and value <= own)


class Offer(msgspec.Struct, frozen=True):
    """The offer of a tool: never one whose calls would run unasked, or that the user has switched off."""


class CallRules(msgspec.Struct, frozen=True):
    """Rules for calls, of which the first that matches decides: only such may be added as let through less."""


class Denials(msgspec.Struct, frozen=True):
    """Rules for files, of which the last that fits decides: only such may be added as allow nothing."""


class NewNames(msgspec.Struct, frozen=True):
    """Short names: only such may be added as the user has not given to anything."""


class ModelChoice(msgspec.Struct, frozen=True):
    """A model: only of the provider that the user has chosen, where the user has chosen one."""


class InsideWorkspace(msgspec.Struct, frozen=True):
    """Directories: only such as lie in the workspace."""


class Attachments(msgspec.Struct, frozen=True, kw_only=True):
    """Sources: those that run something or reach out have to be accepted before anything is asked with them.

    `schemes` are the ones that stay here.
    """

    schemes: tuple[str, ...]


Direction = (
    Neutral
    | NeedsTrust
    | Ordered
    | Limit
    | Offer
    | CallRules
    | Denials
    | NewNames
    | ModelChoice
    | InsideWorkspace
    | Attachments
)

NEUTRAL = Neutral()
NEEDS_TRUST = NeedsTrust()

Harmless = Annotated[T, NEUTRAL]
"""A setting that any layer may set."""

Guarded = Annotated[T, NEEDS_TRUST]
"""A setting that only the user sets, and what the user has accepted; what `--cfg` says of it ends with the run."""

Defining = Annotated[T, NeedsTrust(defining=True)]
"""The same, where a tool, a server or an account is not there without it."""

RUN_MODES = Ordered(order=("skip", "edit", "ask", "unattended"), unset="ask")
RESULT_MODES = Ordered(order=("skip", "edit", "ask", "unattended"), unset="unattended")


def is_direction(metadata: object) -> bool:
    """Return whether a type's metadata is a direction."""
    return isinstance(metadata, Direction)


def lapses(direction: Direction) -> bool:
    """Return whether what `--cfg` loosens of such a setting ends with the run."""
    return isinstance(direction, CallRules | Denials) or (
        isinstance(direction, NeedsTrust | Ordered) and not direction.lasting
    )


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same plain data; Python takes 1, 1.0 and true for equal."""
    if one is msgspec.UNSET or other is msgspec.UNSET:
        return one is other
    return one is other or msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def entry(value: Any) -> Mapping[str, Any]:
    """Return the entries of a table; none for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


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


Enable = bool | Literal["explicit", "always"]
ResultMode = Literal["unattended", "ask", "edit", "skip"]
Half = Literal["keep", "strip"]
SandboxMode = Literal["workspace-write", "read-only", "off"]
DigestKind = Literal["terminal", "read", "search", "patch", "web", "test", "json", "other"]


class RuleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The mode of calls whose arguments match."""

    arguments: dict[str, str] = {}
    """For each argument a pattern that matches its whole text: `*` matches anything but `/`, `**` everything."""
    prefix: dict[str, str] = {}
    """For an argument that is a command, the words that it begins with; only plain words may follow."""
    exact: bool = False
    """Match only calls without other arguments than those of this rule."""
    run: RunMode = "ask"
    """The mode of such a call."""


class ParameterConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One parameter of a local tool."""

    type: str | tuple[str, ...] = "string"
    """The type, or several, as JSON Schema names them."""
    required: bool = False
    """Refuse a call without it."""
    default: Any = None
    """The value for a call without it."""
    summary: str | None = None
    """The description for the model."""
    description: str | None = None
    """More, for `describe_tools`."""
    examples: str | None = None
    """Examples, for `describe_tools`."""
    enum: tuple[Any, ...] = ()
    """The values that it may have."""
    items: JsonObject = {}
    """With type `array`, the JSON Schema of its elements."""
    properties: JsonObject = {}
    """With type `object`, the JSON Schema of its members."""


class CommandConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The program of a local tool, run in the workspace's root."""

    program: str
    """The program; a template."""
    args: tuple[str, ...] = ()
    """Its arguments; each is a template."""
    shell: bool = False
    """Run the program's text with `sh -c`, followed by the quoted arguments."""


class QuestionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question that a tool may ask while it runs."""

    target: Literal["user", "assistant"] = "user"
    """The one who answers: a person, if there is one, or the model."""
    answer: Any = None
    """An answer that is always given."""


class FileRuleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Permissions below a path. Any such rule denies the rest; the last that matches decides."""

    path: str
    """A directory or a file, relative to the workspace's root or absolute."""
    read: bool = False
    """Allow reading and listing files there."""
    write: bool = False
    """Allow creating, changing and deleting files there."""


class AccessConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Access besides the workspace."""

    fs: Annotated[tuple[FileRuleConfig, ...], Denials()] = ()
    """Rules for paths."""
    local_network: Annotated[bool, Ordered(order=(False, True))] = False
    """Let `web_fetch` reach this machine and its private network."""


class SandboxConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The confinement of a program by the operating system."""

    mode: Annotated[SandboxMode | None, Ordered(order=("read-only", "workspace-write", "off"))] = None
    """Directories that it can write: the workspace and a temporary directory, only the latter, or any."""
    network: Annotated[bool | None, Ordered(order=(False, True))] = None
    """Allow the network, never with `read-only`. Unset, only if a person approved the call."""
    writable: Guarded[tuple[str, ...]] = ()
    """Further directories that `workspace-write` lets it change: absolute, from the workspace's root, or with `~`."""
    required: Annotated[bool | None, Ordered(order=(True, False))] = None
    """Refuse to run if a part of this cannot be enforced."""


class ToolCompactionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parts of this tool's calls that a compaction strips (RFD D17)."""

    request: Harmless[Half | None] = None
    """Keep the arguments."""
    response: Harmless[Half | None] = None
    """Keep the results."""


class ToolStyleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The appearance of calls on a terminal."""

    hidden: Annotated[bool | None, Ordered(order=(False, True), unset=False, lasting=True)] = None
    """Hide calls."""
    inline_results: Harmless[Literal["full", "off"] | Positive | None] = None
    """The part of a result that is shown below its line: all, nothing, or a number of lines."""


class ToolConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tool, or the defaults of all tools under the name `*`."""

    enable: Annotated[Enable | None, Offer()] = None
    """Offer the tool to the model. `explicit`: only with `--tool=NAME`; `always`: no flag removes it."""
    source: Annotated[str | None, NeedsTrust(defining=True, harmless=("builtin",))] = None
    """The source: `builtin`, `local`, `mcp.SERVER`, `mcp.SERVER.TOOL`, or `mcp.SERVER.*` for all of a server's."""
    run: Annotated[RunMode | None, RUN_MODES] = None
    """The mode of a call: it asks first, runs at once, is edited first, or is answered without running."""
    rules: Annotated[tuple[RuleConfig, ...], CallRules()] = ()
    """The modes of calls with certain arguments; the first rule that matches decides, else `run`."""
    result: Annotated[ResultMode | None, RESULT_MODES] = None
    """The mode of a result: it goes to the model at once, after asking, after editing, or not at all."""
    command: Defining[str | CommandConfig | None] = None
    """A local tool's command: words as a shell splits them, or a table."""
    input: Guarded[Literal["template", "json"] | None] = None
    """The way a local tool gets its arguments: by templates in its command, or as JSON on its standard input."""
    summary: Harmless[str | None] = None
    """The description for the model."""
    description: Harmless[str | None] = None
    """More, for `describe_tools`."""
    examples: Harmless[str | None] = None
    """Examples, for `describe_tools`."""
    parameters: Guarded[dict[str, ParameterConfig]] = {}
    questions: Guarded[dict[str, QuestionConfig]] = {}
    options: Guarded[JsonObject] = {}
    """Settings for the tool itself; jp does not read them."""
    access: AccessConfig = AccessConfig()
    sandbox: SandboxConfig = SandboxConfig()
    environment: Guarded[tuple[VariableName, ...]] = ()
    """Variables of jp's environment that a local tool gets besides PATH, HOME, LANG and their like."""
    timeout_secs: Harmless[Seconds | None] = None
    """The timeout of a call, in seconds; 0 means no limit."""
    max_bytes: Harmless[Positive | None] = None
    """A larger result is truncated in its middle for the model, which can recall the rest."""
    deduplicate: Harmless[bool | None] = None
    """Make references to content that the tool delivers again unchanged."""
    kind: Harmless[DigestKind | None] = None
    """The kind of its results, which decides how they are compacted."""
    compaction: ToolCompactionConfig = ToolCompactionConfig()
    style: ToolStyleConfig = ToolStyleConfig()


class McpServerConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An MCP server: a command that jp starts, or an address."""

    command: Defining[str | None] = None
    """The program that is the server and speaks on its standard streams."""
    arguments: Guarded[tuple[str, ...]] = ()
    """Its arguments."""
    variables: Guarded[tuple[VariableName, ...]] = ()
    """Variables of jp's environment that it gets besides PATH, HOME, LANG and their like."""
    environment: Guarded[dict[str, str]] = {}
    """Variables that it gets, with their values."""
    url: Defining[Url | None] = None
    """The address of a server that speaks streamable HTTP."""
    headers: Guarded[dict[str, str]] = {}
    """Headers of each request to it."""
    headers_env: Guarded[dict[str, VariableName]] = {}
    """Headers of each request to it whose values are in environment variables."""
    protocol: Guarded[Literal["auto", "initialize", "discover"]] = "auto"
    """The request that a session begins with: `auto` tries `initialize`, and `discover` where that is refused."""
    optional: Guarded[bool] = False
    """Go on without it, with a notice, if it does not start."""
    startup_timeout_secs: Guarded[Seconds] = 60
    """The startup timeout, in seconds; 0 means no limit."""
    sandbox: SandboxConfig = SandboxConfig()

"""Tools: which the model may call, what they are, and how their results are treated.

Each has more settings than are ever set: as data, a tool has those that differ from their defaults.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from jp.config.direction import (
    RESULT_MODES,
    RUN_MODES,
    CallRules,
    Defining,
    Denials,
    Guarded,
    Harmless,
    JsonObject,
    NeedsTrust,
    Offer,
    Ordered,
    Positive,
    RunMode,
    Seconds,
    Section,
    Url,
    VariableName,
)

Enable = bool | Literal["explicit", "always"]
ResultMode = Literal["unattended", "ask", "edit", "skip"]
Half = Literal["keep", "strip"]
SandboxMode = Literal["workspace-write", "read-only", "off"]
DigestKind = Literal["terminal", "read", "search", "patch", "web", "test", "json", "other"]


class RuleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How calls run whose arguments match."""

    arguments: dict[str, str] = {}
    """For each argument a pattern that its text has to match whole: `*` stands for anything but `/`, `**` for all."""
    run: RunMode = "ask"
    """How such a call runs."""


class ParameterConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One parameter of a local tool."""

    type: str | tuple[str, ...] = "string"
    """The type, or several, as JSON Schema names them."""
    required: bool = False
    """Whether a call without it is refused."""
    default: Any = None
    """What counts where the call leaves it out."""
    summary: str | None = None
    """What the model is told of it."""
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
    """Whether `sh -c` runs the program's text, the arguments quoted behind it."""


class QuestionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question that a tool may ask while it runs."""

    target: Literal["user", "assistant"] = "user"
    """Who answers: a person, where there is one, or the model."""
    answer: Any = None
    """An answer that is always given."""


class FileRuleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a tool may do below a path. Any such rule denies what none allows; the last that fits decides."""

    path: str
    """A directory or a file, relative to the workspace's root or absolute."""
    read: bool = False
    """Whether files there may be read and listed."""
    write: bool = False
    """Whether files there may be created, changed and deleted."""


class AccessConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a tool may reach besides the workspace."""

    fs: Annotated[tuple[FileRuleConfig, ...], Denials()] = ()
    """Rules for paths."""
    local_network: Annotated[bool, Ordered(order=(False, True))] = False
    """Whether `web_fetch` may reach this machine and its private network."""


class SandboxConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the operating system confines a program that runs."""

    mode: Annotated[SandboxMode | None, Ordered(order=("read-only", "workspace-write", "off"))] = None
    """Where it may write: in the workspace and a temporary directory of its own, only in the latter, or anywhere."""
    network: Annotated[bool | None, Ordered(order=(False, True))] = None
    """Whether it may use the network, never with `read-only`; where not set, only where a person agreed to the call."""
    writable: Guarded[tuple[str, ...]] = ()
    """Further directories that `workspace-write` lets it change: absolute, from the workspace's root, or with `~`."""
    required: Annotated[bool | None, Ordered(order=(True, False))] = None
    """Whether it must not run where some of this cannot be held."""


class ToolCompactionConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a compaction that strips tool calls does with those of this tool (RFD D17)."""

    request: Harmless[Half | None] = None
    """Whether the arguments are kept."""
    response: Harmless[Half | None] = None
    """Whether the results are kept."""


class ToolStyleConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How calls look on a terminal."""

    hidden: Annotated[bool | None, Ordered(order=(False, True), unset=False, lasting=True)] = None
    """Whether calls are shown at all."""
    inline_results: Harmless[Literal["full", "off"] | Positive | None] = None
    """How much of a result is shown below its line: all, nothing, or so many lines."""


class ToolConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tool, or under the name `*` what holds for all that do not say otherwise."""

    enable: Annotated[Enable | None, Offer()] = None
    """Whether the model is offered the tool. `explicit`: only where --tool=NAME says so; `always`: no flag takes it."""
    source: Annotated[str | None, NeedsTrust(defining=True, harmless=("builtin",))] = None
    """Where it comes from: `builtin`, `local`, `mcp.SERVER`, `mcp.SERVER.TOOL`, or for all of it `mcp.SERVER.*`."""
    run: Annotated[RunMode | None, RUN_MODES] = None
    """Whether a call asks first, runs at once, is edited first, or is answered without running."""
    rules: Annotated[tuple[RuleConfig, ...], CallRules()] = ()
    """How a call runs whose arguments match; the first rule that does decides, `run` where none does."""
    result: Annotated[ResultMode | None, RESULT_MODES] = None
    """Whether the result goes to the model at once, after asking, after editing, or not at all."""
    command: Defining[str | CommandConfig | None] = None
    """A local tool's command: words as a shell splits them, or a table."""
    input: Guarded[Literal["template", "json"] | None] = None
    """How a local tool gets its arguments: by templates in its command, or as JSON on its standard input."""
    summary: Harmless[str | None] = None
    """What the model is told of the tool."""
    description: Harmless[str | None] = None
    """More, for `describe_tools`."""
    examples: Harmless[str | None] = None
    """Examples, for `describe_tools`."""
    parameters: Guarded[dict[str, ParameterConfig]] = {}
    questions: Guarded[dict[str, QuestionConfig]] = {}
    options: Guarded[JsonObject] = {}
    """What the tool itself is told; jp does not read it."""
    access: AccessConfig = AccessConfig()
    sandbox: SandboxConfig = SandboxConfig()
    environment: Guarded[tuple[VariableName, ...]] = ()
    """Variables of jp's environment that a local tool gets besides PATH, HOME, LANG and their like."""
    timeout_secs: Harmless[Seconds | None] = None
    """How long a call may take, in seconds; 0 means forever."""
    max_bytes: Harmless[Positive | None] = None
    """A result that is larger is cut in its middle for the model; what was left out can be recalled."""
    deduplicate: Harmless[bool | None] = None
    """Whether content that the tool delivers again unchanged becomes a reference."""
    kind: Harmless[DigestKind | None] = None
    """What kind of results it has: what stands for them once they are compacted."""
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
    """Whether jp goes on without it, with a notice, where it does not start."""
    startup_timeout_secs: Guarded[Seconds] = 60
    """How long it may take to start, in seconds; 0 means forever."""
    sandbox: SandboxConfig = SandboxConfig()

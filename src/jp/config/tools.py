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
    """The mode of calls whose arguments match."""

    arguments: dict[str, str] = {}
    """For each argument a pattern that matches its whole text: `*` matches anything but `/`, `**` everything."""
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

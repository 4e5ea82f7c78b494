"""`jp tool ls` and `jp tool show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.terminal.wording import worded
from jp.compaction.fact_lines import SHIPPED
from jp.config.entries import ToolConfig
from jp.config.schema import key_text
from jp.errors import ConfigurationError, ExitCode, JpError
from jp.tool.base import Confined, ToolInvocation
from jp.tool.toolbox import ALL, AUTOMATIC, AUTOMATIC_SETTINGS, is_enabled, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jp.app.tools import ReadTools, StoredRule
    from jp.app.toolset import Toolset
    from jp.config.entries import ToolCompactionConfig
    from jp.config.layers import Resolved
    from jp.process.sandbox.policy import Limits
    from jp.render.tables import Part
    from jp.tool.base import Tool


OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation (default: settings of new ones)")
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name")]


_UNSET = ToolConfig()


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `tool` is None where it cannot be made, and `problem` says why.

    `limits` are what confines its programs, None where it acts in jp's own process.
    """

    name: str
    source: str
    settings: ToolConfig
    tool: Tool | None
    problem: str = ""
    limits: Limits | None = None

    @property
    def offered(self) -> str:
        """A word for whether a request offers it."""
        if self.name in AUTOMATIC:
            return "as needed" if is_enabled(self.settings) else "no"
        match self.settings.enable:
            case "explicit":
                return "by name"
            case "always":
                return "always"
            case enable:
                return "yes" if enable else "no"

    @property
    def run(self) -> str:
        """A word for how its calls run."""
        return self.settings.run or "ask"

    @property
    def summary(self) -> str:
        """The first sentence of what the model is told, or what is wrong."""
        if self.tool is None:
            return f"({self.problem})"
        sentence, end, _ = " ".join(self.tool.definition.description.split()).partition(". ")
        return f"{sentence}{end.rstrip()}"

    @property
    def sandbox(self) -> str:
        """A word for the sandbox of its programs; empty if it starts none."""
        return "" if self.limits is None else self.limits.text.removeprefix("sandbox: ") or self.limits.word

    def value(self) -> dict[str, Any]:
        """Return the fields for `--format json`."""
        return {
            "name": self.name,
            "source": self.source,
            "offered": self.offered,
            "enable": self.settings.enable,
            "run": self.run,
            "sandbox": self.sandbox or None,
            "summary": self.summary if self.tool is not None else None,
            "problem": self.problem or None,
        }


def facts_of(name: str, toolset: Toolset, root: Path) -> ToolFacts:
    """Return the facts about the known tool `name`, in the workspace at `root`."""
    settings = settings_of(name, toolset.settings)
    source = toolset.source(name).text
    try:
        tool = toolset.tool(name)
        limits = _limits(tool, settings, root)
        return ToolFacts(name=name, source=source, settings=settings, tool=tool, limits=limits)
    except ConfigurationError as error:
        return ToolFacts(name=name, source=source, settings=settings, tool=None, problem=worded(error.message))


def _limits(tool: Tool, settings: ToolConfig, root: Path) -> Limits | None:
    if not isinstance(tool, Confined):
        return None
    call = ToolInvocation(arguments={}, root=root, settings=settings)
    limits, agreed = (tool.sandbox_limits(replace(call, is_agreed=is_agreed)) for is_agreed in (False, True))
    if limits == agreed or settings.run not in {None, "ask", "edit"}:
        return limits
    return replace(agreed, text=f"{agreed.text} once you agree to the call")


def plain(settings: ToolConfig) -> dict[str, Any]:
    """Settings as JSON has them. A rule says how calls run, even where that is the default."""
    values: dict[str, Any] = {name: getattr(settings, name) for name in settings.__struct_fields__}
    rules = [{"arguments": rule.arguments, **msgspec.to_builtins(rule), "run": rule.run} for rule in settings.rules]
    return {**msgspec.to_builtins(values), "rules": rules}


def origins_of(facts: ToolFacts, resolved: Resolved) -> dict[str, str]:
    """Return the origin of each setting that the tool has, in words."""
    from jp.tool.mcp import groups_of, member_of

    tools = resolved.config.conversation.tools
    own = tools.get(facts.name, _UNSET)
    group = member_of(facts.name, own, groups_of(tools))
    groups = _UNSET if group is None else tools[group.name]
    found: dict[str, str] = {}
    for setting in facts.settings.__struct_fields__:
        value, unset = getattr(facts.settings, setting), getattr(_UNSET, setting)
        if value == unset:
            continue
        if getattr(own, setting) != unset:
            found[setting] = _origin(resolved, facts.name, setting)
        elif group is not None and getattr(groups, setting) != unset:
            found[setting] = f"{_origin(resolved, group.name, setting)}, for all of {group.name!r}"
        elif getattr(AUTOMATIC_SETTINGS.get(facts.name, _UNSET), setting) != unset:
            found[setting] = "built-in default"
        else:
            found[setting] = f"{_origin(resolved, ALL, setting)}, for all tools"
    return found


def hint_origin(name: str, resolved: Resolved) -> str:
    """Return where a tool's hints for compactions came from, in words; empty where it has none."""
    own = resolved.config.conversation.tools.get(name, _UNSET).compaction
    origin = "" if own == _UNSET.compaction else _origin(resolved, name, "compaction")
    built_in = "built in" if name in SHIPPED and None in (own.request, own.response) else ""
    return ", ".join(filter(None, (origin, built_in)))


def _origin(resolved: Resolved, name: str, setting: str) -> str:
    """Return the layers that have set a setting, or a part of it."""
    key = key_text(("conversation", "tools", name, setting))
    below = [worded(origin.text) for known, origin in resolved.origins.items() if f"{known}.".startswith(f"{key}.")]
    whole = worded(resolved.origin(("conversation", "tools", name, setting)).text)
    return ", ".join(dict.fromkeys(below)) or whole


_Row = tuple[str, str, str]
_HEAD = ("name", "source", "offered", "run", "sandbox", "summary")


def ls(
    options: GlobalOptions,
    *,
    target: OptionalTarget = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the MCP servers first, and cache their tools")
    ] = False,
) -> ExitCode | None:
    """List the available tools: built in, configured, or from packages and MCP servers.

    `offered` says whether a request offers the tool to the model: yes, no, always, by name (only with `jp query
    --tool=NAME`) or as needed (when it is useful). `run` says what happens when the model calls it: ask, unattended,
    edit or skip. `sandbox` says what confines the programs that it starts: workspace (they change files only there),
    read-only, partly, none (nothing here can), or off; a tool without one starts none. No MCP server is started without
    --refresh: its tools are those from the last time. With --refresh, the exit code says whether a server did not
    answer: 4 if it needs other credentials.

    Examples:
        jp tool ls
        jp tool ls --id .
        jp tool ls --refresh
        jp tool ls --format json
    """
    from jp.app.settings import tell_ignored
    from jp.app.tools import read_tools
    from jp.cli.output import print_result
    from jp.cli.terminal.exit import report
    from jp.render.tables import Table
    from jp.tool.toolbox import ALL

    read = read_tools(options, target)
    tell_ignored(options, read.resolved, read.info)
    refreshed = _refreshed(read) if refresh else _Refreshed(toolset=read.toolset())
    toolset = refreshed.toolset
    if toolset is None:
        return refreshed.interrupted
    for server in () if refresh else read.strange_servers():
        options.notice(f"what the MCP server {server!r} has is not known yet: `jp tool ls --refresh` asks it")
    for name in toolset.settings:
        if name != ALL and not toolset.is_known(name):
            options.notice(toolset.unknown(name).message)
    found = [facts_of(name, toolset, read.root) for name in toolset.all_names]
    table = Table(head=_HEAD, rows=[_row(facts) for facts in found], keys=frozenset({0}))
    print_result(options, text=[table] if found else "", value={"tools": [facts.value() for facts in found]})
    for error in refreshed.errors:
        report(error, as_json=options.format == "json")
    codes = {error.exit_code for error in refreshed.errors}
    return codes.pop() if len(codes) == 1 else ExitCode.FAILURE if codes else None


class _Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The tools after the servers were asked, and why some did not answer; or the exit code of an interruption."""

    toolset: Toolset | None
    errors: list[JpError] = []
    interrupted: ExitCode | None = None


def _refreshed(read: ReadTools) -> _Refreshed:
    import anyio

    from jp.cli.terminal.signals import interruptions

    async def run() -> _Refreshed:
        with interruptions() as interruption:
            toolset, errors = await read.refreshed()
            return _Refreshed(toolset=toolset, errors=errors)
        return _Refreshed(toolset=None, interrupted=interruption.exit_code)

    return anyio.run(run)


def _row(facts: ToolFacts) -> tuple[str, ...]:
    sandbox = "-" if facts.limits is None else facts.limits.word
    return facts.name, facts.source, facts.offered, facts.run, sandbox, facts.summary


_APART = frozenset({
    "compaction",
    "source",
    "enable",
    "run",
    "sandbox",
    "summary",
    "description",
    "examples",
    "parameters",
})
"""Settings that stand elsewhere on the page than in the list of those that are set."""


def show(options: GlobalOptions, *, name: ToolName, target: OptionalTarget = None) -> None:
    """Show a tool: its source, its settings with their origins, and its description for the model.

    Examples:
        jp tool show fs_read_file
        jp tool show fs_read_file --id .
        jp tool show fs_read_file --format json
    """
    from jp.app.tools import read_tools, unknown_name
    from jp.cli.output import print_result
    from jp.compaction.fact_lines import hints_of

    read = read_tools(options, target)
    toolset = read.toolset()
    if not toolset.is_known(name):
        raise unknown_name(name, toolset, read)
    facts = facts_of(name, toolset, read.root)
    origins = origins_of(facts, read.resolved)
    hints = hints_of(name, read.resolved.config.conversation.tools)
    value = {
        "tool": {
            **facts.value(),
            **_details(facts),
            "compaction": {"request": hints.request, "response": hints.response},
            "origins": origins,
        }
    }
    compaction = _compaction(hints, hint_origin(name, read.resolved))
    print_result(options, text=_parts(facts, origins, compaction), value=value)


def _details(facts: ToolFacts) -> dict[str, object]:
    definition = None if facts.tool is None else facts.tool.definition

    return {
        "description": None if definition is None else definition.description,
        "parameters": None if definition is None else definition.parameters,
        "hints": list(_hints(facts)),
        "settings": plain(facts.settings),
    }


def _compaction(hints: ToolCompactionConfig, origin: str) -> list[_Row]:
    """Return the row of the effects of compactions on the calls of a tool; none if its profile alone decides."""
    words = {"keep": "kept", "strip": "digested or stripped"}
    halves = (("arguments", hints.request), ("results", hints.response))
    said = [f"{half} {words[hint]}" for half, hint in halves if hint is not None]
    return [_row_of("compaction", ", ".join(said), origin)] if said else []


def _parts(facts: ToolFacts, origins: Mapping[str, str], compaction: Sequence[_Row]) -> Sequence[Part]:
    from jp.render.tables import Facts
    from jp.tool.base import ConfiguredTool
    from jp.tool.context_tools import description_of

    rows = [
        _row_of("source", facts.source, origins.get("source", "")),
        _row_of("offered", facts.offered, origins.get("enable", "the default")),
        _row_of("run", facts.run, origins.get("run", "the default")),
    ]
    if facts.sandbox:
        rows.append(_row_of("sandbox", facts.sandbox, origins.get("sandbox", "the default")))
    settings = plain(facts.settings)
    rows += [
        _row_of(setting, _json(settings[setting]), origin)
        for setting, origin in origins.items()
        if setting not in _APART
    ]
    rows += compaction
    panel = Facts(title=facts.name, rows=rows, widths=(14,))
    if facts.tool is None:
        return [f"# {facts.name}", "", facts.problem, "", panel]
    if hints := _hints(facts):
        rows.append(_row_of("its server", f"says that it {', '.join(hints)}", ""))
    title, *paragraphs = description_of(ConfiguredTool(tool=facts.tool, settings=facts.settings)).split("\n\n")
    schema = _json(facts.tool.definition.parameters, indent=2)
    below = [part for text in (*paragraphs, f"As JSON Schema:\n{schema}") for part in ("", text)]
    return [title, "", panel, *below]


def _hints(facts: ToolFacts) -> tuple[str, ...]:
    """Return the server's claims about the effects of a tool, which need not be true."""
    if not facts.source.startswith("mcp."):
        return ()
    from jp.tool.mcp import McpTool

    return facts.tool.hints if isinstance(facts.tool, McpTool) else ()


def _row_of(label: str, value: str, origin: str) -> _Row:
    from jp.render.sanitize import one_line

    return label, one_line(value), f"  ({one_line(origin)})" if origin else ""


def _json(value: object, *, indent: int = 0) -> str:
    import msgspec

    encoded = msgspec.json.encode(value)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()


def rules(
    options: GlobalOptions,
    *,
    remove: Annotated[
        int | None, typer.Option("--remove", metavar="N", min=1, help="Remove the rule with this number")
    ] = None,
) -> None:
    """List the rules for tools in your own settings, written by `a` at a tool's question or by hand.

    These are your settings for all workspaces and for this one. The first rule that matches a call decides. Rules of a
    workspace's files can only be stricter.

    Examples:
        jp tool rules
        jp tool rules --remove 2
    """
    from jp.app.tools import remove_rule, stored_rules
    from jp.cli.options import require_persistence
    from jp.cli.output import print_result
    from jp.render.tables import Table

    if remove is not None:
        require_persistence(options, "jp tool rules --remove")
        gone = remove_rule(options, remove)
        text = f"removed: {gone.tool} {_matching(gone)}: {gone.run}"
        print_result(options, text=text, value={"removed": msgspec.to_builtins(gone)})
        return
    found = stored_rules(options)
    rows = [(str(n), rule.tool, rule.run, _matching(rule)) for n, rule in enumerate(found, 1)]
    text = [Table(head=("", "tool", "run", "calls"), rows=rows, right=frozenset({0}))] if rows else ""
    value = {"rules": [{"number": n, **msgspec.to_builtins(rule)} for n, rule in enumerate(found, 1)]}
    print_result(options, text=text, value=value, nothing="your settings have no rules for tools")


def _matching(rule: StoredRule) -> str:
    """Return the arguments of a rule in words."""
    said = [f"{name}={pattern}" for name, pattern in rule.arguments.items()]
    said += [f"{name}={words} …" for name, words in rule.prefix.items()]
    said += ["no other arguments"] if rule.exact else []
    return ", ".join(said) or "every call"

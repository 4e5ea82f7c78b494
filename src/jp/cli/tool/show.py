"""`jp tool show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions
from jp.cli.tool.parameters import OptionalTarget, ToolName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jp.cli.tool.facts import ToolFacts
    from jp.config.tools import ToolCompactionConfig

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
    """Show everything about a tool: where it comes from, its settings and which file says them, what the model is told.

    Examples:
        jp tool show fs_read_file
        jp tool show fs_read_file --id .
        jp tool show fs_read_file --format json
    """
    from jp.cli.output import print_result
    from jp.cli.tool.facts import facts_of, hint_origin, origins_of
    from jp.cli.tool.reading import read_tools, unknown_name
    from jp.compaction.hints import hints_of

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
    print_result(options, text=_text(facts, origins, _compaction(hints, hint_origin(name, read.resolved))), value=value)


def _details(facts: ToolFacts) -> dict[str, object]:
    definition = None if facts.tool is None else facts.tool.definition
    from jp.cli.tool.facts import plain

    return {
        "description": None if definition is None else definition.description,
        "parameters": None if definition is None else definition.parameters,
        "hints": list(_hints(facts)),
        "settings": plain(facts.settings),
    }


def _compaction(hints: ToolCompactionConfig, origin: str) -> str:
    """Return what compactions do with the calls of a tool, as a line; empty where its profile alone decides."""
    words = {"keep": "kept", "strip": "digested or stripped"}
    halves = (("arguments", hints.request), ("results", hints.response))
    said = [f"{half} {words[hint]}" for half, hint in halves if hint is not None]
    return _line("compaction", ", ".join(said), origin) if said else ""


def _text(facts: ToolFacts, origins: Mapping[str, str], compaction: str) -> str:
    from jp.cli.tool.facts import plain
    from jp.tool.base import ConfiguredTool
    from jp.tool.describe_tools import description_of

    lines = [
        _line("source", facts.source, origins.get("source", "")),
        _line("offered", facts.offered, origins.get("enable", "the default")),
        _line("run", facts.run, origins.get("run", "the default")),
    ]
    if facts.sandbox:
        lines.append(_line("sandbox", facts.sandbox, origins.get("sandbox", "the default")))
    settings = plain(facts.settings)
    lines += [
        _line(setting, _json(settings[setting]), origin) for setting, origin in origins.items() if setting not in _APART
    ]
    if compaction:
        lines.append(compaction)
    if facts.tool is None:
        return "\n".join([f"# {facts.name}", "", facts.problem, "", *lines])
    if hints := _hints(facts):
        lines.append(_line("its server", f"says that it {', '.join(hints)}", ""))
    title, *paragraphs = description_of(ConfiguredTool(tool=facts.tool, settings=facts.settings)).split("\n\n")
    schema = _json(facts.tool.definition.parameters, indent=2)
    return "\n\n".join([title, "\n".join(lines), *paragraphs, f"As JSON Schema:\n{schema}"])


def _hints(facts: ToolFacts) -> tuple[str, ...]:
    """What the server of a tool says of its effects, which need not be true."""
    if not facts.source.startswith("mcp."):
        return ()
    from jp.tool.mcp.tool import McpTool

    return facts.tool.hints if isinstance(facts.tool, McpTool) else ()


def _line(label: str, value: str, origin: str) -> str:
    from jp.render.sanitize import one_line

    said = f"  ({one_line(origin)})" if origin else ""
    return f"{label:<14}{one_line(value)}{said}"


def _json(value: object, *, indent: int = 0) -> str:
    import msgspec

    encoded = msgspec.json.encode(value)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()

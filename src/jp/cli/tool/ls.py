"""`jp tool ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.tool.parameters import OptionalTarget
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.cli.tool.facts import ToolFacts
    from jp.cli.tool.reading import ReadTools
    from jp.cli.toolset import Toolset

_HEAD = ("name", "source", "offered", "run", "summary")


def ls(
    options: GlobalOptions,
    *,
    target: OptionalTarget = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the MCP servers first, and remember what they have.")
    ] = False,
) -> ExitCode | None:
    """List the tools that there are: those that come with jp, and those of the configuration and of packages.

    `offered` says whether the model gets to know a tool: yes, no, always, by name (only `jp query --tool=NAME` offers
    it) or as needed (jp offers it by itself where it is of use). `run` says what happens when the model calls it: ask,
    unattended, edit or skip. No MCP server is started without --refresh: its tools are those that it had last time.

    Examples:
        jp tool ls
        jp tool ls --id .
        jp tool ls --refresh
        jp tool ls --format json
    """
    from jp.cli.looks import width_of_stdout
    from jp.cli.output import notice, print_result
    from jp.cli.tool.facts import facts_of
    from jp.cli.tool.reading import read_tools
    from jp.cli.trust import tell_ignored
    from jp.render.listing import text_table
    from jp.tool.toolbox import ALL

    read = read_tools(options, target)
    tell_ignored(options, read.resolved, read.info)
    toolset, code = _refreshed(read) if refresh else (read.toolset(), None)
    if toolset is None:
        return code
    for server in read.strange_servers():
        notice(options, f"what the MCP server {server!r} has is not known yet: `jp tool ls --refresh` asks it")
    for name in toolset.settings:
        if name != ALL and not toolset.is_known(name):
            notice(options, toolset.unknown(name).message)
    found = [facts_of(name, toolset) for name in toolset.all_names]
    text = text_table(_HEAD, [_row(facts) for facts in found], width=width_of_stdout(options))
    print_result(options, text=text, value={"tools": [facts.value() for facts in found]})
    return None


def _refreshed(read: ReadTools) -> tuple[Toolset | None, ExitCode | None]:
    """The tools after the servers were asked, or the exit code of an interruption."""
    import anyio

    from jp.cli.signals import interruptions

    async def run() -> tuple[Toolset | None, ExitCode | None]:
        toolset = None
        with interruptions() as interruption:
            toolset = await read.refreshed()
        return toolset, interruption.exit_code

    return anyio.run(run)


def _row(facts: ToolFacts) -> tuple[str, ...]:
    return facts.name, facts.source, facts.offered, facts.run, facts.summary

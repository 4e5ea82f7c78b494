"""`jp tool ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jp.cli.options import GlobalOptions
from jp.cli.tool.parameters import OptionalTarget
from jp.errors import ExitCode, JpError

if TYPE_CHECKING:
    from jp.cli.tool.facts import ToolFacts
    from jp.cli.tool.reading import ReadTools
    from jp.cli.toolset import Toolset

_HEAD = ("name", "source", "offered", "run", "sandbox", "summary")


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
    unattended, edit or skip. `sandbox` says what confines the programs that it starts: workspace (they change files
    only there), read-only, partly, none (nothing here can), or off; a tool without one starts none. No MCP server is
    started without --refresh: its tools are those that it had last time.
    With --refresh, the exit code says whether one did not answer: 4 where it wants other credentials.

    Examples:
        jp tool ls
        jp tool ls --id .
        jp tool ls --refresh
        jp tool ls --format json
    """
    from jp.cli.exit import report
    from jp.cli.looks import width_of_stdout
    from jp.cli.output import notice, print_result
    from jp.cli.tool.facts import facts_of
    from jp.cli.tool.reading import read_tools
    from jp.cli.trust import tell_ignored
    from jp.render.tables import text_table
    from jp.tool.toolbox import ALL

    read = read_tools(options, target)
    tell_ignored(options, read.resolved, read.info)
    refreshed = _refreshed(read) if refresh else _Refreshed(toolset=read.toolset())
    toolset = refreshed.toolset
    if toolset is None:
        return refreshed.interrupted
    for server in () if refresh else read.strange_servers():
        notice(options, f"what the MCP server {server!r} has is not known yet: `jp tool ls --refresh` asks it")
    for name in toolset.settings:
        if name != ALL and not toolset.is_known(name):
            notice(options, toolset.unknown(name).message)
    found = [facts_of(name, toolset, read.root) for name in toolset.all_names]
    text = text_table(_HEAD, [_row(facts) for facts in found], width=width_of_stdout(options))
    print_result(options, text=text, value={"tools": [facts.value() for facts in found]})
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

    from jp.cli.signals import interruptions

    async def run() -> _Refreshed:
        with interruptions() as interruption:
            toolset, errors = await read.refreshed()
            return _Refreshed(toolset=toolset, errors=errors)
        return _Refreshed(toolset=None, interrupted=interruption.exit_code)

    return anyio.run(run)


def _row(facts: ToolFacts) -> tuple[str, ...]:
    sandbox = "-" if facts.limits is None else facts.limits.word
    return facts.name, facts.source, facts.offered, facts.run, sandbox, facts.summary

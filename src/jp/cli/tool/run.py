"""`jp tool run`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.tool.parameters import OptionalTarget, ToolName


def run(
    options: GlobalOptions,
    *,
    name: ToolName,
    arguments: Annotated[
        str | None,
        typer.Option(
            "-a", "--arguments", metavar="JSON", help="Its arguments, a JSON object; @FILE or '-' reads it from there."
        ),
    ] = None,
    target: OptionalTarget = None,
    yes: Annotated[
        bool, typer.Option("--yes", "--approve-all", help="Let it run without asking, and without a terminal.")
    ] = False,
    hide_tools: Annotated[
        bool, typer.Option("--hide-tools", help="Print the result and nothing about the run.")
    ] = False,
) -> int:
    """Run a tool by hand, as if a model had called it, and print its result.

    Permission is as in a query: what asks there asks here, and without a terminal it does not run (exit code 8) unless
    --yes says so. The result is whole: nothing of it is cut or left out, and nothing is written to a conversation. The
    exit code is 1 where the tool itself says that it failed. With --id, the tool reads that conversation, and its
    settings hold.

    Examples:
        jp tool run fs_list_files --yes
        jp tool run fs_read_file --yes --arguments '{"path": "README.md"}'
        jp tool run run_command --arguments '{"command": "make test"}'
        jp tool run fs_modify_file --arguments @edit.json
    """
    import anyio

    from jp.cli.tool.running import Wanted, run_tool

    wanted = Wanted(name=name, arguments=arguments, target=target, is_approved=yes, is_shown=not hide_tools)
    return anyio.run(run_tool, options, wanted)

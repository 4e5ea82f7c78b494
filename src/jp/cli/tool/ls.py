"""`jp tool ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions
from jp.cli.tool.reading import OptionalTarget

if TYPE_CHECKING:
    from jp.cli.tool.facts import ToolFacts

_HEAD = ("name", "source", "offered", "run", "summary")


def ls(options: GlobalOptions, *, target: OptionalTarget = None) -> None:
    """List the tools that there are: those that come with jp, and those of the configuration and of packages.

    `offered` says whether the model gets to know a tool: yes, no, always, by name (only `jp query --tool=NAME` offers
    it) or as needed (jp offers it by itself where it is of use). `run` says what happens when the model calls it: ask,
    unattended, edit or skip.

    Examples:
        jp tool ls
        jp tool ls --id .
        jp tool ls --format json
    """
    from jp.cli.looks import width_of_stdout
    from jp.cli.output import notice, print_result
    from jp.cli.tool.facts import facts_of
    from jp.cli.tool.reading import read_tools
    from jp.render.listing import text_table
    from jp.tool.toolbox import ALL

    toolset = read_tools(options, target).toolset()
    for name in toolset.settings:
        if name != ALL and not toolset.is_known(name):
            notice(options, toolset.unknown(name).message)
    found = [facts_of(name, toolset) for name in toolset.all_names]
    text = text_table(_HEAD, [_row(facts) for facts in found], width=width_of_stdout(options))
    print_result(options, text=text, value={"tools": [facts.value() for facts in found]})


def _row(facts: ToolFacts) -> tuple[str, ...]:
    return facts.name, facts.source, facts.offered, facts.run, facts.summary

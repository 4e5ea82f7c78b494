"""`jp config show` and `jp config get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.config.keys import KeyPath
    from jp.config.layers import Resolved

_OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get.")
]


def show(
    options: GlobalOptions,
    *,
    target: _OptionalTarget = None,
    origins: Annotated[bool, typer.Option("--origins", help="Say behind each value where it came from.")] = False,
) -> None:
    """Show the configuration in effect, as TOML.

    What you copy of it into a file stands in place of what is below, but for lists, which are added to. What is ignored
    of a stranger's files until you trust them is not in it; a note, and `ignored` in JSON, say what that is.

    Examples:
        jp config show --origins
        jp config show --id .
        jp config show --format json
    """
    from jp.cli.output import print_result
    from jp.cli.trust import as_value, tell_ignored
    from jp.config.show import as_data, as_toml

    resolved = _resolved(options, target)
    tell_ignored(options, resolved)
    text = as_toml(resolved, with_origins=origins)
    value: dict[str, object] = {
        "config": as_data(resolved.config),
        "ignored": [as_value(item) for item in resolved.ignored],
    }
    if origins:
        value["origins"] = {key: origin.text for key, origin in resolved.origins.items()}
    print_result(options, text=text, value=value)


def get(
    options: GlobalOptions,
    *,
    key: Annotated[str, typer.Argument(help="Such as assistant.model.id.", metavar="KEY")],
    target: _OptionalTarget = None,
) -> None:
    """Print one value: a text as it is, anything else as JSON, nothing where there is none.

    Profiles of compaction and hints of tools that are built in are among the values.

    With --format json it comes with its `origin`; a table with the `origins` of all keys in it that some file, option
    or conversation sets.

    Examples:
        jp config get assistant.model.id
        jp config get conversation.attachments
        jp config get assistant --format json
    """
    from jp.cli.output import print_result
    from jp.cli.trust import as_value
    from jp.config.keys import parse_key
    from jp.config.restriction import overlap
    from jp.config.show import origins_at, value_at, value_text

    resolved = _with_built_ins(_resolved(options, target), parse_key(key))
    value = value_at(resolved.config, key)
    origins = origins_at(resolved, key)
    name = "origin" if isinstance(origins, str) else "origins"
    ignored = [as_value(item) for item in resolved.ignored if overlap(parse_key(key), item.path)]
    data = {"key": key, "value": value, name: origins, "ignored": ignored}
    print_result(options, text=value_text(value), value=data)


def _resolved(options: GlobalOptions, target: str | None) -> Resolved:
    from jp.cli.held import read_conversation
    from jp.cli.places import open_workspace
    from jp.cli.settings import read_sources

    if target is None:
        return read_sources(options, open_workspace(options)).resolve()
    return read_conversation(options, target).resolved


def _with_built_ins(resolved: Resolved, path: KeyPath) -> Resolved:
    """Return `resolved` with the profiles that are built in, and the hints of the tool that `path` names."""
    from msgspec.structs import replace

    from jp.compaction.hints import SHIPPED, hints_of
    from jp.config.compaction import profiles_of
    from jp.config.tools import ToolConfig

    conversation = resolved.config.conversation
    profiles = profiles_of(conversation.compaction)
    tools = dict(conversation.tools)
    is_tool = path[:2] == ("conversation", "tools")
    names = {*tools, *path[2:3]} & {*SHIPPED} if is_tool else set[str]()
    for name in names:
        tools[name] = replace(tools.get(name, ToolConfig()), compaction=hints_of(name, conversation.tools))
    compaction = replace(conversation.compaction, profiles=profiles)
    conversation = replace(conversation, compaction=compaction, tools=tools)
    return replace(resolved, config=replace(resolved.config, conversation=conversation))

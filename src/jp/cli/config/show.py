"""`jp config show`, `get`, `path` and `fmt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.config.edit import Layout
    from jp.config.layers import Resolved
    from jp.config.schema import KeyPath


_OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get.")
]


def show(
    options: GlobalOptions,
    *,
    target: _OptionalTarget = None,
    origins: Annotated[bool, typer.Option("--origins", help="Show the origin of each value.")] = False,
) -> None:
    """Show the configuration in effect, as TOML.

    A value that you copy into a file replaces lower ones; lists are added to. Values of a stranger's files that are
    ignored until you trust them are not shown; a note, and `ignored` in JSON, list them.

    Examples:
        jp config show --origins
        jp config show --id .
        jp config show --format json
    """
    from jp.app.settings import as_value, tell_ignored
    from jp.cli.output import print_result
    from jp.config.explain import as_data, as_toml

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
    from jp.app.settings import as_value
    from jp.cli.output import print_result
    from jp.config.explain import origins_at, value_at, value_text
    from jp.config.schema import parse_key
    from jp.config.trust import overlap

    resolved = _with_built_ins(_resolved(options, target), parse_key(key))
    value = value_at(resolved.config, key)
    origins = origins_at(resolved, key)
    name = "origin" if isinstance(origins, str) else "origins"
    ignored = [as_value(item) for item in resolved.ignored if overlap(parse_key(key), item.path)]
    data = {"key": key, "value": value, name: origins, "ignored": ignored}
    print_result(options, text=value_text(value), value=data)


def _resolved(options: GlobalOptions, target: str | None) -> Resolved:
    from jp.app.conversations import read_conversation
    from jp.app.places import open_workspace
    from jp.app.settings import read_sources

    if target is None:
        return read_sources(options, open_workspace(options)).resolve()
    return read_conversation(options, target).resolved


def _with_built_ins(resolved: Resolved, path: KeyPath) -> Resolved:
    """Return `resolved` with the profiles that are built in, and the hints of the tool that `path` names."""
    from msgspec.structs import replace

    from jp.compaction.fact_lines import SHIPPED, hints_of
    from jp.config.entries import ToolConfig
    from jp.config.model import profiles_of

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


def path(options: GlobalOptions) -> None:
    """Print which configuration files are read here, least specific first, and which of them exist.

    Examples:
        jp config path
    """
    from jp.app.places import open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.files import candidates

    found = list(candidates(config_places(open_workspace(options))))
    lines = [f"{item.kind:<15}{item.path}{'' if item.path.exists() else '  (not there)'}" for item in found]
    value = [{"kind": item.kind, "path": str(item.path), "exists": item.path.exists()} for item in found]
    print_result(options, text="\n".join(lines), value={"files": value})


def fmt(
    options: GlobalOptions,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files; without them, all that are read here.", metavar="PATH"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: name the files that would change, and exit with 1.")
    ] = False,
) -> ExitCode:
    """Write configuration files in one layout: plain spacing, an empty line before each table.

    Values, comments and their order stay. A file is replaced in one step, and none if one of them is invalid. Files
    that another one extends, outside the workspace and your own directories, are only formatted if you name them.

    Examples:
        jp config fmt
        jp config fmt --check
        jp config fmt .jp/config/personas/*.toml
    """
    from jp.app.places import current_directory, open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.edit import files_read, format_files
    from jp.config.files import expanded

    if not check:
        require_persistence(options, "jp config fmt")
    files = [current_directory() / expanded(path) for path in paths or ()]
    if not files:
        files, elsewhere = files_read(config_places(open_workspace(options)))
        for path in elsewhere:
            options.notice(f"{str(path)!r} lies elsewhere and is left alone: name it to format it")
    layouts: list[Layout] = []
    format_files(list(dict.fromkeys(files)), write=not check, report=layouts.append)
    changed = [str(layout.path) for layout in layouts if not layout.is_formatted]
    word = "would format" if check else "formatted"
    print_result(
        options,
        text="\n".join(f"{word} {path}" for path in changed),
        value={"check": check, "changed": changed, "files": [str(layout.path) for layout in layouts]},
    )
    return ExitCode.FAILURE if check and changed else ExitCode.OK

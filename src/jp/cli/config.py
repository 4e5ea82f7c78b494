"""`jp config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from jp.cli.places import AnyWorkspace
    from jp.config.layers import Resolved

Which = Literal["workspace", "user", "cwd"]
_OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get.")
]


def show(
    options: GlobalOptions,
    *,
    target: _OptionalTarget = None,
    origins: Annotated[bool, typer.Option("--origins", help="Say behind each value where it came from.")] = False,
) -> None:
    """Show the configuration in effect, as TOML that could be read again.

    Examples:
        jp config show --origins
        jp config show --id .
        jp config show --format json
    """
    from jp.cli.output import print_result
    from jp.config.show import as_data, as_toml

    resolved = _resolved(options, target)
    text = as_toml(resolved, with_origins=origins)
    value: dict[str, object] = {"config": as_data(resolved.config)}
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

    Examples:
        jp config get assistant.model.id
        jp config get conversation.attachments
    """
    from jp.cli.output import print_result
    from jp.config.keys import parse_key
    from jp.config.show import value_at, value_text

    resolved = _resolved(options, target)
    value = value_at(resolved.config, key)
    origin = resolved.origin(parse_key(key)).text
    print_result(options, text=value_text(value), value={"key": key, "value": value, "origin": origin})


def set_value(
    options: GlobalOptions,
    *,
    values: Annotated[
        list[str],
        typer.Argument(help="key=value, key:=json, key+=value, key:+=json; key:=null removes.", metavar="KEY=VALUE"),
    ],
    where: Annotated[
        Which, typer.Option("--in", metavar="FILE", help="workspace, user, or cwd (.jp.toml here).")
    ] = "workspace",
) -> None:
    """Set values in a configuration file; the rest of it, comments too, stays as it is.

    Outside any workspace, in your own file. A running conversation keeps what it was created with:
    `jp query --cfg KEY=VALUE` changes that.

    Examples:
        jp config set assistant.model.id=anthropic/claude-sonnet-5-5
        jp config set --in user user.name="Ada"
        jp config set conversation.tools.fs_read_file:='{"enable":true}'
    """
    from jp.cli.output import print_result
    from jp.cli.places import open_workspace
    from jp.config.edit import set_in_file

    require_persistence(options, "jp config set")
    workspace = open_workspace(options)
    file = _file(workspace, where)
    was_trusted = _is_trusted(options, workspace)
    set_in_file(file, values)
    if was_trusted and where != "user":
        _trust(options, workspace)
    print_result(options, text=str(file), value={"path": str(file), "set": list(values)})


def path(options: GlobalOptions) -> None:
    """Print which configuration files are read here, least specific first, and which of them exist.

    Examples:
        jp config path
    """
    from jp.cli.output import print_result
    from jp.cli.places import open_workspace
    from jp.cli.settings import config_places
    from jp.config.places import candidates

    found = list(candidates(config_places(open_workspace(options))))
    lines = [f"{item.kind:<15}{item.path}{'' if item.path.exists() else '  (not there)'}" for item in found]
    value = [{"kind": item.kind, "path": str(item.path), "exists": item.path.exists()} for item in found]
    print_result(options, text="\n".join(lines), value={"files": value})


def _resolved(options: GlobalOptions, target: str | None) -> Resolved:
    from jp.cli.held import read_conversation
    from jp.cli.places import open_workspace
    from jp.cli.settings import read_sources

    if target is None:
        return read_sources(options, open_workspace(options)).resolve()
    return read_conversation(options, target).resolved


def _file(workspace: AnyWorkspace, where: Which) -> Path:
    import os

    from jp.cli.places import current_directory
    from jp.config.places import DIRECTORY_FILE_NAME, FILE_NAME, WORKSPACE_DIRECTORY, user_directory
    from jp.errors import UsageError

    if where == "cwd":
        if workspace.root is None:
            raise UsageError("there is no workspace here, so `.jp.toml` would not be read", hint="use --in user")
        return current_directory() / DIRECTORY_FILE_NAME
    if where == "workspace" and workspace.root is not None:
        return workspace.root / WORKSPACE_DIRECTORY / FILE_NAME
    directory = user_directory(os.environ)
    if directory is None:
        raise UsageError("there is no home directory, so no place for your own file", hint="set JP_GLOBAL_CONFIG_DIR")
    return directory / FILE_NAME


def _is_trusted(options: GlobalOptions, workspace: AnyWorkspace) -> bool:
    from jp.cli.settings import read_sources
    from jp.cli.trust import sensitive_values, unaccepted
    from jp.errors import ConfigurationError

    try:
        sources = read_sources(options, workspace)
    except ConfigurationError:
        return False
    return not unaccepted(sensitive_values(sources.lower, workspace), options, workspace)


def _trust(options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Who may say `jp workspace trust` has just typed these values: they need no second consent."""
    from jp.cli.settings import read_sources
    from jp.cli.trust import accept, sensitive_values

    accept(sensitive_values(read_sources(options, workspace).lower, workspace), options, workspace)

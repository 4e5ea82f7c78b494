"""`jp config fmt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.config.format_files import Layout


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
    """Write configuration files in one layout: keys in the order of the documentation, tables under headers.

    Values and comments stay; a comment goes with the key below it, or with the one above it where an empty line
    follows. A file is replaced in one step, and none where one of them is invalid. Files outside the workspace and
    your own directories, which another one extends, are left alone unless they are named.

    Examples:
        jp config fmt
        jp config fmt --check
        jp config fmt .jp/config/personas/*.toml
    """
    from jp.cli.output import notice, print_result
    from jp.cli.places import current_directory, open_workspace
    from jp.cli.settings import config_places
    from jp.config.extends import expanded
    from jp.config.format_files import files_read, format_files

    if not check:
        require_persistence(options, "jp config fmt")
    files = [current_directory() / expanded(path) for path in paths or ()]
    if not files:
        files, elsewhere = files_read(config_places(open_workspace(options)))
        for path in elsewhere:
            notice(options, f"{str(path)!r} lies elsewhere and is left alone: name it to format it")
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

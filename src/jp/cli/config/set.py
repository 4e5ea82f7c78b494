"""The commands that change settings: `jp config set` and `import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.remedies import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jp.app.options import AnyWorkspace
    from jp.config.edit import Rewriting
    from jp.config.model import AppConfig
    from jp.errors import JpError

Which = Literal["workspace", "user", "cwd"]


def set_value(
    options: GlobalOptions,
    *,
    values: Annotated[
        list[str],
        typer.Argument(help="key=value, key:=json, key+=value, key:+=json; key:=null removes", metavar="KEY=VALUE"),
    ],
    where: Annotated[
        Which, typer.Option("--in", metavar="FILE", help="workspace, user, or cwd (.jp.toml here)")
    ] = "workspace",
) -> None:
    """Set values in a configuration file; everything else in it stays, comments included.

    Outside any workspace, it is your own file. A running conversation keeps its settings: `jp query --cfg KEY=VALUE`
    changes them.

    Examples:
        jp config set assistant.model.id=anthropic/claude-sonnet-5-5
        jp config set --in user user.name="Ada"
        jp config set conversation.tools.fs_read_file:='{"enable":true}'
    """
    from jp.app.options import open_workspace
    from jp.cli.output import print_result
    from jp.config.edit import set_in_file

    require_persistence(options, "jp config set")
    workspace = open_workspace(options)
    file = _file(workspace, where)
    if where != "user":
        refuse_link(file)
    was_trusted = is_trusted(options, workspace)
    set_in_file(file, values)
    if was_trusted and where != "user":
        trust_values(options, workspace)
    elif where != "user":
        _note_ignored(options, workspace)
    _warn_about_unknown_names(options, workspace, values)
    print_result(options, text=str(file), value={"path": str(file), "set": list(values)}, paths={str(file): file})


def import_files(
    options: GlobalOptions,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files (default: all that are read here, and fragments)", metavar="PATH"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes; make none")] = False,
) -> None:
    """Rewrite configuration of the original JP in jp's spelling, as TOML.

    Comments and their order stay in TOML files. What jp does not have is removed and listed. Each file is kept as it
    was beside the new one, with the ending `.bak`: move it back to undo the import.

    Examples:
        jp config import --dry-run
        jp config import
        jp config import .jp/config/personas/dev.yaml
    """
    from jp.app.options import current_directory, open_workspace
    from jp.cli.output import print_result
    from jp.config.edit import rewritings, write_rewriting
    from jp.config.files import expanded

    workspace = open_workspace(options)
    files = [current_directory() / expanded(path) for path in paths or ()] or _importable(options, workspace)
    found = rewritings(dict.fromkeys(files))
    if not dry_run:
        require_persistence(options, "jp config import")
        for rewriting in found:
            refuse_link(rewriting.path)
        was_trusted = is_trusted(options, workspace)
        for rewriting in found:
            write_rewriting(rewriting)
        if was_trusted:
            trust_values(options, workspace)
    text = "\n".join(_preview(each) if dry_run else _written(each) for each in found)
    value = {"dry_run": dry_run, "files": [_rewriting_data(each) for each in found]}
    print_result(options, text=text or "nothing to rewrite", value=value)


def _importable(options: GlobalOptions, workspace: AnyWorkspace) -> list[Path]:
    """Return the files that are read here, and the workspace's fragments."""
    from jp.app.settings import config_places
    from jp.config.edit import files_read
    from jp.config.files import FRAGMENTS, SUFFIXES, WORKSPACE_DIRECTORY

    files, elsewhere = files_read(config_places(workspace))
    for path in elsewhere:
        options.notice(f"{str(path)!r} lies elsewhere and is left alone: name it to rewrite it")
    if workspace.root is not None:
        directory = workspace.root / WORKSPACE_DIRECTORY / FRAGMENTS
        files += sorted(path for path in directory.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return files


def _preview(rewriting: Rewriting) -> str:
    return "\n".join([*_diff(rewriting), _losses(rewriting)]).rstrip()


def _diff(rewriting: Rewriting) -> list[str]:
    from difflib import unified_diff

    old, new = (text.splitlines() for text in (rewriting.old, rewriting.new))
    return list(unified_diff(old, new, str(rewriting.path), str(rewriting.target), lineterm=""))


def _written(rewriting: Rewriting) -> str:
    return "\n".join(filter(None, (f"wrote {rewriting.target}, and kept {rewriting.backup}", _losses(rewriting))))


def _losses(rewriting: Rewriting) -> str:
    from jp.config.original import summary_of

    return f"taken out or changed: {summary_of(rewriting.unsupported)}" if rewriting.unsupported else ""


def _rewriting_data(rewriting: Rewriting) -> dict[str, object]:
    from jp.config.schema import key_text

    return {
        "path": str(rewriting.path),
        "target": str(rewriting.target),
        "backup": str(rewriting.backup),
        "diff": "\n".join(_diff(rewriting)),
        "unsupported": [
            {"key": key_text(one.path), "value": one.value, "reading": one.reading or None}
            for one in rewriting.unsupported
        ],
    }


def _warn_about_unknown_names(options: GlobalOptions, workspace: AnyWorkspace, values: list[str]) -> None:
    """Warn about tools and models that no query can use yet: they may be defined later."""
    tools = [value for value in values if value.startswith("conversation.tools")]
    names_a_model = any("model" in value for value in values)
    if not tools and not names_a_model:
        return
    from jp.app.settings import read_sources
    from jp.config.layers import resolve
    from jp.errors import ConfigurationError

    try:
        # Also what waits for the user's trust, who has just typed it.
        config = resolve(read_sources(options, workspace).lower).config
    except ConfigurationError:
        return
    problems = [*(_unknown_models(config) if names_a_model else ()), *_unknown_tools(config, workspace, tools)]
    for problem in problems:
        options.notice(join(": ", (problem.message, problem.hint)))


def _unknown_models(config: AppConfig) -> Iterator[JpError]:
    """Yield the errors of a query with the configured models, as far as no provider has to be asked."""
    from jp.errors import ConfigurationError
    from jp.provider.registry import parse_model_id

    for model in (config.assistant.model.id, config.conversation.title.generate.model):
        if model is None:
            continue
        try:
            parse_model_id(model, config.providers.llm)
        except ConfigurationError as error:
            yield error


def _unknown_tools(config: AppConfig, workspace: AnyWorkspace, named: list[str]) -> Iterator[JpError]:
    """Yield the errors of a query with the tools that the values `named` mention."""
    if not named:
        return
    from jp.app.toolset import Toolset
    from jp.errors import ConfigurationError
    from jp.tool.toolbox import ALL

    toolset = Toolset(config, cache_directory=workspace.user_data / "cache")
    for name in toolset.settings:
        if name == ALL or not any(name in value for value in named):
            continue
        try:
            problem = None if toolset.is_known(name) else toolset.unknown(name)
        except ConfigurationError as error:
            problem = error
        if problem is not None:
            yield problem


def refuse_link(file: Path) -> None:
    """Refuse to write a workspace's file through a link: a repository can bring one that leads to the user's own.

    Raises:
        StorageError: it is a link.
    """
    from jp.errors import StorageError

    if file.is_symlink():
        raise StorageError(f"{str(file)!r} is a link, and is not written through", hint="put the file itself there")


def _file(workspace: AnyWorkspace, where: Which) -> Path:
    import os

    from jp.app.options import current_directory
    from jp.config.files import DIRECTORY_FILE_NAME, FILE_NAME, WORKSPACE_DIRECTORY
    from jp.errors import UsageError
    from jp.workspace.layout import user_config_directory

    if where == "cwd":
        if workspace.root is None:
            raise UsageError("there is no workspace here, so `.jp.toml` would not be read", hint="use --in user")
        return current_directory() / DIRECTORY_FILE_NAME
    if where == "workspace" and workspace.root is not None:
        return workspace.root / WORKSPACE_DIRECTORY / FILE_NAME
    directory = user_config_directory(os.environ)
    if directory is None:
        raise UsageError("there is no home directory, so no place for your own file", hint="set JP_GLOBAL_CONFIG_DIR")
    return directory / FILE_NAME


def _note_ignored(options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Say what is set and does not count: other values of the workspace wait for the user's trust, too."""
    from jp.app.settings import read_sources, tell_ignored
    from jp.errors import ConfigurationError

    try:
        resolved = read_sources(options, workspace).resolve(cfg=False)
    except ConfigurationError:
        return
    tell_ignored(options, resolved)


def is_trusted(options: GlobalOptions, workspace: AnyWorkspace) -> bool:
    """Return whether nothing in the files of the workspace waits for the user's trust."""
    from jp.app.settings import read_sources
    from jp.errors import ConfigurationError

    try:
        sources = read_sources(options, workspace)
    except ConfigurationError:
        return False
    return not sources.resolve(cfg=False).ignored


def trust_values(options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Accept the values that the user has just typed: they need no second consent."""
    from jp.app.settings import accept, read_sources

    accept(read_sources(options, workspace).needing_trust(), options, workspace)

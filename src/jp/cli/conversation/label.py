"""`jp conversation label`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Target = Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)]


def add(
    options: GlobalOptions,
    *,
    labels: Annotated[list[str], typer.Argument(help="Labels; K alone has no value.", metavar="K=V")],
    target: Target = ".",
) -> None:
    """Label a conversation. A label that it has gets the new value.

    Examples:
        jp conversation label add area=parser urgent
        jp conversation ls --label area=parser
    """
    from jp.cli.labels import parse_labels

    new = parse_labels(labels, option="a label")
    _change(options, target, lambda before: {**before, **new})


def remove(
    options: GlobalOptions,
    *,
    names: Annotated[list[str] | None, typer.Argument(help="Names of labels.", metavar="K")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take all labels away.")] = False,
    target: Target = ".",
) -> None:
    """Take labels away from a conversation.

    Examples:
        jp conversation label rm urgent
        jp conversation label rm --all --id last
    """
    from jp.errors import UsageError

    if bool(names) == everything:
        raise UsageError("name the labels to take away, or use --all", hint="list them with `jp conversation label ls`")

    def without(before: Mapping[str, str]) -> dict[str, str]:
        for name in names or ():
            if name not in before:
                raise UsageError(f"there is no label {name!r}", hint="list them with `jp conversation label ls`")
        return {name: value for name, value in before.items() if names and name not in names}

    _change(options, target, without)


def ls(options: GlobalOptions, *, target: Target = ".") -> None:
    """List the labels of a conversation.

    Examples:
        jp conversation label ls --id last
    """
    from jp.cli.places import open_session, open_workspace
    from jp.cli.targets import choose

    workspace = open_workspace(options)
    info = choose(target, workspace, open_session(workspace))
    _print(options, info.id, info.metadata.labels)


def _change(options: GlobalOptions, target: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    from msgspec.structs import replace

    from jp.cli.places import acquire, open_session, open_workspace
    from jp.cli.targets import choose
    from jp.cli.tidying import tidy

    require_persistence(options, "jp conversation label")
    workspace = open_workspace(options)
    info = choose(target, workspace, open_session(workspace))
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock:
        info = workspace.update_metadata(info, lock, lambda before: replace(before, labels=change(before.labels)))
    _print(options, info.id, info.metadata.labels)
    tidy(options, workspace)


def _print(options: GlobalOptions, identity: str, labels: Mapping[str, str]) -> None:
    from jp.cli.labels import label_text
    from jp.cli.output import print_result

    lines = [label_text(name, labels[name]) for name in sorted(labels)]
    value = {"id": identity, "labels": dict(labels)}
    print_result(options, text="\n".join(lines), value=value, nothing="no labels")

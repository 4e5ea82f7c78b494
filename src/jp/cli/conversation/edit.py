"""`jp conversation edit`, `label`, `archive` and `unarchive`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jp.app.options import AnyWorkspace
    from jp.workspace.listing import ConversationInfo, Metadata
    from jp.workspace.lock import Lock


Target = Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)]


def add(
    options: GlobalOptions,
    *,
    labels: Annotated[list[str], typer.Argument(help="Labels; K alone has no value.", metavar="K=V")],
    target: Target = ".",
) -> None:
    """Add labels to a conversation, or change their values.

    Examples:
        jp conversation label add area=parser urgent
        jp conversation ls --label area=parser
    """
    from jp.app.targets import parse_labels

    new = parse_labels(labels, option="a label")
    _change(options, target, lambda before: {**before, **new})


def remove(
    options: GlobalOptions,
    *,
    names: Annotated[list[str] | None, typer.Argument(help="Names of labels.", metavar="K")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all labels.")] = False,
    target: Target = ".",
) -> None:
    """Remove labels from a conversation.

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
    from jp.app.options import open_session, open_workspace
    from jp.app.targets import choose

    workspace = open_workspace(options)
    info = choose(options, target, workspace, open_session(workspace))
    _print(options, info.id, info.metadata.labels)


def _change(options: GlobalOptions, target: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    from msgspec.structs import replace

    from jp.app.conversations import tidy
    from jp.app.options import acquire, open_session, open_workspace
    from jp.app.targets import choose

    require_persistence(options, "jp conversation label")
    workspace = open_workspace(options)
    info = choose(options, target, workspace, open_session(workspace))
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock:
        info = workspace.update_metadata(info, lock, lambda before: replace(before, labels=change(before.labels)))
    _print(options, info.id, info.metadata.labels)
    tidy(options, workspace)


def _print(options: GlobalOptions, identity: str, labels: Mapping[str, str]) -> None:
    from jp.app.targets import label_text
    from jp.cli.output import print_result

    lines = [label_text(name, labels[name]) for name in sorted(labels)]
    value = {"id": identity, "labels": dict(labels)}
    print_result(options, text="\n".join(lines), value=value, nothing="no labels")


Targets = Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")]


def archive(options: GlobalOptions, *, targets: Targets) -> None:
    """Archive conversations: `jp conversation ls` hides them, and no terminal continues them.

    They can be printed and forked; `jp conversation unarchive` restores one.

    Examples:
        jp conversation archive .
        jp conversation ls --archived
    """
    _set(options, targets, _archive, is_archived=True)


def unarchive(options: GlobalOptions, *, targets: Targets) -> None:
    """Restore archived conversations. Titles and labels are looked up among the archived ones.

    Examples:
        jp conversation unarchive jp-c17800836875
        jp conversation unarchive '?'
    """
    _set(options, targets, _unarchive, is_archived=False)


def _archive(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> None:
    from msgspec.structs import replace

    from jp.workspace.files import SYSTEM, timestamp

    def change(before: Metadata) -> Metadata:
        return replace(before, archived_at=before.archived_at or timestamp(SYSTEM.now()))

    if info.metadata.archived_at is None:
        workspace.update_metadata(info, lock, change)


def _unarchive(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> None:
    from jp.workspace.retention import unarchive_conversation
    from jp.workspace.workspace import Workspace

    if isinstance(workspace, Workspace):
        unarchive_conversation(workspace, info, lock)


def _set(
    options: GlobalOptions,
    targets: list[str],
    change: Callable[[AnyWorkspace, ConversationInfo, Lock], None],
    *,
    is_archived: bool,
) -> None:
    from jp.app.conversations import tidy
    from jp.app.options import acquire, open_session, open_workspace
    from jp.app.targets import choose_all
    from jp.cli.output import print_result

    word = "archived" if is_archived else "unarchived"
    require_persistence(options, f"jp conversation {word.removesuffix('d')}")
    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(options, targets, workspace, session, archived=not is_archived)

    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            change(workspace, info, lock)
    if is_archived:
        _deactivate(workspace, chosen)
    lines = [f"{word} {_named(info)}" for info in chosen]
    print_result(options, text="\n".join(lines), value={word: [info.id for info in chosen]})
    tidy(options, workspace)


def _deactivate(workspace: AnyWorkspace, chosen: list[ConversationInfo]) -> None:
    from jp.workspace.files import SYSTEM
    from jp.workspace.layout import storage_at
    from jp.workspace.retention import deactivate
    from jp.workspace.session import SESSIONS

    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    deactivate(own / SESSIONS, {str(info.id) for info in chosen}, now=SYSTEM.now())


def _named(info: ConversationInfo) -> str:
    from jp.app.targets import title_of

    return f"{info.id} ({title_of(info)})"


def edit(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Its title.")] = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="Remove its title; jp does not create another.")] = False,
    labels: Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="A label; repeatable.")] = None,
    no_labels: Annotated[
        list[str] | None, typer.Option("--no-label", metavar="K", help="Remove a label; repeatable.")
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Pin it: it never expires.")] = False,
    unpin: Annotated[bool, typer.Option("--unpin", help="Unpin it.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Move it out of the workspace, to your own data.")] = False,
    no_local: Annotated[bool, typer.Option("--no-local", help="Move it into the workspace.")] = False,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION|never", help="Delete it after this time, such as 12h."),
    ] = None,
) -> None:
    """Change the title, labels, pin, expiry or place of a conversation. Its messages stay unchanged.

    A later command deletes an expired conversation, unless it is pinned, active in a terminal, or stored by JP (Rust).

    Examples:
        jp conversation edit --title "The lexer" --label area=parser
        jp conversation edit last --pin
        jp conversation edit --local
        jp conversation edit --expires never
    """
    from jp.app.conversations import tidy
    from jp.app.options import acquire, open_session, open_workspace
    from jp.app.targets import choose, title_of
    from jp.cli.conversation.ls import as_value
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation edit")
    for one, other, both in (
        ("--title", "--no-title", title is not None and no_title),
        ("--pin", "--unpin", pin and unpin),
        ("--local", "--no-local", local and no_local),
    ):
        _refuse_both(one, other, both=both)
    changes = [
        *_title_change(title, gone=no_title),
        *_label_changes(labels or (), no_labels or ()),
        *_pin_change(pin=pin, unpin=unpin),
        *_expiry_change(expires),
    ]
    moves = local or no_local
    _require_any(changes, moves=moves)
    workspace = open_workspace(options)
    session = open_session(workspace)
    info = choose(options, target, workspace, session)
    if moves:
        _check_move(options, workspace, info, local=local)
    before = info
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock:
        if changes:
            info = workspace.update_metadata(info, lock, lambda before: _applied(changes, before))
        if moves:
            info = _moved(options, workspace, info, lock, local=local)
    print_result(
        options, text=f"{info.id}  {title_of(info)}{_changes(before, info)}", value=as_value(info, session.active())
    )
    tidy(options, workspace)


def _changes(before: ConversationInfo, after: ConversationInfo) -> str:
    """Return the changes of a conversation, one line for each, as `labels: a → b`."""
    from time import time

    from jp.app.targets import label_text
    from jp.cli.conversation.ls import expiry_text
    from jp.render.sanitize import one_line

    def said(info: ConversationInfo) -> dict[str, str]:
        metadata = info.metadata
        labels = metadata.labels
        return {
            "title": one_line(metadata.title or ""),
            "labels": ", ".join(label_text(name, labels[name]) for name in sorted(labels)),
            "pinned": "yes" if metadata.pinned_at else "no",
            "expiry": "never" if metadata.expires_at is None else expiry_text(metadata.expires_at, now=time()),
            "place": "your own data" if info.local else "the workspace",
        }

    old, new = said(before), said(after)
    changed = [f"\n  {name}: {old[name] or 'none'} → {new[name] or 'none'}" for name in new if old[name] != new[name]]
    return "".join(changed) or "\n  nothing changed"


def _refuse_both(one: str, other: str, *, both: bool) -> None:
    from jp.errors import UsageError

    if both:
        raise UsageError(f"{one} and {other} exclude each other", hint="remove one of them")


def _require_any(changes: Sequence[Callable[[Metadata], Metadata]], *, moves: bool) -> None:
    from jp.errors import UsageError

    if not (changes or moves):
        raise UsageError("nothing says what to change", hint="add an option, such as --title TEXT; see --help")


def _applied(changes: Sequence[Callable[[Metadata], Metadata]], metadata: Metadata) -> Metadata:
    for change in changes:
        metadata = change(metadata)
    return metadata


def _title_change(title: str | None, *, gone: bool) -> list[Callable[[Metadata], Metadata]]:
    from msgspec.structs import replace

    from jp.app.values import given_title

    if title is None and not gone:
        return []
    new = None if title is None else given_title(title)
    return [lambda before: replace(before, title=new, untitled=gone)]


def _label_changes(added: Sequence[str], gone: Sequence[str]) -> list[Callable[[Metadata], Metadata]]:
    from msgspec.structs import replace

    from jp.app.targets import check_name, parse_labels
    from jp.errors import UsageError

    new = parse_labels(added, option="--label")
    names = {check_name(name, option="--no-label") for name in gone}
    if not (new or names):
        return []

    def change(before: Metadata) -> Metadata:
        for name in sorted(names - before.labels.keys()):
            raise UsageError(f"there is no label {name!r}", hint="list them with `jp conversation label ls`")
        kept = {name: value for name, value in before.labels.items() if name not in names}
        return replace(before, labels=kept | new)

    return [change]


def _pin_change(*, pin: bool, unpin: bool) -> list[Callable[[Metadata], Metadata]]:
    from msgspec.structs import replace

    from jp.workspace.files import SYSTEM, timestamp

    if unpin:
        return [lambda before: replace(before, pinned_at=None)]
    return [lambda before: replace(before, pinned_at=before.pinned_at or timestamp(SYSTEM.now()))] if pin else []


def _expiry_change(expires: str | None) -> list[Callable[[Metadata], Metadata]]:
    from msgspec.structs import replace

    from jp.app.values import end_of_life

    if expires is None:
        return []
    end = None if expires.strip().lower() == "never" else end_of_life(expires, option="--expires")
    return [lambda before: replace(before, expires_at=end)]


def _check_move(options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo, *, local: bool) -> None:
    """Refuse to make a stranger's settings the user's own, and to move where there is no second place."""
    from msgspec.structs import replace

    from jp.app.settings import layers_of, read_sources, require_none_ignored
    from jp.errors import UsageError
    from jp.workspace.store import original_of

    if workspace.root is None:
        option = "--local" if local else "--no-local"
        raise UsageError(
            f"{option} needs a workspace: outside any, all conversations are your own",
            hint="run it in the workspace, or name that with --workspace",
        )
    if local and not info.local and info.metadata.imported_at is None:
        entries = workspace.read(info).entries
        sources = read_sources(options, workspace)
        own = tuple(layer for layer in sources.lower if not layer.foreign)
        if original_of(entries) is None:
            layers = layers_of(workspace, info, entries)
            require_none_ignored(replace(sources, lower=own, cfg=()).resolve(conversation=layers), info)


def _moved(
    options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo, lock: Lock, *, local: bool
) -> ConversationInfo:
    from jp.app.fork import own_changes
    from jp.app.settings import accept_own, is_foreign
    from jp.workspace.retention import move_conversation
    from jp.workspace.workspace import Workspace

    if not isinstance(workspace, Workspace):
        return info
    entries = workspace.read(info).entries
    if local != info.local and not is_foreign(workspace, info, entries):
        for change in own_changes(workspace.base_config(info), entries):
            accept_own(change, options, workspace, info)
    return move_conversation(workspace, info, lock, local=local)

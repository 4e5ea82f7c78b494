"""Management of conversations: list, edit, label, archive, activate and delete them, and undo what was done last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from jp.app.options import AnyWorkspace, Options, acquire, open_session, open_workspace
from jp.app.targets import choose, choose_all, choose_other, display_name, has_labels, parse_labels, title_of
from jp.app.values import end_of_life, given_title
from jp.conversation.ids import ConversationId
from jp.errors import UsageError
from jp.remedies import Ask, ChangeConversation, Option, RemoveAttachment, Show, UseOption, phrase
from jp.workspace.files import SYSTEM, timestamp
from jp.workspace.listing import ConversationInfo, Metadata, Parent

if TYPE_CHECKING:
    from jp.app.conversations import OpenConversation
    from jp.conversation.entries import AnyEntry, JsonObject
    from jp.conversation.turns import Undoable
    from jp.workspace.lock import Lock


class ListedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is listed. Moments are RFC 3339; `active` is that of this session."""

    id: str
    title: str | None
    first_words: str | None
    active: bool
    local: bool
    last_activity: str
    path: str
    labels: Mapping[str, str]
    pinned_at: str | None
    archived_at: str | None
    expires_at: str | None
    parent: Parent | None

    @property
    def name(self) -> str:
        """Return a person's name for it, fit to be shown."""
        return display_name(self.title, self.first_words, self.path)


class ConversationList(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations that were asked for, the most recent last, out of `matching` ones and of `total`."""

    conversations: tuple[ListedConversation, ...]
    matching: int
    total: int


def list_conversations(
    options: Options,
    *,
    labels: Sequence[str] = (),
    pinned: bool = False,
    archived: bool = False,
    limit: int | None = None,
) -> ConversationList:
    """Return the conversations of the workspace. A notice names each that cannot be read.

    Args:
        options: where, as for every use case.
        labels: only those that have all of these, each `K=V`, or `K` with any value.
        pinned: only pinned ones.
        archived: only archived ones, which are omitted otherwise.
        limit: at most so many, the most recent ones.

    Raises:
        UsageError: a label cannot be one.
    """
    parse_labels(labels, option=Option.LABEL)
    workspace = open_workspace(options)
    active = open_session(workspace).active()
    everything = sorted(workspace.conversations(), key=lambda info: (info.last_activity, info.id.deciseconds))
    for info in everything:
        if info.problem:
            options.notice(f"{info.id}: {info.problem}")
    found = [
        info
        for info in everything
        if (info.metadata.archived_at is not None) == archived
        and not (pinned and info.metadata.pinned_at is None)
        and has_labels(info.metadata.labels, labels)
    ]
    shown = found if limit is None else found[-limit:]
    listed = tuple(_listed(info, active) for info in shown)
    return ConversationList(conversations=listed, matching=len(found), total=len(everything))


def find_conversation(options: Options, target: str) -> ListedConversation:
    """Return the conversation that `target` means.

    Raises:
        UsageError: it means none, or several.
    """
    workspace = open_workspace(options)
    session = open_session(workspace)
    return _listed(choose(options, target, workspace, session), session.active())


def activate(options: Options, target: str | None = None) -> ListedConversation:
    """Make a conversation the active one of this session: without a `target` the one that was active before.

    Raises:
        UsageError: there is none, it is archived, or nothing tells this session from others.
    """
    from jp.workspace.session import session_key

    workspace = open_workspace(options)
    session = open_session(workspace)
    if session_key() is None:
        by_id = Ask((UseOption(Option.TARGET, "ID"),))
        raise UsageError(
            "nothing tells this terminal from others, so no conversation can be active in it",
            hint=phrase("set JP_SESSION to any name, or name the conversation: `", by_id, "`"),
        )
    info = choose_other(options, workspace, session) if target is None else choose(options, target, workspace, session)
    if info.metadata.archived_at is not None:
        back = ChangeConversation("unarchive", str(info.id))
        hint = phrase("bring it back with `", back, "`")
        raise UsageError(f"conversation {str(info.id)!r} is archived", hint=hint)
    session.activate(info.id)
    return _listed(info, info.id)


class EditRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a conversation's metadata or place. What is left at its default stays.

    Args:
        title: its new title.
        untitle: remove its title; no other is generated.
        labels: labels to add, as `K=V` or `K`.
        removed_labels: names of labels to remove; each has to be there.
        clear_labels: remove all labels that it has, before any is added.
        pinned: whether it is kept from expiring.
        local: whether it lies in the user's own data instead of the workspace.
        expires: the time after which it is deleted, such as `12h`, or `never`.
    """

    title: str | None = None
    untitle: bool = False
    labels: tuple[str, ...] = ()
    removed_labels: tuple[str, ...] = ()
    clear_labels: bool = False
    pinned: bool | None = None
    local: bool | None = None
    expires: str | None = None


class EditReport(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation before and after it was edited."""

    before: ListedConversation
    after: ListedConversation


def edit(options: Options, target: str, request: EditRequest) -> EditReport:
    """Change the metadata or the place of the conversation `target`. Its messages stay unchanged.

    Raises:
        UsageError: the request says what cannot be, or `target` means no conversation, or several.
        JpError: the conversation cannot be written, or moving it needs trust.
    """
    from jp.app.conversations import tidy

    changes = list(_changes(request))
    workspace = open_workspace(options)
    session = open_session(workspace)
    info = choose(options, target, workspace, session)
    if request.local is not None:
        _check_move(options, workspace, info, local=request.local)
    before = _listed(info, session.active())
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock:
        if changes:
            info = workspace.update_metadata(info, lock, lambda metadata: _applied(changes, metadata))
        if request.local is not None:
            info = _moved(options, workspace, info, lock, local=request.local)
    tidy(options, workspace)
    return EditReport(before=before, after=_listed(info, session.active()))


def archive(options: Options, targets: Sequence[str]) -> tuple[ListedConversation, ...]:
    """Archive conversations: they are not listed any more, and no session continues them.

    Raises:
        JpError: one of them does not exist or cannot be written.
    """

    def change(before: Metadata) -> Metadata:
        return replace(before, archived_at=before.archived_at or timestamp(SYSTEM.now()))

    def put(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> ConversationInfo:
        return info if info.metadata.archived_at else workspace.update_metadata(info, lock, change)

    return _set_archived(options, targets, put, archived=True)


def unarchive(options: Options, targets: Sequence[str]) -> tuple[ListedConversation, ...]:
    """Restore archived conversations.

    Raises:
        JpError: one of them does not exist or cannot be written.
    """
    from jp.workspace.retention import unarchive_conversation
    from jp.workspace.workspace import Workspace

    def put(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> ConversationInfo:
        return unarchive_conversation(workspace, info, lock) if isinstance(workspace, Workspace) else info

    return _set_archived(options, targets, put, archived=False)


class DeletedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was deleted, with so many drafts of queries to it."""

    id: str
    name: str
    drafts: int


def delete(
    options: Options,
    targets: Sequence[str],
    *,
    confirm: Callable[[Sequence[ListedConversation]], bool] = lambda _: True,
) -> tuple[DeletedConversation, ...]:
    """Delete conversations permanently, and their drafts; none where `confirm` denies it.

    Raises:
        JpError: one of them does not exist, or another process kept writing it.
    """
    from jp.app.drafts import discard_drafts, drafts_directory
    from jp.app.settings import trust_store

    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(options, targets, workspace, session)
    if not confirm([_listed(info, session.active()) for info in chosen]):
        return ()
    deleted: list[DeletedConversation] = []
    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            workspace.remove(info, lock)
        trust_store(options, workspace, info).forget()
        removed, kept = discard_drafts(drafts_directory(workspace, info.id.digits, persistent=True, create=False))
        for path in kept:
            options.notice(f"somebody is writing a query to {info.id} right now, which stays in {str(path)!r}")
        deleted.append(DeletedConversation(id=str(info.id), name=title_of(info), drafts=removed))
    return tuple(deleted)


class RevertedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a log that was undone or restored."""

    id: str
    type: str


class RevertReport(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that were undone or restored, and words about each; both are empty where nothing was left to do."""

    id: str
    entries: tuple[RevertedEntry, ...]
    texts: tuple[str, ...]


def undo(options: Options, target: str) -> RevertReport:
    """Undo the last turn, compaction or change of settings of a conversation. It stays in the log.

    Raises:
        JpError: the conversation does not exist or cannot be written.
    """
    from jp.app.conversations import open_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.turns import newest_undoable

    with open_conversation(options, target) as held:
        found = newest_undoable(held.log.entries)
        if found:
            held.log.append(Revert(entries=tuple(entry.id for entry in found)))
        _note_reattached(options, held, found)
        return _reverted(held, found)


def redo(options: Options, target: str) -> RevertReport:
    """Revert the last undo of a conversation.

    Raises:
        JpError: the conversation does not exist or cannot be written.
    """
    from jp.app.conversations import open_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.turns import named_by, newest_undo

    with open_conversation(options, target) as held:
        revert = newest_undo(held.log.entries)
        found = () if revert is None else named_by(revert, held.log.entries)
        if revert is not None:
            held.log.append(Revert(entries=(revert.id,)))
        return _reverted(held, found)


def _listed(info: ConversationInfo, active: ConversationId | None) -> ListedConversation:
    metadata = info.metadata
    return ListedConversation(
        id=str(info.id),
        title=metadata.title,
        first_words=metadata.first_words,
        active=info.id == active,
        local=info.local,
        last_activity=timestamp(int(info.last_activity * 1000)),
        path=str(info.directory),
        labels=dict(metadata.labels),
        pinned_at=metadata.pinned_at,
        archived_at=metadata.archived_at,
        expires_at=metadata.expires_at,
        parent=metadata.parent,
    )


def _changes(request: EditRequest) -> Iterator[Callable[[Metadata], Metadata]]:
    """Yield the changes of the metadata; what is invalid is refused before anything is opened."""
    if request.title is not None or request.untitle:
        title = None if request.title is None else given_title(request.title)
        yield lambda before: replace(before, title=title, untitled=request.untitle)
    added = parse_labels(request.labels, option=Option.LABEL)
    if added or request.removed_labels or request.clear_labels:
        yield lambda before: replace(before, labels=_kept_labels(request, before.labels) | added)
    if request.pinned is not None:
        pinned_at = timestamp(SYSTEM.now()) if request.pinned else None
        yield lambda before: replace(before, pinned_at=pinned_at and (before.pinned_at or pinned_at))
    if request.expires is not None:
        is_kept = request.expires.strip().lower() == "never"
        end = None if is_kept else end_of_life(request.expires, option=Option.EXPIRES)
        yield lambda before: replace(before, expires_at=end)


def _kept_labels(request: EditRequest, before: Mapping[str, str]) -> dict[str, str]:
    for name in request.removed_labels:
        if name not in before:
            raise UsageError(f"there is no label {name!r}", hint=phrase("list them with `", Show("labels"), "`"))
    if request.clear_labels:
        return {}
    return {name: value for name, value in before.items() if name not in request.removed_labels}


def _applied(changes: Sequence[Callable[[Metadata], Metadata]], metadata: Metadata) -> Metadata:
    for change in changes:
        metadata = change(metadata)
    return metadata


def _check_move(options: Options, workspace: AnyWorkspace, info: ConversationInfo, *, local: bool) -> None:
    """Refuse to make a stranger's settings the user's own, and to move where there is no second place."""
    from jp.app.settings import layers_of, read_sources, require_none_ignored
    from jp.workspace.store import original_of

    if workspace.root is None:
        option = Option.LOCAL if local else Option.NO_LOCAL
        raise UsageError(
            phrase(option, " needs a workspace: outside any, all conversations are your own"),
            hint=phrase("run it in the workspace, or name that with ", Option.WORKSPACE),
        )
    if local and not info.local and info.metadata.imported_at is None:
        entries = workspace.read(info).entries
        sources = read_sources(options, workspace)
        own = tuple(layer for layer in sources.lower if not layer.foreign)
        if original_of(entries) is None:
            layers = layers_of(workspace, info, entries)
            require_none_ignored(replace(sources, lower=own, cfg=()).resolve(conversation=layers), info)


def _moved(
    options: Options, workspace: AnyWorkspace, info: ConversationInfo, lock: Lock, *, local: bool
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


def _set_archived(
    options: Options,
    targets: Sequence[str],
    put: Callable[[AnyWorkspace, ConversationInfo, Lock], ConversationInfo],
    *,
    archived: bool,
) -> tuple[ListedConversation, ...]:
    from jp.app.conversations import tidy

    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(options, targets, workspace, session, archived=not archived)
    changed: list[ConversationInfo] = []
    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            changed.append(put(workspace, info, lock))
    if archived:
        _deactivate(workspace, changed)
    tidy(options, workspace)
    return tuple(_listed(info, session.active()) for info in changed)


def _deactivate(workspace: AnyWorkspace, chosen: Sequence[ConversationInfo]) -> None:
    from jp.workspace.layout import storage_at
    from jp.workspace.retention import deactivate
    from jp.workspace.session import SESSIONS

    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    deactivate(own / SESSIONS, {str(info.id) for info in chosen}, now=SYSTEM.now())


def _note_reattached(options: Options, held: OpenConversation, found: Sequence[Undoable]) -> None:
    """Name what an undone turn attached and is declared still: the next turn attaches it, unless it is removed."""
    from jp.attachment.registry import delivered_declarations
    from jp.conversation.turns import turns_of, undone

    entries = held.log.entries
    gone = undone(entries)
    now = {entry.id for entry in found}
    turns = turns_of(entries)
    delivered = delivered_declarations(entry for turn in turns if turn.id in now for entry in turn.entries)
    standing = delivered_declarations(entry for turn in turns if turn.id not in gone for entry in turn.entries)
    declared = held.resolved.config.conversation.attachments
    again = [text for text in declared if text in delivered and text not in standing]
    if again:
        first = repr(again[0]) if len(again) == 1 else f"{again[0]!r} and {len(again) - 1} more"
        told = f"the next query attaches {first} again, unless `"
        options.notice(phrase(told, RemoveAttachment(), "` takes it out"))


def _reverted(held: OpenConversation, found: Sequence[Undoable]) -> RevertReport:
    entries = tuple(RevertedEntry(id=entry.id, type=str(entry.__struct_config__.tag)) for entry in found)
    texts = tuple(_entry_text(entry, held.log.entries) for entry in found)
    return RevertReport(id=str(held.info.id), entries=entries, texts=texts)


def _entry_text(entry: Undoable, entries: Sequence[AnyEntry]) -> str:
    from jp.app.compaction.compact import turns_text
    from jp.app.compaction.order import policies_text
    from jp.config.schema import key_text
    from jp.conversation.entries import Compaction, ConfigDelta
    from jp.conversation.turns import turns_of

    match entry:
        case Compaction():
            return f"the compaction of {turns_text(entry.from_turn, entry.to_turn)}: {policies_text(entry)}"
        case ConfigDelta(delta=delta):
            return f"a change of settings: {', '.join(key_text(path) for path in _leaves(delta)) or 'none'}"
        case _:
            number = next((turn.number for turn in turns_of(entries) if turn.id == entry.id), None)
            return "a turn" if number is None else f"turn {number}"


def _leaves(delta: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, below in delta.items():
        if isinstance(below, dict) and below and "strategy" not in below:
            yield from _leaves(cast("JsonObject", below), (*path, name))
        else:
            yield (*path, name)

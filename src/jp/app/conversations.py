"""Conversations with their settings: read, opened for writing, imported."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.app.options import AnyWorkspace, Options, Tell, acquire, open_session, open_workspace
from jp.app.settings import Sources, layers_of, read_sources
from jp.app.targets import choose, title_of
from jp.config.layers import Layer, Resolved
from jp.conversation.entries import AnyEntry
from jp.errors import JpError, UsageError
from jp.remedies import Ask, ChangeConversation, Option, Show, UseOption, phrase
from jp.turn.request import InlineLoader, Loader

if TYPE_CHECKING:
    from jp.workspace.importing import Imported, ImportSource
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.lock import Lock
    from jp.workspace.log import Log
    from jp.workspace.workspace import Workspace


def tidy(options: Options, workspace: AnyWorkspace) -> None:
    """Remove some of the conversations that have expired, which `-v` names. What fails is left for another time."""
    if not options.persist:
        return
    from jp.workspace.retention import remove_expired
    from jp.workspace.workspace import Workspace

    if not isinstance(workspace, Workspace):
        return
    try:
        removed = remove_expired(workspace)
    except JpError as error:
        options.log(phrase("expired conversations were not looked for: ", error.message))
        return
    forget_removed(options, workspace, removed)


def forget_removed(options: Options, workspace: AnyWorkspace, removed: Iterable[ConversationInfo]) -> None:
    """Forget what is kept elsewhere about conversations that were removed since they had expired."""
    for info in removed:
        from jp.app.drafts import discard_drafts, drafts_directory
        from jp.app.settings import trust_store

        trust_store(options, workspace, info).forget()
        discard_drafts(drafts_directory(workspace, info.id.digits, persistent=True, create=False))
        options.log(f"removed {info.id} ({title_of(info)}): it expired at {info.metadata.expires_at}")


class ReadConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation and the configuration that holds in it; `info` is None where there is none.

    `loader` reads content from the blob store.
    """

    workspace: AnyWorkspace
    info: ConversationInfo | None
    entries: Sequence[AnyEntry]
    loader: Loader
    resolved: Resolved

    @property
    def id(self) -> str:
        """The id of the conversation, empty where there is none."""
        return "" if self.info is None else str(self.info.id)


class OpenConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation whose lock is held. `resolved` is its configuration without `--cfg`."""

    workspace: AnyWorkspace
    info: ConversationInfo
    log: Log
    sources: Sources
    layers: tuple[Layer, ...]
    resolved: Resolved

    def with_layers(self, flags: Sequence[Layer]) -> Resolved:
        """Return the configuration with `--cfg` and `flags` over the conversation's own."""
        return self.sources.resolve(conversation=self.layers, flags=flags)


def read_conversation(
    options: Options, target: str, *, optional: bool = False, lenient: bool = False
) -> ReadConversation:
    """Read a conversation without its lock. `optional`: without an active one, what holds for new ones.

    `lenient`: invalid configuration files do not keep it from being read.

    Raises:
        JpError: it does not exist or cannot be read.
    """
    workspace = open_workspace(options)
    session = open_session(workspace)
    sources = read_sources(options, workspace, lenient=lenient)
    if optional and target == "." and session.active() is None:
        nothing = InlineLoader()
        return ReadConversation(workspace=workspace, info=None, entries=(), loader=nothing, resolved=sources.resolve())
    info = choose(options, target, workspace, session)
    stream = workspace.read(info)
    for text in stream.notices:
        options.notice(text)
    layers = layers_of(workspace, info, stream.entries)
    resolved = sources.resolve(conversation=layers)
    return ReadConversation(workspace=workspace, info=info, entries=stream.entries, loader=stream, resolved=resolved)


@contextmanager
def open_conversation(options: Options, target: str) -> Generator[OpenConversation]:
    """Open a conversation for writing, its lock held.

    Raises:
        UsageError: no conversation was named and none is active.
        JpError: it does not exist, cannot be written, or another process kept writing it.
    """
    workspace = open_workspace(options)
    session = open_session(workspace)
    sources = read_sources(options, workspace)
    if target == "." and session.active() is None:
        raise UsageError(
            "no conversation is active in this terminal",
            hint=phrase("name one, such as `last`, or start one: `", Ask(words="…"), "`"),
        )
    info = choose(options, target, workspace, session)
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock, workspace.open(info, lock) as log:
        for text in log.notices:
            options.notice(text)
        layers = layers_of(workspace, info, log.entries)
        yield OpenConversation(
            workspace=workspace,
            info=info,
            log=log,
            sources=sources,
            layers=layers,
            resolved=sources.resolve(conversation=layers, cfg=False),
        )
    tidy(options, workspace)


class ImportedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was imported from the directory `source`, or that the workspace has already.

    `name` is its title or its first words, fit to be shown. `original_id` is its id there, None where its directory is
    not named after one.
    """

    id: str
    name: str
    title: str | None
    path: str
    source: str
    original_id: str | None


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations that were imported, and those that were skipped because the workspace has them already."""

    imported: tuple[ImportedConversation, ...]
    skipped: tuple[ImportedConversation, ...]


def import_(options: Options, paths: Sequence[str], *, local: bool = False) -> ImportReport:
    """Copy conversations into the workspace, all of them or none. Nothing at their source is changed.

    Args:
        options: where, as for every use case.
        paths: directories of conversations, directories of such directories, or whole workspaces.
        local: put them into the user's own data instead of the workspace.

    Raises:
        UsageError: a path holds no conversation, or the workspace has all of them already.
        StorageError: one of them could not be read or written; none was imported.
    """
    from tempfile import TemporaryDirectory

    from jp.workspace.importing import import_conversations
    from jp.workspace.retention import EphemeralWorkspace

    workspace = open_workspace(options)
    if isinstance(workspace, EphemeralWorkspace):
        raise UsageError("nothing is written here", hint=phrase("remove ", Option.NO_PERSIST))
    with TemporaryDirectory(prefix="jp-import-") as place, options.progress("looking for conversations") as tell:
        sources = _import_sources(paths, Path(place), tell)
        done = import_conversations(workspace, sources, local=local, progress=tell)
    report = ImportReport(
        imported=tuple(_imported(item) for item in done if item.is_new),
        skipped=tuple(_imported(item) for item in done if not item.is_new),
    )
    if not report.imported:
        raise _nothing_new(report.skipped)
    return report


def _import_sources(paths: Sequence[str], place: Path, tell: Tell) -> list[ImportSource]:
    """Return what is to be imported, each once, read whole; files are unpacked or converted into `place`."""
    from jp.workspace.importing import find_sources, is_bundle, read_source, unpack
    from jp.workspace.transcripts import convert_transcript

    found: dict[Path, Path] = {}
    count = 0
    for path in paths:
        if not path:
            raise UsageError("an empty path names no directory", hint="name the directory of a conversation")
        written = Path(path).expanduser()
        tell(f"reading {path}")
        if written.is_file():
            count += 1
            unpacked = place / str(count)
            (unpack if is_bundle(written) else convert_transcript)(written, unpacked)
            directories = find_sources(unpacked)
        else:
            directories = find_sources(written)
        for directory in directories:
            found.setdefault(directory.resolve(), directory)
    sources: list[ImportSource] = []
    for directory in found:
        tell(f"reading conversation {len(sources) + 1:,} of {len(found):,}")
        sources.append(read_source(directory))
    return sources


def _imported(item: Imported) -> ImportedConversation:
    return ImportedConversation(
        id=str(item.info.id),
        name=title_of(item.info),
        title=item.info.metadata.title,
        path=str(item.info.directory),
        source=str(item.source.directory),
        original_id=None if item.source.id is None else str(item.source.id),
    )


def _nothing_new(skipped: Sequence[ImportedConversation]) -> UsageError:
    first = skipped[0]
    if len(skipped) > 1:
        return UsageError(
            f"all {len(skipped)} conversations are here already, such as {first.source!r} as {first.id}",
            hint=phrase("list them with `", Show("conversations"), "`"),
        )
    return UsageError(
        f"{first.source!r} is here already, as {first.id}",
        hint=phrase(
            *("go on with it: `", Ask((UseOption(Option.TARGET, first.id),)), "`; "),
            *("or copy it: `", ChangeConversation("fork", first.id), "`"),
        ),
    )


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge: how many turns a conversation has, and the id of the one that the other side became.

    `was_conflict`: git had left conflict markers in the log.
    """

    id: str
    turns: int
    fork: str | None
    was_conflict: bool = True


def merge(options: Options, target: str, *, fork: bool = False) -> MergeReport:
    """Resolve the conflict that git left in a conversation that two branches continued. No turn of either is lost.

    Where git merged the log without a conflict, `fork` separates the branch that it merged last.

    Args:
        options: where, as for every use case.
        target: the conversation.
        fork: keep our side, and make the other one a conversation of its own; else keep the turns of both.

    Raises:
        UsageError: there is no conflict.
        StorageError: a side cannot be read, or nothing could be written; then nothing was changed.
    """
    from jp.conversation.turns import turns_of
    from jp.workspace.files import read_optional, replace_file
    from jp.workspace.importing import merge_sides
    from jp.workspace.layout import EVENTS, METADATA
    from jp.workspace.listing import decode_metadata
    from jp.workspace.retention import EphemeralWorkspace
    from jp.workspace.store import parse_log

    workspace = open_workspace(options)
    if isinstance(workspace, EphemeralWorkspace):
        raise UsageError("nothing is written here", hint=phrase("remove ", Option.NO_PERSIST))
    info = choose(options, target, workspace, open_session(workspace))
    lock = workspace.lock(info)
    acquire(lock, options)
    with lock:
        path, about = info.directory / EVENTS, info.directory / METADATA
        log, metadata = (merge_sides(read_optional(file) or b"") for file in (path, about))
        if log is None:
            return _separate(workspace, info, lock, fork=fork)
        kept = parse_log(log.ours if fork else log.both, path)
        files = {EVENTS: log.theirs, METADATA: (read_optional(about) or b"{}") if metadata is None else metadata.theirs}
        if metadata is not None:
            decode_metadata(metadata.ours, about)
        other = _import_side(workspace, info, files) if fork else None
        replace_file(path, log.ours if fork else log.both)
        if metadata is not None:
            replace_file(about, metadata.ours)
    return MergeReport(id=str(info.id), turns=len(turns_of(kept.entries)), fork=other)


def _separate(workspace: Workspace, info: ConversationInfo, lock: Lock, *, fork: bool) -> MergeReport:
    """Make the last branch that git merged into a log a conversation of its own, and undo its turns in this one."""
    from jp.conversation.branches import open_branches
    from jp.conversation.entries import Revert
    from jp.conversation.turns import turns_of
    from jp.workspace.files import read_optional
    from jp.workspace.layout import EVENTS, METADATA
    from jp.workspace.lifecycle import line_of
    from jp.workspace.store import parse_log

    path, about = info.directory / EVENTS, info.directory / METADATA
    entries = parse_log(read_optional(path) or b"", path).entries
    branches = open_branches(entries)
    if not branches or not fork:
        with_fork = phrase(UseOption(Option.FORK), " makes the last branch that git merged a conversation of its own")
        raise UsageError(
            f"conversation {str(info.id)!r} has no conflict",
            hint=with_fork if branches else "it opens with all its turns, those that git merged too",
        )
    last = branches[-1]
    lines = b"".join(line_of(entries[position]) for position in last.positions)
    other = _import_side(workspace, info, {EVENTS: lines, METADATA: read_optional(about) or b"{}"})
    with workspace.open(info, lock) as opened:
        opened.append(Revert(entries=last.starts))
    return MergeReport(id=str(info.id), turns=len(turns_of(entries)) - len(last.turns), fork=other, was_conflict=False)


def _import_side(workspace: Workspace, info: ConversationInfo, files: Mapping[str, bytes]) -> str:
    """Write the other side as a conversation, with the content that it shares; return its id."""
    from tempfile import TemporaryDirectory

    from msgspec.structs import replace

    from jp.workspace.blobs import DiskBlobs
    from jp.workspace.files import create_file, make_directories
    from jp.workspace.importing import import_conversations, read_source
    from jp.workspace.layout import BASE_CONFIG, storage_directory

    with TemporaryDirectory(prefix="jp-merge-") as place:
        directory = Path(place) / "conversations" / info.directory.name
        make_directories(directory, private=True)
        base = info.directory / BASE_CONFIG
        shared = {BASE_CONFIG: base.read_bytes()} if base.is_file() else {}
        for name, data in {**shared, **files}.items():
            create_file(directory / name, data)
        blobs = DiskBlobs(storage_directory(info.directory) / "blobs")
        source = replace(read_source(directory), blobs=blobs)
        (done,) = import_conversations(workspace, [source], local=info.local)
    return str(done.info.id)

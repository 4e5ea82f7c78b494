"""Care for a workspace: collect garbage, and find what is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Literal

import msgspec

from jp.app.conversations import forget_removed
from jp.app.options import AnyWorkspace, Options, open_workspace
from jp.config.layers import Resolved
from jp.errors import JpError, UsageError
from jp.remedies import Option, Show, StoreKey, TrustWorkspace, phrase
from jp.workspace.garbage import GarbageFile, collect, find_garbage
from jp.workspace.layout import EVENTS
from jp.workspace.listing import ConversationInfo
from jp.workspace.lock import LockedError
from jp.workspace.retention import expired_now, remove_all
from jp.workspace.workspace import Workspace


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """The files and conversations that can be collected, or were.

    Args:
        files: blobs that no conversation names, and temporary files.
        expired: ids of conversations that have expired.
        is_done: whether it was collected; of what was used meanwhile nothing is listed.
    """

    files: tuple[GarbageFile, ...] = ()
    expired: tuple[str, ...] = ()
    is_done: bool = False

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return sum(file.size for file in self.files)


def collect_garbage(options: Options, *, apply: bool = False) -> Collection:
    """Return what nothing needs in the workspace; with `apply`, delete it.

    Args:
        options: where, as for every use case.
        apply: whether to delete; else nothing is written.

    Raises:
        StorageError: a conversation cannot be read: nothing was deleted, for it may name any blob.
    """
    workspace = _stored(open_workspace(options))
    gone = expired_now(workspace)
    if apply:
        gone = remove_all(workspace, gone)
        forget_removed(options, workspace, gone)
    expired = tuple(str(info.id) for info in gone)
    with options.progress("looking for files that nothing needs") as tell:
        files = tuple(find_garbage(workspace, progress=tell))
        if apply:
            now = workspace.stamps.now() / 1000
            files = tuple(file for file in files if collect(file, now=now))
    return Collection(files=files, expired=expired, is_done=apply)


def _stored(workspace: AnyWorkspace) -> Workspace:
    if isinstance(workspace, Workspace):
        return workspace
    raise UsageError(phrase("nothing is stored with ", Option.NO_PERSIST), hint=phrase("remove ", Option.NO_PERSIST))


Severity = Literal["ok", "warning", "error"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at. `hint` says what helps."""

    subject: str
    severity: Severity
    text: str
    hint: str = ""


def examine(options: Options, *, repair: bool = False) -> list[Finding]:
    """Look at everything that a query in this workspace needs. Nothing is sent, and no server is started.

    Args:
        options: where, as for every use case.
        repair: whether to repair logs as the next query in each would: a torn line is kept beside the log, and calls
            without a result get one that says so. Nothing else is written.

    Raises:
        StorageError: the conversations cannot be listed.
    """
    workspace = _stored(open_workspace(options))
    found: list[Finding] = []
    resolved = _read_settings(options, workspace, found)
    if resolved is not None:
        found += _model(resolved)
        found += _servers(resolved)
    found.append(_sandbox(workspace))
    infos = workspace.conversations()
    with options.progress("checking the conversations") as tell:
        for info in infos:
            tell(f"checking {info.id}")
            found += _conversation(workspace, info, repair=repair)
    damaged = {one.subject for one in found if one.subject.startswith("conversation")}
    found.append(
        Finding(
            subject="conversations", severity="ok", text=f"{len(infos) - len(damaged):,} of {len(infos):,} are whole"
        )
    )
    return found


def _failed(subject: str, error: JpError) -> Finding:
    return Finding(subject=subject, severity="error", text=error.message, hint=error.hint)


def _read_settings(options: Options, workspace: Workspace, found: list[Finding]) -> Resolved | None:
    from jp.app.settings import read_sources

    try:
        resolved = read_sources(options, workspace).resolve()
    except JpError as error:
        found.append(_failed("settings", error))
        return None
    if resolved.ignored:
        text = f"{len(resolved.ignored):,} values of the workspace's files are ignored until they are trusted"
        hint = phrase("`", TrustWorkspace(), "` shows and accepts them")
        found.append(Finding(subject="settings", severity="warning", text=text, hint=hint))
    else:
        found.append(Finding(subject="settings", severity="ok", text="every file can be read"))
    return resolved


def _model(resolved: Resolved) -> Iterator[Finding]:
    """Yield whether the model is known, and whether there is a key for its provider."""
    from jp.app.models import UserKeys
    from jp.provider.keys import find_key
    from jp.provider.registry import key_variables, parse_model_id, vendor_in

    settings, model = resolved.config.providers.llm, resolved.config.assistant.model.id
    if model is None:
        hint = phrase("`", Show("models"), "` lists models")
        yield Finding(subject="model", severity="warning", text="none is set", hint=hint)
        return
    try:
        provider = parse_model_id(model, settings).provider
        key = find_key(provider, key_variables(settings, provider), environ=os.environ, stored=UserKeys())
        needs_key = vendor_in(settings, provider).needs_key
    except JpError as error:
        yield _failed("model", error)
        return
    if key is None and needs_key:
        text, hint = f"{model}, and there is no key for {provider!r}", phrase("`", StoreKey(provider), "` stores one")
        yield Finding(subject="model", severity="error", text=text, hint=hint)
    else:
        source = "no key is needed" if key is None else f"its key comes from {key.where}"
        yield Finding(subject="model", severity="ok", text=f"{model}; {source}")


def _servers(resolved: Resolved) -> Iterator[Finding]:
    """Yield whether the command of each MCP server can be found; none is started."""
    for name, server in sorted(resolved.config.providers.mcp.items()):
        subject = f"server {name}"
        if server.command is None:
            yield Finding(subject=subject, severity="ok", text=f"an address: {server.url}")
        elif (place := shutil.which(server.command)) is not None:
            yield Finding(subject=subject, severity="ok", text=f"starts {place}")
        else:
            hint = f"install it, or correct `providers.mcp.{name}.command`"
            text = f"its command {server.command!r} is not on PATH"
            yield Finding(subject=subject, severity="error", text=text, hint=hint)


def _sandbox(workspace: Workspace) -> Finding:
    """Return whether programs of tools can be confined on this machine."""
    from jp.app.options import base_directory
    from jp.process.sandbox.launcher import mechanism_for
    from jp.process.sandbox.policy import Confinement, NoMechanism

    found = mechanism_for(Confinement(mode="workspace-write", root=str(base_directory(workspace))))
    if isinstance(found, NoMechanism):
        hint = "tools that start programs run unconfined here; install bubblewrap"
        return Finding(subject="sandbox", severity="warning", text=found.why, hint=hint)
    return Finding(subject="sandbox", severity="ok", text=type(found).__name__.lower())


def _conversation(workspace: Workspace, info: ConversationInfo, *, repair: bool) -> Iterator[Finding]:
    """Yield what is wrong with a conversation; nothing if it is whole."""
    from jp.conversation.turns import repair as missing_of
    from jp.workspace.lifecycle import named_in

    subject = f"conversation {info.id}"
    if info.problem:
        yield Finding(subject=subject, severity="error", text=info.problem, hint="correct the file by hand")
    if repair and (info.directory / EVENTS).exists():
        yield from _repaired(workspace, info, subject)
    try:
        stream = workspace.read(info)
    except JpError as error:
        yield _failed(subject, error)
        return
    for text in (*stream.notices, *missing_of(stream.entries).notices):
        yield Finding(subject=subject, severity="warning", text=text)
    for sha256 in sorted(named_in(stream.entries)):
        try:
            stream.blobs.get(sha256)
        except JpError as error:
            yield _failed(subject, error)


def _repaired(workspace: Workspace, info: ConversationInfo, subject: str) -> Iterator[Finding]:
    """Open a log for writing, which repairs it; yield what was repaired."""
    lock = workspace.lock(info)
    try:
        lock.acquire(patience=0, waiting=lambda _: None)
        with lock, workspace.open(info, lock) as log:
            for text in log.notices:
                yield Finding(subject=subject, severity="ok", text=text)
    except LockedError as error:
        yield Finding(subject=subject, severity="ok", text=error.message)
    except JpError:
        return  # reading it says why

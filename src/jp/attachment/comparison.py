"""Status of attachments: whether their sources differ from the copies in a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.attachment.base import (
    ANY_DEPTH,
    Declaration,
    Delivery,
    History,
    MissingSourceError,
    ResolveContext,
    ResourceCopy,
    attributed_uris,
    run_in_thread,
    scheme_of,
)
from jp.attachment.file_paths import (
    Location,
    Names,
    NotAFileError,
    PathPattern,
    TooLargeError,
    decode,
    file_facts,
    locate,
    parts_below,
    read,
    real_path,
)
from jp.attachment.files import TOTAL, FileReader, MatchedFiles, nothing_found, unreadable
from jp.attachment.media import BinaryMedia, TextMedia, identify, is_kept_byte_by_byte, may_be_sent
from jp.attachment.registry import AttachmentRegistry
from jp.conversation.resource import Resource, checksum, file_uri, size_in_bytes
from jp.errors import JpError


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """URIs of resources with other content, of new ones, and of those that do not exist any more."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A source and its copies, which have the `uris`. `excluded_by` is the exclude that matches all of it now."""

    uris: tuple[str, ...] = ()
    difference: Difference = Difference()
    excluded_by: str | None = None


def compare_resources(
    resources: Sequence[Resource], uris: Collection[str], copies: Mapping[str, ResourceCopy]
) -> Difference:
    """Return how the current `resources` differ from `copies`; `uris` are those that their source had before."""
    now = {resource.uri: resource for resource in resources}
    return Difference(
        changed=tuple(
            uri
            for uri, resource in now.items()
            if uri in copies and checksum(copies[uri].resource) != checksum(resource)
        ),
        added=tuple(uri for uri in now if uri not in copies),
        removed=tuple(uri for uri in uris if uri not in now),
    )


class FileComparer:
    """Compares the files of one declaration with copies. `check` is called between files, and may raise to cancel."""

    def __init__(self, declaration: Declaration, context: ResolveContext, check: Callable[[], None]) -> None:
        self._declaration = declaration
        self._context = context
        self._check = check
        self._names = Names()
        self._bytes_left = TOTAL * context.max_bytes

    def excluded_by(self, excludes: Sequence[Declaration]) -> str | None:
        """Return the exclude, as written, that matches every file of a declaration without copies; else None.

        Raises:
            MissingSourceError: the declaration matches no file anyway.
            AttachmentError: the files are not accessible.
        """
        found = self._found(self._declaration, excludes)
        if found.expansion is not None and not found.files and found.excluded_by is None:
            raise nothing_found(self._declaration, self._location(self._declaration.uri), found.expansion)
        return found.excluded_by

    def claimed(self, delivery: Delivery) -> tuple[str, ...]:
        """Return the URIs of a delivery that the declaration matches.

        Raises:
            AttachmentError: a declaration of the request is malformed.
        """
        location = self._location(self._declaration.uri)
        bases = {self._names.spelled(path) for path in (location.path, real_path(location.path, self._names))}
        pattern = PathPattern(location.tail or (ANY_DEPTH,))
        theirs = {self._plain_uri(text) for text in delivery.declarations if text != self._declaration.uri}
        mine: set[str] = set() if location.tail else set(map(file_uri, bases))
        return tuple(
            uri
            for uri in delivery.uris
            if uri in mine or (uri not in theirs and any(_matches(uri, base, pattern) for base in bases))
        )

    def compare(self, delivery: Delivery, copies: Mapping[str, ResourceCopy]) -> Comparison:
        """Return the difference to `copies`, the newest since `delivery`.

        Raises:
            MissingSourceError: the source does not exist any more.
            AttachmentError: the files are not accessible.
        """
        claimed = self.claimed(delivery)
        excludes = [
            Declaration(uri=text, written=f"!{text}", exclude=True)
            for text in delivery.excludes
            if text.startswith("file:")
        ]
        # A file that was attached although an exclude matches it is compared as well.
        found = self._found(msgspec.structs.replace(self._declaration, typed=bool(claimed)), excludes)
        now = {file_uri(self._names.spelled(path)): path for path in found.files}
        uris = tuple(dict.fromkeys((*claimed, *(uri for uri in now if uri in copies))))
        return Comparison(
            uris=uris, difference=self._difference(found, now, uris, copies), excluded_by=found.excluded_by
        )

    def _difference(
        self, found: MatchedFiles, now: Mapping[str, str], uris: Sequence[str], copies: Mapping[str, ResourceCopy]
    ) -> Difference:
        changed: list[str] = []
        added: list[str] = []
        for uri, path in now.items():
            self._check()
            try:
                if uri not in copies:
                    added += [uri] if self._may_be_attached(found, path) else []
                elif not self._is_same(found, path, copies[uri].resource):
                    changed.append(uri)
            except OSError as error:
                if found.expansion is None:
                    raise unreadable(self._declaration, error) from None
                changed += [uri] if uri in copies else []
        removed = tuple(uri for uri in uris if uri not in now)
        return Difference(changed=tuple(changed), added=tuple(added), removed=removed)

    def _is_same(self, found: MatchedFiles, path: str, copy: Resource) -> bool:
        """Return whether a file has the content of its copy. It is read only if the sizes do not differ."""
        anchor, parts = _place(found, path)
        try:
            seen = file_facts(anchor, parts)
            says_its_size = seen.size > 0 or not seen.head
            if says_its_size and seen.size != size_in_bytes(copy) and is_kept_byte_by_byte(seen.head):
                return False
            return _checksum(read(anchor, parts, self._context.max_bytes).data, path) == checksum(copy)
        except (NotAFileError, TooLargeError):
            return False

    def _may_be_attached(self, found: MatchedFiles, path: str) -> bool:
        """Return whether a file without a copy would be attached. Beyond the bound, files are not read."""
        anchor, parts = _place(found, path)
        try:
            seen = file_facts(anchor, parts)
            if not may_be_sent(seen.head):
                return False
            self._bytes_left -= seen.size
            if self._bytes_left < 0:
                return True
            return _checksum(read(anchor, parts, self._context.max_bytes).data, path) is not None
        except NotAFileError:
            return False
        except TooLargeError as error:
            return error.may_be_sent

    def _found(self, declaration: Declaration, excludes: Sequence[Declaration]) -> MatchedFiles:
        return FileReader(declaration, self._context, excludes, self._check).find()

    def _location(self, uri: str) -> Location:
        return locate(uri, self._context, self._names)

    def _plain_uri(self, text: str) -> str | None:
        """Return the URI of the file that a logged declaration names by its path; None for anything else."""
        if not text.startswith("file:"):
            return None
        location = self._location(text)
        return None if location.tail else file_uri(self._names.spelled(real_path(location.path, self._names)))


def _place(found: MatchedFiles, path: str) -> tuple[str, list[str]]:
    return found.bounds.anchor, parts_below(path, found.bounds.anchor) or []


def _matches(uri: str, base: str, pattern: PathPattern) -> bool:
    path = "/".join(map(decode, uri.removeprefix("file://").split("/")))
    names = parts_below(path, base) if uri.startswith("file:///") else None
    if not names:
        return False
    states = pattern.start
    for name in names:
        states = pattern.step(states, name)
    return pattern.accepts(states)


def _checksum(data: bytes, path: str) -> str | None:
    """Return the checksum of a copy with this content; None if it cannot be attached."""
    match identify(data, path):
        case TextMedia(text=text):
            return hashlib.sha256(text.encode()).hexdigest()
        case BinaryMedia():
            return hashlib.sha256(data).hexdigest()
        case _:
            return None


State = Literal["pending", "sent", "changed", "missing", "excluded"]
"""Read at the next turn; same as the copy; different from it; source not found; matched by an exclude."""

_ALWAYS_COMPARED = frozenset({"file", "jp"})
_NEVER_COMPARED = frozenset({"cmd", "clipboard"})


class AttachmentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one declaration.

    `copies` are the newest of its resources, `turn` is the last turn with one of them. `is_compared`: the source was
    read. `detail` explains the state, and `hint` suggests a fix.
    """

    state: State
    is_compared: bool = False
    turn: int | None = None
    copies: tuple[Resource, ...] = ()
    difference: Difference = Difference()
    detail: str = ""
    hint: str = ""


class StatusReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the status of declarations. `excludes` apply to those that are not delivered yet.

    With `reaches_out`, sources on other machines are compared as well. No command is run and the clipboard is not read.
    """

    registry: AttachmentRegistry
    context: ResolveContext
    history: History
    excludes: tuple[Declaration, ...] = ()
    reaches_out: bool = False

    async def status(self, declaration: Declaration) -> AttachmentStatus:
        """Return the status of `declaration`. If its source cannot be read, `detail` says why."""
        if declaration.exclude:
            return self.logged(declaration)
        scheme = scheme_of(declaration.uri)
        delivery = self.history.deliveries.get(declaration.text)
        if scheme in _NEVER_COMPARED or not (scheme in _ALWAYS_COMPARED or self.reaches_out):
            return self.logged(declaration)
        look = self._next if delivery is None else self._files if scheme == "file" else self._resources
        try:
            return await look(declaration)
        except MissingSourceError as error:
            return _missing(self.logged(declaration), error)
        except JpError as error:
            return replace(self.logged(declaration), detail=error.message, hint=error.hint)

    def logged(self, declaration: Declaration) -> AttachmentStatus:
        """Return the status according to the log, without reading the source."""
        delivery = self.history.deliveries.get(declaration.text)
        if delivery is None:
            is_excluded = declaration.exclude or any(exclude.uri == declaration.uri for exclude in self.excludes)
            return AttachmentStatus(state="excluded" if is_excluded else "pending")
        return self._sent(delivery, attributed_uris(declaration.uri, delivery))

    def _sent(self, delivery: Delivery, uris: Sequence[str]) -> AttachmentStatus:
        if not uris:
            if delivery.excludes:
                return AttachmentStatus(state="excluded", turn=delivery.turn)
            return AttachmentStatus(state="sent", turn=delivery.turn, detail="this conversation has no copy of it")
        copies = [self.history.copies[uri] for uri in uris]
        turn = max(copy.turn for copy in copies)
        return AttachmentStatus(state="sent", turn=turn, copies=tuple(copy.resource for copy in copies))

    async def _next(self, declaration: Declaration) -> AttachmentStatus:
        """Return the status of a declaration that is not delivered yet."""
        if scheme_of(declaration.uri) == "file":
            files = [exclude for exclude in self.excludes if scheme_of(exclude.uri) == "file"]
            exclude = await run_in_thread(
                lambda check: FileComparer(declaration, self.context, check).excluded_by(files)
            )
            detail = "" if exclude is None else f"{exclude!r} excludes it"
            return AttachmentStatus(state="pending" if exclude is None else "excluded", is_compared=True, detail=detail)
        handler = self.registry.handler(declaration.uri)
        resolution = await handler.resolve(declaration, self.context, excludes=self.excludes)
        if resolution.resources:
            return AttachmentStatus(state="pending", is_compared=True)
        return AttachmentStatus(state="excluded", is_compared=True, detail="; ".join(resolution.notices))

    async def _files(self, declaration: Declaration) -> AttachmentStatus:
        delivery, copies = self.history.deliveries[declaration.text], self.history.copies
        uris = FileComparer(declaration, self.context, lambda: None).claimed(delivery)
        try:
            seen = await run_in_thread(
                lambda check: FileComparer(declaration, self.context, check).compare(delivery, copies)
            )
        except MissingSourceError as error:
            return _missing(self._sent(delivery, uris), error) if uris else self._sent(delivery, uris)
        except JpError as error:
            return replace(self._sent(delivery, uris), detail=error.message, hint=error.hint)
        logged = self._sent(delivery, seen.uris)
        if seen.uris:
            return _compared(logged, seen.difference)
        return logged if seen.excluded_by is None else replace(logged, detail=f"{seen.excluded_by!r} excludes it")

    async def _resources(self, declaration: Declaration) -> AttachmentStatus:
        delivery, logged = self.history.deliveries[declaration.text], self.logged(declaration)
        if not logged.copies:
            return logged
        # A source that was attached although an exclude matches it is compared as well.
        excludes = [
            Declaration(uri=uri, written=f"!{uri}", exclude=True) for uri in delivery.excludes if uri != declaration.uri
        ]
        resolution = await self.registry.handler(declaration.uri).resolve(declaration, self.context, excludes=excludes)
        uris = [copy.uri for copy in logged.copies]
        return _compared(logged, compare_resources(resolution.resources, uris, self.history.copies))


def _missing(logged: AttachmentStatus, error: MissingSourceError) -> AttachmentStatus:
    return replace(logged, state="missing", is_compared=True, detail=error.message, hint=error.hint)


def _compared(logged: AttachmentStatus, difference: Difference) -> AttachmentStatus:
    return replace(logged, state="changed" if difference else "sent", is_compared=True, difference=difference)

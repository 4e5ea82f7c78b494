"""What of a source differs from the copies that a conversation has. Files are read only where nothing else tells."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from jp.attachment.base import Declaration, ResolveContext
from jp.attachment.files import failures
from jp.attachment.files.location import Location, locate, parts_below, real_path
from jp.attachment.files.names import Names
from jp.attachment.files.pattern import ANY_DEPTH, PathPattern
from jp.attachment.files.reading import TOTAL, Found, Reading
from jp.attachment.files.snapshot import NotAFileError, TooLargeError, glance, read
from jp.attachment.history import Copy, Delivery
from jp.attachment.media import BinaryMedia, TextMedia, identify, is_kept_byte_by_byte, may_be_sent
from jp.attachment.uri import decode
from jp.conversation.resource import Resource, checksum, size_in_bytes
from jp.conversation.uri import file_uri


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """URIs of resources: what has other content, what would come in addition, what is not there any more."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A source and its copies. `uris` are of what came of it; `excluded_by` is the exclude that leaves nothing now."""

    uris: tuple[str, ...] = ()
    difference: Difference = Difference()
    excluded_by: str | None = None


def compare_resources(resources: Sequence[Resource], uris: Collection[str], copies: Mapping[str, Copy]) -> Difference:
    """What `resources`, as they are now, differ in from `copies`; `uris` are what came of their source before."""
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


class FileComparison:
    """One comparison of what a `file` declaration stands for. `check` is called between files."""

    def __init__(self, declaration: Declaration, context: ResolveContext, check: Callable[[], None]) -> None:
        self._declaration = declaration
        self._context = context
        self._check = check
        self._names = Names()
        self._room = TOTAL * context.max_bytes

    def excluded_by(self, excludes: Sequence[Declaration]) -> str | None:
        """The exclude, as written, that leaves nothing of it where there are no copies yet.

        Raises:
            MissingSourceError: it stands for nothing anyway.
            AttachmentError: it cannot be told.
        """
        found = self._found(self._declaration, excludes)
        if found.expansion is not None and not found.files and found.excluded_by is None:
            raise failures.nothing_found(self._declaration, self._location(self._declaration.uri), found.expansion)
        return found.excluded_by

    def claimed(self, delivery: Delivery) -> tuple[str, ...]:
        """Which of the files that a request brought came of the declaration, as far as their names say.

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

    def compare(self, delivery: Delivery, copies: Mapping[str, Copy]) -> Comparison:
        """What differs from `copies`, the newest since `delivery`.

        Raises:
            MissingSourceError: there is nothing any more.
            AttachmentError: it cannot be told.
        """
        claimed = self.claimed(delivery)
        excludes = [
            Declaration(uri=text, written=f"!{text}", exclude=True)
            for text in delivery.excludes
            if text.startswith("file:")
        ]
        # What was attached against an exclude is compared against it, too.
        found = self._found(msgspec.structs.replace(self._declaration, typed=bool(claimed)), excludes)
        now = {file_uri(self._names.spelled(path)): path for path in found.files}
        uris = tuple(dict.fromkeys((*claimed, *(uri for uri in now if uri in copies))))
        return Comparison(
            uris=uris, difference=self._difference(found, now, uris, copies), excluded_by=found.excluded_by
        )

    def _difference(
        self, found: Found, now: Mapping[str, str], uris: Sequence[str], copies: Mapping[str, Copy]
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
                    raise failures.unreadable(self._declaration, error) from None
                changed += [uri] if uri in copies else []
        removed = tuple(uri for uri in uris if uri not in now)
        return Difference(changed=tuple(changed), added=tuple(added), removed=removed)

    def _is_same(self, found: Found, path: str, copy: Resource) -> bool:
        """Whether a file has the content of its copy: it is read only where the sizes agree or say nothing."""
        anchor, parts = _place(found, path)
        try:
            seen = glance(anchor, parts)
            says_its_size = seen.size > 0 or not seen.head
            if says_its_size and seen.size != size_in_bytes(copy) and is_kept_byte_by_byte(seen.head):
                return False
            return _checksum(read(anchor, parts, self._context.max_bytes).data, path) == checksum(copy)
        except (NotAFileError, TooLargeError):
            return False

    def _may_be_attached(self, found: Found, path: str) -> bool:
        """Whether a file that has no copy would be attached. What is more than may be attached is not read."""
        anchor, parts = _place(found, path)
        try:
            seen = glance(anchor, parts)
            if not may_be_sent(seen.head):
                return False
            self._room -= seen.size
            if self._room < 0:
                return True
            return _checksum(read(anchor, parts, self._context.max_bytes).data, path) is not None
        except NotAFileError:
            return False
        except TooLargeError as error:
            return error.may_be_sent

    def _found(self, declaration: Declaration, excludes: Sequence[Declaration]) -> Found:
        return Reading(declaration, self._context, excludes, self._check).find()

    def _location(self, uri: str) -> Location:
        return locate(uri, self._context, self._names)

    def _plain_uri(self, text: str) -> str | None:
        """The URI of the file that a declaration in the log names by its own path, if it is one."""
        if not text.startswith("file:"):
            return None
        location = self._location(text)
        return None if location.tail else file_uri(self._names.spelled(real_path(location.path, self._names)))


def _place(found: Found, path: str) -> tuple[str, list[str]]:
    return found.grounds.anchor, parts_below(path, found.grounds.anchor) or []


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
    """The checksum that the snapshot of a file with this content has; None where it cannot be attached."""
    match identify(data, path):
        case TextMedia(text=text):
            return hashlib.sha256(text.encode()).hexdigest()
        case BinaryMedia():
            return hashlib.sha256(data).hexdigest()
        case _:
            return None

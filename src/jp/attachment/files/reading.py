"""The `file` scheme: files, directories and globs as resources."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.files import failures
from jp.attachment.files.expansion import Exclusion, Expansion, Grounds, Walk, is_never_entered
from jp.attachment.files.location import (
    Location,
    NotAFileError,
    Snapshot,
    TooLargeError,
    declared_uri,
    locate,
    parts_below,
    parts_of,
    read,
    real_path,
)
from jp.attachment.files.paths import ANY_DEPTH, Names, PathPattern
from jp.attachment.media import BinaryMedia, Media, TextMedia, UnsupportedMedia, identify
from jp.attachment.threads import in_thread
from jp.conversation.resource import Annotations, Resource, file_uri

TOTAL = 10
"""How many times the bound of one resource everything that a declaration stands for may have."""

_UNSENDABLE = "neither text, an image nor a PDF"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a declaration stands for: real paths, in the order in which they are attached.

    `expansion` is there for a directory or a glob. `excluded_by` is the exclude, as written, that has left nothing.
    """

    files: tuple[str, ...]
    grounds: Grounds
    expansion: Expansion | None = None
    excluded_by: str | None = None


class Reading:
    """One resolution, synchronous. `check` is called between files; what it raises ends the reading."""

    def __init__(
        self,
        declaration: Declaration,
        context: ResolveContext,
        excludes: Sequence[Declaration],
        check: Callable[[], None],
    ) -> None:
        self._declaration = declaration
        self._context = context
        self._check = check
        self._names = Names()
        self._root = real_path(context.root.absolute(), self._names)
        self._exclusion = Exclusion(excludes, context, self._names)

    def resolve(self) -> Resolution:
        """The resources that the declaration names. See the port.

        Raises:
            AttachmentError: see the port.
        """
        location = locate(self._declaration.uri, self._context, self._names)
        with self._in_words(location):
            found = self._found(location)
            if found.expansion is not None:
                return self._expanded(found, found.expansion, location)
            return self._single(found)

    def find(self) -> Found:
        """Which files the declaration names; none of them is read.

        Raises:
            AttachmentError: what it names is not there, is too much, or cannot be looked at.
        """
        location = locate(self._declaration.uri, self._context, self._names)
        with self._in_words(location):
            return self._found(location)

    @contextmanager
    def _in_words(self, location: Location) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise failures.missing(self._declaration, location.path, self._context) from None
        except OSError as error:
            raise failures.unreadable(self._declaration, error) from None

    def _found(self, location: Location) -> Found:
        real = real_path(location.path, self._names)
        is_inside = parts_below(real, self._root) is not None
        if self._declaration.confined and not is_inside:
            raise failures.outside(self._declaration, self._context)
        # Asked by the path as given: where a descriptor's own name in /dev/fd is a pipe, its real path is nothing.
        mode = os.stat(location.path).st_mode  # noqa: PTH116  paths are text here
        if self._declaration.typed and not location.tail:
            self._exclusion.give_way_to(location.path, real)
        if stat.S_ISDIR(mode):
            return self._walked(location, Grounds(base=real, anchor=self._root if is_inside else real))
        if location.tail:
            raise NotADirectoryError
        if not stat.S_ISREG(mode):
            raise failures.not_a_file(self._declaration, mode)
        exclude = self._exclusion.by(location.path) or self._exclusion.by(real)
        return Found(
            files=(real,) if exclude is None else (),
            grounds=Grounds(base=real, anchor=self._root if is_inside else str(Path(real).parent)),
            excluded_by=exclude,
        )

    def _walked(self, location: Location, grounds: Grounds) -> Found:
        if is_never_entered(grounds.base, self._root):
            message = f"{self._declaration.written!r} lies in what git or jp keeps for itself"
            raise AttachmentError(message, hint="Attach a file of it by its own path.")
        if (exclude := self._exclusion.by(location.path) or self._exclusion.by(grounds.base)) is not None:
            return Found(files=(), grounds=grounds, excluded_by=exclude)
        walk = Walk(self._declaration, grounds, self._exclusion, self._root)
        expansion = walk.run(PathPattern(location.tail or (ANY_DEPTH,)), self._check)
        files = tuple(sorted(expansion.files, key=lambda path: parts_of(self._names.spelled(path))))
        excluded_by = None if files else expansion.excluded_by
        return Found(files=files, grounds=grounds, expansion=expansion, excluded_by=excluded_by)

    def _single(self, found: Found) -> Resolution:
        if found.excluded_by is not None:
            return Resolution(resources=(), notices=(failures.all_excluded(self._declaration, found.excluded_by),))
        real = found.files[0]
        try:
            snapshot, media = self._read(real, found.grounds)
        except NotAFileError as error:
            raise failures.not_a_file(self._declaration, error.mode) from None
        except TooLargeError as error:
            shown = self._declaration.written
            raise failures.too_large(self._declaration, shown, error.size, self._context) from None
        if isinstance(media, UnsupportedMedia):
            raise AttachmentError(f"{self._declaration.written!r} is {media.reason}", hint=media.hint)
        return Resolution(resources=(self._resource(real, snapshot, media),))

    def _read(self, real: str, grounds: Grounds) -> tuple[Snapshot, Media]:
        snapshot = read(grounds.anchor, parts_below(real, grounds.anchor) or [], self._context.max_bytes)
        return snapshot, identify(snapshot.data, real)

    def _resource(self, real: str, snapshot: Snapshot, media: TextMedia | BinaryMedia) -> Resource:
        spelled = self._names.spelled(real)
        inside = parts_below(spelled, self._names.spelled(self._root))
        name = "/".join(inside) if inside else spelled
        modified = snapshot.last_modified
        return Resource(
            uri=file_uri(spelled),
            mime_type=media.mime_type,
            # A name that is not UTF-8 stands exactly in the URI; here it is for people.
            name=name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            annotations=None if modified is None else Annotations(last_modified=modified),
            text=media.text if isinstance(media, TextMedia) else None,
            blob=snapshot.data if isinstance(media, BinaryMedia) else None,
        )

    def _expanded(self, found: Found, expansion: Expansion, location: Location) -> Resolution:
        declaration = self._declaration
        resources = tuple(self._taken(found, expansion))
        notices = tuple(failures.left_out(declaration, expansion.left_out, found.grounds.base))
        if resources:
            return Resolution(resources=resources, notices=notices)
        if expansion.excluded_by is not None:
            excluded = failures.all_excluded(declaration, expansion.excluded_by)
            return Resolution(resources=(), notices=(excluded, *notices))
        raise failures.nothing_found(declaration, location, expansion)

    def _taken(self, found: Found, expansion: Expansion) -> Iterator[Resource]:
        """What can be sent of the files that were found; the others are left out."""
        total = 0
        for real in found.files:
            self._check()
            try:
                snapshot, media = self._read(real, found.grounds)
            except NotAFileError:
                expansion.leave_out(real, "neither a file nor a directory")
                continue
            except TooLargeError as error:
                self._refuse_large(real, error)
                expansion.leave_out(real, _UNSENDABLE)
                continue
            except OSError as error:
                expansion.leave_out(real, error.strerror or str(error))
                continue
            total += len(snapshot.data)
            if total > TOTAL * self._context.max_bytes:
                raise failures.too_much(self._declaration, TOTAL * self._context.max_bytes)
            if isinstance(media, UnsupportedMedia):
                expansion.leave_out(real, _UNSENDABLE)
            else:
                yield self._resource(real, snapshot, media)

    def _refuse_large(self, real: str, error: TooLargeError) -> None:
        if error.may_be_sent:
            shown = failures.shown(Path(real), self._context)
            raise failures.too_large(self._declaration, shown, error.size, self._context) from None


class FileHandler:
    """`file`: a file as it is, a directory with everything below it, a glob."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Relative to the root for what lies in it, else absolute; names in the file system's case, in NFC.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        names = Names()
        return declared_uri(locate(uri, context, names), context, names)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read in a thread of its own: a file system that hangs must not hang what cancels this.

        Raises:
            AttachmentError: see the port.
        """
        of_files = [exclude for exclude in excludes if exclude.uri.startswith("file:")]
        return await in_thread(lambda check: Reading(declaration, context, of_files, check).resolve())

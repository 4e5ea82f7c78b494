"""The `file` scheme: files, directories and globs, with suggestions for paths that do not exist."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from jp.attachment.base import (
    ANY_DEPTH,
    AttachmentError,
    Declaration,
    MissingSourceError,
    Resolution,
    ResolveContext,
    format_size,
    run_in_thread,
)
from jp.attachment.file_paths import (
    Location,
    Names,
    NotAFileError,
    PathPattern,
    Snapshot,
    TooLargeError,
    declared_uri,
    decode,
    joined,
    locate,
    parts_below,
    parts_of,
    read,
    real_path,
)
from jp.attachment.file_walk import Exclusion, Expansion, Walk, WalkBounds, is_never_entered
from jp.attachment.media import BinaryMedia, Media, TextMedia, UnsupportedMedia, identify
from jp.conversation.resource import Annotations, Resource, file_uri
from jp.remedies import Ask, Option, phrase
from jp.suggestions import MIN_SIMILARITY


def similarity(one: str, other: str) -> float:
    """Return the similarity of two file names, 0 to 1, ignoring case. An equal extension counts little."""
    from difflib import SequenceMatcher  # imported only after a name was not found

    stems = (one.casefold().rpartition("."), other.casefold().rpartition("."))
    first, second = (stem or extension for stem, _, extension in stems)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


_NAMES_COMPARED = 5_000
_NAMES_WALKED = 5_000
_MOST = 2


def suggested_paths(path: str, context: ResolveContext) -> list[Path]:
    """Return up to two suggestions for `path`, which does not exist, the best first.

    A name that differs only in case comes before the same name elsewhere in the root, and that before a name with a
    typing error. The number of names that are compared is bounded.
    """
    place = first_missing(path)
    names = _names(place.parent)
    certain = [place.parent / name for name in names if name.casefold() == place.name.casefold()]
    certain += [found for found in _elsewhere(path, place.parent, context) if found not in certain]
    if certain:
        return certain[:_MOST]
    scores = [(similarity(place.name, name), name) for name in names]
    likeliest = max(scores, default=(0.0, ""), key=lambda scored: scored[0])
    return [place.parent / likeliest[1]] if likeliest[0] >= MIN_SIMILARITY else []


def first_missing(path: str) -> Path:
    """Return the first part of `path` that does not exist; its parent is a directory."""
    place = Path(path)
    while not place.parent.is_dir():
        place = place.parent
    return place


def _names(directory: Path) -> Sequence[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in islice(entries, _NAMES_COMPARED))
    except OSError:
        return ()


def _elsewhere(path: str, near: Path, context: ResolveContext) -> list[Path]:
    """Return files with the same name in the root, the most similar path first."""
    root = os.path.realpath(context.root)
    start = os.path.realpath(near)
    if parts_below(start, root) is None:
        return []
    from difflib import SequenceMatcher  # only where a name was missed

    name = Path(path).name
    found = [found for found in _walked((start, root)) if found.name == name]
    return sorted(set(found), key=lambda place: (-SequenceMatcher(None, path, str(place)).ratio(), str(place)))


def _walked(starts: Sequence[str]) -> Iterator[Path]:
    """Yield paths below some directories, level by level, up to a bound, without hidden and ignored ones."""
    from jp.attachment.file_walk import IgnoreRules

    rules = IgnoreRules.around(starts[0], starts[-1])
    todo, seen, count = deque(starts), set[str](), 0
    while todo and count < _NAMES_WALKED:
        directory = todo.popleft()
        if directory in seen:
            continue
        seen.add(directory)
        for name, is_directory in _listed(directory, _NAMES_WALKED - count):
            count += 1
            if name.startswith(".") or rules.ignores(directory, name, is_directory=is_directory):
                continue
            if is_directory:
                todo.append(joined(directory, name))
            yield Path(directory, name)


def _listed(directory: str, most: int) -> list[tuple[str, bool]]:
    try:
        with os.scandir(directory) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, most)]
    except OSError:
        return []


_EXAMPLES = 3


def _missing(declaration: Declaration, path: str, context: ResolveContext) -> MissingSourceError:
    """Return the error for a `path` that does not exist; its hint suggests similar ones."""
    if Path(path).is_symlink():
        message = f"{declaration.written!r} is a link to {os.readlink(path)!r}, which does not exist"  # noqa: PTH115  text
        return MissingSourceError(message, hint="attach its target, or fix the link with `ln -sf`")
    return MissingSourceError(f"there is no file {declaration.written!r}", hint=_nearest(declaration, path, context))


def _nearest(declaration: Declaration, path: str, context: ResolveContext) -> str:
    relative = decode(declaration.uri.removeprefix("file:"))
    is_relative = not relative.startswith("/")
    if is_relative and context.cwd != context.root and os.path.lexists(context.cwd / relative):
        return f"A URI begins at {str(context.root)!r}; the plain path {relative!r} begins here."

    found = suggested_paths(path, context)
    if found:
        return f"did you mean {' or '.join(repr(displayed_path(place, context)) for place in found)}?"
    place = first_missing(path)
    return f"{displayed_path(place.parent, context)!r} has nothing called {place.name!r}."


def displayed_path(path: Path, context: ResolveContext) -> str:
    """Return `path` as a user would type it."""
    below = os.path.relpath(path, context.cwd)
    return str(path) if below.startswith("../") or below == ".." else below


def unreadable(declaration: Declaration, error: OSError) -> AttachmentError:
    """Return the error for a file that the operating system does not let jp read."""
    hint = "check its permissions with `ls -l`" if isinstance(error, PermissionError) else "check it with `ls -l`"
    return AttachmentError(f"cannot read {declaration.written!r}: {error.strerror or error}", hint=hint)


def _not_a_file(declaration: Declaration, mode: int) -> AttachmentError:
    """Return the error for something whose reading may never end."""
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    hint = phrase("pipe its output: `command | ", Ask(is_open=True), "`")
    return AttachmentError(f"{declaration.written!r} is {kind}, not a file", hint=hint)


def _too_large(declaration: Declaration, path: str, size: int, context: ResolveContext) -> AttachmentError:
    """Return the error for a file over the bound: `path` as displayed, one of those that `declaration` matches."""
    inside = "" if path == declaration.written else f" in {declaration.written!r}"
    message = f"{path!r}{inside} has {format_size(size)}; an attachment has at most {format_size(context.max_bytes)}"
    piped = phrase("Pipe a part of it: `head -c 100K FILE | ", Ask(is_open=True), "`")
    remedy = f"Exclude it with '!{path}'" if inside else piped
    return AttachmentError(message, hint=phrase(remedy, ", or raise 'conversation.max_attachment_bytes'"))


def nothing_found(declaration: Declaration, location: Location, found: Expansion) -> MissingSourceError:
    """Return the error for a directory or a glob without a file that can be attached."""
    written = declaration.written
    if found.skipped:
        reason, paths = next(iter(found.skipped.items()))
        message = f"{written!r} has nothing that can be attached"
        return MissingSourceError(message, hint=f"{Path(paths[0]).name!r} was skipped: {reason}")
    what = "matches no file" if location.tail else "holds no file to attach"
    return MissingSourceError(f"{written!r} {what}", hint=_why_nothing(location, found))


def _why_nothing(location: Location, found: Expansion) -> str:
    literal = Path(location.path, *map(decode, location.tail))
    if location.tail and os.path.lexists(literal):
        return f"To attach the file of this name, write {file_uri(str(literal))!r}."
    if found.has_directories:
        return "it matches directories only; append '/**' for everything below them"
    if found.has_ignored:
        return "directories and globs skip ignored files; a file's own path attaches it anyway"
    if location.tail:
        return "'**/*.py' matches at any depth, '*.py' in one directory; hidden files only match '.*'."
    return "directories skip hidden files; a file's own path attaches it anyway"


def _skip_notices(declaration: Declaration, skipped: Mapping[str, Sequence[str]], base: str) -> Iterator[str]:
    """Yield a notice for each reason, with a few of the paths."""
    for reason, paths in sorted(skipped.items()):
        examples = [repr(os.path.relpath(path, base)) for path in sorted(paths)[:_EXAMPLES]]
        more = f" and {len(paths) - _EXAMPLES:,} more" if len(paths) > _EXAMPLES else ""
        yield f"{declaration.written!r}: skipped {', '.join(examples)}{more}: {reason}"


TOTAL = 10
"""Maximum bytes of a declaration, as a multiple of the maximum of one resource."""

_UNSENDABLE = "neither text, an image nor a PDF"


class MatchedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a declaration matches: real paths in the order of their resources.

    `expansion` is set for a directory or a glob. `excluded_by` is the exclude, as written, that matched every file.
    """

    files: tuple[str, ...]
    bounds: WalkBounds
    expansion: Expansion | None = None
    excluded_by: str | None = None


class FileReader:
    """One resolution of a `file` declaration. `check` is called between files, and may raise to cancel."""

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
        """Return the resources of the declaration.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
        """
        location = locate(self._declaration.uri, self._context, self._names)
        with self._as_attachment_errors(location):
            found = self._found(location)
            if found.expansion is not None:
                return self._expanded(found, found.expansion, location)
            return self._single(found)

    def find(self) -> MatchedFiles:
        """Return the files that the declaration matches, without reading them.

        Raises:
            AttachmentError: the declaration matches nothing, too much, or something that is not accessible.
        """
        location = locate(self._declaration.uri, self._context, self._names)
        with self._as_attachment_errors(location):
            return self._found(location)

    @contextmanager
    def _as_attachment_errors(self, location: Location) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise _missing(self._declaration, location.path, self._context) from None
        except OSError as error:
            raise unreadable(self._declaration, error) from None

    def _found(self, location: Location) -> MatchedFiles:
        real = real_path(location.path, self._names)
        is_inside = parts_below(real, self._root) is not None
        if self._declaration.confined and not is_inside:
            where = f"{str(self._context.root)!r}, and declarations in files must not leave it"
            message = f"{self._declaration.written!r} leads outside of {where}"
            hint = phrase("a path given with `", Option.ATTACH, "` may lie anywhere")
            raise AttachmentError(message, hint=hint)
        # The real path of a pipe in /dev/fd does not exist, so use the given path.
        mode = os.stat(location.path).st_mode  # noqa: PTH116  paths are text here
        if self._declaration.typed and not location.tail:
            self._exclusion.give_way_to(location.path, real)
        if stat.S_ISDIR(mode):
            return self._walked(location, WalkBounds(base=real, anchor=self._root if is_inside else real))
        if location.tail:
            raise NotADirectoryError
        if not stat.S_ISREG(mode):
            raise _not_a_file(self._declaration, mode)
        exclude = self._exclusion.by(location.path) or self._exclusion.by(real)
        return MatchedFiles(
            files=(real,) if exclude is None else (),
            bounds=WalkBounds(base=real, anchor=self._root if is_inside else str(Path(real).parent)),
            excluded_by=exclude,
        )

    def _walked(self, location: Location, bounds: WalkBounds) -> MatchedFiles:
        if is_never_entered(bounds.base, self._root):
            message = f"{self._declaration.written!r} is in a directory that git or jp keeps for itself"
            raise AttachmentError(message, hint="attach single files by their paths")
        if (exclude := self._exclusion.by(location.path) or self._exclusion.by(bounds.base)) is not None:
            return MatchedFiles(files=(), bounds=bounds, excluded_by=exclude)
        walk = Walk(self._declaration, bounds, self._exclusion, self._root, max_files=self._context.max_files)

        def check() -> None:
            self._check()
            self._context.tell(f"looking into {self._declaration.written}: {walk.count:,} files")

        expansion = walk.run(PathPattern(location.tail or (ANY_DEPTH,)), check)
        files = tuple(sorted(expansion.files, key=lambda path: parts_of(self._names.spelled(path))))
        excluded_by = None if files else expansion.excluded_by
        return MatchedFiles(files=files, bounds=bounds, expansion=expansion, excluded_by=excluded_by)

    def _single(self, found: MatchedFiles) -> Resolution:
        if found.excluded_by is not None:
            return Resolution(resources=(), notices=(self._excluded(found.excluded_by),))
        real = found.files[0]
        try:
            snapshot, media = self._read(real, found.bounds)
        except NotAFileError as error:
            raise _not_a_file(self._declaration, error.mode) from None
        except TooLargeError as error:
            raise _too_large(self._declaration, self._declaration.written, error.size, self._context) from None
        if isinstance(media, UnsupportedMedia):
            raise AttachmentError(f"{self._declaration.written!r} is {media.reason}", hint=media.hint)
        return Resolution(resources=(self._resource(real, snapshot, media),))

    def _read(self, real: str, bounds: WalkBounds) -> tuple[Snapshot, Media]:
        snapshot = read(bounds.anchor, parts_below(real, bounds.anchor) or [], self._context.max_bytes)
        return snapshot, identify(snapshot.data, real)

    def _resource(self, real: str, snapshot: Snapshot, media: TextMedia | BinaryMedia) -> Resource:
        spelled = self._names.spelled(real)
        inside = parts_below(spelled, self._names.spelled(self._root))
        name = "/".join(inside) if inside else spelled
        modified = snapshot.last_modified
        return Resource(
            uri=file_uri(spelled),
            mime_type=media.mime_type,
            # The URI has the exact name; this one is only shown.
            name=name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            annotations=None if modified is None else Annotations(last_modified=modified),
            text=media.text if isinstance(media, TextMedia) else None,
            blob=snapshot.data if isinstance(media, BinaryMedia) else None,
        )

    def _expanded(self, found: MatchedFiles, expansion: Expansion, location: Location) -> Resolution:
        declaration = self._declaration
        resources = tuple(self._taken(found, expansion))
        notices = tuple(_skip_notices(declaration, expansion.skipped, found.bounds.base))
        if resources:
            return Resolution(resources=resources, notices=notices)
        if expansion.excluded_by is not None:
            return Resolution(resources=(), notices=(self._excluded(expansion.excluded_by), *notices))
        raise nothing_found(declaration, location, expansion)

    def _excluded(self, exclude: str) -> str:
        return f"{self._declaration.written!r} attaches nothing: {exclude!r} excludes it"

    def _taken(self, found: MatchedFiles, expansion: Expansion) -> Iterator[Resource]:
        """Yield the resources of the files that can be attached; skip the others."""
        total = 0
        for count, real in enumerate(found.files):
            self._check()
            self._context.tell(f"reading {self._declaration.written}: {count:,} of {len(found.files):,} files")
            try:
                snapshot, media = self._read(real, found.bounds)
            except NotAFileError:
                expansion.skip(real, "neither a file nor a directory")
                continue
            except TooLargeError as error:
                if error.may_be_sent:
                    path = displayed_path(Path(real), self._context)
                    raise _too_large(self._declaration, path, error.size, self._context) from None
                expansion.skip(real, _UNSENDABLE)
                continue
            except OSError as error:
                expansion.skip(real, error.strerror or str(error))
                continue
            total += len(snapshot.data)
            if total > TOTAL * self._context.max_bytes:
                message = f"{self._declaration.written!r} has more than {format_size(TOTAL * self._context.max_bytes)}"
                raise AttachmentError(message, hint="narrow it with a glob, or exclude a directory with '!DIRECTORY'")
            if isinstance(media, UnsupportedMedia):
                expansion.skip(real, _UNSENDABLE)
            else:
                yield self._resource(real, snapshot, media)


class FileHandler:
    """The handler of `file`: a file, a directory with everything below it, or a glob."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the declaration relative to the root, absolute outside of it; names in the file system's case, in NFC.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        names = Names()
        return declared_uri(locate(uri, context, names), context, names)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read the files in a thread, so that canceling works even if a file system hangs.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
        """
        of_files = [exclude for exclude in excludes if exclude.uri.startswith("file:")]
        return await run_in_thread(lambda check: FileReader(declaration, context, of_files, check).resolve())

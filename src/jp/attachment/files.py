"""The `file` scheme: files, directories and globs."""

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
from jp.suggestions import MIN_SIMILARITY


def similarity(one: str, other: str) -> float:
    """Return how alike two file names are, from 0 to 1, whatever their case: an equal extension counts little."""
    from difflib import SequenceMatcher  # only where a name was missed

    stems = (one.casefold().rpartition("."), other.casefold().rpartition("."))
    first, second = (stem or extension for stem, _, extension in stems)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


_NAMES_COMPARED = 5_000
_NAMES_WALKED = 5_000
_MOST = 2


def suggested_paths(path: str, context: ResolveContext) -> list[Path]:
    """At most two paths for `path`, which names nothing, the likeliest first; none where nothing is like it.

    A name that differs in case only comes before just this name elsewhere in the root, and that before a name with a
    typing error. Few names are looked at.
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
    """Return where `path` leads to nothing first: in a directory that is there."""
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
    """Return what has the same name in the root, that with the likest path first."""
    root = os.path.realpath(context.root)
    start = os.path.realpath(near)
    if parts_below(start, root) is None:
        return []
    from difflib import SequenceMatcher  # only where a name was missed

    name = Path(path).name
    found = [found for found in _walked((start, root)) if found.name == name]
    return sorted(set(found), key=lambda place: (-SequenceMatcher(None, path, str(place)).ratio(), str(place)))


def _walked(starts: Sequence[str]) -> Iterator[Path]:
    """Yield what lies below some directories, level by level, up to a bound; nothing that is hidden or ignored."""
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


def missing(declaration: Declaration, path: str, context: ResolveContext) -> MissingSourceError:
    """Nothing lies at `path`. The hint names what is closest to it."""
    if Path(path).is_symlink():
        message = f"{declaration.written!r} is a link to {os.readlink(path)!r}, and there is nothing"  # noqa: PTH115  text
        return MissingSourceError(message, hint="Attach what it should lead to, or mend it with `ln -sf`.")
    return MissingSourceError(f"there is no file {declaration.written!r}", hint=_nearest(declaration, path, context))


def _nearest(declaration: Declaration, path: str, context: ResolveContext) -> str:
    relative = decode(declaration.uri.removeprefix("file:"))
    is_relative = not relative.startswith("/")
    if is_relative and context.cwd != context.root and os.path.lexists(context.cwd / relative):
        return f"A URI begins at {str(context.root)!r}; the plain path {relative!r} begins here."

    found = suggested_paths(path, context)
    if found:
        return f"Did you mean {' or '.join(repr(displayed_path(place, context)) for place in found)}?"
    place = first_missing(path)
    return f"{displayed_path(place.parent, context)!r} has nothing called {place.name!r}."


def displayed_path(path: Path, context: ResolveContext) -> str:
    """`path` as a user would type it."""
    below = os.path.relpath(path, context.cwd)
    return str(path) if below.startswith("../") or below == ".." else below


def unreadable(declaration: Declaration, error: OSError) -> AttachmentError:
    """Return the operating system refused."""
    reason = error.strerror or str(error)
    return AttachmentError(f"cannot read {declaration.written!r}: {reason}", hint=_REMEDIES.get(type(error), _LOOK))


_LOOK = "Look at it with `ls -l`."
_REMEDIES: dict[type[OSError], str] = {PermissionError: "Check its permissions with `ls -l`."}


def not_a_file(declaration: Declaration, mode: int) -> AttachmentError:
    """It is there, but reading it might never end."""
    message = f"{declaration.written!r} is {_kind(mode)}, not a file"
    return AttachmentError(message, hint="Pipe what it gives: `command | jp query …`.")


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def too_large(declaration: Declaration, path: str, size: int, context: ResolveContext) -> AttachmentError:
    """Return one resource is over its bound: `path`, as shown, which is one of those that `declaration` stands for."""
    inside = "" if path == declaration.written else f" in {declaration.written!r}"
    message = f"{path!r}{inside} has {format_size(size)}; an attachment has at most {format_size(context.max_bytes)}"
    remedy = f"Leave it out with '!{path}'" if inside else "Pipe a part of it: `head -c 100K FILE | jp query …`"
    return AttachmentError(message, hint=f"{remedy}, or raise 'conversation.max_attachment_bytes'.")


def outside(declaration: Declaration, context: ResolveContext) -> AttachmentError:
    """Return what a file declared leads out of the root."""
    message = (
        f"{declaration.written!r} leads outside of {str(context.root)!r}, where declarations in files have to stay"
    )
    return AttachmentError(message, hint="A path given with `--attach` may lie anywhere.")


def too_much(declaration: Declaration, bound: int) -> AttachmentError:
    """Everything together is over its bound."""
    message = f"{declaration.written!r} stands for more than {format_size(bound)}"
    return AttachmentError(message, hint="Narrow it with a glob, or leave a directory out with '!DIRECTORY'.")


def nothing_found(declaration: Declaration, location: Location, found: Expansion) -> MissingSourceError:
    """Return a directory or a glob stands for no file that can be attached."""
    written = declaration.written
    if found.left_out:
        reason, paths = next(iter(found.left_out.items()))
        message = f"{written!r} holds nothing that can be attached"
        return MissingSourceError(message, hint=f"{Path(paths[0]).name!r} was left out: {reason}.")
    what = "matches no file" if location.tail else "holds no file to attach"
    return MissingSourceError(f"{written!r} {what}", hint=_why_nothing(location, found))


def _why_nothing(location: Location, found: Expansion) -> str:
    literal = Path(location.path, *map(decode, location.tail))
    if location.tail and os.path.lexists(literal):
        return f"A file of just this name is written {file_uri(str(literal))!r}."
    if found.has_directories:
        return "It matches directories only; '/**' at its end stands for everything below them."
    if found.has_ignored:
        return "What ignore files name is left out of directories and globs; a file's own path attaches it anyway."
    if location.tail:
        return "'**/*.py' matches at any depth, '*.py' in one directory; hidden files only match '.*'."
    return "Hidden files are left out of directories; a file's own path attaches it anyway."


def all_excluded(declaration: Declaration, exclude: str) -> str:
    """Return a notice: excludes took everything."""
    return f"{declaration.written!r} attaches nothing: {exclude!r} leaves it out"


def left_out(declaration: Declaration, paths_by_reason: Mapping[str, Sequence[str]], base: str) -> Iterator[str]:
    """Yield a notice for each reason, with a few of the paths."""
    for reason, paths in sorted(paths_by_reason.items()):
        examples = [repr(os.path.relpath(path, base)) for path in sorted(paths)[:_EXAMPLES]]
        more = f" and {len(paths) - _EXAMPLES:,} more" if len(paths) > _EXAMPLES else ""
        yield f"{declaration.written!r}: left out {', '.join(examples)}{more}: {reason}"


TOTAL = 10
"""Most bytes of a declaration, as a multiple of the bound of one resource."""

_UNSENDABLE = "neither text, an image nor a PDF"


class MatchedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a declaration stands for: real paths, in the order in which they are attached.

    `expansion` is there for a directory or a glob. `excluded_by` is the exclude, as written, that has left nothing.
    """

    files: tuple[str, ...]
    grounds: WalkBounds
    expansion: Expansion | None = None
    excluded_by: str | None = None


class FileReader:
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
        """Return the resources that the declaration names. See the port.

        Raises:
            AttachmentError: see the port.
        """
        location = locate(self._declaration.uri, self._context, self._names)
        with self._in_words(location):
            found = self._found(location)
            if found.expansion is not None:
                return self._expanded(found, found.expansion, location)
            return self._single(found)

    def find(self) -> MatchedFiles:
        """Return which files the declaration names; none of them is read.

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
            raise missing(self._declaration, location.path, self._context) from None
        except OSError as error:
            raise unreadable(self._declaration, error) from None

    def _found(self, location: Location) -> MatchedFiles:
        real = real_path(location.path, self._names)
        is_inside = parts_below(real, self._root) is not None
        if self._declaration.confined and not is_inside:
            raise outside(self._declaration, self._context)
        # Asked by the path as given: where a descriptor's own name in /dev/fd is a pipe, its real path is nothing.
        mode = os.stat(location.path).st_mode  # noqa: PTH116  paths are text here
        if self._declaration.typed and not location.tail:
            self._exclusion.give_way_to(location.path, real)
        if stat.S_ISDIR(mode):
            return self._walked(location, WalkBounds(base=real, anchor=self._root if is_inside else real))
        if location.tail:
            raise NotADirectoryError
        if not stat.S_ISREG(mode):
            raise not_a_file(self._declaration, mode)
        exclude = self._exclusion.by(location.path) or self._exclusion.by(real)
        return MatchedFiles(
            files=(real,) if exclude is None else (),
            grounds=WalkBounds(base=real, anchor=self._root if is_inside else str(Path(real).parent)),
            excluded_by=exclude,
        )

    def _walked(self, location: Location, grounds: WalkBounds) -> MatchedFiles:
        if is_never_entered(grounds.base, self._root):
            message = f"{self._declaration.written!r} lies in what git or jp keeps for itself"
            raise AttachmentError(message, hint="Attach a file of it by its own path.")
        if (exclude := self._exclusion.by(location.path) or self._exclusion.by(grounds.base)) is not None:
            return MatchedFiles(files=(), grounds=grounds, excluded_by=exclude)
        walk = Walk(self._declaration, grounds, self._exclusion, self._root)
        expansion = walk.run(PathPattern(location.tail or (ANY_DEPTH,)), self._check)
        files = tuple(sorted(expansion.files, key=lambda path: parts_of(self._names.spelled(path))))
        excluded_by = None if files else expansion.excluded_by
        return MatchedFiles(files=files, grounds=grounds, expansion=expansion, excluded_by=excluded_by)

    def _single(self, found: MatchedFiles) -> Resolution:
        if found.excluded_by is not None:
            return Resolution(resources=(), notices=(all_excluded(self._declaration, found.excluded_by),))
        real = found.files[0]
        try:
            snapshot, media = self._read(real, found.grounds)
        except NotAFileError as error:
            raise not_a_file(self._declaration, error.mode) from None
        except TooLargeError as error:
            shown = self._declaration.written
            raise too_large(self._declaration, shown, error.size, self._context) from None
        if isinstance(media, UnsupportedMedia):
            raise AttachmentError(f"{self._declaration.written!r} is {media.reason}", hint=media.hint)
        return Resolution(resources=(self._resource(real, snapshot, media),))

    def _read(self, real: str, grounds: WalkBounds) -> tuple[Snapshot, Media]:
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

    def _expanded(self, found: MatchedFiles, expansion: Expansion, location: Location) -> Resolution:
        declaration = self._declaration
        resources = tuple(self._taken(found, expansion))
        notices = tuple(left_out(declaration, expansion.left_out, found.grounds.base))
        if resources:
            return Resolution(resources=resources, notices=notices)
        if expansion.excluded_by is not None:
            excluded = all_excluded(declaration, expansion.excluded_by)
            return Resolution(resources=(), notices=(excluded, *notices))
        raise nothing_found(declaration, location, expansion)

    def _taken(self, found: MatchedFiles, expansion: Expansion) -> Iterator[Resource]:
        """Yield what can be sent of the files that were found; the others are left out."""
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
                raise too_much(self._declaration, TOTAL * self._context.max_bytes)
            if isinstance(media, UnsupportedMedia):
                expansion.leave_out(real, _UNSENDABLE)
            else:
                yield self._resource(real, snapshot, media)

    def _refuse_large(self, real: str, error: TooLargeError) -> None:
        if error.may_be_sent:
            path = displayed_path(Path(real), self._context)
            raise too_large(self._declaration, path, error.size, self._context) from None


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
        return await run_in_thread(lambda check: FileReader(declaration, context, of_files, check).resolve())

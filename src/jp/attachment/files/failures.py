"""Errors about paths, with the file that may have been meant."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, ResolveContext
from jp.attachment.files.expansion import Expansion
from jp.attachment.files.location import Location, parts_below
from jp.attachment.files.paths import decode, joined
from jp.conversation.resource import file_uri
from jp.likeness import ALIKE


def alikeness(one: str, other: str) -> float:
    """How alike two names of files are, from 0 to 1, whatever their case: an extension that agrees says little."""
    from difflib import SequenceMatcher  # only where a name was missed

    stems = (one.casefold().rpartition("."), other.casefold().rpartition("."))
    first, second = (stem or extension for stem, _, extension in stems)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


_NAMES_COMPARED = 5_000
_NAMES_WALKED = 5_000
_MOST = 2


def proposals(path: str, context: ResolveContext) -> list[Path]:
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
    scores = [(alikeness(place.name, name), name) for name in names]
    likeliest = max(scores, default=(0.0, ""), key=lambda scored: scored[0])
    return [place.parent / likeliest[1]] if likeliest[0] >= ALIKE else []


def first_missing(path: str) -> Path:
    """Where `path` leads to nothing first: in a directory that is there."""
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
    """What has the same name in the root, that with the likest path first."""
    root = os.path.realpath(context.root)
    start = os.path.realpath(near)
    if parts_below(start, root) is None:
        return []
    from difflib import SequenceMatcher  # only where a name was missed

    name = Path(path).name
    found = [found for found in _walked((start, root)) if found.name == name]
    return sorted(set(found), key=lambda place: (-SequenceMatcher(None, path, str(place)).ratio(), str(place)))


def _walked(starts: Sequence[str]) -> Iterator[Path]:
    """What lies below some directories, level by level, up to a bound; nothing that is hidden or ignored."""
    from jp.attachment.files.expansion import IgnoreRules

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


_UNIT = 1024
_EXAMPLES = 3


def in_units(size: int) -> str:
    """A number of bytes as people read it."""
    if size < _UNIT:
        return f"{size} bytes"
    amount, unit = size / _UNIT, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if amount < _UNIT:
            break
        amount, unit = amount / _UNIT, larger
    return f"{amount:,.1f} {unit}"


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

    found = proposals(path, context)
    if found:
        return f"Did you mean {' or '.join(repr(shown(place, context)) for place in found)}?"
    place = first_missing(path)
    return f"{shown(place.parent, context)!r} has nothing called {place.name!r}."


def shown(path: Path, context: ResolveContext) -> str:
    """`path` as a user would type it."""
    below = os.path.relpath(path, context.cwd)
    return str(path) if below.startswith("../") or below == ".." else below


def unreadable(declaration: Declaration, error: OSError) -> AttachmentError:
    """The operating system refused."""
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
    """One resource is over its bound: `path`, as shown, which is one of those that `declaration` stands for."""
    inside = "" if path == declaration.written else f" in {declaration.written!r}"
    message = f"{path!r}{inside} has {in_units(size)}; an attachment has at most {in_units(context.max_bytes)}"
    remedy = f"Leave it out with '!{path}'" if inside else "Pipe a part of it: `head -c 100K FILE | jp query …`"
    return AttachmentError(message, hint=f"{remedy}, or raise 'conversation.max_attachment_bytes'.")


def outside(declaration: Declaration, context: ResolveContext) -> AttachmentError:
    """What a file declared leads out of the root."""
    message = (
        f"{declaration.written!r} leads outside of {str(context.root)!r}, where declarations in files have to stay"
    )
    return AttachmentError(message, hint="A path given with `--attach` may lie anywhere.")


def too_much(declaration: Declaration, bound: int) -> AttachmentError:
    """Everything together is over its bound."""
    message = f"{declaration.written!r} stands for more than {in_units(bound)}"
    return AttachmentError(message, hint="Narrow it with a glob, or leave a directory out with '!DIRECTORY'.")


def nothing_found(declaration: Declaration, location: Location, found: Expansion) -> MissingSourceError:
    """A directory or a glob stands for no file that can be attached."""
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
    """A notice: excludes took everything."""
    return f"{declaration.written!r} attaches nothing: {exclude!r} leaves it out"


def left_out(declaration: Declaration, paths_by_reason: Mapping[str, Sequence[str]], base: str) -> Iterator[str]:
    """A notice for each reason, with a few of the paths."""
    for reason, paths in sorted(paths_by_reason.items()):
        examples = [repr(os.path.relpath(path, base)) for path in sorted(paths)[:_EXAMPLES]]
        more = f" and {len(paths) - _EXAMPLES:,} more" if len(paths) > _EXAMPLES else ""
        yield f"{declaration.written!r}: left out {', '.join(examples)}{more}: {reason}"

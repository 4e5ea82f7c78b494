"""What is wrong with a path, in words for a person."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, ResolveContext
from jp.attachment.files.expansion import Expansion
from jp.attachment.files.location import Location
from jp.attachment.uri import decode
from jp.conversation.uri import file_uri

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
    from jp.attachment.files.proposals import first_missing, proposals

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

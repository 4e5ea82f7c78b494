"""What a handle names: any raw content of one log, and of no other."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from jp.compaction.log_contents import LogContent, recallable
from jp.context.handles import SHORTEST, assign_handles, look_up
from jp.conversation.entries import AnyEntry
from jp.errors import UsageError

_HANDLE = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")
_CHECKSUM = "sha256:"
_MOST_NAMED = 10


class UnknownHandleError(UsageError):
    """A handle names nothing."""

    kind = "unknown_handle"


class AmbiguousHandleError(UsageError):
    """A beginning of several handles."""

    kind = "ambiguous_handle"


class NamedContent(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a log: its checksum, the handle that stand-ins have for it, and where it was met first."""

    sha256: str
    handle: str
    content: LogContent


def find_content(wanted: str, entries: Iterable[AnyEntry]) -> NamedContent:
    """What `wanted` names: a handle that stands in a view, or a beginning of only one checksum.

    Letters may be in either case, and `sha256:` may stand before it.

    Raises:
        UsageError: it is no handle, or names nothing or several contents of this log.
    """
    handle = wanted.strip().lower().removeprefix(_CHECKSUM)
    if _HANDLE.fullmatch(handle) is None:
        raise UsageError(f"{wanted!r} is no handle", hint=f"a handle has {SHORTEST} to 64 digits, such as 0123abcd")
    contents = recallable(entries)
    assigned = assign_handles(contents)
    found = look_up(handle, assigned)
    if found is None:
        raise _not_found(handle, contents)
    names = {sha256: name for name, sha256 in assigned.items()}
    return NamedContent(sha256=found, handle=names[found], content=contents[found])


def _not_found(handle: str, checksums: Iterable[str]) -> UsageError:
    alike = [sha256 for sha256 in checksums if sha256.startswith(handle)]
    if not alike:
        hint = "`jp conversation context` lists handles of what is large; --id names another conversation"
        return UnknownHandleError(f"nothing in this conversation has the handle {handle!r}", hint=hint)
    named = [sha256[: _telling(sha256, alike)] for sha256 in alike[:_MOST_NAMED]]
    message = f"{len(alike)} contents of this conversation have handles that begin with {handle!r}"
    return AmbiguousHandleError(message, hint=f"write more digits: {', '.join(named)}")


def _telling(sha256: str, others: Iterable[str]) -> int:
    """How many digits of `sha256` no other one begins with."""
    length = SHORTEST
    for other in others:
        while other != sha256 and other.startswith(sha256[:length]):
            length += 1
    return length

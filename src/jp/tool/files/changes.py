"""A change of a file's content, planned and then made; what a person was shown of it is what is made."""

from __future__ import annotations

import hashlib

import msgspec

from jp.conversation.entries import Facts
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import said
from jp.tool.files.difference import difference
from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import Content, in_words, legible, parent_of
from jp.tool.files.territory import Place
from jp.tool.files.writing import replace

MOST_SHOWN = 200
"""So many lines of a diff the model is shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has, and what it is to have."""

    place: Place
    known: Content
    old: str
    new: str

    def diff(self) -> str:
        """Return the change as a unified diff, whole: it is what a person consents to."""
        return difference(legible(self.place.shown), self.old, self.new).text()


class Previews:
    """What was shown of calls before they ran, so that a file that somebody else has changed since is noticed.

    What calls of the same tool have made of it meanwhile, one after the other, was shown too.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, str] = {}
        self._made: dict[str, list[str]] = {}

    def remember(self, invocation: ToolInvocation, known: Content) -> None:
        """Keep in mind what the file had when the call was shown."""
        self._shown[_identity(invocation)] = _checksum(known.data)

    def require_same(self, invocation: ToolInvocation, place: Place, known: Content) -> None:
        """See that a file has what it had when the call was shown, if it was.

        Raises:
            FileAccessError: it has not.
        """
        current = _checksum(known.data)
        shown = self._shown.pop(_identity(invocation), current)
        made_since = self._made.get(place.path, [])
        if shown == current or (shown in made_since and made_since[-1] == current):
            return
        raise FileAccessError(
            f"{place.written!r} has changed since this call was shown, so nothing was written; read it again"
        )

    def made(self, place: Place, old: bytes, new: bytes) -> None:
        """Keep in mind that a call has made the one content of the other."""
        since = self._made.setdefault(place.path, [])
        if not since or since[-1] != _checksum(old):
            since[:] = [_checksum(old)]
        since.append(_checksum(new))


def made(change: Change) -> ToolOutput:
    """Make the change, whole or not at all.

    Raises:
        FileAccessError: the file is not what is known of it any more, or cannot be written.
    """
    place = change.place
    with in_words(place, "write"), parent_of(place) as directory:
        replace(directory, place, change.new.encode(), known=change.known)
    path = legible(place.shown)
    found = difference(path, change.old, change.new)
    facts = Facts(kind="patch", path=path, lines=f"{found.first}-{found.last}")
    return ToolOutput(content=said(f"Changed {path!r}:\n{found.text(MOST_SHOWN)}"), facts=facts)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _identity(invocation: ToolInvocation) -> bytes:
    return msgspec.json.encode((str(invocation.root), invocation.arguments), order="sorted")

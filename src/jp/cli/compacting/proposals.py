"""Proposals: overlays that a model wrote and nobody has accepted yet. They lie outside of the log, and change nothing.

One holds for the raw entries of the turns that it is about: where these have changed since, it is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.compaction.fact_lines import nonce_of
from jp.compaction.overlays import turns_covered
from jp.conversation.codec import encode
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.reverts import undone
from jp.conversation.turns import Placement, divide
from jp.errors import JpError, StorageError, UsageError, reason_of
from jp.reading import read_beginning
from jp.workspace.files import make_directories, replace_file

_VERSION = 1
_ID_DIGITS = 12
_MOST_BYTES = 16 * 1024 * 1024


class StaleProposalError(JpError):
    """The turns are not what they were when it was proposed to compact them."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What was proposed for a conversation, and the digest of the turns that it is about.

    `nonce` is the one in the marks of its summaries.
    """

    version: int
    conversation: str
    digest: str
    overlays: tuple[Compaction, ...]
    nonce: str = ""


class Proposals:
    """The proposals in a directory of the user's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, conversation: str, overlays: Sequence[Compaction], entries: Sequence[AnyEntry]) -> str:
        """Keep a proposal; its id.

        Raises:
            StorageError: it could not be written.
        """
        digest = digest_of(entries, overlays)
        proposal = Proposal(
            version=_VERSION,
            conversation=conversation,
            digest=digest,
            overlays=tuple(overlays),
            nonce=nonce_of(entries),
        )
        data = msgspec.json.encode(proposal)
        identity = hashlib.sha256(data).hexdigest()[:_ID_DIGITS]
        path = self._path(identity)
        make_directories(path.parent, private=True)
        replace_file(path, data)
        return identity

    def read(self, identity: str, conversation: str, entries: Sequence[AnyEntry]) -> tuple[Compaction, ...]:
        """The overlays of a proposal for `conversation`, whose stream `entries` is.

        Raises:
            UsageError: there is none of this id, or it is for another conversation.
            StaleProposalError: the turns have changed since.
        """
        proposal = self._read(identity)
        if proposal.conversation != conversation:
            raise UsageError(
                f"proposal {identity!r} is for conversation {proposal.conversation!r}",
                hint=f"`jp conversation compact --apply {identity} {proposal.conversation}` applies it there",
            )
        if digest_of(entries, proposal.overlays) != proposal.digest:
            raise StaleProposalError(
                f"the turns have changed since {identity!r} was proposed, so it is not applied",
                hint="have another one made: `jp conversation compact --propose`",
            )
        return tuple(_marked(overlay, proposal.nonce, nonce_of(entries)) for overlay in proposal.overlays)

    def forget(self, identity: str) -> None:
        """Take a proposal away."""
        with suppress(OSError):
            self._path(identity).unlink()

    def _read(self, identity: str) -> Proposal:
        hint = "`jp conversation compact --propose` makes one, and says its id"
        if not identity.isalnum():
            raise UsageError(f"{identity!r} is no proposal", hint=hint)
        try:
            proposal = msgspec.json.decode(read_beginning(self._path(identity), _MOST_BYTES), type=Proposal)
        except FileNotFoundError:
            raise UsageError(f"there is no proposal {identity!r}", hint=hint) from None
        except (OSError, ValueError, RecursionError) as error:
            raise StorageError(f"the proposal {identity!r} cannot be read: {reason_of(error)}", hint=hint) from None
        if proposal.version != _VERSION:
            raise UsageError(f"the proposal {identity!r} is of another version of jp", hint=hint)
        return proposal

    def _path(self, identity: str) -> Path:
        return self._directory / f"{identity}.json"


def _marked(overlay: Compaction, before: str, now: str) -> Compaction:
    """The overlay with the nonce of its log: that of an original is another one until something is written."""
    summary = overlay.summary
    if summary is None or not before or before == now:
        return overlay
    state = msgspec.json.encode(summary.state).replace(before.encode(), now.encode())
    return replace(
        overlay,
        summary=replace(summary, text=summary.text.replace(before, now), state=msgspec.json.decode(state)),
    )


def digest_of(entries: Sequence[AnyEntry], overlays: Sequence[Compaction]) -> str:
    """Return the sha256 of what `overlays` were made from: the raw entries of their turns, less what was undone.

    A summary takes over what earlier ones of the same turns required, so those in force count, too.
    """
    division = divide(entries)
    gone = undone(entries)
    numbers = {turn.id: turn.number for turn in division.turns if turn.id}
    found = hashlib.sha256()
    for overlay in overlays:
        placement = Placement(compaction=overlay, turn=len(division.turns) - 1, events=0)
        first, last = turns_covered(placement, numbers)
        for turn in division.turns[first : last + 1]:
            for entry in () if turn.id in gone else turn.entries:
                found.update(encode(entry) + b"\n")
        for earlier in division.placements if overlay.summary is not None else ():
            begins, ends = turns_covered(earlier, numbers)
            if earlier.compaction.summary is not None and first <= ends and begins <= last:
                found.update(b"" if earlier.compaction.id in gone else earlier.compaction.id.encode() + b"\n")
        found.update(b"\0")
    return found.hexdigest()

"""What was sent, as hashes: the trail by which a broken prompt cache is explained. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from jp.conversation.entries import AnyEntry, CycleEnd, Digests
from jp.provider.base import Sections

DIGEST_CHARS = 16


def _digest(items: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(len(item).to_bytes(8))
        digest.update(item)
    return digest.hexdigest()[:DIGEST_CHARS]


def message_digests(entries: Iterable[AnyEntry]) -> tuple[str, ...]:
    """The hashes of every message of the newest request in a stream."""
    messages: tuple[str, ...] = ()
    for entry in entries:
        if isinstance(entry, CycleEnd):
            messages = messages[: entry.digests.kept] + entry.digests.messages
    return messages


def digests_of(sections: Sections, before: Sequence[str]) -> Digests:
    """The digests of a request, as the log keeps them after one whose messages hash to `before`."""
    messages = [_digest(blocks) for blocks in sections.messages]
    kept = 0
    while kept < min(len(messages), len(before)) and messages[kept] == before[kept]:
        kept += 1
    return Digests(
        system=_digest(sections.system),
        tools=_digest(sections.tools),
        kept=kept,
        messages=tuple(messages[kept:]),
        settings=_digest(sections.settings) if sections.settings else "",
    )

"""What is said of a conversation without opening it, in a word for a person and in fields for a program."""

from __future__ import annotations

from jp.cli.labels import label_text
from jp.cli.moments import ago
from jp.conversation.ids import ConversationId
from jp.workspace.listing import ConversationInfo
from jp.workspace.stamp import seconds_of, timestamp


def marks(info: ConversationInfo, *, now: float) -> str:
    """Whatever sets a conversation apart from others: `local, expires in 5 h, area=lexer`. Pinned ones expire never."""
    metadata = info.metadata
    words = [
        word
        for word, is_so in (
            ("local", info.local),
            ("pinned", metadata.pinned_at is not None),
            ("archived", metadata.archived_at is not None),
        )
        if is_so
    ]
    if metadata.expires_at is not None and metadata.pinned_at is None:
        words.append(expiry_text(metadata.expires_at, now=now))
    return ", ".join([*words, *(label_text(name, metadata.labels[name]) for name in sorted(metadata.labels))])


def expiry_text(expires_at: str, *, now: float) -> str:
    """When a conversation expires; `now` in seconds since the Unix epoch."""
    end = seconds_of(expires_at)
    if end is None:
        return f"expires at {expires_at}"
    return "expired" if end <= now else f"expires in {ago(end - now)}"


def as_value(info: ConversationInfo, active: ConversationId | None) -> dict[str, object]:
    """The fields that `--format json` has of a conversation."""
    metadata = info.metadata
    parent = metadata.parent
    return {
        "id": info.id,
        "title": metadata.title,
        "first_words": metadata.first_words,
        "active": info.id == active,
        "local": info.local,
        "last_activity": timestamp(int(info.last_activity * 1000)),
        "path": str(info.directory),
        "labels": dict(metadata.labels),
        "pinned_at": metadata.pinned_at,
        "archived_at": metadata.archived_at,
        "expires_at": metadata.expires_at,
        "parent": None
        if parent is None
        else {"conversation": parent.conversation, "from_turn": parent.from_turn, "to_turn": parent.to_turn},
    }

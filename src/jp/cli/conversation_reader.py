"""The conversations of a workspace, for attachments that are made of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from jp.cli.places import AnyWorkspace
from jp.cli.targets import title_of
from jp.conversation.entries import JsonObject
from jp.conversation.ids import ConversationId
from jp.workspace.stamp import timestamp

if TYPE_CHECKING:
    from jp.attachment.conversation.handler import StoredConversation
    from jp.workspace.listing import ConversationInfo


class WorkspaceConversations:
    """Reads conversations without their locks.

    Of the conversation `running` only the first `earlier` entries are seen: those before the turn that is being taken;
    None stands for all.
    """

    def __init__(
        self, workspace: AnyWorkspace, *, running: ConversationId | None = None, earlier: int | None = None
    ) -> None:
        self._workspace = workspace
        self._running = running
        self._earlier = earlier

    def ids(self) -> Collection[str]:
        """See `ConversationReader`."""
        return self._workspace.ids()

    def read(self, conversation: str) -> StoredConversation:
        """See `ConversationReader`."""
        from jp.attachment.conversation.handler import StoredConversation

        info = self._info(conversation)
        stream = self._workspace.read(info)
        is_running = info.id == self._running
        return StoredConversation(
            title=title_of(info),
            modified=timestamp(int(info.last_activity * 1000)),
            entries=stream.entries[: self._earlier] if is_running else stream.entries,
            load=stream.load,
            metadata=msgspec.to_builtins(info.metadata),
        )

    def base_config(self, conversation: str) -> JsonObject:
        """See `ConversationReader`."""
        return self._workspace.base_config(self._info(conversation))

    def _info(self, conversation: str) -> ConversationInfo:
        return self._workspace.get(ConversationId(conversation))

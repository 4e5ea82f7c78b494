"""Other conversations of the workspace, for attachments that name them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from jp.app.places import AnyWorkspace, open_session
from jp.app.targets import identify, title_of
from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, Resolution, ResolveContext
from jp.conversation.entries import JsonObject
from jp.conversation.ids import ConversationId
from jp.errors import JpError
from jp.workspace.files import timestamp

if TYPE_CHECKING:
    from jp.attachment.conversation import StoredConversation
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
        from jp.attachment.conversation import StoredConversation

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


_NAMED = re.compile(r"jp:(?://)?(?P<target>last|prev|\.|@[^?]+)(?P<query>\?.*)?", re.DOTALL)


class NamedConversations:
    """The `jp` scheme, which `handler` reads by ids. A declaration holds the id that a target meant when it was made.

    `running` is the conversation of the turn, which is not the one that was used last.
    """

    def __init__(self, handler: AttachmentHandler, workspace: AnyWorkspace, running: ConversationId | None) -> None:
        self._handler = handler
        self._workspace = workspace
        self._running = running

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """See the port.

        Raises:
            AttachmentError: it is malformed, or a target in it means no conversation, or several.
        """
        found = _NAMED.fullmatch(uri)
        if found is None:
            return self._handler.canonical(uri, context)
        target = unquote(found["target"])
        session = open_session(self._workspace)
        try:
            conversation = identify(target, self._workspace, session, without=self._running)
        except JpError as error:
            raise AttachmentError(f"{uri!r}: {error.message}", hint=error.hint) from error
        return self._handler.canonical(f"jp:{conversation}{found['query'] or ''}", context)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """See the port."""
        return await self._handler.resolve(declaration, context, excludes=excludes)

"""Attachments of conversations that are named as targets: `jp:last`, `jp:prev`, `jp:.`, `jp:@LABEL`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, Resolution, ResolveContext
from jp.cli.places import AnyWorkspace, open_session
from jp.cli.targets import identify
from jp.conversation.ids import ConversationId
from jp.errors import JpError

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

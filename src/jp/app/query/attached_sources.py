"""Sources that `refresh_resource` reads: attachments as handlers give them, and copies as the view shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from jp.app.query.attachments import Schemes, leads_outside
from jp.attachment.base import AttachmentError, Declaration, Delivery, attributed_uris, scheme_of
from jp.compaction.fact_lines import FactLines
from jp.compaction.projection import newest_copy
from jp.config.model import ConversationConfig
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.resource import Resource
from jp.tool.base import Stream
from jp.tool.context_tools import KnownCopy

if TYPE_CHECKING:
    from jp.attachment.base import ResolveContext

_EXCLUDE = "!"


class AttachedSources:
    """See the port, `jp.tool.context_tools.Attachments`.

    `typed` are this turn's declarations: nobody has accepted them yet but by typing them. A file inside the root is
    read by its own URI. Whatever else is attached is read as it is declared, and only while it is: so it was trusted.
    """

    def __init__(self, schemes: Schemes, config: ConversationConfig, typed: Sequence[Declaration]) -> None:
        self._schemes = schemes
        self._config = config
        self._typed = {declaration.text: declaration for declaration in typed if not declaration.exclude}
        self._stand_ins = FactLines()

    async def resolve(self, uri: str, stream: Stream) -> Resource:
        """See the port.

        Raises:
            AttachmentError: see the port.
        """
        if scheme_of(uri) == "file" and self._is_inside(uri):
            itself = Declaration(uri=uri, written=uri)
            found = await self._read(uri, itself)
            return found or _raise(f"{uri!r} is not a file any more")
        request = _newest_request(uri, stream.entries)
        excludes = self._schemes.configured([text for text in request.attachments if text.startswith(_EXCLUDE)])
        declarations = list(self._declarations(uri, request))
        for declaration in declarations:
            found = await self._read(uri, declaration, excludes)
            if found is not None:
                return found
        if declarations:
            return _raise(f"{declarations[0].text!r} does not lead to {uri!r} any more")
        return _raise(f"{uri!r} is not declared as an attachment any more: the user can attach it again")

    def newest_copy(self, uri: str, stream: Stream) -> KnownCopy | None:
        """See the port.

        Raises:
            StorageError: see the port.
        """
        copy = newest_copy(uri, stream.entries, self._stand_ins)
        if copy is None:
            return None
        if copy.resource.formatted is not None and copy.resource.formatted_against is None:
            return None
        text = stream.load(copy.resource).text
        return None if text is None else KnownCopy(text=text, entry=copy.entry, place=copy.place)

    async def _read(self, uri: str, declaration: Declaration, excludes: Sequence[Declaration] = ()) -> Resource | None:
        handler = self._schemes.registry.handler(declaration.uri)
        resolution = await handler.resolve(declaration, self._context, excludes=excludes)
        return next((resource for resource in resolution.resources if resource.uri == uri), None)

    @property
    def _context(self) -> ResolveContext:
        return replace(self._schemes.context, max_bytes=self._config.max_attachment_bytes)

    def _is_inside(self, uri: str) -> bool:
        from jp.attachment.file_paths import CanonicalNames

        names = CanonicalNames()
        root = names.uri(names.real_path(str(self._context.root.absolute())))
        return uri.startswith(f"{root.rstrip('/')}/")

    def _declarations(self, uri: str, request: ChatRequest) -> Iterator[Declaration]:
        """Yield the declarations that attached `uri`, as far as it is still declared and may be read."""
        delivery = Delivery(
            turn=None, declarations=request.attachments, uris=tuple(resource.uri for resource in request.resources)
        )
        is_file = scheme_of(uri) == "file"
        for text in request.attachments:
            if scheme_of(text) != scheme_of(uri) or text not in self._config.attachments:
                continue
            declaration = self._typed.get(text) or self._schemes.configured([text])[0]
            if is_file:
                if not declaration.confined and leads_outside(declaration):
                    yield declaration
            elif uri in attributed_uris(text, delivery):
                yield declaration


def _raise(message: str) -> NoReturn:
    raise AttachmentError(message)


def _newest_request(uri: str, entries: Sequence[AnyEntry]) -> ChatRequest:
    """The newest request that has `uri` attached. There is one."""
    return next(
        entry
        for entry in reversed(entries)
        if isinstance(entry, ChatRequest) and any(resource.uri == uri for resource in entry.resources)
    )

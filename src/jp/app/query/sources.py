"""Sources of tools about the context: contents of the log, its history, and attached resources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from jp.app.query.attachments import AttachmentSchemes, leads_outside
from jp.attachment.base import AttachmentError, Declaration, Delivery, attributed_uris, scheme_of
from jp.compaction.fact_lines import StatusLineFormatter, nonce_of
from jp.compaction.log_contents import AmbiguousHandleError, HandleIndex, Leaf, find_content, recallable
from jp.compaction.projection import newest_copy
from jp.config.model import ConversationConfig
from jp.context.markers import assign_handles
from jp.conversation.entries import AnyEntry, ChatRequest, TurnStart
from jp.conversation.resource import AudioBlock, ImageBlock, Resource
from jp.errors import UsageError
from jp.tool.base import Stream, directory_of
from jp.tool.context_tools import FoundContent, FoundPassage, HandleError, KnownCopy
from jp.tool.toolbox import HISTORY_TOOLS

if TYPE_CHECKING:
    from jp.attachment.base import ResolveContext


class LogAddresses(HandleIndex):
    """The same names as in stand-ins. See `jp.tool.delivery.Addresses`."""

    def nonce(self, entries: Sequence[AnyEntry]) -> str:
        """See the port."""
        return nonce_of(entries)


def recalled(wanted: str, stream: Stream) -> FoundContent:
    """Return the content that the handle `wanted` names in `stream`.

    Raises:
        UsageError: it is no handle, or names nothing or several contents.
        StorageError: the content cannot be read.
    """
    named = find_content(wanted, stream.entries)
    content = named.content
    loaded = content if isinstance(content, Leaf) else stream.load(content)
    blob = loaded.blob if isinstance(loaded, (Resource, ImageBlock, AudioBlock)) else None
    text = None if isinstance(loaded, (ImageBlock, AudioBlock)) else loaded.text
    return FoundContent(
        handle=named.handle,
        sha256=named.sha256,
        data=(text or "").encode("utf-8", "surrogatepass") if blob is None else blob,
        is_text=blob is None,
        uri=content.uri if isinstance(content, Resource) else None,
        mime_type=content.mime_type if isinstance(content, (Resource, ImageBlock, AudioBlock)) else None,
    )


class RecalledContents:
    """The contents that the model recalls. See `jp.tool.context_tools.Contents`."""

    def find(self, handle: str, stream: Stream) -> FoundContent:
        """See the port.

        Raises:
            HandleError: see the port.
            StorageError: see the port.
        """
        try:
            return recalled(handle, stream)
        except AmbiguousHandleError as error:
            raise HandleError(f"{error.message}; {error.hint}") from error
        except UsageError as error:
            raise HandleError(error.message) from error


class IndexedHistory:
    """The content that the model searches. See `jp.tool.context_tools.History`.

    The index of a conversation that lies on disk is kept; of any other it is made in memory.
    """

    def search(self, query: str, limit: int, stream: Stream) -> Sequence[FoundPassage]:
        """See the port."""
        from jp.compaction.log_contents import search_plainly, searchable_passages
        from jp.workspace.layout import search_index_path

        # The log grows while other calls run.
        entries = tuple(stream.entries)
        directory = directory_of(stream)
        place = "" if directory is None else os.fspath(directory)
        try:
            from jp.workspace.search_index import NoFullTextSearchError, search_index
        except ImportError:
            found = search_plainly(entries, stream, query, limit, without=HISTORY_TOOLS)
        else:
            try:
                found = search_index(
                    search_index_path() if place else None,
                    place,
                    entries,
                    passages=lambda since: searchable_passages(entries, stream, without=HISTORY_TOOLS, since=since),
                    search=lambda index: index.search(query, [place], limit, skip=_newest_request(entries)),
                )
            except NoFullTextSearchError:
                found = search_plainly(entries, stream, query, limit, without=HISTORY_TOOLS)
        handles = {sha256: handle for handle, sha256 in assign_handles(recallable(entries)).items()}
        return [
            FoundPassage(
                handle=handles[one.sha256],
                turn=one.turn,
                about=one.about,
                offset=one.offset,
                size=one.size,
                text=one.text,
            )
            for one in found
        ]


def _newest_request(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """Return the ids of what the user wrote in the newest turn: the model has it before it."""
    found: set[str] = set()
    for entry in reversed(entries):
        if isinstance(entry, TurnStart):
            break
        if isinstance(entry, ChatRequest):
            found.add(entry.id)
    return frozenset(found)


_EXCLUDE = "!"


class AttachedSources:
    """See the port, `jp.tool.context_tools.Attachments`.

    `typed` are this turn's declarations: nobody has accepted them yet but by typing them. A file inside the root is
    read by its own URI. Whatever else is attached is read as it is declared, and only while it is: so it was trusted.
    """

    def __init__(self, schemes: AttachmentSchemes, config: ConversationConfig, typed: Sequence[Declaration]) -> None:
        self._schemes = schemes
        self._config = config
        self._typed = {declaration.text: declaration for declaration in typed if not declaration.exclude}
        self._status_formatter = StatusLineFormatter()

    async def resolve(self, uri: str, stream: Stream) -> Resource:
        """See the port.

        Raises:
            AttachmentError: see the port.
        """
        if scheme_of(uri) == "file" and self._is_inside(uri):
            itself = Declaration(uri=uri, written=uri)
            found = await self._read(uri, itself)
            return found or _raise(f"{uri!r} is not a file any more")
        if scheme_of(uri) == "clipboard":
            _raise(f"{uri!r} was read once: the user can attach the clipboard again")
        request = _request_with(uri, stream.entries)
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
        copy = newest_copy(uri, stream.entries, self._status_formatter)
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


def _request_with(uri: str, entries: Sequence[AnyEntry]) -> ChatRequest:
    """Return the newest request that has `uri` attached. There is one."""
    return next(
        entry
        for entry in reversed(entries)
        if isinstance(entry, ChatRequest) and any(resource.uri == uri for resource in entry.resources)
    )

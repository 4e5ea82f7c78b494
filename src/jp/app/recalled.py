"""Contents of a log by their handles, for people and for the model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from jp.compaction.fact_lines import nonce_of
from jp.compaction.log_contents import AmbiguousHandleError, Leaf, find_content, handles_of, recallable
from jp.context.markers import assign_handles
from jp.conversation.entries import AnyEntry, ChatRequest, TurnStart
from jp.conversation.resource import AudioBlock, ImageBlock, Resource
from jp.errors import UsageError
from jp.tool.base import Stream, directory_of
from jp.tool.context_tools import FoundContent, FoundPassage, HandleError
from jp.tool.toolbox import HISTORY_TOOLS


class LogAddresses:
    """The same names as in stand-ins. See `jp.tool.delivery.Addresses`."""

    def nonce(self, entries: Sequence[AnyEntry]) -> str:
        """See the port."""
        return nonce_of(entries)

    def handles(self, entries: Iterable[AnyEntry]) -> Mapping[str, str]:
        """See the port."""
        return handles_of(entries)


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

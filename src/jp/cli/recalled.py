"""Contents of a log by their handles, as they were: for people and for the model."""

from __future__ import annotations

from jp.compaction.log_contents import Leaf
from jp.compaction.recalling import AmbiguousHandleError, find_content
from jp.conversation.resource import AudioBlock, ImageBlock, Resource
from jp.errors import UsageError
from jp.tool.base import Stream
from jp.tool.recall import FoundContent, HandleError


def recalled(wanted: str, stream: Stream) -> FoundContent:
    """What the handle `wanted` names in `stream`.

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
    """What the model recalls. See `jp.tool.recall.Contents`."""

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

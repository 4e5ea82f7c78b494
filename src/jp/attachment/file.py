"""The `file` scheme: files, directories, globs."""

from __future__ import annotations

from collections.abc import Sequence

from jp.attachment.base import Declaration, Resolution, ResolveContext
from jp.attachment.location import declared_uri, locate
from jp.attachment.names import Names
from jp.attachment.reading import Reading


class _AbandonedError(Exception):
    """Nobody waits for the result any more."""


class _Stop:
    """Tells a thread that it may stop."""

    def __init__(self) -> None:
        self.is_requested = False

    def check(self) -> None:
        """Raise where the thread is to stop."""
        if self.is_requested:
            raise _AbandonedError


class FileHandler:
    """`file`: a file as it is, a directory with everything below it, a glob."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Relative to the root for what lies in it, else absolute; names in the file system's case, in NFC.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        names = Names()
        return declared_uri(locate(uri, context, names), context, names)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read in a thread of its own: a file system that hangs must not hang what cancels this.

        Raises:
            AttachmentError: see the port.
        """
        from anyio.to_thread import run_sync

        stop = _Stop()
        of_files = [exclude for exclude in excludes if exclude.uri.startswith("file:")]

        def read() -> Resolution:
            return Reading(declaration, context, of_files, stop.check).resolve()

        try:
            return await run_sync(read, abandon_on_cancel=True)
        finally:
            stop.is_requested = True

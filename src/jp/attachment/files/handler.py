"""The `file` scheme: files, directories, globs."""

from __future__ import annotations

from collections.abc import Sequence

from jp.attachment.abandoning import in_thread
from jp.attachment.base import Declaration, Resolution, ResolveContext
from jp.attachment.files.location import declared_uri, locate
from jp.attachment.files.names import Names
from jp.attachment.files.reading import Reading


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
        of_files = [exclude for exclude in excludes if exclude.uri.startswith("file:")]
        return await in_thread(lambda check: Reading(declaration, context, of_files, check).resolve())

"""What file tools know of files: what attachments and the workspace do. Loaded when a tool runs, not at the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jp.tool.files.surroundings import Ignored


class AttachmentNames:
    """See the port, `jp.tool.files.surroundings.FileSurroundings`."""

    def real_path(self, path: str) -> str:
        """See the port."""
        from jp.attachment.files.location import CanonicalNames

        return CanonicalNames().real_path(path)

    def uri(self, path: str) -> str:
        """See the port."""
        from jp.attachment.files.location import CanonicalNames

        return CanonicalNames().uri(path)

    def mime_type(self, path: str) -> str:
        """See the port."""
        from jp.attachment.media import text_type

        return text_type(path)

    def ignored(self, base: str, root: str) -> Ignored:
        """See the port."""
        from jp.attachment.files.ignore import IgnoreRules

        return IgnoreRules.around(base, root)

    def private(self) -> Sequence[str]:
        """See the port."""
        return private_directories()


def private_directories() -> Sequence[str]:
    """Return where jp keeps data (keys, trust, conversations), what is remembered, and the user's own configuration."""
    import os
    from contextlib import suppress

    from jp.config.places import user_directory
    from jp.errors import StorageError
    from jp.workspace.layout import user_cache_directory, user_data_directory

    directories = [] if (configuration := user_directory(os.environ)) is None else [configuration]
    # Without a home, nothing is kept.
    with suppress(StorageError):
        directories += [user_data_directory(), user_cache_directory()]
    return [str(directory) for directory in directories]

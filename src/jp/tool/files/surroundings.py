"""What file tools have to know that attachments and the workspace know already: a port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Ignored(Protocol):
    """What ignore files leave out of one walk."""

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        """Whether `name` in `directory`, a real path, is left out."""
        ...


class FileSurroundings(Protocol):
    """How files are named and which are left out: the same as for attachments, so that one file has one URI."""

    def real_path(self, path: str) -> str:
        """`path`, which is absolute, without symlinks, each name as its directory lists it.

        Raises:
            OSError: a name is too long.
        """
        ...

    def uri(self, path: str) -> str:
        """The canonical URI of a real path."""
        ...

    def mime_type(self, path: str) -> str:
        """Return the MIME type of a text file: that of an attachment of it, so that a request shows one type."""
        ...

    def ignored(self, base: str, root: str) -> Ignored:
        """The rules for a walk of `base` in the workspace `root`. Both are real paths."""
        ...

    def private(self) -> Sequence[str]:
        """The directories that jp keeps for itself outside of workspaces: keys, trust, other conversations."""
        ...

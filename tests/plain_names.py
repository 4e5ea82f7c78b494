"""Files as a file system that tells every two spellings apart has them, and nothing that is ignored."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

from jp.conversation.resource import file_uri


class Ignoring:
    """Leaves out the names that it is told, wherever they are."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        return name in self._names


class PlainNames:
    """Takes names as they are; `then` does with each real path what a test needs."""

    def __init__(
        self, then: Callable[[str], str] = str, *, ignored: Collection[str] = (), private: Sequence[str] = ()
    ) -> None:
        self._then = then
        self._ignored = ignored
        self._private = private

    def real_path(self, path: str) -> str:
        return self._then(os.path.realpath(path))

    def uri(self, path: str) -> str:
        return file_uri(path)

    def mime_type(self, path: str) -> str:
        return "text/x-python" if path.endswith(".py") else "text/plain"

    def ignored(self, base: str, root: str) -> Ignoring:
        return Ignoring(self._ignored)

    def private(self) -> Sequence[str]:
        return self._private

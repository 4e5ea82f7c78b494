"""Names as a file system that tells every two spellings apart has them."""

from __future__ import annotations

import os
from collections.abc import Callable

from jp.conversation.uri import file_uri


class PlainNames:
    """Takes names as they are; `then` does with each real path what a test needs."""

    def __init__(self, then: Callable[[str], str] = str) -> None:
        self._then = then

    def real_path(self, path: str) -> str:
        return self._then(os.path.realpath(path))

    def uri(self, path: str) -> str:
        return file_uri(path)

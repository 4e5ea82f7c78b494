"""Values that may be missing, as a template sees them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


class Optionals(dict[str, Any]):
    """Values of which those in `known` may be left out, all where it is None; a template then sees nothing.

    To ask for another one is an error.
    """

    def __init__(self, values: Mapping[str, Any], known: Collection[str] | None = None) -> None:
        super().__init__(values)
        self._known = None if known is None else frozenset(known)

    def __missing__(self, name: str) -> None:
        if self._known is not None and name not in self._known:
            raise KeyError(name)

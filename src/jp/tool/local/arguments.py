"""The arguments of a call, as a template sees them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jp.conversation.entries import JsonObject


class OptionalArguments(dict[str, Any]):
    """The arguments of a call. One that was declared and left out is nothing, one that was not declared an error."""

    def __init__(self, arguments: JsonObject, declared: Collection[str]) -> None:
        super().__init__(arguments)
        self._declared = frozenset(declared)

    def __missing__(self, name: str) -> None:
        if name not in self._declared:
            raise KeyError(name)

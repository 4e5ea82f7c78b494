"""Reasoning as OpenRouter details it: opaque items that stream in pieces and go back whole. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jp.conversation.entries import JsonObject

_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The types whose items come in pieces, and the field that grows."""

_LATEST = frozenset({"signature"})
"""Fields that are complete in the piece that has them."""


class Details:
    """The items of one answer, pieces of the same item joined."""

    def __init__(self) -> None:
        self._items: list[JsonObject] = []

    def add(self, pieces: Iterable[JsonObject]) -> None:
        """Take the items of one event; each is a piece of an earlier one, or a new one."""
        for piece in pieces:
            earlier = self._earlier(piece)
            if earlier is None:
                self._items.append(dict(piece))
            else:
                _grow(earlier, piece)

    @property
    def items(self) -> Sequence[JsonObject]:
        """What came, whole."""
        return self._items

    def _earlier(self, piece: JsonObject) -> JsonObject | None:
        """The item that a piece belongs to: of the same type and index, and not of another id."""
        if str(piece.get("type")) not in _GROWING:
            return None
        index = piece.get("index")
        # Without an index, only the item before it can be meant.
        candidates = self._items if index is not None else self._items[-1:]
        for item in reversed(candidates):
            if item.get("type") == piece.get("type") and item.get("index") == index:
                ids = [given for given in (item.get("id"), piece.get("id")) if given is not None]
                return item if ids[:1] == ids[-1:] else None
        return None


def _grow(item: JsonObject, piece: JsonObject) -> None:
    growing = _GROWING[item["type"]]
    for name, value in piece.items():
        if name == growing and isinstance(value, str) and isinstance(item.get(name), str):
            item[name] += value
        elif item.get(name) is None or (name in _LATEST and value):
            item[name] = value


def text_of(pieces: Iterable[JsonObject]) -> str:
    """What of the pieces can be read."""
    found = (piece.get(_GROWING.get(str(piece.get("type")), "")) for piece in pieces)
    return "".join(text for text in found if isinstance(text, str))

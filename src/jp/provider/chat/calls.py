"""The calls of one answer, put together from pieces that may lack ids, indices, types and order. Pure."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject
from jp.provider.strangers import UNREADABLE, text_of


class Function(msgspec.Struct):
    """What is called; `arguments` is JSON text as a string, or, from some servers, the JSON itself."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class CallPiece(msgspec.Struct):
    """A piece of a call, as it comes."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Call:
    """A call as it grows. It has begun once its name is known, and is known under `block` from then on."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.given_id = ""
        self.name = ""
        self.block: int | None = None
        self.waiting = ""
        self._pieces: list[str] = []

    def take(self, piece: CallPiece) -> None:
        """Add a piece: the first id and the first name hold; `waiting` is what is new of the arguments."""
        self.given_id = self.given_id or piece.id or ""
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            text = arguments_text(piece.function.arguments)
            self.waiting += text
            self._pieces.append(text)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are a JSON object: half a one never is."""
        try:
            msgspec.json.decode("".join(self._pieces), type=JsonObject)
        except UNREADABLE:
            return False
        return True


def arguments_text(raw: msgspec.Raw) -> str:
    """The text of arguments that came as a string of JSON, as JSON, or not at all."""
    if bytes(raw) == b"null":
        return ""
    try:
        return msgspec.json.decode(raw, type=str)
    except UNREADABLE:
        return text_of(raw)


class Calls:
    """The calls of one answer in the order of their beginnings."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def take(self, piece: CallPiece) -> Call:
        """Add a piece to the call that it belongs to, which may be a new one."""
        call = self._meant(piece)
        if call is None:
            call = Call(piece.index)
            self.calls.append(call)
        call.take(piece)
        return call

    def _meant(self, piece: CallPiece) -> Call | None:
        """By its index; where that is missing, by its id; where both are, the last one.

        Some servers give all calls the same index, or none, and send each in one piece: a name under another id begins
        a call, and so does a name without either after a call that is whole.
        """
        if piece.index is not None:
            found = next((call for call in reversed(self.calls) if call.index == piece.index), None)
        else:
            same = (call for call in self.calls if piece.id and call.given_id == piece.id)
            found = next(same, self.calls[-1] if self.calls else None)
        return None if found is not None and _begins_another(found, piece) else found


def _begins_another(call: Call, piece: CallPiece) -> bool:
    if piece.function is None or not piece.function.name:
        return False
    if piece.id and call.given_id:
        return piece.id != call.given_id
    return piece.index is None and bool(call.name) and call.is_whole

"""Which response of an original's stream answers which request: it knows only the provider's ids, which repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Kind = Literal["turn", "tool_request", "tool_response", "inquiry_request", "inquiry_response"]


class Link(msgspec.Struct, frozen=True):
    """An event that takes part: its position in the stream, what it is, and its id (none for the start of a turn)."""

    position: int
    kind: Kind
    identity: str = ""


def answered(links: Sequence[Link]) -> dict[int, int]:
    """The position of its request, by the position of a response or of a question to the user.

    Of requests with the same id, the oldest in the same turn that is still open is answered; then one that an earlier
    turn left open; then one that comes later. A question belongs to the newest call whose id its own begins with.
    """
    return {**_pairs(links, "tool_request", "tool_response"), **_pairs(links, *_INQUIRIES), **_askers(links)}


_INQUIRIES: tuple[Kind, Kind] = ("inquiry_request", "inquiry_response")


def _pairs(links: Sequence[Link], request: Kind, response: Kind) -> dict[int, int]:
    found: dict[int, int] = {}
    open_here: dict[str, list[int]] = {}
    open_before: dict[str, list[int]] = {}
    unmatched: list[Link] = []
    for link in links:
        if link.kind == "turn":
            _move(open_here, open_before)
        elif link.kind == request:
            open_here.setdefault(link.identity, []).append(link.position)
        elif link.kind == response:
            waiting = open_here.get(link.identity) or open_before.get(link.identity)
            if waiting:
                found[link.position] = waiting.pop(0)
            else:
                unmatched.append(link)
    _move(open_here, open_before)
    for link in unmatched:
        if waiting := open_before.get(link.identity):
            found[link.position] = waiting.pop(0)
    return found


def _move(source: dict[str, list[int]], target: dict[str, list[int]]) -> None:
    for identity, positions in source.items():
        target.setdefault(identity, []).extend(positions)
    source.clear()


def _askers(links: Sequence[Link]) -> dict[int, int]:
    found: dict[int, int] = {}
    calls: dict[str, int] = {}
    for link in links:
        if link.kind == "tool_request":
            calls[link.identity] = link.position
        elif link.kind == "inquiry_request":
            call = call_of(link.identity, calls)
            if call is not None:
                found[link.position] = calls[call]
    return found


def call_of(inquiry: str, calls: dict[str, int]) -> str | None:
    """The call whose id the id of an inquiry, `<call>.<question>`, begins with: the longest such id of `calls`."""
    head = inquiry
    while "." in head:
        head = head.rpartition(".")[0]
        if head in calls:
            return head
    return None

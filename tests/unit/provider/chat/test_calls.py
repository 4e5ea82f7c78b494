from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from jp.provider.chat.response import CallPiece, Calls, Function
from jp.provider.reader import CallStarts, arguments_text

Given = tuple[int | None, str | None, str | None, str | None]
"""Index, id, name and arguments of a piece."""


def put_together(pieces: Sequence[Given]) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    calls = Calls()
    for index, given_id, name, arguments in pieces:
        raw = msgspec.Raw(msgspec.json.encode(arguments))
        calls.take(CallPiece(index=index, id=given_id, function=Function(name=name, arguments=raw)))
    starts = CallStarts("p")
    begun = [starts.start(number, given=call.given_id, name=call.name) for number, call in enumerate(calls.calls)]
    return [(start.call_id, start.name, call.waiting) for start, call in zip(begun, calls.calls, strict=True)]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([(0, "a", "run", None), (0, None, None, "{"), (0, None, None, "}")], [("a", "run", "{}")]),
        ([(0, "a", "run", "{}"), (1, "b", "run", "{}")], [("a", "run", "{}"), ("b", "run", "{}")]),
        # first write wins
        ([(0, "a", "run", "{"), (0, "a", "run", "}")], [("a", "run", "{}")]),
        ([(0, "a", "run", "{"), (0, "z", None, "}")], [("a", "run", "{}")]),
        ([(0, None, "run", "{"), (0, "z", "run", "}")], [("z", "run", "{}")]),
        # all under the same index
        ([(0, "a", "run", "{}"), (0, "b", "look", "{}")], [("a", "run", "{}"), ("b", "look", "{}")]),
        # without an index
        ([(None, "a", "run", "{}"), (None, "b", "look", "{}")], [("a", "run", "{}"), ("b", "look", "{}")]),
        ([(None, "a", "run", "{"), (None, None, None, "}")], [("a", "run", "{}")]),
        (
            [(None, "a", "run", "{"), (None, "b", "look", "{"), (None, "a", None, "}")],
            [("a", "run", "{}"), ("b", "look", "{")],
        ),
        ([(None, "a", "run", "{"), (None, "z", None, "}")], [("a", "run", "{}")]),
        # without anything
        ([(None, None, "run", "{}"), (None, None, "run", "{}")], [("call_0", "run", "{}"), ("call_1", "run", "{}")]),
        ([(None, None, "run", "{"), (None, None, "run", "}")], [("call_0", "run", "{}")]),
        ([(None, None, None, "{}"), (None, None, "run", None)], [("call_0", "run", "{}")]),
        # ids that repeat
        (
            [(0, "a", "run", "{}"), (1, "a", "run", "{}"), (2, "a_1", "run", "")],
            [("a", "run", "{}"), ("a_1", "run", "{}"), ("a_1_2", "run", "")],
        ),
    ],
)
def test_pieces_belong_to_the_call_that_is_meant(pieces: list[Given], calls: list[tuple[str, str, str]]) -> None:
    assert put_together(pieces) == calls


def test_a_piece_may_hold_nothing() -> None:
    calls = Calls()
    calls.take(CallPiece())

    assert [(call.name, call.waiting, call.is_whole) for call in calls.calls] == [("", "", False)]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'"{\\"a\\":1}"', '{"a":1}'),
        (b'{"a": 1}', '{"a": 1}'),
        (b"[1]", "[1]"),
        (b"null", ""),
        (b'""', ""),
        (b'"\xff"', '"�"'),
    ],
)
def test_arguments_are_json_as_text_or_as_it_is(raw: bytes, text: str) -> None:
    assert arguments_text(msgspec.Raw(raw)) == text

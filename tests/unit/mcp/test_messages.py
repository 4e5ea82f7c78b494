from __future__ import annotations

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from jp.mcp.transport import message_of


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (rb'{"jsonrpc":"2.0","id":1,"result":{"a":"b"}}', {"a": "b"}),
        (rb'{"jsonrpc":"2.0","id":1,"result":{"a":"x\ud83dy"}}', {"a": "x?y"}),
        (rb'{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d\ude00"}}', {"a": "\N{GRINNING FACE}"}),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', {"a": "\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_an_answer_is_read_whatever_its_characters(line: bytes, result: dict[str, str]) -> None:
    message = message_of(line)

    assert isinstance(message, JSONRPCResponse)
    assert message.result == result


def test_a_notification_is_read() -> None:
    assert isinstance(message_of(b'{"jsonrpc":"2.0","method":"notifications/x"}'), JSONRPCNotification)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Installing packages...",
        b"null",
        b"[]",
        b"{",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":true,"result":5}',
        b'{"jsonrpc":"2.0","id":[],"result":5}',
        b'{"id":1,"method":5}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert message_of(line) is None


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":7,"result":[]}', b'{"id":7,"result":{"a":NaN}}', b'{"id":7,"error":"x"}']
)
def test_what_answers_a_request_and_is_no_answer_fails_it(line: bytes) -> None:
    message = message_of(line)

    assert isinstance(message, JSONRPCError)
    assert message.id == 7


@pytest.mark.parametrize("begin", ['"jsonrpc":"2.0","id":7,', ' "id" : 7 , '])
def test_an_answer_that_is_nested_too_deeply_is_an_error(begin: str) -> None:
    message = message_of(f'{{{begin}"result":{"[" * 100_000}{"]" * 100_000}}}'.encode())

    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.message) == (7, "the response is nested too deeply")
    assert message_of(f'{{"id":7,"method":"x","params":{"[" * 100_000}{"]" * 100_000}}}'.encode()) is None

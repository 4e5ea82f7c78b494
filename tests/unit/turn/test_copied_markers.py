from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.compaction.fact_lines import NO_NONCE
from jp.context.markers import marker
from jp.conversation.entries import Header, JsonObject, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.turn.loop import refusal_of

NONCE = "5eed5eed"
HEADER = Header(format=1, created_at="", nonce=NONCE)
CUT = marker(NONCE, "0123abcd", 900)


def call(arguments: JsonObject | str) -> ToolCallRequest:
    return ToolCallRequest(id="c", call_id="x", name="run", arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"deep": [{"text": f"ü{CUT}"}]}, " (0123abcd)"),
        (f'{{"text": "{CUT}{marker(NONCE, "4567cdef", 1)}', " (0123abcd, 4567cdef)"),
        ({"text": f"cut:{NONCE}, or what is left of it"}, ""),
        ({CUT: 1}, " (0123abcd)"),
    ],
)
def test_a_call_with_a_marker_in_its_arguments_is_answered_by_what_is_wrong(
    arguments: JsonObject | str, named: str
) -> None:
    refusal = refusal_of(call(arguments), [HEADER])

    assert refusal is not None
    assert (refusal.request, refusal.is_error) == ("c", True)
    (block,) = refusal.content
    assert isinstance(block, TextBlock)
    assert (block.text or "").startswith(f"Not run: the arguments have a marker `[[cut:…]]` in them{named}. ")


def test_other_calls_run() -> None:
    another = marker("another-nonce", "0123abcd", 900)

    assert refusal_of(call({"text": another}), [HEADER]) is None
    assert refusal_of(replace(call({"handle": CUT}), name="recall"), [HEADER]) is None
    assert refusal_of(call({"zeros": NO_NONCE}), []) is None
    assert refusal_of(call({"text": marker(NO_NONCE, "0123abcd", 9)}), []) is not None

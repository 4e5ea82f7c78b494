from __future__ import annotations

import pytest

from jp.context.budget import Budget, estimate_message, size_of_block, threshold
from jp.context.types import Block, Call, Message, ReasoningBlock, StoredBlock, TextBlock


@pytest.mark.parametrize(
    ("window", "reserved", "full"),
    [
        (200_000, 0, 160_000),
        (200_000, 64_000, 108_800),
        (1_000_000, 64_000, 350_000),
        (8_000, 9_000, 0),
        (-1, 0, 0),
    ],
)
def test_from_how_many_tokens_on_something_is_omitted(window: int, reserved: int, full: int) -> None:
    assert threshold(Budget(window=window, reserved=reserved)) == full


@pytest.mark.parametrize(
    ("block", "tokens", "size"),
    [
        (TextBlock(text="a" * 40), 10, 40),
        (ReasoningBlock(text="ü" * 40, signature="c2ln"), 20, 84),
        (StoredBlock(sha256="ab", size=400, chars=400), 100, 400),
        (StoredBlock(sha256="ab", size=9, mime_type="image/png"), 1_600, 9),
        (StoredBlock(sha256="ab", size=9, mime_type="application/pdf"), 2_250, 9),
        (StoredBlock(sha256="ab", size=200_000, mime_type="application/pdf"), 9_000, 200_000),
    ],
    ids=["text", "reasoning", "stored text", "a picture", "a short PDF", "a PDF"],
)
def test_what_a_block_costs(block: Block, tokens: int, size: int) -> None:
    message = Message(role="user", content=(block,))

    assert estimate_message(message) == tokens + 4
    assert size_of_block(block) == size


def test_the_envelope_of_calls_and_results_is_counted() -> None:
    call = Message(role="assistant", calls=(Call(id="call", name="fs_read_file", arguments="a" * 40),))
    result = Message(role="tool", call_id="call", content="a" * 40)

    assert estimate_message(call) == 4 + 12 + 1 + 3 + 10
    assert estimate_message(result) == 4 + 8 + 1 + 10

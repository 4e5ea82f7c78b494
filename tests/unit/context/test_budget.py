from __future__ import annotations

import pytest

from jp.context.budget import (
    Budget,
    estimate_message,
    estimate_messages,
    group_costs,
    head_budget,
    projected_usage,
    size_of,
    tail_budget,
    threshold,
)
from jp.context.groups import index_groups
from jp.context.types import Block, Call, Message, ReasoningBlock, StoredBlock, TextBlock

HELLO = Message(role="user", content="a" * 400)


@pytest.mark.parametrize(
    ("window", "reserved", "room"),
    [
        (200_000, 0, (160_000, 20_000, 20_000)),
        (200_000, 64_000, (108_800, 20_000, 20_000)),
        (1_000_000, 64_000, (350_000, 100_000, 25_000)),
        (128_000, 16_000, (89_600, 12_800, 12_800)),
        (32_000, 4_000, (22_400, 3_200, 6_400)),
        (16_000, 4_000, (9_600, 1_600, 6_400)),
        (8_000, 9_000, (0, 800, 3_200)),
        (0, 0, (0, 0, 0)),
        (-1, 0, (0, 0, 0)),
    ],
)
def test_how_many_tokens_there_is_room_for(window: int, reserved: int, room: tuple[int, int, int]) -> None:
    budget = Budget(window=window, reserved=reserved)

    assert (threshold(budget), head_budget(budget), tail_budget(budget)) == room


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
    assert size_of(message) == size


def test_the_envelope_of_calls_and_results_is_counted() -> None:
    call = Message(role="assistant", calls=(Call(id="call", name="fs_read_file", arguments="a" * 40),))
    result = Message(role="tool", call_id="call", content="a" * 40)

    assert estimate_message(call) == 4 + 12 + 1 + 3 + 10
    assert estimate_message(result) == 4 + 8 + 1 + 10
    assert size_of(call) == 4 + 12 + 40
    assert group_costs((HELLO, call, result), index_groups((HELLO, call, result))) == (104, 53)


@pytest.mark.parametrize(
    ("measured", "measured_messages", "tokens"),
    [(5_000, 2, 5_104), (5_000, 3, 5_000), (None, 2, 312), (0, 2, 312), (-1, 2, 312), (5_000, 4, 312)],
    ids=["and what came since", "nothing came since", "not measured", "zero", "negative", "messages went away"],
)
def test_usage_is_what_was_measured_and_an_estimate_of_what_came_since(
    measured: int | None, measured_messages: int, tokens: int
) -> None:
    messages = (HELLO, HELLO, HELLO)

    assert estimate_messages(messages) == 312
    assert projected_usage(messages, measured=measured, measured_messages=measured_messages) == tokens

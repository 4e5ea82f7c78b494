"""Cache hints, prices and shares: what holds for every transcript, and for every request."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import transcripts
from jp.context.breakdown import Measurement, apportion, break_down
from jp.context.budget import Prices, PromptEdit, cost_of_edit, estimate_messages, items_of
from jp.context.cache_hints import MOST, Piece, Section, place_hints
from jp.context.types import Transcript

either = transcripts.any_transcripts()
LONGEST = 60


def pieces(section: Section) -> st.SearchStrategy[list[Piece]]:
    return st.lists(
        st.builds(
            Piece,
            section=st.just(section),
            is_answer=st.booleans() if section == "messages" else st.just(value=False),
            carries=st.booleans(),
            is_volatile=st.sampled_from([False] * 9 + [True]),
            is_attached=st.booleans(),
        ),
        max_size=LONGEST if section == "messages" else 3,
    )


requests = st.tuples(pieces("tools"), pieces("system"), pieces("messages")).map(
    lambda parts: list(chain.from_iterable(parts))
)


@given(requests)
def test_marks_stand_in_order_where_they_may_and_are_few(request: list[Piece]) -> None:
    positions = [hint.position for hint in place_hints(request)]

    assert positions == sorted(set(positions))
    assert len(positions) <= MOST
    for position in positions:
        assert request[position].carries
        assert not any(piece.is_volatile for piece in request[: position + 1])


@given(pieces("tools"), pieces("system"), st.lists(pieces("messages"), min_size=1, max_size=4))
def test_a_request_that_goes_on_finds_what_the_one_before_it_left(
    tools: list[Piece], system: list[Piece], parts: list[list[Piece]]
) -> None:
    """Its marks stand where the last one was, however much came since: nothing has to be looked back to."""
    answer = Piece(section="messages", is_answer=True, carries=False)
    asked = [
        [msgspec.structs.replace(piece, is_answer=False, is_volatile=False) for piece in part]
        + [Piece(section="messages")]
        for part in parts
    ]
    before: list[Piece] = []
    for part in asked:
        static = [msgspec.structs.replace(piece, is_volatile=False) for piece in (*tools, *system)]
        request = [*(before or static), *part]
        if before:
            newest = max(hint.position for hint in place_hints(before))
            assert newest in [hint.position for hint in place_hints([*before, answer, *part])]
            request = [*before, answer, *part]
        before = request


rates = st.sampled_from(["0", "0.1", "0.3", "1", "1.25", "3", "3.75"])


@given(st.integers(0, 3000), st.integers(0, 3000), st.tuples(rates, rates, rates), st.sampled_from(["warm", "cold"]))
def test_the_break_even_is_the_first_request_at_which_an_edit_is_no_dearer(
    before: int, after: int, rate: tuple[str, str, str], warmth: str
) -> None:
    read, write, once = map(Fraction, rate)
    prices = Prices(input=1.0, cache_read=float(rate[0]), cache_write=float(rate[1]))
    edit = PromptEdit(before=before, after=after, once=float(rate[2]) / 1000)

    found = cost_of_edit(edit, prices, is_warm=warmth == "warm").break_even

    def is_no_dearer(requests: int) -> bool:
        first = read if warmth == "warm" else write
        left = first * before + read * before * (requests - 1)
        edited = once * 1000 + write * after + read * after * (requests - 1)
        return edited <= left

    if found is not None:
        assert is_no_dearer(found)
        assert found == 1 or not is_no_dearer(found - 1)
        assert is_no_dearer(found + 1000)
    else:
        assert not is_no_dearer(10**9)


@given(st.lists(st.integers(0, 10_000), max_size=8), st.integers(0, 10_000))
def test_shares_add_up_and_nothing_disappears(weights: list[int], total: int) -> None:
    shares = apportion(weights, total)

    assert sum(shares) == (total if any(weights) else 0)
    if total >= sum(map(bool, weights)):
        assert [share > 0 for share in shares] == [weight > 0 and total > 0 for weight in weights]
    for one, other in zip(weights, shares, strict=True):
        assert other >= 0
        assert one or not other


@given(either, st.none() | st.integers(-10, 200_000), st.integers(0, 500))
def test_whatever_is_measured_a_breakdown_adds_up(messages: Transcript, reported: int | None, added: int) -> None:
    found = break_down(
        (), items_of(messages), known_tools=transcripts.TOOLS, measured=Measurement(tokens=reported, added=added)
    )

    assert found.estimated == estimate_messages(messages)
    assert sum(bucket.tokens for bucket in found.buckets) + found.other == found.total
    assert sum(share.tokens for share in found.conversation) == found.buckets[-1].tokens
    assert sum(tool.tokens for tool in found.tools) == sum(
        share.tokens for share in found.conversation if share.kind == "results"
    )

from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import Usage
from jp.provider.errors import ProviderError
from jp.provider.reader import CallStarts, bounded_usage, text_of, unreadable_error, usage_from_counts


def test_each_call_has_an_id_of_its_own() -> None:
    starts = CallStarts("mine")
    assert not starts
    given = ("a", "a_2", "a", "", "call_3", "")
    begun = [starts.start(index, given=name, name="run") for index, name in enumerate(given)]

    assert [start.call_id for start in begun] == ["a", "a_2", "a_2_2", "call_3", "call_3_4", "call_5"]
    assert [start.index for start in begun] == list(range(6))
    assert starts
    assert starts.start(9, given="", name="run", number=7).call_id == "call_7"


def test_a_call_without_a_name_is_none() -> None:
    with pytest.raises(ProviderError, match="mine sent a call without a name") as caught:
        CallStarts("mine").start(0, given="a", name="")

    assert caught.value.kind == "transient"


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        ({"prompt": 9, "output": 5}, Usage(input=9, output=5)),
        ({"prompt": 9, "cache_read": 3, "cache_write": 2}, Usage(input=4, cache_read=3, cache_write=2)),
        ({"prompt": 2, "cache_read": 3}, Usage(cache_read=3)),
        ({"output": 5, "reasoning": 8}, Usage(output=5, reasoning=5)),
        ({"prompt": -1, "output": -5, "cache_read": -1}, Usage()),
        ({"prompt": 10**40}, Usage(input=2**53 - 1)),
    ],
)
def test_tokens_are_in_classes_that_do_not_overlap(counts: dict[str, int], usage: Usage) -> None:
    assert usage_from_counts(**{"prompt": None, "output": None, **counts}) == usage


def test_counts_that_make_no_sense_are_none() -> None:
    assert bounded_usage(Usage(input=-3, output=10**30, cache_read=1)) == Usage(output=2**53 - 1, cache_read=1)


def test_what_cannot_be_read_is_named() -> None:
    assert unreadable_error("mine").message == "mine sent an event that cannot be read"
    assert unreadable_error("mine", "line").message == "mine sent a line that cannot be read"


def test_json_is_text_whatever_its_bytes() -> None:
    assert text_of(msgspec.Raw(b'"\xff"')) == '"�"'

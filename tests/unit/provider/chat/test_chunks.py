from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import Usage
from jp.provider.chat.response import details_of, reasoning_text, usage_of


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(input=10, output=5)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(input=6, output=5, cache_read=4),
        ),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
            Usage(input=3, cache_read=4, cache_write=3),
        ),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, Usage(input=6, cache_read=4)),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(cache_read=4)),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(output=5, reasoning=3),
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}},
            Usage(output=5, reasoning=5),
        ),
        ({"prompt_tokens_details": None}, Usage()),
        (None, None),
        ({"prompt_tokens": "many"}, None),
        ([], None),
    ],
)
def test_tokens_are_counted_in_four_classes(reported: object, usage: Usage | None) -> None:
    assert usage_of(msgspec.Raw(msgspec.json.encode(reported))) == usage


@pytest.mark.parametrize(("raw", "details"), [(b"null", []), (b"[]", []), (b"3", []), (b'[{"a":1}]', [{"a": 1}])])
def test_details_that_are_none_are_omitted(raw: bytes, details: list[object]) -> None:
    assert details_of(msgspec.Raw(raw)) == details


def test_a_thought_may_be_missing() -> None:
    assert reasoning_text(None) == ""

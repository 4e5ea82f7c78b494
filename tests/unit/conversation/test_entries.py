from __future__ import annotations

from jp.conversation.entries import Usage, add_usage


def test_usage_adds_up_kind_by_kind() -> None:
    one = Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=5)
    other = Usage(input=10, output=20, cache_read=30, cache_write=40, reasoning=50)

    assert add_usage(one, other) == Usage(input=11, output=22, cache_read=33, cache_write=44, reasoning=55)
    assert add_usage(one, Usage()) == one

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.entries import CycleEnd
from jp.provider.base import Sections, SentMessage
from jp.turn.request import digests_of, message_digests

MESSAGES = st.lists(st.lists(st.binary(max_size=3), max_size=3).map(tuple), max_size=6).map(tuple)


def sections(messages: tuple[tuple[bytes, ...], ...]) -> Sections:
    return Sections(tools=(b"t",), system=(b"s",), messages=tuple(map(SentMessage, messages)))


@given(st.lists(MESSAGES, max_size=6))
def test_the_log_alone_gives_every_message_of_the_newest_request(requests: list[tuple[tuple[bytes, ...], ...]]) -> None:
    entries: list[CycleEnd] = []
    for messages in requests:
        digests = digests_of(sections(messages), message_digests(entries))
        entries.append(CycleEnd(attempt=1, finish="stop", digests=digests))

    alone = digests_of(sections(requests[-1]), ()).messages if requests else ()
    assert message_digests(entries) == alone


def test_a_longer_request_repeats_no_digest() -> None:
    first = digests_of(sections(((b"a",), (b"b",))), ())

    second = digests_of(sections(((b"a",), (b"b",), (b"c",))), first.messages)

    assert (second.kept, len(second.messages)) == (2, 1)
    assert (second.system, second.tools) == (first.system, first.tools)


def test_where_one_block_ends_matters() -> None:
    assert digests_of(sections(((b"ab", b"c"),)), ()) != digests_of(sections(((b"a", b"bc"),)), ())

from __future__ import annotations

import pytest

from jp.cli.terminal.wording import worded
from jp.conversation.ids import ENTROPY_BYTES, ConversationId, entry_id, slug
from jp.errors import UsageError

ZEROS = bytes(ENTROPY_BYTES)
ONES = b"\xff" * ENTROPY_BYTES


def test_an_entry_id_is_its_time_and_its_entropy() -> None:
    assert entry_id(milliseconds=0, entropy=ZEROS) == "0" * 26
    assert entry_id(milliseconds=33, entropy=ONES) == "0000000011" + "z" * 16


def test_a_later_entry_id_sorts_after_an_earlier_one() -> None:
    assert entry_id(milliseconds=1, entropy=ZEROS) > entry_id(milliseconds=0, entropy=ONES)


@pytest.mark.parametrize(
    ("last", "expected"),
    [("0" * 26, "0" * 25 + "1"), ("00000000zz" + "z" * 16, "0000000100" + "0" * 16)],
    ids=["stood still", "went back"],
)
def test_an_entry_id_follows_the_last_one_where_the_clock_does_not(last: str, expected: str) -> None:
    assert entry_id(milliseconds=0, entropy=ZEROS, last=last) == expected


@pytest.mark.parametrize("last", ["", "zzz", "e00001", "Z" * 26, "l" * 26, "z" * 26, "z" * 27])
def test_a_last_id_that_has_no_successor_is_ignored(last: str) -> None:
    assert entry_id(milliseconds=5, entropy=ZEROS, last=last) == entry_id(milliseconds=5, entropy=ZEROS)


@pytest.mark.parametrize("text", ["jp-c17800836875", "17800836875"])
def test_a_conversation_id_is_read_with_or_without_its_prefix(text: str) -> None:
    parsed = ConversationId.parse(text)

    assert parsed == "jp-c17800836875" == ConversationId.at(17800836875)
    assert (parsed.deciseconds, parsed.digits) == (17800836875, "17800836875")


@pytest.mark.parametrize("text", ["", "jp-c", "jp-c12x", "jp-cjp-c1", "-1", "1.5", "\u0661", "1\n", "9" * 19])
def test_what_is_no_conversation_id_is_an_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConversationId.parse(text)

    assert caught.value.message == f"{text!r} is not a conversation id"
    assert "jp conversation ls" in worded(caught.value.hint)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Why is `ls` slow?", "why-is-ls-slow"),
        ("Größe & Café", "groe-cafe"),
        ("日本語", ""),
        ("  ---  ", ""),
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 60),
        ("a" * 50 + " " + "b" * 20, "a" * 50),
        ("a" * 60 + " b", "a" * 60),
        ("../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_slug_is_the_words_of_a_title_cut_between_words(title: str, expected: str) -> None:
    assert slug(title) == expected

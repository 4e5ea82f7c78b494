from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.ids import ENTROPY_BYTES, ConversationId, entry_id, slug

milliseconds = st.integers(0, 2**45)
entropy = st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES)


@given(st.lists(st.tuples(milliseconds, entropy), max_size=8))
def test_ids_sort_as_they_were_made_whatever_the_clock_does(moments: list[tuple[int, bytes]]) -> None:
    ids = [""]
    for moment, chance in moments:
        ids.append(entry_id(milliseconds=moment, entropy=chance, last=ids[-1]))

    assert all(one < other for one, other in pairwise(ids))
    assert all(len(made) == 26 and made.isalnum() and made.isascii() for made in ids[1:])


@given(milliseconds, entropy, st.text(max_size=30))
def test_any_last_id_is_taken(moment: int, chance: bytes, last: str) -> None:
    assert len(entry_id(milliseconds=moment, entropy=chance, last=last)) == 26


@given(st.integers(0, 10**18 - 1))
def test_a_conversation_id_is_read_as_it_is_written(deciseconds: int) -> None:
    assert ConversationId.parse(ConversationId.at(deciseconds)).deciseconds == deciseconds


@given(st.text())
def test_a_slug_is_a_safe_file_name_and_its_own_slug(title: str) -> None:
    made = slug(title)

    assert len(made) <= 60
    assert all(char.isascii() and (char.isalnum() or char == "-") for char in made)
    assert made == made.lower().strip("-")
    assert slug(made) == made

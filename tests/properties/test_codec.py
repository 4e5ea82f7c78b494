from __future__ import annotations

from contextlib import suppress

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import streams
from jp.conversation.entries import AnyEntry, ChatRequest, MalformedEntryError, Unknown, decode, encode

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(streams.damaged_streams())
def test_what_is_written_is_read_back_as_one_line_each(entries: tuple[AnyEntry, ...]) -> None:
    for entry in entries:
        line = encode(entry)
        assert decode(line) == entry
        assert b"\n" not in line


@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from(("note", "chat_request", "compaction", 3)))
def test_any_object_comes_out_as_it_came_in_unless_it_is_an_entry(fields: dict[str, object], kind: object) -> None:
    line = msgspec.json.encode({"type": kind, **fields})

    entry = decode(line)

    if isinstance(entry, Unknown):
        assert encode(entry) == line


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_an_entry_or_an_error(line: bytes) -> None:
    with suppress(MalformedEntryError):
        entry = decode(line)
        assert decode(encode(entry)) == entry


@given(st.text())
def test_any_text_survives(text: str) -> None:
    assert decode(encode(ChatRequest(content=text))) == ChatRequest(content=text)

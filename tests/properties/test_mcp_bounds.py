"""Counting the values of a JSON text that comes in pieces: as many as there are, however it is cut."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.mcp import transport
from jp.mcp.transport import TooManyValuesError, ValueMeter

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('ab"\\[{,\n\u00e9', max_size=6),
    lambda below: st.lists(below, max_size=5) | st.dictionaries(st.text('a"\\[{,', max_size=3), below, max_size=4),
    max_leaves=30,
)


def marks(value: Any) -> int:
    """How many `[`, `{` and `,` stand between the strings of a value."""
    if not isinstance(value, (dict, list)):
        return 0
    below = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return max(1, len(below)) + sum(map(marks, below))


def feed(meter: ValueMeter, pieces: list[bytes]) -> None:
    for piece in pieces:
        meter.feed(piece)


@given(VALUES, st.data())
def test_values_are_counted_wherever_the_text_is_cut(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    count = marks(value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "MOST_VALUES", count)
        meter = ValueMeter()
        for _ in range(2):
            feed(meter, pieces)
            meter.reset()
        if count:
            patch.setattr(transport, "MOST_VALUES", count - 1)
            with pytest.raises(TooManyValuesError):
                feed(meter, pieces)

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from artifacts import MemoryArtifacts
from jp.context.estimate import estimate_tokens
from jp.context.leaves import Shrunk, shrink_json_string_leaves
from jp.context.markers import Cutter

NONCE = "5eed5eed"
FLOOR = 44
DECODER = json.JSONDecoder()

spaces = st.sampled_from(("", "", " ", "\n  ", "\t\r\n"))
pieces = st.sampled_from((
    "a",
    "word ",
    "ü",
    "漢",
    "\U0001f469\u200d",
    "e\u0301",
    r"\n",
    r"\"",
    r"\\",
    r"\/",
    r"\u00fC",
    r"\ud83d\ude00",
    r"\ud800",
))


@st.composite
def strings(draw: st.DrawFn) -> str:
    return f'"{draw(pieces) * draw(st.integers(0, 90))}{draw(pieces)}"'


scalars = st.sampled_from(("0", "-0.0", "1E400", "1.50e+3", "9" * 4_400, "true", "null", "[]", "{}", '""'))


@st.composite
def joined(draw: st.DrawFn, items: st.SearchStrategy[str], frame: str) -> str:
    parts = [draw(spaces) + item + draw(spaces) for item in draw(st.lists(items, max_size=4))]
    return frame[0] + ",".join(parts) + frame[1]


@st.composite
def members(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """Names are few, so that they repeat."""
    name = draw(st.sampled_from(('"k"', '"' + "long" * 40 + '"', r'"\u006b"')))
    return f"{name}{draw(spaces)}:{draw(spaces)}{draw(values)}"


texts = st.recursive(
    strings() | scalars,
    lambda inner: joined(inner, "[]") | joined(members(inner), "{}"),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(texts)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(start + 3, len(text))))
    return text[:start] + draw(st.sampled_from(("", ",", '"', "\\", "}", "]", "NaN", "\n", "\ufeff", "x"))) + text[end:]


def parsed(text: str) -> Any:
    """What RFC 8259 makes of `text`: lists, the members of an object in order, strings, numbers as they are spelled.

    What is not JSON, and `null`, is None.
    """

    def refuse(constant: str) -> str:
        raise ValueError(constant)

    try:
        return json.loads(
            text,
            object_pairs_hook=tuple,
            parse_int=str.encode,
            parse_float=str.encode,
            parse_constant=refuse,
        )
    except ValueError:
        return None


def masked(value: Any) -> Any:
    """`value` without its strings; names of members stay."""
    match value:
        case str():
            return "a string"
        case list():
            return [masked(item) for item in cast("list[Any]", value)]
        case tuple():
            return tuple((name, masked(item)) for name, item in cast("tuple[tuple[str, Any], ...]", value))
        case _:
            return value


def leaves(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [leaf for item in cast("list[Any]", value) for leaf in leaves(item)]
        case tuple():
            return [leaf for _, item in cast("tuple[tuple[str, Any], ...]", value) for leaf in leaves(item)]
        case _:
            return []


def shrink(text: str, cutter: Cutter, bounds: tuple[int, int | None]) -> Shrunk:
    return shrink_json_string_leaves(text, cutter, max_leaf=bounds[0], max_total=bounds[1])


bounds_of = st.tuples(st.sampled_from((0, FLOOR, 60, 100)), st.none() | st.integers(0, 300))


@given(texts | damaged(), bounds_of)
def test_only_the_inside_of_long_strings_that_are_values_differs(text: str, bounds: tuple[int, int | None]) -> None:
    cutter = Cutter(NONCE, MemoryArtifacts())

    result = shrink(text, cutter, bounds)

    old = new = 0
    for cut in result.cuts:
        gap = cut.start - old
        assert text[old : cut.start] == result.text[new : new + gap]
        whole, old = DECODER.raw_decode(text, cut.start)
        shorter, new = DECODER.raw_decode(result.text, new + gap)
        before, after = shorter.split("[[cut:")[0], shorter.split("]]")[-1]
        assert len(shorter) < len(whole)
        assert whole.startswith(before)
        assert whole.endswith(after)
        assert len(before) + cut.omitted + len(after) == len(whole)
        assert cutter.artifacts.recall(cut.handle) == whole
    assert text[old:] == result.text[new:]


@given(texts | damaged(), bounds_of)
def test_it_parses_as_before_or_does_not_as_before(text: str, bounds: tuple[int, int | None]) -> None:
    before = parsed(text)
    after = parsed(shrink(text, Cutter(NONCE, MemoryArtifacts()), bounds).text)

    assert (before is None) == (after is None)
    assert masked(before) == masked(after)
    limit = max(bounds[0], FLOOR)
    assert [leaf for leaf in leaves(before) if len(leaf) <= FLOOR] == [
        short for short, long in zip(leaves(after), leaves(before), strict=True) if len(long) <= FLOOR
    ]
    assert all(len(leaf) <= limit for leaf in leaves(after))


@given(texts | damaged(), bounds_of)
def test_it_is_never_longer_and_doing_it_again_changes_nothing(text: str, bounds: tuple[int, int | None]) -> None:
    cutter = Cutter(NONCE, MemoryArtifacts())

    once = shrink(text, cutter, bounds)

    assert shrink(once.text, cutter, bounds).text is once.text
    assert (once.text is text) == (not once.changed)
    assert len(once.text.encode("utf-8", "surrogatepass")) <= len(text.encode("utf-8", "surrogatepass"))
    assert estimate_tokens(once.text) <= estimate_tokens(text)


@given(texts, st.integers(0, 300))
def test_all_strings_together_have_what_they_may_unless_markers_alone_take_more(text: str, max_total: int) -> None:
    after = leaves(parsed(shrink(text, Cutter(NONCE, MemoryArtifacts()), (100, max_total)).text))

    assert sum(map(len, after)) <= max_total or all(len(leaf) <= FLOOR for leaf in after)

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jp.render.sanitise import Sanitiser, sanitise

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile("\x1b\\[[0-9;:]*m")

_hostile = st.lists(
    st.one_of(
        st.sampled_from(["\x1b", "[", "]", "0;", "\x07", "\\", "m", "31", "8", "\r", "\n", "\x9b", "\x9d", "\x9c", "P"]),
        st.sampled_from(["\x18", "\u202e", "\ud800", " ", "?", "x" * 4090, "text"]),
        st.characters(codec=None),
    )
).map("".join)


@st.composite
def _pieces(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(_pieces(_hostile))
def test_nothing_that_steers_a_terminal_survives_however_the_text_is_cut(pieces: list[str]) -> None:
    sanitiser = Sanitiser()

    shown = "".join(sanitiser.feed(piece) for piece in pieces) + sanitiser.finish()

    assert shown == sanitise("".join(pieces))
    assert _FORBIDDEN.search(shown) is None
    assert sanitise(shown) == shown


@given(_pieces(_hostile))
def test_of_what_steers_a_terminal_only_colours_are_kept(pieces: list[str]) -> None:
    sanitiser = Sanitiser(keep_colours=True)

    shown = "".join(sanitiser.feed(piece) for piece in pieces) + sanitiser.finish()

    assert shown == sanitise("".join(pieces), keep_colours=True)
    assert _FORBIDDEN.search(_COLOUR.sub("", shown)) is None
    assert _COLOUR.sub("", shown) == sanitise("".join(pieces))

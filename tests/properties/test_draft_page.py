from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from jp.app.drafts import MARK, choose_mark, lay_out, text_above
from jp.app.query.composer import block_quote, is_quote_only, notes
from jp.conversation.entries import ChatRequest, ChatResponse, CycleEnd, TurnStart
from jp.conversation.turns import turns_of

CUT = "<!-- jp {}: this line and everything below it is not asked -->"

marks = st.sampled_from([f"{number:08}" for number in range(4)])
cuts = marks.map(CUT.format)
lines = st.one_of(
    cuts, cuts.map(lambda line: f"{line} "), cuts.map(lambda line: f"> {line}"), st.text(max_size=20), marks
)
texts = st.lists(lines, max_size=8).map("\n".join)


@given(texts, texts)
def test_any_text_comes_back_from_its_page(text: str, answer: str) -> None:
    mark = choose_mark(text, (f"{number:08}" for number in count()))
    entries = (
        TurnStart(id="t"),
        ChatRequest(id="r", content=answer),
        ChatResponse(id="m", message=answer),
        CycleEnd(id="c", attempt=1, finish="stop"),
    )

    page = lay_out(text, mark, notes({}, turns_of(entries)))

    assert MARK.fullmatch(mark)
    assert text_above(page, mark) == text


@given(texts, texts)
def test_what_is_written_above_the_line_is_what_is_asked(before: str, after: str) -> None:
    mark = "00000009"
    page = lay_out(before, mark, notes({}, ()))

    assert text_above(f"{after}\n{page}", mark) == f"{after}\n{before}"


@given(texts)
def test_a_quote_is_nothing_but_a_quote(text: str) -> None:
    assert is_quote_only(block_quote(text))
    assert not is_quote_only(f"{block_quote(text)}\n\nwords")

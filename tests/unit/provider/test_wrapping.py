from __future__ import annotations

import pytest

from jp.provider.schemas import Unwrapper, is_wrapped, wrapped


def unwrapped(*pieces: str) -> str:
    unwrapper = Unwrapper()
    return "".join([*map(unwrapper.feed, pieces), unwrapper.finish()])


@pytest.mark.parametrize("answer", ["1", '"}"', '"} }"', "[]", '[{"a":{}}]', '{"wrapped_answer":1}', "null"])
@pytest.mark.parametrize(
    "form", ['{{"wrapped_answer":{}}}', ' {{\n  "wrapped_answer" : {}\n}}\n', " " * 300 + '{{"wrapped_answer":{}}}']
)
def test_an_answer_is_taken_out_however_it_is_cut(form: str, answer: str) -> None:
    text = form.format(answer)

    assert unwrapped(text).strip() == answer
    assert unwrapped(*text).strip() == answer


@pytest.mark.parametrize("text", ["", "no", '{"a":1}', "{", ' {"wrapped_answers":1}', '{"wrapped_answe'])
def test_what_is_not_wrapped_comes_as_it_is(text: str) -> None:
    assert unwrapped(text) == text
    assert unwrapped(*text) == text


def test_an_answer_that_was_cut_comes_as_far_as_it_came() -> None:
    assert unwrapped('{"wrapped_answer":[1,2') == "[1,2"


def test_pieces_come_out_as_soon_as_they_are_certain() -> None:
    unwrapper = Unwrapper()

    assert unwrapper.feed('{"wrapped_answer"') == ""
    assert unwrapper.feed(': {"a":') == '{"a":'
    assert unwrapper.feed("{}") == "{"
    assert unwrapper.feed("}}") == ""
    assert unwrapper.finish() == "}}"


def test_a_request_says_whether_its_answer_comes_wrapped() -> None:
    assert is_wrapped({"schema": wrapped({"type": "string"})})
    assert not is_wrapped({"schema": {"type": "object", "properties": {"a": {}}}})
    assert not is_wrapped({})

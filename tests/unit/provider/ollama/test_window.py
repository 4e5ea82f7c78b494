from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.provider.ollama.request import Counted, is_full, least_tokens, shortfall, unfit, window_of

WORDS = " ".join(["lorem"] * 4000)
"""6,000 tokens by the estimate; in no vocabulary fewer than 3,000."""

LOADED = 2_000_000_000


def body(text: str, *, window: object = 4096, **more: object) -> JsonObject:
    return {"messages": [{"role": "user", "content": text}], "options": {"num_ctx": window}, **more}


def test_a_request_is_only_given_up_where_it_certainly_does_not_fit() -> None:
    assert unfit(body(WORDS, window=3000), "ollama") is None
    assert unfit(body(WORDS, window=2999), "ollama") is not None


def test_what_a_vocabulary_may_have_one_token_for_gives_no_certainty() -> None:
    assert unfit(body(" " * 100_000), "ollama") is None


@pytest.mark.parametrize("options", [{}, {"num_ctx": "many"}])
def test_without_a_window_nothing_is_known(options: JsonObject) -> None:
    wanted = {**body(WORDS), "options": options}

    assert window_of(wanted) is None
    assert unfit(wanted, "ollama") is None
    assert shortfall(wanted, Counted(prompt=5, load_nanoseconds=LOADED)) == ""
    assert not is_full(wanted, Counted(prompt=10**6))


def test_options_may_be_something_else() -> None:
    assert window_of({"messages": [], "options": 1}) is None


@pytest.mark.parametrize("prompt", [4095, 4096, 4097])
def test_a_prompt_that_fills_the_window_was_cut(prompt: int) -> None:
    assert shortfall(body(WORDS), Counted(prompt=prompt)) == "the request filled all of the 4096 tokens that it holds"


@pytest.mark.parametrize("prompt", [2048, 2050, 2051, 2064])
def test_a_prompt_of_which_half_a_window_is_left_was_cut(prompt: int) -> None:
    assert shortfall(body(WORDS), Counted(prompt=prompt)) == f"it has read {prompt} tokens of about 6000"


@pytest.mark.parametrize(
    "counted",
    [Counted(prompt=900, load_nanoseconds=LOADED), Counted(prompt=900, cached=800), Counted(prompt=2999, cached=0)],
)
def test_a_count_that_is_whole_and_far_too_small_betrays_a_cut(counted: Counted) -> None:
    assert shortfall(body(WORDS, window=8192), counted) == f"it has read {counted.prompt} tokens of about 6000"


@pytest.mark.parametrize(
    "counted",
    [
        Counted(),
        Counted(prompt=0),
        Counted(prompt=1),
        Counted(prompt=900),
        Counted(prompt=900, load_nanoseconds=100_000_000),
        Counted(prompt=3000, cached=0),
        Counted(prompt=5000, cached=4999, load_nanoseconds=LOADED),
        Counted(prompt=5999, load_nanoseconds=LOADED),
        Counted(prompt=20_000),
    ],
    ids=str,
)
def test_a_count_that_a_cache_or_another_vocabulary_explains_betrays_nothing(counted: Counted) -> None:
    assert shortfall(body(WORDS, window=8192), counted) == ""


def test_half_a_window_is_no_sign_where_the_request_is_short() -> None:
    assert shortfall(body("short"), Counted(prompt=2050)) == ""


def test_a_request_that_every_model_holds_was_not_cut() -> None:
    assert shortfall(body(WORDS[:4000]), Counted(prompt=5, load_nanoseconds=LOADED)) == ""
    assert shortfall(body(WORDS[:4800]), Counted(prompt=5, load_nanoseconds=LOADED)) != ""


def test_a_text_that_may_be_one_token_betrays_nothing() -> None:
    assert shortfall(body("=" * 20_000, window=16_384), Counted(prompt=300, load_nanoseconds=LOADED)) == ""


def test_calls_and_what_tools_say_of_themselves_are_counted_and_thoughts_are_not() -> None:
    calls = [{"function": {"name": "run", "arguments": {"a": [WORDS, 1], "b": None}}}]
    tool = {"function": {"name": "run", "description": WORDS, "parameters": {"x": WORDS}}}
    plain: JsonObject = {"role": "assistant", "content": "", "thinking": WORDS}

    def least(message: JsonObject, *tools: JsonObject) -> int:
        return least_tokens({"messages": [message], "tools": list(tools)}, more_than=9)

    assert least(plain) == 9
    assert least({**plain, "tool_calls": calls}) == 3000
    assert least(plain, tool) == 3000


def test_an_answer_at_its_length_may_have_filled_the_window() -> None:
    assert is_full(body(""), Counted(prompt=4000, output=95))
    assert not is_full(body(""), Counted(prompt=4000, output=50))
    assert not is_full(body(""), Counted(output=5000))

from __future__ import annotations

from fractions import Fraction

import pytest

from jp.context.budget import Prices, PromptEdit, cost_of_edit

ANTHROPIC = Prices(input=3.0, cache_read=0.3, cache_write=3.75)


@pytest.mark.parametrize(
    ("prices", "factor"),
    [
        (ANTHROPIC, "11.5"),
        (Prices(input=1.0, cache_read=0.1), "9"),
        (Prices(input=1.0, cache_read=0.25), "3"),
        (Prices(input=1.0, cache_read=0.5), "1"),
    ],
)
def test_an_edit_pays_off_after_as_many_requests_as_the_prices_say(prices: Prices, factor: str) -> None:
    """The least n with n ≥ factor · kept / removed: derived by hand from the sums of both."""
    for removed, kept in ((1000, 1000), (1000, 10_000), (999, 1000), (5000, 100)):
        least = -(-Fraction(factor) * kept // removed)
        assert cost_of_edit(PromptEdit(before=removed + kept, after=kept), prices, is_warm=True).break_even == max(
            int(least), 1
        )


def test_without_a_cache_or_with_a_cold_one_it_pays_at_once() -> None:
    edit = PromptEdit(before=20_000, after=19_000)

    assert cost_of_edit(edit, Prices(input=3.0), is_warm=True).break_even == 1
    assert cost_of_edit(edit, ANTHROPIC, is_warm=False).break_even == 1
    assert cost_of_edit(edit, ANTHROPIC, is_warm=True).break_even == 219


def test_what_an_edit_costs_is_told_in_tokens_and_money() -> None:
    told = cost_of_edit(PromptEdit(before=30_000, after=10_000, once=0.06), ANTHROPIC, is_warm=True)

    assert (told.rewritten, told.saved) == (10_000, 20_000)
    assert told.next_request == pytest.approx(0.0375 + 0.06 - 0.009)
    assert told.each_later == pytest.approx(0.006)
    assert told.break_even == 16


@pytest.mark.parametrize(
    ("edit", "prices"),
    [
        (PromptEdit(before=100, after=100), ANTHROPIC),
        (PromptEdit(before=100, after=200), ANTHROPIC),
        (PromptEdit(before=100, after=90), Prices(input=1.0, cache_read=0.0)),
        (PromptEdit(before=200, after=100, once=1.0), Prices(input=0.0)),
        (PromptEdit(before=100, after=101), Prices(input=1.0, cache_read=2.0, cache_write=1.0)),
    ],
)
def test_an_edit_that_saves_nothing_never_pays(edit: PromptEdit, prices: Prices) -> None:
    assert cost_of_edit(edit, prices, is_warm=True).break_even is None


def test_nothing_left_behind_the_edit_costs_nothing() -> None:
    assert cost_of_edit(PromptEdit(before=100, after=0), ANTHROPIC, is_warm=True).break_even == 1
    assert cost_of_edit(PromptEdit(before=0, after=0), ANTHROPIC, is_warm=True).break_even == 1


def test_what_a_summary_cost_is_earned_back_too() -> None:
    free = cost_of_edit(PromptEdit(before=100_000, after=10_000), ANTHROPIC, is_warm=True)
    paid = cost_of_edit(PromptEdit(before=100_000, after=10_000, once=0.27), ANTHROPIC, is_warm=True)

    assert (free.break_even, paid.break_even) == (2, 12)

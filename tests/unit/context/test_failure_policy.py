from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from jp.context.policy import (
    PolicyState,
    SummaryCircumstances,
    after_answer,
    after_failure,
    after_ineffective,
    after_ineligible,
    after_success,
    may_ask,
    may_summarise,
)
from jp.context.summary_schema import ErrorKind

AT = SummaryCircumstances(now=1_000.0, configuration="one", used=50_000)
FRESH = PolicyState()


def later(seconds: float) -> SummaryCircumstances:
    return replace(AT, now=AT.now + seconds)


@pytest.mark.parametrize("kind", ["auth", "permission", "quota"])
def test_what_needs_a_person_rests_until_the_configuration_changes(kind: ErrorKind) -> None:
    state = after_failure(FRESH, kind, AT)

    assert may_ask(state, later(10**7)) == "configuration"
    assert may_ask(state, replace(AT, configuration="two")) == "go"


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("network", (30, 120, 600, 600)),
        ("stream_cut", (30, 120, 600, 600)),
        ("overloaded", (30, 120, 600, 600)),
        ("timeout", (60, 300, 900, 900)),
        ("malformed", (60, 60)),
        ("tool_markup", (60, 60)),
        ("truncated", (60, 60)),
        ("empty", (60, 60)),
    ],
)
def test_rests_grow_with_failures_in_a_row_and_survive_a_restart(kind: ErrorKind, seconds: tuple[int, ...]) -> None:
    state = FRESH
    for rest in seconds:
        state = msgspec.json.decode(msgspec.json.encode(after_failure(state, kind, AT)), type=PolicyState)
        assert may_ask(state, later(rest - 1)) == "cooldown"
        assert may_ask(state, later(rest)) == "go"
    assert after_answer(state) == FRESH


def test_nothing_rests_where_no_model_is_set_up() -> None:
    assert after_failure(FRESH, "no_provider", AT) is FRESH


def test_a_clock_that_was_set_back_ends_a_rest() -> None:
    state = after_failure(FRESH, "network", AT)

    assert may_ask(state, later(-10_000)) == "go"


def test_what_was_not_worth_it_waits_for_a_tenth_more() -> None:
    state = after_ineffective(FRESH, AT)

    assert may_summarise(state, replace(AT, used=54_999)).verdict == "growth"
    assert may_summarise(state, replace(AT, used=55_000)).verdict == "go"
    assert after_success(state) == FRESH
    assert after_ineffective(FRESH, replace(AT, used=0)).growth_needed == 1


def test_two_strikes_let_ten_triggers_pass() -> None:
    state = after_ineffective(after_ineffective(FRESH, AT), AT)
    grown = replace(AT, used=60_000)
    verdicts: list[str] = []
    for _ in range(11):
        permission = may_summarise(state, grown)
        state = permission.state
        verdicts.append(permission.verdict)

    assert verdicts == ["strikes"] * 10 + ["go"]


def test_a_trigger_at_which_too_little_could_leave_is_no_strike_and_waits_for_a_tenth_more() -> None:
    state = after_ineligible(after_ineligible(FRESH, AT), AT)

    assert (state.strikes, state.suppressed) == (0, 0)
    assert may_summarise(state, replace(AT, used=54_999)).verdict == "growth"
    assert may_summarise(state, replace(AT, used=55_000)).verdict == "go"

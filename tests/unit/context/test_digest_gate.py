from __future__ import annotations

import pytest

from jp.context.budget import Budget, threshold
from jp.context.digest import Decision, Occasion, decide_digest, digest_threshold, least_reclaimed

BUDGET = Budget(window=200_000, reserved=20_000)


@pytest.mark.parametrize(
    ("used", "cold", "rearm_at", "reclaimable", "decision"),
    [
        (107_999, False, 0, 90_000, Decision(run=False, verdict="below_threshold", rearm_at=0)),
        (108_000, False, 0, 90_000, Decision(run=True, verdict="over_threshold", rearm_at=108_000)),
        (120_000, False, 120_001, 90_000, Decision(run=False, verdict="not_rearmed", rearm_at=120_001)),
        (120_000, False, 120_000, 90_000, Decision(run=True, verdict="over_threshold", rearm_at=120_000)),
        (120_000, False, 0, 11_999, Decision(run=False, verdict="too_little", rearm_at=0)),
        (120_000, False, 0, 12_000, Decision(run=True, verdict="over_threshold", rearm_at=120_000)),
        (20_000, True, 90_000, 4_095, Decision(run=False, verdict="too_little", rearm_at=90_000)),
        (20_000, True, 90_000, 4_096, Decision(run=True, verdict="cold_cache", rearm_at=20_000)),
        (0, True, 0, 0, Decision(run=False, verdict="too_little", rearm_at=0)),
    ],
)
def test_it_is_time_when_there_is_a_reason_and_enough_to_gain(
    used: int, *, cold: bool, rearm_at: int, reclaimable: int, decision: Decision
) -> None:
    occasion = Occasion(budget=BUDGET, used=used, is_cold=cold, rearm_at=rearm_at)

    assert decide_digest(occasion, reclaimable) == decision


def test_results_are_digested_before_anything_is_left_out() -> None:
    assert digest_threshold(BUDGET) == 108_000 < threshold(BUDGET)


def test_of_a_small_window_less_has_to_come_of_it_so_that_it_runs_at_all() -> None:
    assert least_reclaimed(Occasion(budget=Budget(window=8_000), used=5_000)) == 800
    assert least_reclaimed(Occasion(budget=Budget(window=0), used=0)) == 1

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from jp.context.policy import Circumstances, NotTriggered, Numbers, Triggered, Verdict, decide

BELOW = Numbers(used=70, projected=79, threshold=80, limit=100, reclaimable=30, least=10)
ABOVE = replace(BELOW, projected=80)
OVER = replace(BELOW, projected=101)
BLOCKED = Circumstances(is_blocked=True, is_cooling=True)


@pytest.mark.parametrize(
    ("numbers", "circumstances", "code"),
    [
        (BELOW, Circumstances(), "below"),
        (ABOVE, Circumstances(), "threshold"),
        (OVER, Circumstances(), "hard_limit"),
        (OVER, BLOCKED, "hard_limit"),
        (BELOW, Circumstances(has_overflowed=True, is_blocked=True), "provider_overflow"),
        (replace(ABOVE, reclaimable=0), Circumstances(), "infeasible"),
        (replace(OVER, reclaimable=0), Circumstances(), "infeasible"),
        (ABOVE, BLOCKED, "blocked_thrash"),
        (ABOVE, Circumstances(is_cooling=True), "cooldown"),
        (replace(ABOVE, reclaimable=9), Circumstances(), "min_reclaim"),
    ],
)
def test_why_something_is_omitted_or_not_is_a_code(numbers: Numbers, circumstances: Circumstances, code: str) -> None:
    verdict = decide(numbers, circumstances)

    assert code == (verdict.reason if isinstance(verdict, Triggered) else verdict.because)
    assert verdict.numbers is numbers


def test_a_verdict_goes_through_json() -> None:
    verdict = decide(ABOVE, BLOCKED)

    assert isinstance(verdict, NotTriggered)
    assert verdict.reason == "threshold"
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict

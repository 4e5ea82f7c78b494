from __future__ import annotations

import msgspec
import pytest

from jp.context.breakdown import Calibration, calibrate, ratio_of

NOTHING = Calibration()


def after(*reported: int | None, estimated: int = 1_000) -> float:
    calibration = NOTHING
    for tokens in reported:
        calibration = calibrate(calibration, "m", estimated=estimated, reported=tokens)
    return ratio_of(calibration, "m")


@pytest.mark.parametrize(
    ("reported", "ratio"),
    [
        ((), 1.0),
        ((1_300,), 1.3),
        ((1_300, 1_000), 1.21),
        ((9_000,), 2.0),
        ((10,), 0.5),
        ((None,), 1.0),
        ((0,), 1.0),
        ((-5,), 1.0),
        ((1_300, None, 0), 1.3),
    ],
)
def test_what_is_learned(reported: tuple[int | None, ...], ratio: float) -> None:
    assert after(*reported) == pytest.approx(ratio)


def test_a_tiny_request_teaches_nothing() -> None:
    assert after(900, estimated=499) == 1.0
    assert after(900, estimated=500) == pytest.approx(1.8)


def test_models_are_learned_of_one_by_one_and_earlier_knowledge_is_not_changed() -> None:
    one = calibrate(NOTHING, "a", estimated=1_000, reported=1_500)
    both = calibrate(one, "b", estimated=1_000, reported=800)

    assert [ratio_of(both, model) for model in "abc"] == [1.5, 0.8, 1.0]
    assert dict(one.ratios) == {"a": 1.5}
    assert NOTHING.ratios == {}


def test_what_was_learned_survives_a_restart_and_what_a_hand_wrote_is_kept_in_bounds() -> None:
    one = calibrate(NOTHING, "a", estimated=1_000, reported=1_500)

    assert msgspec.json.decode(msgspec.json.encode(one), type=Calibration) == one
    assert ratio_of(Calibration({"a": 99.0}), "a") == 2.0

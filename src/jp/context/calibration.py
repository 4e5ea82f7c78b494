"""Corrections of token estimates for a model, learned from its provider's reports. A value that a host can store."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

LEAST = 0.5
MOST = 2.0
_SHARE_OF_THE_NEWEST = 0.3
_WORTH_LEARNING_FROM = 500
"""Below so many tokens, what every request has besides its messages is too large a share."""


class Calibration(msgspec.Struct, frozen=True):
    """By model: reported tokens over estimated ones, averaged so that newer requests count more."""

    ratios: Mapping[str, float] = {}


def calibrate(calibration: Calibration, model: str, *, estimated: int, reported: int | None) -> Calibration:
    """Return `calibration` with one more request to `model`, whose whole input was estimated and then reported.

    The first report counts in full. Tiny requests and providers that report nothing are ignored.
    """
    if reported is None or reported <= 0 or estimated < _WORTH_LEARNING_FROM:
        return calibration
    observed = _clamp(reported / estimated)
    before = ratio_of(calibration, model) if model in calibration.ratios else observed
    ratio = before + (observed - before) * _SHARE_OF_THE_NEWEST
    return Calibration({**calibration.ratios, model: _clamp(ratio)})


def ratio_of(calibration: Calibration, model: str) -> float:
    """Return the factor for estimates of `model`: 1 if nothing is known, always between 0.5 and 2."""
    return _clamp(calibration.ratios.get(model, 1.0))


def _clamp(ratio: float) -> float:
    return min(max(ratio, LEAST), MOST)

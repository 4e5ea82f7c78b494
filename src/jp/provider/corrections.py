"""Corrections of parameters that a server refuses, from the words of its error. Pure."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from jp.conversation.thread import Effort, Parameters
from jp.provider.base import Level
from jp.provider.parameters import nearest_level

_LEVELS: tuple[Level, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_LEVEL = re.compile(r"\b(none|minimal|low|medium|high|xhigh|max)\b")
_ABOUT_EFFORT = re.compile(
    r"effort|reasoning|thinking|unsupported value: '(?:none|minimal|low|medium|high|xhigh|max)'", re.IGNORECASE
)
_ACCEPTED = re.compile(
    r"(?<!not )\b(?:supported|supports|allowed|accepted|expected|must be|one of|should be)", re.IGNORECASE
)
_MANDATORY = re.compile(r"(?:reasoning|thinking).{0,60}(?:mandatory|cannot be (?:disabled|turned off))", re.IGNORECASE)
_RANGE = re.compile(r"(?:between|range:?) (-?\d+(?:\.\d+)?)(?: and | to |\.\.)(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_LEAST = re.compile(r"(?:greater than or equal to|at least|>=) (-?\d+(?:\.\d+)?)", re.IGNORECASE)
_MOST = re.compile(r"(?:less than or equal to|at most|<=) (-?\d+(?:\.\d+)?)", re.IGNORECASE)
_ABOUT_BUDGET = re.compile(r"budget|thinking|reasoning", re.IGNORECASE)


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that a rejection of the provider asks for, and the note for the user."""

    parameters: Parameters
    note: str


def corrected_parameters(parameters: Parameters, message: str) -> Correction | None:
    """Return the nearest parameters that a rejection's message accepts; None if it is about none that were set."""
    return (
        _corrected_sampling(parameters, message)
        or _corrected_budget(parameters, message)
        or _corrected_effort(parameters, message)
    )


def _nearest_accepted(value: float, message: str) -> float | None:
    """Return the value within the bounds of a rejection that is nearest to `value`, None where that is no other one."""
    both, least, most = _RANGE.search(message), _LEAST.search(message), _MOST.search(message)
    low, high = (both, both) if both else (least, most)
    sent = value if low is None else max(value, float(low[1]))
    sent = sent if high is None else min(sent, float(high[2] if both else high[1]))
    return None if sent == value else sent


def _corrected_sampling(parameters: Parameters, message: str) -> Correction | None:
    for field in ("temperature", "top_p", "top_k"):
        asked = getattr(parameters, field)
        if asked is None or re.search(rf"\b{field}\b", message) is None:
            continue
        sent = _nearest_accepted(asked, message)
        value = int(sent) if sent is not None and field == "top_k" else sent
        how = "not sent" if sent is None else f"sent as {sent:g}"
        changed = replace(parameters, **{field: value})
        return Correction(parameters=changed, note=f"{field} {asked:g} {how}: the provider rejected it")
    return None


def _corrected_budget(parameters: Parameters, message: str) -> Correction | None:
    asked = parameters.reasoning
    if not isinstance(asked, int) or _ABOUT_BUDGET.search(message) is None:
        return None
    sent = _nearest_accepted(asked, message)
    if sent is None:
        return None
    note = f"reasoning {asked} sent as {int(sent)}: the provider rejected it"
    return Correction(parameters=replace(parameters, reasoning=int(sent)), note=note)


def _corrected_effort(parameters: Parameters, message: str) -> Correction | None:
    asked = parameters.reasoning
    if not isinstance(asked, str) or asked == "auto" or _ABOUT_EFFORT.search(message) is None:
        return None
    wanted: Effort = "none" if asked == "off" else asked
    accepted = _ACCEPTED.split(message)[1:]
    named: set[str] = {found[1] for rest in accepted[-1:] for found in _LEVEL.finditer(rest)}
    if not named and wanted == "none" and _MANDATORY.search(message):
        named = {"minimal"}
    level = nearest_level(wanted, [level for level in _LEVELS if level in named])
    sent: Effort | None = "xlow" if level == "minimal" else level
    if sent is None or sent == wanted:
        return None
    note = f"reasoning {asked!r} sent as {level!r}: the provider rejected it"
    return Correction(parameters=replace(parameters, reasoning=sent), note=note)

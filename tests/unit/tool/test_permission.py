from __future__ import annotations

import pytest

from jp.config.entries import RunMode
from jp.tool.consent import Allowed, Answers, Decision, Denied, decide, explain, explain_withheld

SKIPPED = Denied(cause="skipped")
REFUSED = Denied(cause="refused")


@pytest.mark.parametrize(
    ("run", "answers", "expected"),
    [
        ("ask", Answers(), None),
        ("ask", Answers(approved=frozenset({"write"})), Allowed()),
        ("ask", Answers(approved=frozenset({"read"})), None),
        ("ask", Answers(approve_all=True), Allowed()),
        ("ask", Answers(deny_all=True), REFUSED),
        ("ask", Answers(deny_all=True, approve_all=True), REFUSED),
        ("ask", Answers(deny_all=True, approved=frozenset({"write"})), Allowed()),
        ("unattended", Answers(), Allowed()),
        ("unattended", Answers(deny_all=True), Allowed()),
        ("skip", Answers(), SKIPPED),
        ("skip", Answers(approve_all=True, approved=frozenset({"write"})), SKIPPED),
    ],
)
def test_the_mode_and_the_flags_decide(run: RunMode, answers: Answers, expected: Decision | None) -> None:
    assert decide("write", run, answers) == expected


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (SKIPPED, "the configuration says that calls of 'write' are skipped"),
        (REFUSED, "the user denied everything in this turn that needs approval"),
        (Denied(cause="declined", reason="not on Fridays"), "and declined. The user said: not on Fridays Do not"),
        (Denied(cause="nobody"), "'write' needs the user's approval, and nobody can be asked here"),
    ],
)
def test_the_model_is_told_that_a_call_did_not_run_and_why(denied: Denied, expected: str) -> None:
    text = explain("write", denied)

    assert text.startswith("This call did not run: ")
    assert expected in text


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (SKIPPED, "the configuration says that results of 'write' are skipped"),
        (REFUSED, "the user denied everything in this turn that needs approval"),
        (Denied(cause="declined", reason="it is private"), "and declined. The user said: it is private Do not"),
        (Denied(cause="nobody"), "giving you the result of 'write' needs the user's approval, and nobody can be asked"),
    ],
)
def test_the_model_is_told_that_it_does_not_get_a_result_and_why(denied: Denied, expected: str) -> None:
    text = explain_withheld("write", denied)

    assert text.startswith("This call ran, but you are not given its result: ")
    assert expected in text

from __future__ import annotations

import anyio
import pytest

from jp.config.kinds import RunMode
from jp.conversation.entries import ToolCallRequest
from jp.tool.permission import Allowed, Answers, Decision, Denied, decide, explain, permission_for

SKIPPED = Denied(cause="skipped")
REFUSED = Denied(cause="refused")


class Person:
    """Answers every question alike, and counts them."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.asked: list[str] = []

    async def approve(self, call: ToolCallRequest) -> Decision:
        self.asked.append(call.name)
        return self.decision


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


def permission(run: RunMode, person: Person | None, answers: Answers | None = None) -> Decision:
    call = ToolCallRequest(call_id="1", name="write", arguments={})
    return anyio.run(permission_for, call, run, answers or Answers(), person)


def test_a_person_is_asked_where_nothing_else_decides() -> None:
    person = Person(Denied(cause="declined", reason="not on Fridays"))

    decision = permission("ask", person)

    assert decision == Denied(cause="declined", reason="not on Fridays")
    assert person.asked == ["write"]


def test_nobody_is_asked_where_a_flag_answers() -> None:
    person = Person(Denied(cause="declined"))

    decision = permission("ask", person, Answers(approve_all=True))

    assert decision == Allowed()
    assert person.asked == []


def test_asking_without_anybody_to_ask_is_denying() -> None:
    assert permission("ask", None) == Denied(cause="nobody")


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (SKIPPED, "the configuration says that calls of 'write' are skipped"),
        (REFUSED, "the user denied every call of this turn that needs approval"),
        (Denied(cause="declined", reason="not on Fridays"), "and declined. The user said: not on Fridays Do not"),
        (Denied(cause="nobody"), "'write' needs the user's approval, and nobody can be asked here"),
    ],
)
def test_the_model_is_told_that_a_call_did_not_run_and_why(denied: Denied, expected: str) -> None:
    text = explain("write", denied)

    assert text.startswith("This call did not run: ")
    assert expected in text

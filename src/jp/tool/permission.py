"""May a call run: the decision, pure, and the port to a person."""

from __future__ import annotations

from typing import Literal, Protocol, assert_never

import msgspec

from jp.config.kinds import RunMode
from jp.conversation.entries import ToolCallRequest


class Allowed(msgspec.Struct, frozen=True):
    """The call may run."""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """The call must not run.

    `skipped`: the configuration says so. `refused`: `--deny-all` does. `declined`: the person who was asked did,
    perhaps with a `reason`. `nobody`: it had to be asked, and nobody can be.
    """

    cause: Literal["skipped", "refused", "declined", "nobody"]
    reason: str = ""


Decision = Allowed | Denied


class Approver(Protocol):
    """Asks a person. Where it turns out that nobody can be asked, it denies with the cause `nobody`."""

    async def approve(self, call: ToolCallRequest) -> Decision:
        """Ask whether `call` may run."""
        ...


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line answers for this turn wherever a tool has to be asked about.

    `approved` are the names of `--approve`, `approve_all` and `deny_all` the flags of those names; a name wins over
    `deny_all`, and `deny_all` over `approve_all`.
    """

    approved: frozenset[str] = frozenset()
    approve_all: bool = False
    deny_all: bool = False


def decide(name: str, run: RunMode, answers: Answers) -> Decision | None:
    """Whether a call of tool `name` may run; None where a person has to be asked.

    What is to be skipped is skipped, whatever was approved; what runs unattended is not asked about, so no answer
    concerns it.
    """
    match run:
        case "skip":
            return Denied(cause="skipped")
        case "unattended":
            return Allowed()
        case "ask" | "edit":
            return _answer(name, answers)
        case _:
            assert_never(run)


def _answer(name: str, answers: Answers) -> Decision | None:
    if name in answers.approved:
        return Allowed()
    if answers.deny_all:
        return Denied(cause="refused")
    return Allowed() if answers.approve_all else None


async def permission_for(call: ToolCallRequest, run: RunMode, answers: Answers, approver: Approver | None) -> Decision:
    """Decide, and ask where it takes a person. Without an `approver`, asking means denying."""
    decision = decide(call.name, run, answers)
    if decision is not None:
        return decision
    return Denied(cause="nobody") if approver is None else await approver.approve(call)


def explain(name: str, denied: Denied) -> str:
    """What the model is told of a call that did not run."""
    match denied.cause:
        case "skipped":
            why = f"the configuration says that calls of {name!r} are skipped"
        case "refused":
            why = "the user denied every call of this turn that needs approval"
        case "declined":
            why = "the user was asked and declined"
        case "nobody":
            why = f"{name!r} needs the user's approval, and nobody can be asked here"
        case _:
            assert_never(denied.cause)
    said = f" The user said: {denied.reason}" if denied.reason else ""
    return f"This call did not run: {why}.{said} Do not repeat it; go on without it, or say what it is needed for."

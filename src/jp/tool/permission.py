"""May a call run, and may the model have its result: what is decided beforehand, and the words for a no. Pure."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from jp.config.kinds import RunMode
from jp.config.tools import ResultMode


class Allowed(msgspec.Struct, frozen=True):
    """The call may run, or its result be given."""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """The call must not run, or its result not be given.

    `skipped`: the configuration says so. `refused`: `--deny-all` does. `declined`: the person who was asked did,
    perhaps with a `reason`. `nobody`: it had to be asked, and nobody can be.
    """

    cause: Literal["skipped", "refused", "declined", "nobody"]
    reason: str = ""


Decision = Allowed | Denied


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line answers for this turn wherever a tool has to be asked about.

    `approved` are the names of `--approve`, `approve_all` and `deny_all` the flags of those names; a name wins over
    `deny_all`, and `deny_all` over `approve_all`.
    """

    approved: frozenset[str] = frozenset()
    approve_all: bool = False
    deny_all: bool = False


def decide(name: str, mode: RunMode | ResultMode, answers: Answers) -> Decision | None:
    """Whether a call of tool `name` may run, or its result be given; None where a person has to be asked.

    What is to be skipped is skipped, whatever was approved; what is unattended is not asked about, so no answer
    concerns it.
    """
    match mode:
        case "skip":
            return Denied(cause="skipped")
        case "unattended":
            return Allowed()
        case "ask" | "edit":
            return _answer(name, answers)
        case _:
            assert_never(mode)


def _answer(name: str, answers: Answers) -> Decision | None:
    if name in answers.approved:
        return Allowed()
    if answers.deny_all:
        return Denied(cause="refused")
    return Allowed() if answers.approve_all else None


def explain(name: str, denied: Denied) -> str:
    """What the model is told of a call that did not run."""
    why = _reason(denied, f"calls of {name!r}", f"{name!r}")
    return f"This call did not run: {why} Do not repeat it; go on without it, or say what it is needed for."


def explain_withheld(name: str, denied: Denied) -> str:
    """What the model is told in place of a result."""
    why = _reason(denied, f"results of {name!r}", f"giving you the result of {name!r}")
    return f"This call ran, but you are not given its result: {why} Do not repeat it."


def _reason(denied: Denied, skipped: str, needing: str) -> str:
    said = f" The user said: {denied.reason}" if denied.reason else ""
    match denied.cause:
        case "skipped":
            why = f"the configuration says that {skipped} are skipped"
        case "refused":
            why = "the user denied everything in this turn that needs approval"
        case "declined":
            why = "the user was asked and declined"
        case "nobody":
            why = f"{needing} needs the user's approval, and nobody can be asked here"
        case _:
            assert_never(denied.cause)
    return f"{why}.{said}"

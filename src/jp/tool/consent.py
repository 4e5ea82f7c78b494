"""Whether a call may run: what was decided beforehand, or the person who is asked."""

from __future__ import annotations

from msgspec.structs import replace

from jp.tool.checking import CheckedCall
from jp.tool.permission import Answers, Approver, Decision, Denied, decide


class Consent:
    """The consent to the calls of a turn. `approver` is None where nobody can be asked."""

    def __init__(self, answers: Answers, approver: Approver | None) -> None:
        self._answers = answers
        self._approver = approver

    def known(self, checked: CheckedCall) -> Decision | None:
        """What is decided without asking; None where a person has to be asked."""
        return decide(checked.call.name, checked.configured.settings.run or "ask", self._answers)

    async def ask(self, checked: CheckedCall) -> Decision:
        """Ask about a call for which nothing is decided. Where nobody can be asked, it must not run."""
        if self._approver is None:
            return Denied(cause="nobody")
        return await self._approver.approve(replace(checked.call, arguments=checked.arguments))

"""Confining the program of a call: the limits that its settings set, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from jp.config.tools import SandboxConfig
from jp.conversation.resource import TextBlock
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.local.execution import said
from jp.tool.results import text_of

if TYPE_CHECKING:
    from jp.process.running import Ended
    from jp.process.sandbox.policy import Confinement
    from jp.process.sandbox.words import Limits


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """How the programs of one tool are confined.

    Args:
        name: that of the tool.
        default: the mode where the configuration does not say.
        private: gives the directories of jp itself, which no program may read.
    """

    name: str
    default: Literal["workspace-write", "read-only", "off"]
    private: Callable[[], Sequence[str]] = tuple

    def confinement(self, settings: SandboxConfig, root: str, *, is_agreed: bool) -> Confinement | None:
        """Return the limits of a program; None where it has none."""
        if (settings.mode or self.default) == "off":
            return None
        from jp.process.sandbox.policy import confinement_of

        return confinement_of(settings, default=self.default, root=root, private=self.private(), is_agreed=is_agreed)

    def of_call(self, invocation: ToolInvocation) -> Confinement | None:
        """Return the limits of a call's program; None where it has none."""
        settings = invocation.settings.sandbox
        return self.confinement(settings, str(invocation.root.absolute()), is_agreed=invocation.is_agreed)

    def limits(self, invocation: ToolInvocation) -> Limits:
        """Return what confines a call. Nothing is said where nothing does because that is the default."""
        from jp.process.sandbox.words import Limits

        confinement = self.of_call(invocation)
        if confinement is None:
            said = "" if self.default == "off" else "not confined: the configuration turns the sandbox off"
            return Limits(word="off", text=said)
        from jp.process.sandbox.launching import in_force

        return in_force(confinement)

    def explained(self, output: ToolOutput, ended: Ended, invocation: ToolInvocation) -> ToolOutput:
        """Return `output`, and where the sandbox may have stopped its program, a sentence that says so.

        The person is told, too, with the setting that allows it. Of a program that did not fail, only what it said on
        its standard error counts.
        """
        confinement = self.of_call(invocation)
        if confinement is None:
            return output
        from jp.process.sandbox.launching import mechanism_for, rules_for
        from jp.process.sandbox.mechanisms import Landlock, Missing
        from jp.process.sandbox.words import denied_use, limits_text

        mechanism = mechanism_for(confinement)
        if not invocation.is_agreed and isinstance(mechanism, Landlock | Missing):
            # Nobody was asked, so nobody has read it in the question.
            invocation.notice(f"{self.name!r} ran: {self.limits(invocation).text}")
        use = denied_use(text_of(output) if output.is_error else said(ended.stderr), confinement)
        if use is None or isinstance(mechanism, Missing):
            return output
        limits = limits_text(confinement, mechanism, rules_for(confinement, {}).frozen_because)
        invocation.notice(f"the sandbox may have stopped {self.name!r}: {limits}; {self._remedy(confinement, use)}")
        sentence = f"The sandbox may be the reason: this ran in a sandbox, where {limits}.\n"
        return replace(output, content=(*output.content, TextBlock(text=sentence)))

    def _remedy(self, confinement: Confinement, use: Literal["network", "write"]) -> str:
        key = f"conversation.tools.{self.name}.sandbox"
        if confinement.mode == "read-only":
            return f"`{key}.mode=workspace-write` allows more"
        return f"`{key}.network=true` allows it" if use == "network" else f"`{key}.writable` allows more directories"

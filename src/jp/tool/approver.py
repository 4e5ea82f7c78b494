"""The port to a person who says whether calls may run, and what they may answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.tool.base import ToolOutput


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked about: a call with the arguments that it would run with.

    `preview` is what the tool says that it would do; `problems` says of other arguments why they do not fit; `limits`
    is what confines the call, empty where that is no matter.
    """

    call: ToolCallRequest
    arguments: JsonObject
    preview: str | None
    problems: Callable[[JsonObject], Sequence[str]]
    limits: str = ""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """Yes. `remember`: also to each such call of this turn."""

    remember: bool = False


class Declined(msgspec.Struct, frozen=True, kw_only=True):
    """No, perhaps with a `reason`. `remember`: also to each such call of this turn."""

    reason: str = ""
    remember: bool = False


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """Other arguments, in which there are no problems."""

    arguments: JsonObject


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """Another text in place of a result's."""

    text: str


class Nobody(msgspec.Struct, frozen=True):
    """It turns out that nobody can be asked."""


class Approver(Protocol):
    """Asks a person, one question after the other."""

    async def approve(self, proposal: Proposal) -> Granted | Declined | Edited | Nobody:
        """Ask whether a call may run."""
        ...

    async def edit(self, proposal: Proposal) -> Granted | Declined | Edited | Nobody:
        """Have the arguments of a call edited, and where that comes to nothing, ask."""
        ...

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> Granted | Declined | Replaced | Nobody:
        """Ask whether the model gets a result."""
        ...

    async def edit_result(self, call: ToolCallRequest, output: ToolOutput) -> Granted | Declined | Replaced | Nobody:
        """Have the text of a result edited, and where that comes to nothing, ask."""
        ...

"""Who answers what tools ask in a query: the person at the terminal, and the model of the turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from jp.cli.dialogue import Dialogue
from jp.cli.query.conversation import is_attended
from jp.conversation.entries import ToolCallRequest
from jp.provider.base import Provider
from jp.provider.registry import ModelId
from jp.tool.base import Inquirer, Stream, Toolbox
from jp.turn.ports import Cap, NoCap

if TYPE_CHECKING:
    from jp.tool.inquiries import Inquiries, Respondent


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """Whom tools may ask. `log` hears why the model gave no answer."""

    model: ModelId
    provider: Provider
    dialogue: Dialogue
    log: Callable[[str], None]
    cap: Cap = NoCap()

    def of(self, toolbox: Toolbox) -> Callable[[ToolCallRequest, Stream], Inquirer]:
        """Who answers a call of the tools in `toolbox`. Nothing for it is imported before there is a call."""
        return _Made(self, toolbox).inquirer


class _Made:
    def __init__(self, answering: Answering, toolbox: Toolbox) -> None:
        self._with = answering
        self._toolbox = toolbox

    def inquirer(self, call: ToolCallRequest, stream: Stream) -> Inquirer:
        return self._inquiries.inquirer(call, stream)

    @cached_property
    def _inquiries(self) -> Inquiries:
        from jp.cli.query.inquiring import ModelRespondent
        from jp.tool.inquiries import Inquiries

        around = self._with
        model = ModelRespondent(around.model, around.provider, cap=around.cap, log=around.log)
        return Inquiries(self._toolbox, person=self._person(), model=model)

    def _person(self) -> Respondent | None:
        if not is_attended():
            return None
        from jp.cli.questions import TerminalRespondent

        return TerminalRespondent(self._with.dialogue)

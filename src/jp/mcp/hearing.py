"""What a server says and asks without being asked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from anyio import Event

from jp.mcp.forms import Elicitation, Filled, Page, form_of
from jp.mcp.ports import Call, Talk

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import ClientRequestContext, IncomingMessage

_MOST_ASKED = 4
"""So many questions of a server wait for answers at once; further ones get none."""

_MOST_LOGGED = 1000
_LONGEST_LOGGED = 2000


class Hearing:
    """Answers what the server `name` asks while calls run, and notes that its list of tools has changed."""

    def __init__(self, name: str, talk: Talk) -> None:
        self.changed = Event()
        self._name = name
        self._talk = talk
        self._calls: list[Call] = []
        self._asked = 0
        self._logged = 0

    @contextmanager
    def during(self, call: Call) -> Generator[None]:
        """The time in which `call` runs: what the server asks then may be about it."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)

    async def message(self, message: IncomingMessage) -> None:
        """Take a notification."""
        import mcp_types as types

        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Take a line of the server's log."""
        if self._logged == _MOST_LOGGED:
            self._talk.log(f"{self._name}: it has logged {_MOST_LOGGED:,} messages: no more are shown")
        elif self._logged < _MOST_LOGGED:
            self._talk.log(f"{self._name}: {params.level}: {str(params.data)[:_LONGEST_LOGGED]}")
        self._logged += 1

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Have a question answered. It does not say which call it is about: the first that runs answers it."""
        import mcp_types as types

        del context
        elicitation = self._elicitation(params)
        if not self._calls or self._asked >= _MOST_ASKED:
            return types.ElicitResult(action="cancel")
        self._asked += 1
        try:
            filled: Filled = await self._calls[0].elicit(elicitation)
        finally:
            self._asked -= 1
        if filled.action != "accept":
            return types.ElicitResult(action=filled.action)
        return types.ElicitResult(action="accept", content=filled.values)

    def _elicitation(self, params: types.ElicitRequestParams) -> Elicitation:
        if params.mode == "url":
            return Page(server=self._name, message=params.message, url=params.url)
        return form_of(self._name, params.message, params.requested_schema)

"""The requests of one turn: each is built from the current log and recorded there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, Compaction, CycleEnd, Digests
from jp.conversation.thread import Thread
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.turn.bound_reasoning import BoundRenderer, Rendered
from jp.turn.ports import TurnPorts
from jp.turn.request import (
    RequestSettings,
    ThreadBuilder,
    context_entry,
    context_in_force,
    digests_of,
    is_same_context,
    message_digests,
)

FREE_CHOICES = frozenset({"auto", "none"})
"""The choices of tool that demand no call."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is ready to be sent: what it says, in the provider's form, and its hashes for the log.

    `withheld` are the ids of the reasoning that it is without because something before it has changed.
    """

    thread: Thread
    wire: WireRequest
    digests: Digests
    withheld: tuple[str, ...] = ()


class Preparation:
    """Makes the requests of one turn."""

    def __init__(self, ports: TurnPorts, settings: RequestSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._is_corrected = False
        self._threads = ThreadBuilder(ports.recorder, ports.status_formatter)
        self._renderer = BoundRenderer(ports.provider)
        self._messages = message_digests(ports.recorder.entries)
        self._context = context_in_force(ports.recorder.entries)
        self._withheld = _last_withheld(ports.recorder.entries)

    @property
    def demands_call(self) -> bool:
        """Return True if the model must call a tool."""
        return bool(self._settings.tools) and self._settings.parameters.tool_choice not in FREE_CHOICES

    @property
    def permits_call(self) -> bool:
        """Return whether the model may call a tool."""
        return bool(self._settings.tools) and self._settings.parameters.tool_choice != "none"

    def free_choice(self) -> None:
        """Demand no call from here on: a demand that is kept would never let the model answer."""
        parameters = self._settings.parameters
        if parameters.tool_choice not in FREE_CHOICES:
            self._settings = replace(self._settings, parameters=replace(parameters, tool_choice="auto"))

    def thread(self, *, going_on: bool = False) -> Thread:
        """Return the thread that the model is shown. `going_on`: the model is asked again without new input.

        Raises:
            StorageError: content that it shows cannot be read.
        """
        return self._threads.build(self._ports.recorder.entries, self._settings, continuing=going_on)

    async def prepare(self, *, going_on: bool) -> Prepared:
        """Return the next request; a change of its settings is recorded.

        Raises:
            ProviderError: it does not fit into the model's window, raised only if compaction can free space for it.
        """
        context = context_entry(self._settings)
        if not is_same_context(self._context, context):
            self._ports.record(context)
            self._context = context
        rendered = self._render(going_on=going_on)
        while overlays := await self._ports.room.before(rendered.wire):
            self._record_all(overlays)
            rendered = self._render(going_on=going_on)
        digests = digests_of(rendered.wire.sections, self._messages)
        self._messages = self._messages[: digests.kept] + digests.messages
        self._tell_withheld(rendered.withheld)
        return Prepared(thread=rendered.thread, wire=rendered.wire, digests=digests, withheld=rendered.withheld)

    def _render(self, *, going_on: bool) -> Rendered:
        return self._renderer.render(self.thread(going_on=going_on), self._ports.recorder.entries)

    def _tell_withheld(self, withheld: tuple[str, ...]) -> None:
        """Say it where more reasoning is withheld than from the request before."""
        if len(withheld) > self._withheld:
            pieces = "1 piece" if len(withheld) == 1 else f"{len(withheld):,} pieces"
            self._ports.renderer.notice(
                f"{pieces} of earlier reasoning not sent: what came before has changed, and the provider checks that"
            )
        self._withheld = len(withheld)

    def corrected(self, error: ProviderError | None) -> bool:
        """Return whether the next request has the nearest value that `error` accepts of one that it refuses.

        That happens once a turn, so that a provider that refuses everything ends it.
        """
        if self._is_corrected or error is None or error.kind != "invalid_request":
            return False
        from jp.provider.corrections import corrected_parameters

        correction = corrected_parameters(self._settings.parameters, error.message)
        if correction is None:
            return False
        self._is_corrected = True
        self._settings = replace(self._settings, parameters=correction.parameters)
        self._ports.renderer.notice(correction.note)
        return True

    async def relieved(self, error: ProviderError | None) -> bool:
        """Record compactions if `error` says that the last request was too long; return True if there were any."""
        if error is None or error.kind != "context_too_long":
            return False
        overlays = await self._ports.room.after_overflow()
        self._record_all(overlays)
        return bool(overlays)

    def _record_all(self, overlays: Sequence[Compaction]) -> None:
        for overlay in overlays:
            self._ports.record(overlay)


def _last_withheld(entries: Sequence[AnyEntry]) -> int:
    return next((entry.withheld for entry in reversed(entries) if isinstance(entry, CycleEnd)), 0)

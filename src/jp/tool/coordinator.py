"""The calls of a cycle: checked, permitted, run side by side, and each told of as it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from jp.config.tools import ToolConfig
from jp.conversation.entries import AnyEntry, Question, ToolCallRequest
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import (
    Answer,
    CallOutcome,
    CallStarted,
    ConfiguredTool,
    Delivery,
    Inquired,
    Inquirer,
    NobodyToAsk,
    Progressed,
    Stream,
    Toolbox,
    ToolEvent,
    ToolInvocation,
    ToolOutput,
    Unanswered,
    error_output,
)
from jp.tool.checking import CheckedCall, check
from jp.tool.consent import Consent
from jp.tool.permission import Allowed, Decision, Denied, explain
from jp.tool.toolbox import definitions

if TYPE_CHECKING:
    from anyio import CancelScope, CapacityLimiter
    from anyio.abc import TaskGroup

AT_ONCE = 8
"""So many calls run at the same time; the others wait."""

TIMEOUT_SECS = 120.0
"""How long a command or a server may take over a call where nothing else is said."""

Tell = Callable[[ToolEvent], None]
"""Hears what happens, at once: when it returns, a result is recorded."""


def as_it_came(configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
    """A delivery that changes nothing."""
    del configured, entries
    return output


def _nobody(call: ToolCallRequest) -> Inquirer:
    del call
    return NobodyToAsk()


class ToolCoordinator:
    """Runs the calls of each cycle.

    `root` confines built-in file tools; `notice` hears what a person should know although the turn goes on;
    `delivery` makes of a result what is recorded; `inquirer_for` gives who answers the questions of a call.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        root: Path,
        consent: Consent,
        notice: Callable[[str], None],
        delivery: Delivery = as_it_came,
        inquirer_for: Callable[[ToolCallRequest], Inquirer] = _nobody,
    ) -> None:
        self.toolbox = toolbox
        self.root = root
        self.consent = consent
        self.notice = notice
        self.delivery = delivery
        self.inquirer_for = inquirer_for

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call, sorted by name."""
        return definitions(self.toolbox)

    async def run(self, calls: Sequence[ToolCallRequest], stream: Stream, tell: Tell) -> None:
        """Run the calls of one cycle: `tell` hears of one outcome for each, and before it whether the call runs.

        What needs no answer runs while a person is asked about the rest, one call after the other. Cancelling stops
        all that run, and no other starts; nothing is told of them.

        Raises:
            Exception: what `tell` raised; then everything is stopped, too.
        """
        await _Cycle(self, stream, tell).run(calls)


class _Cycle:
    """The calls of one cycle. Runs once."""

    def __init__(self, coordinator: ToolCoordinator, stream: Stream, tell: Tell) -> None:
        from anyio import CapacityLimiter, create_task_group

        self._with = coordinator
        self._stream = stream
        self._hears = tell
        self._failure: Exception | None = None
        self._tasks: TaskGroup = create_task_group()
        self._places: CapacityLimiter = CapacityLimiter(AT_ONCE)

    async def run(self, calls: Sequence[ToolCallRequest]) -> None:
        """See `ToolCoordinator.run`."""
        async with self._tasks:
            asked = [checked for call in calls if (checked := self._begin(call)) is not None]
            for checked in asked:
                self._decided(checked, await self._with.consent.ask(checked))
        if self._failure is not None:
            raise self._failure

    def _begin(self, call: ToolCallRequest) -> CheckedCall | None:
        """Start what may run, and end what cannot; what is left has to be asked about."""
        checked = check(call, self._with.toolbox)
        if isinstance(checked, ToolOutput):
            self._tell(CallOutcome(call=call, output=checked))
            return None
        decision = self._with.consent.known(checked)
        if decision is None:
            return checked
        self._decided(checked, decision)
        return None

    def _decided(self, checked: CheckedCall, decision: Decision) -> None:
        match decision:
            case Allowed():
                self._tasks.start_soon(self._run, checked)
            case Denied(cause=cause):
                output = error_output(explain(checked.call.name, decision))
                self._tell(CallOutcome(call=checked.call, output=output, denied=cause != "skipped"))

    async def _run(self, checked: CheckedCall) -> None:
        async with self._places:
            self._tell(CallStarted(call=checked.call))
            start = monotonic()
            output = await self._output(checked)
            duration = round((monotonic() - start) * 1000)
            delivered = self._with.delivery(checked.configured, output, self._stream.entries)
            self._tell(CallOutcome(call=checked.call, output=delivered, duration_ms=duration))

    async def _output(self, checked: CheckedCall) -> ToolOutput:
        from anyio import move_on_after

        name, seconds = checked.call.name, timeout_of(checked.configured.settings)
        try:
            with move_on_after(seconds) as scope:
                return await checked.configured.tool.run(self._invocation(checked, scope))
        except JpError as error:
            return error_output(error.message)
        except Exception as error:  # noqa: BLE001  a tool may raise anything; the turn, its log and its user go on
            self._with.notice(f"tool {name!r} failed: {type(error).__name__}: {error}")
            return error_output(f"{name} failed: {type(error).__name__}: {error}")
        return error_output(f"{name} was stopped: it took longer than {seconds:g} s. What it did until then stays.")

    def _invocation(self, checked: CheckedCall, scope: CancelScope) -> ToolInvocation:
        call = checked.call
        return ToolInvocation(
            arguments=checked.arguments,
            root=self._with.root,
            settings=checked.configured.settings,
            inquirer=_Inquiries(call, self._with.inquirer_for(call), self._tell, scope),
            progress=lambda text: self._tell(Progressed(call=call, text=text)),
            stream=self._stream,
        )

    def _tell(self, event: ToolEvent) -> None:
        """Tell of `event`. Whoever hears of it may fail, and then nothing goes on."""
        if self._failure is not None:
            return
        try:
            self._hears(event)
        except Exception as error:  # noqa: BLE001  raised again when everything has stopped
            self._failure = error
            self._tasks.cancel_scope.cancel()


class _Inquiries:
    """Has the questions of one call answered; the time that an answer takes is not the call's."""

    def __init__(self, call: ToolCallRequest, inquirer: Inquirer, tell: Tell, scope: CancelScope) -> None:
        self._call = call
        self._inquirer = inquirer
        self._tell = tell
        self._scope = scope

    async def ask(self, question: Question) -> Answer | Unanswered:
        """See the port."""
        from anyio import current_time

        start, deadline = current_time(), self._scope.deadline
        self._scope.deadline = float("inf")
        answer = await self._inquirer.ask(question)
        self._scope.deadline = deadline + current_time() - start
        if isinstance(answer, Answer):
            self._tell(Inquired(call=self._call, question=question, answer=answer))
        return answer


def timeout_of(settings: ToolConfig) -> float | None:
    """How many seconds a call may take; None: any number."""
    if settings.timeout_secs is not None:
        return settings.timeout_secs or None
    is_outside = settings.command is not None or (settings.source or "").startswith(("local", "mcp."))
    return TIMEOUT_SECS if is_outside else None

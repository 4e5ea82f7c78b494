"""The turn: the only place that awaits a provider and tools. Decisions are `machine`'s, content is `request`'s."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from jp.compaction.stand_ins import StandIns
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
    add_usage,
)
from jp.conversation.interruption import INTERRUPTED_CONTENT
from jp.conversation.thread import Thread
from jp.provider.base import Provider
from jp.provider.errors import ProviderError
from jp.turn.attempt import AttemptResult, AttemptRun
from jp.turn.digests import digests_of, message_digests
from jp.turn.machine import Ask, AttemptEnded, Ending, EndTurn, Limits, RunTools, TurnState, after_attempt, after_tools
from jp.turn.ports import Clock, Recorder, Renderer, ToolRunner
from jp.turn.request import (
    ContentCache,
    RequestSettings,
    build_thread,
    context_entry,
    context_in_force,
    is_same_context,
)
from jp.turn.retry import RetryPolicy, waiting_time


class TurnPorts(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a turn works with."""

    provider: Provider
    recorder: Recorder
    renderer: Renderer
    tools: ToolRunner
    clock: Clock
    stand_ins: StandIns


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended, after how many cycles.

    `usage` sums all its requests; `denied` names tools that did not run for want of consent.
    """

    ending: Ending
    cycles: int
    usage: Usage
    detail: str = ""
    error: ProviderError | None = None
    denied: tuple[str, ...] = ()


class TurnLoop:
    """One turn. `run` once."""

    def __init__(self, ports: TurnPorts, settings: RequestSettings, *, limits: Limits, retry: RetryPolicy) -> None:
        self._ports = ports
        self._settings = settings
        self._limits = limits
        self._retry = retry
        self._cache = ContentCache(ports.recorder)
        self._messages = message_digests(ports.recorder.entries)
        self._context = context_in_force(ports.recorder.entries)
        self._usage = Usage()
        self._message = ""
        self._denied: list[str] = []
        self._open: dict[str, ToolCallRequest] = {}

    async def run(self, request: ChatRequest) -> TurnOutcome:
        """Record `request`, then ask and run tools until the turn is over.

        Where this is cancelled, everything that came is in the log, and every call has a response.

        Raises:
            StorageError: content that the request shows cannot be read, and nothing was written; or an entry could
                not be.
        """
        self._thread()  # content that cannot be read is found, and kept, before anything is written
        self._record(TurnStart())
        self._record(request)
        try:
            return await self._cycles()
        finally:
            self._answer_open_calls()
            self._ports.renderer.close()

    async def _cycles(self) -> TurnOutcome:
        state, ask = TurnState(), Ask()
        while True:
            result = await self._ask(state, continuing=ask.continuing)
            wait = self._waiting_time(state, result)
            ended = AttemptEnded(
                finish=result.finish,
                incomplete=bool(self._message) and not (result.finish == "length" and result.dropped_calls),
                answered=result.answered,
                calls=len(result.calls),
                retryable=wait is not None,
            )
            state, following = after_attempt(state, ended, self._limits)
            if isinstance(following, RunTools):
                await self._run_tools(result.calls)
                state, following = after_tools(state, self._limits)
            if isinstance(following, EndTurn):
                return self._outcome(following.ending, state, result)
            ask = following
            if wait is not None:
                await self._pause(result, ask.retry, wait)

    async def _ask(self, state: TurnState, *, continuing: bool) -> AttemptResult:
        ports = self._ports
        self._enter_context(tools_ran=state.cycle > 0 and not continuing)
        if not continuing:
            self._message = ""
        request = ports.provider.render(self._thread(continuing=continuing))
        digests = digests_of(ports.provider.sections(request), self._messages)
        self._messages = self._messages[: digests.kept] + digests.messages
        attempt = AttemptRun(
            recorder=ports.recorder,
            renderer=ports.renderer,
            number=state.attempt,
            continued=self._message if continuing else None,
        )
        result = await attempt.run(ports.provider, request, digests)
        self._message += result.text
        self._usage = add_usage(self._usage, result.usage)
        for name in result.dropped_calls:
            ports.renderer.notice(f"a call of {name!r} was cut off and did not run")
        return result

    def _thread(self, *, continuing: bool = False) -> Thread:
        ports = self._ports
        return build_thread(
            ports.recorder.entries,
            self._settings,
            loader=self._cache,
            stand_ins=ports.stand_ins,
            continuing=continuing,
        )

    def _enter_context(self, *, tools_ran: bool) -> None:
        """Record what the next request holds besides the stream, where that changed.

        A forced choice of tool is for the first cycle: kept, it would never let the model answer.
        """
        parameters = self._settings.parameters
        if tools_ran and parameters.tool_choice not in {"auto", "none"}:
            self._settings = replace(self._settings, parameters=replace(parameters, tool_choice="auto"))
        context = context_entry(self._settings)
        if not is_same_context(self._context, context):
            self._record(context)
            self._context = context

    def _waiting_time(self, state: TurnState, result: AttemptResult) -> float | None:
        error = result.error
        if error is None or not error.is_retryable:
            return None
        jitter = self._ports.clock.jitter()
        return waiting_time(self._retry, retry=state.attempt, jitter=jitter, retry_after=error.retry_after)

    async def _pause(self, result: AttemptResult, retry: int, seconds: float) -> None:
        reason = "the stream was cut" if result.error is None else result.error.message
        self._ports.renderer.notice(f"{reason}; retry {retry} of {self._retry.max_retries} in {seconds:.1f} s")
        await self._ports.clock.sleep(seconds)

    async def _run_tools(self, calls: Sequence[ToolCallRequest]) -> None:
        self._open = {call.id: call for call in calls}
        async with aclosing(self._ports.tools.run(calls)) as outcomes:
            async for outcome in outcomes:
                response = ToolCallResponse(
                    request=outcome.call.id,
                    content=outcome.output.content,
                    is_error=outcome.output.is_error,
                    duration_ms=outcome.duration_ms,
                    facts=outcome.output.facts,
                )
                self._respond(outcome.call, response)
                if outcome.denied:
                    self._denied.append(outcome.call.name)

    def _respond(self, call: ToolCallRequest, response: ToolCallResponse) -> None:
        recorded = self._ports.recorder.append(response)
        del self._open[call.id]
        self._ports.renderer.entry(recorded)
        self._ports.renderer.tool_result(call, response)

    def _answer_open_calls(self) -> None:
        """A turn that is cancelled while tools run leaves no call without a response."""
        for call in tuple(self._open.values()):
            self._respond(call, ToolCallResponse(request=call.id, content=INTERRUPTED_CONTENT, is_error=True))

    def _record(self, entry: AnyEntry) -> None:
        self._ports.renderer.entry(self._ports.recorder.append(entry))

    def _outcome(self, ending: Ending, state: TurnState, result: AttemptResult) -> TurnOutcome:
        return TurnOutcome(
            ending=ending,
            cycles=state.cycle + 1,
            usage=self._usage,
            detail=result.detail,
            error=result.error,
            denied=tuple(self._denied),
        )

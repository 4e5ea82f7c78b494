"""Run a turn: one request after another, with the tool calls between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.compaction.fact_lines import NO_NONCE, nonce_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Facts,
    InquiryRequest,
    InquiryResponse,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
    add_usage,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT, TextBlock
from jp.conversation.turns import is_blank, next_after
from jp.provider.errors import ProviderError
from jp.tool.base import CallOutcome, CallProgress, CallStarted, QuestionAnswered, ToolEvent
from jp.tool.toolbox import RECALL
from jp.turn.attempt import AttemptResult, AttemptRun
from jp.turn.machine import (
    Ask,
    AttemptEnded,
    Ending,
    EndTurn,
    Limits,
    RetryPolicy,
    RunTools,
    TurnState,
    after_attempt,
    after_tools,
    waiting_time,
)
from jp.turn.ports import CallAnswered, TurnPorts
from jp.turn.preparation import Preparation, Prepared
from jp.turn.request import RequestSettings


def refusal_of(call: ToolCallRequest, entries: Sequence[AnyEntry]) -> ToolCallResponse | None:
    """Return the error response to `call` if its arguments contain a marker of this log; None if the call may run.

    A call that recalls the text behind a marker may run.
    """
    if call.name == RECALL:
        return None
    from jp.context.markers import contains_marker, marked_handles

    nonce = nonce_of(entries)
    arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    # `NO_NONCE` also occurs in text without markers, so there only the prefix of a marker counts.
    if not contains_marker(arguments, nonce if nonce != NO_NONCE else f"[[cut:{nonce}:"):
        return None
    handles = ", ".join(marked_handles(arguments, nonce))
    what = f" ({handles})" if handles else ""
    text = (
        f"Not run: the arguments have a marker `[[cut:…]]` in them{what}. It marks a place where the middle of a "
        "text is not shown to you any more. Recall it, and call again with the whole text in its place."
    )
    return ToolCallResponse(request=call.id, content=(TextBlock(text=text),), is_error=True)


class CallsRun:
    """Runs once. `denied` names the tools that did not run for want of consent, `unanswered` those that ran.

    These needed an answer, or consent to their result, that nobody gave.
    """

    def __init__(self, ports: TurnPorts, calls: Sequence[ToolCallRequest]) -> None:
        self.denied: list[str] = []
        self.unanswered: list[str] = []
        self._ports = ports
        self._open = {call.id: call for call in calls}
        self._started: set[str] = set()

    async def run(self) -> None:
        """Run the calls and record each result as it arrives. Those that copy a marker are answered at once.

        Where this is cancelled, what is left open is answered by an error that says whether it had been started.
        """
        try:
            self._refuse_copies()
            if self._open:
                await self._ports.tools.run(tuple(self._open.values()), self._ports.recorder, self._take)
        finally:
            for call in tuple(self._open.values()):
                content = INTERRUPTED_CONTENT if call.id in self._started else NOT_STARTED_CONTENT
                self._respond(call, ToolCallResponse(request=call.id, content=content, is_error=True))

    def _refuse_copies(self) -> None:
        for call in tuple(self._open.values()):
            refusal = refusal_of(call, self._ports.recorder.entries)
            if refusal is not None:
                self._respond(call, refusal)

    def _take(self, event: ToolEvent) -> None:
        match event:
            case CallStarted(call=call):
                self._started.add(call.id)
            case CallProgress():
                self._ports.renderer.tool(event)
            case QuestionAnswered():
                self._record_inquiry(event)
            case CallOutcome():
                self._end(event)
            case _:
                assert_never(event)

    def _record_inquiry(self, event: QuestionAnswered) -> None:
        asked = self._ports.recorder.append(InquiryRequest(request=event.call.id, question=event.question))
        self._ports.renderer.entry(asked)
        answer = event.answer
        self._ports.record(
            InquiryResponse(
                request=asked.id, answer=answer.value, answered_by=answer.by, model=answer.model, usage=answer.usage
            )
        )
        self._ports.renderer.tool(event)

    def _end(self, outcome: CallOutcome) -> None:
        response = ToolCallResponse(
            request=outcome.call.id,
            content=outcome.output.content,
            is_error=outcome.output.is_error,
            duration_ms=outcome.duration_ms,
            facts=_without_secrets(outcome.output.facts),
        )
        self._respond(outcome.call, response)
        if outcome.denied:
            (self.denied if outcome.duration_ms is None else self.unanswered).append(outcome.call.name)

    def _respond(self, call: ToolCallRequest, response: ToolCallResponse) -> None:
        recorded = self._ports.recorder.append(response)
        del self._open[call.id]
        self._ports.renderer.entry(recorded)
        self._ports.renderer.tool(CallAnswered(call=call, response=response))


def _without_secrets(facts: Facts | None) -> Facts | None:
    """Return `facts` without secrets, for digests and indexes. The output itself is recorded unchanged."""
    if facts is None or not (facts.first_error or facts.url):
        return facts
    from jp.context.redaction import redact

    return replace(
        facts,
        first_error=facts.first_error and redact(facts.first_error).text,
        url=facts.url and redact(facts.url).text,
    )


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a turn and the number of its cycles.

    `usage` sums all requests. `denied` names tools that did not run because consent was missing. `unanswered` names
    tools that ran and needed an answer from a person that nobody gave.
    """

    ending: Ending
    cycles: int
    usage: Usage
    detail: str = ""
    error: ProviderError | None = None
    denied: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()


class TurnLoop:
    """One turn. `run` once."""

    def __init__(self, ports: TurnPorts, settings: RequestSettings, *, limits: Limits, retry: RetryPolicy) -> None:
        self._ports = ports
        self._limits = limits
        self._retry = retry
        self._preparation = Preparation(ports, settings)
        self._message = ""  # what came of the message that is being written, over all attempts at it
        self._has_whole_message = False  # it came to its end, although the attempt at it failed
        self._usage = Usage()
        self._cycles_asked = 0
        self._denied: list[str] = []
        self._unanswered: list[str] = []

    async def run(self, request: ChatRequest) -> TurnOutcome:
        """Record `request`, then ask and run tools until the turn is over.

        Where this is cancelled, everything that came is in the log, and every call has a response.

        Raises:
            StorageError: content that the request shows cannot be read, and nothing was written; or an entry could
                not be.
        """
        self._preparation.thread()  # content that cannot be read is found, and kept, before anything is written
        self._ports.record(TurnStart(after=next_after(self._ports.recorder.entries)))
        self._ports.record(request)
        try:
            return await self._cycles()
        finally:
            self._ports.renderer.close()

    async def _cycles(self) -> TurnOutcome:
        state, ask = TurnState(), Ask()
        result: AttemptResult | None = None
        while True:
            prepared = await self._preparation.prepare(going_on=ask.continuing or ask.insisting)
            if not self._ports.cap.permits(prepared.wire):
                return self._outcome("capped", result)
            result = await self._ask(state, ask, prepared)
            wait = self._waiting_time(state, result)
            is_mendable = (
                bool(result.rejected)
                or self._preparation.corrected(result.error)
                or await self._preparation.relieved(result.error)
            )
            ended = self._judged(result, retryable=wait is not None, mendable=is_mendable)
            state, following = after_attempt(state, ended, self._limits)
            if isinstance(following, RunTools):
                await self._run_calls(result.calls)
                state, following = after_tools(state, self._limits)
            if isinstance(following, EndTurn):
                self._tell_end(ended, following)
                return self._outcome(following.ending, result)
            ask = following
            self._tell(state, result, ask)
            if wait is not None:
                await self._pause(state, result, wait)

    async def _ask(self, state: TurnState, ask: Ask, prepared: Prepared) -> AttemptResult:
        if not ask.continuing:
            self._message, self._has_whole_message = "", False
        self._cycles_asked = state.cycle + 1
        attempt = AttemptRun(
            self._ports,
            number=state.attempt,
            continued=self._message if ask.continuing else None,
            is_complete=self._has_whole_message,
            reasoning_removed=state.reasoning_removed,
        )
        result = await attempt.run(prepared)
        if result.text:
            self._message += result.text
            self._has_whole_message = result.message_complete
        self._usage = add_usage(self._usage, result.usage)
        for name in result.dropped_calls:
            self._ports.renderer.notice(f"a call of {name!r} was cut off and did not run")
        return result

    def _judged(self, result: AttemptResult, *, retryable: bool, mendable: bool) -> AttemptEnded:
        """Convert the result of an attempt into the event for the machine."""
        return AttemptEnded(
            finish=result.finish,
            incomplete=not is_blank(self._message) and not result.is_final,
            whole=self._has_whole_message and not self._preparation.permits_call and _may_pass(result.error),
            answered=result.answered,
            calls=len(result.calls),
            owing=self._preparation.demands_call,
            retryable=retryable,
            mendable=mendable,
        )

    async def _run_calls(self, calls: tuple[ToolCallRequest, ...]) -> None:
        run = CallsRun(self._ports, calls)
        await run.run()
        self._denied += run.denied
        self._unanswered += run.unanswered
        self._preparation.free_choice()

    def _waiting_time(self, state: TurnState, result: AttemptResult) -> float | None:
        error = result.error
        if error is None or not error.is_retryable:
            return None
        jitter = self._ports.clock.jitter()
        return waiting_time(self._retry, error, retry=state.retries + 1, jitter=jitter)

    async def _pause(self, state: TurnState, result: AttemptResult, seconds: float) -> None:
        reason = "the stream was cut" if result.error is None else result.error.message
        self._ports.renderer.notice(f"{reason}; retry {state.retries} of {self._retry.max_retries} in {seconds:.1f} s")
        await self._ports.clock.sleep(seconds)

    def _tell(self, state: TurnState, result: AttemptResult, ask: Ask) -> None:
        """Say why the model is asked again, where that is no retry."""
        if result.rejected:
            self._ports.renderer.notice(
                "the provider does not take earlier reasoning back as the model's own: it is not sent from now on"
            )
        if ask.insisting:
            counted = f"{state.insistence} of {self._limits.max_insistence}"
            self._ports.renderer.notice(f"the model called no tool, although it has to: asking again, {counted}")

    def _tell_end(self, ended: AttemptEnded, end: EndTurn) -> None:
        if end.ending == "answered" and ended.finish == "error":
            self._ports.renderer.notice("the connection broke after the answer had come to its end")

    def _outcome(self, ending: Ending, result: AttemptResult | None) -> TurnOutcome:
        return TurnOutcome(
            ending=ending,
            cycles=self._cycles_asked,
            usage=self._usage,
            detail="" if result is None else result.detail,
            error=None if result is None else result.error,
            denied=tuple(self._denied),
            unanswered=tuple(self._unanswered),
        )


def _may_pass(error: ProviderError | None) -> bool:
    return error is not None and error.is_retryable

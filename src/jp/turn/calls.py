"""The calls of one cycle: each has its response in the log at the end, whatever ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.compaction.fact_lines import NO_NONCE, nonce_of
from jp.conversation.entries import AnyEntry, Facts, InquiryRequest, InquiryResponse, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT, TextBlock
from jp.tool.base import CallOutcome, CallStarted, Inquired, Progressed, ToolEvent
from jp.tool.toolbox import RECALL
from jp.turn.ports import CallAnswered, TurnPorts


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
        f"Not run: the arguments have a marker `[[cut:…]]` in them{what}. It stands for text of which the middle is "
        "not shown to you any more, and is not that text. Recall it, and call again with the whole text in its place."
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
            case Progressed():
                self._ports.renderer.tool(event)
            case Inquired():
                self._record_inquiry(event)
            case CallOutcome():
                self._end(event)
            case _:
                assert_never(event)

    def _record_inquiry(self, event: Inquired) -> None:
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
    """`facts` as they may be in digests and indexes. The output that they were read from is recorded as it is."""
    if facts is None or not (facts.first_error or facts.url):
        return facts
    from jp.context.redaction import redact

    return replace(
        facts,
        first_error=facts.first_error and redact(facts.first_error).text,
        url=facts.url and redact(facts.url).text,
    )

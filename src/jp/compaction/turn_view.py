"""The events of one turn as a model sees them: which answers count, and what stripped calls look like. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import Policies
from jp.compaction.status_lines import (
    AFTER_MESSAGE,
    INSIST,
    CallStatusFormatter,
    continue_request,
    digested_content,
    stripped_arguments,
    stripped_content,
)
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.resource import INTERRUPTED_CONTENT
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.conversation.turns import Answer, Attempt, Cycle, is_blank


def counted_answers(attempt: Attempt) -> tuple[Answer, ...]:
    """Return the answers that a view shows, before any compaction.

    A refused attempt has none. Of a failed one only the messages count, and the reasoning that led to them: they were
    shown, so the next attempt continued them; its calls never ran. Blank messages do not count. If the attempt broke
    off, reasoning counts only if something follows it, and, if it failed or was cancelled, only if its metadata closed
    it. The original JP writes no end of an attempt: its reasoning counts, signed or not, if something follows.
    """
    finish = _finish(attempt)
    if finish == "refused":
        return ()
    answers = [answer for answer in attempt.answers if _counts(answer, finish)]
    if finish in {None, "length", "error", "cancelled"}:
        while answers and is_reasoning(answers[-1]):
            answers.pop()
    return tuple(answers)


def is_reasoning(answer: Answer) -> bool:
    """Return whether `answer` is reasoning."""
    return isinstance(answer, ChatResponse) and answer.reasoning is not None


def is_cut(attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
    """Return whether the message was cut off, so that the next request asks the model to continue it."""
    if _finish(attempt) not in {"length", "error", "cancelled"} or not counted:
        return False
    return not any(isinstance(answer, ToolCallRequest) for answer in counted)


def lacks_call(attempt: Attempt) -> bool:
    """Return whether the model ended without a tool call: asking again in this state means that a call was required."""
    if _finish(attempt) not in {"stop", "tools"}:
        return False
    return not any(isinstance(answer, ToolCallRequest) for answer in attempt.answers)


def rejected_in(entries: Iterable[AnyEntry]) -> frozenset[str]:
    """Return the ids of the answers whose metadata a provider did not accept, according to the log.

    An undone turn counts too: a provider refuses again what it refused once.
    """
    ends = (entry for entry in entries if isinstance(entry, CycleEnd))
    return frozenset(identity for end in ends for identity in end.rejected)


def loses_reasoning(attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
    """Return whether a part of the model's reasoning does not count."""
    if len(counted) == len(attempt.answers):
        return False
    return sum(map(is_reasoning, counted)) < sum(map(is_reasoning, attempt.answers))


def _finish(attempt: Attempt) -> Finish | None:
    return None if attempt.end is None else attempt.end.finish


def _counts(answer: Answer, finish: Finish | None) -> bool:
    if isinstance(answer, ChatResponse):
        if answer.reasoning is not None:
            broke_off = finish in {"error", "cancelled"}
            return bool(answer.metadata) or not (broke_off or is_blank(answer.reasoning))
        if answer.message is not None:
            return not is_blank(answer.message)
        return answer.data is not msgspec.UNSET and finish != "error"
    return finish != "error"


class Responses:
    """The responses of a stream by the calls that they answer, wherever they are in it."""

    def __init__(self, responses: Iterable[ToolCallResponse]) -> None:
        self._by_call: dict[str, list[ToolCallResponse]] = {}
        self._taken: dict[str, int] = {}
        for response in responses:
            self.add(response)

    def add(self, response: ToolCallResponse) -> bool:
        """Add a response; return False if its call was shown as interrupted before."""
        known = self._by_call.setdefault(response.request, [])
        known.append(response)
        return len(known) > self._taken.get(response.request, 0)

    def take(self, call: ToolCallRequest) -> ToolCallResponse:
        """Return the first response to `call` that no other call took; an error result if there is none."""
        known = self._by_call.get(call.id, ())
        number = self._taken.get(call.id, 0)
        self._taken[call.id] = number + 1
        if number < len(known):
            return known[number]
        return ToolCallResponse(request=call.id, content=INTERRUPTED_CONTENT, is_error=True)

    def fork(self) -> Responses:
        """Return the same responses; what is taken from the fork stays here."""
        found = Responses(())
        found._by_call, found._taken = self._by_call, dict(self._taken)
        return found


class TurnView:
    """Shows the cycles of turn `number`. They have to be asked for in order.

    `rejected` are the ids of answers that are shown without their metadata.
    """

    def __init__(
        self,
        number: int,
        responses: Responses,
        status_formatter: CallStatusFormatter,
        rejected: Container[str] = frozenset(),
    ) -> None:
        self.number = number
        self._responses = responses
        self._status_formatter = status_formatter
        self._rejected = rejected
        self._prompt: UserText | None = None
        self._insistence = 0
        self._message = ""  # as far as it came, over all attempts at it

    def fork(self) -> TurnView:
        """Return the same view of the turn; what the fork shows next does not change this one."""
        found = TurnView(self.number, self._responses.fork(), self._status_formatter, self._rejected)
        found._prompt, found._insistence, found._message = self._prompt, self._insistence, self._message
        return found

    def cycle(self, cycle: Cycle, policies: Policies) -> list[ViewEvent]:
        """Return the events of a cycle: requests, answers, and results in the order of the calls."""
        events = self.requests(cycle)
        for attempt in cycle.attempts:
            events += self.continuation()
            events += self._attempt(attempt, policies)
        return events

    def requests(self, cycle: Cycle) -> list[ViewEvent]:
        """Return what the user said in a cycle, and nothing of what was answered."""
        events: list[ViewEvent] = []
        for request in cycle.requests:
            self._prompt, self._insistence, self._message = None, 0, ""
            events += _request_events(request, self.number)
        return events

    def continuation(self) -> tuple[ViewEvent, ...]:
        """Return the prompt for another attempt: to continue a message that was cut, or to make the required call."""
        prompt, self._prompt = self._prompt, None
        return () if prompt is None else (prompt,)

    def _attempt(self, attempt: Attempt, policies: Policies) -> list[ViewEvent]:
        answers = counted_answers(attempt)
        self._prompt = self._prompt_after(attempt, answers)
        # Providers tie the ids of messages and calls to the reasoning that they sent with them.
        strip = policies.strip_reasoning
        bare = any(map(is_reasoning, attempt.answers)) if strip else self._loses_reasoning(attempt, answers)
        events: list[ViewEvent] = []
        results: list[ViewEvent] = []
        for answer in answers:
            if isinstance(answer, ChatResponse):
                if not (answer.reasoning is not None and (strip or self._is_opaque_only(answer))):
                    events.append(self._answer(answer, bare=bare))
            elif policies.tools.omit:
                _untie(events)
            else:
                events.append(self._call(answer, policies, bare=bare))
                results.append(self._result(answer, policies))
        _untie(events)
        return events + results

    def _prompt_after(self, attempt: Attempt, counted: tuple[Answer, ...]) -> UserText | None:
        """Return the prompt between this attempt and the next one, None if none is needed."""
        if is_cut(attempt, counted):
            self._message += "".join(answer.message or "" for answer in counted if isinstance(answer, ChatResponse))
            is_complete = attempt.end is not None and attempt.end.message_complete
            text = AFTER_MESSAGE if is_complete else continue_request(self._message)
            return self._prompt_with(text, attempt)
        if counted or (attempt.end is not None and attempt.end.finish != "error"):
            self._message = ""
        if lacks_call(attempt):
            text = INSIST[min(self._insistence, len(INSIST) - 1)]
            self._insistence += 1
            return self._prompt_with(text, attempt)
        return None

    def _prompt_with(self, text: str, attempt: Attempt) -> UserText:
        origin = "" if attempt.end is None else attempt.end.id
        return UserText(text=text, turn=self.number, origin=origin, synthetic=True)

    def _loses_reasoning(self, attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
        return loses_reasoning(attempt, counted) or any(answer.id in self._rejected for answer in counted)

    def _is_opaque_only(self, answer: ChatResponse) -> bool:
        """Return whether reasoning has no content besides its metadata."""
        return answer.id in self._rejected and is_blank(answer.reasoning or "")

    def _answer(self, answer: ChatResponse, *, bare: bool) -> ViewEvent:
        metadata = None if bare else answer.metadata
        if answer.reasoning is not None:
            kept = None if answer.id in self._rejected else answer.metadata
            return AssistantReasoning(text=answer.reasoning, turn=self.number, origin=answer.id, metadata=kept)
        if answer.message is not None:
            return AssistantText(text=answer.message, turn=self.number, origin=answer.id, metadata=metadata)
        data = msgspec.json.encode(answer.data).decode() if answer.text is None else answer.text
        return AssistantData(text=data, turn=self.number, origin=answer.id, metadata=metadata)

    def _call(self, call: ToolCallRequest, policies: Policies, *, bare: bool) -> ToolCall:
        left: JsonObject | str | None = None
        if policies.tools.requests.strips(call.name, call.id):
            left = stripped_arguments(call, self._status_formatter)
        return ToolCall(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments if left is None else left,
            turn=self.number,
            origin=call.id,
            metadata=call.metadata if left is None and not bare else None,
        )

    def _result(self, call: ToolCallRequest, policies: Policies) -> ToolResult:
        response = self._responses.take(call)
        content = response.content
        responses = policies.tools.responses
        if responses.strips(call.name, response.id):
            if responses.digest is None:
                content = stripped_content(call, response, self._status_formatter)
            else:
                content = digested_content(call, response, self._status_formatter, responses.digest.get(response.id))
        return ToolResult(
            call=call.id,
            call_id=call.call_id,
            name=call.name,
            content=content,
            turn=self.number,
            origin=response.id,
            is_error=response.is_error,
        )


def _request_events(request: ChatRequest, turn: int) -> list[ViewEvent]:
    events: list[ViewEvent] = [
        UserResource(resource=resource, turn=turn, origin=request.id) for resource in request.resources
    ]
    if not is_blank(request.content):
        events.append(UserText(text=request.content, turn=turn, origin=request.id, schema=request.schema))
    return events


def _untie(events: list[ViewEvent]) -> None:
    """Take its metadata from the reasoning at the end of `events`: what providers expect after it is not there."""
    position = len(events)
    while position and isinstance(reasoning := events[position - 1], AssistantReasoning):
        position -= 1
        if is_blank(reasoning.text):
            del events[position]
        else:
            events[position] = replace(reasoning, metadata=None)

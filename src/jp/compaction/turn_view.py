"""One turn as a view shows it, before references between resources are settled."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec
from msgspec.structs import replace

from jp.compaction.attempts import counted_answers, is_cut, is_reasoning, lacks_call, loses_reasoning
from jp.compaction.stand_ins import CallStandIns
from jp.compaction.stripping import digested_content, stripped_arguments, stripped_content
from jp.compaction.winners import Policies
from jp.compaction.wording import AFTER_MESSAGE, INSIST, continue_request
from jp.conversation.entries import (
    ChatRequest,
    ChatResponse,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.interruption import INTERRUPTED_CONTENT
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


class Responses:
    """The responses of a stream by the calls that they answer, wherever they stand."""

    def __init__(self, responses: Iterable[ToolCallResponse]) -> None:
        self._waiting: dict[str, list[ToolCallResponse]] = {}
        for response in responses:
            self._waiting.setdefault(response.request, []).append(response)

    def take(self, call: ToolCallRequest) -> ToolCallResponse:
        """The first response to `call` that no other call took; an error where nobody answered."""
        waiting = self._waiting.get(call.id)
        if waiting:
            return waiting.pop(0)
        return ToolCallResponse(request=call.id, content=INTERRUPTED_CONTENT, is_error=True)


class TurnView:
    """Shows the cycles of turn `number`. They have to be asked for in order.

    `rejected` are the ids of answers that are shown without their metadata.
    """

    def __init__(
        self, number: int, responses: Responses, stand_ins: CallStandIns, rejected: Container[str] = frozenset()
    ) -> None:
        self.number = number
        self._responses = responses
        self._stand_ins = stand_ins
        self._rejected = rejected
        self._prompt: UserText | None = None
        self._insistence = 0
        self._message = ""  # as far as it came, over all attempts at it

    def cycle(self, cycle: Cycle, policies: Policies) -> list[ViewEvent]:
        """What a cycle looks like: requests, answers, and results in the order of the calls."""
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
        """What asks the model again: to go on with the message that was cut last, or for a call that was demanded."""
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
        """What would stand between this attempt and another one, where no request does."""
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
        """Whether nothing is left of reasoning without its metadata."""
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
            left = stripped_arguments(call, self._stand_ins)
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
                content = stripped_content(call, response, self._stand_ins)
            else:
                content = digested_content(call, response, self._stand_ins, responses.digest.get(response.id))
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

"""Project the log onto the view that a provider gets (RFD 064). Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import Coverage, Policies, Winners, coverages
from jp.compaction.references import Span, deliveries_in, settled, superseded_notes
from jp.compaction.status_lines import (
    AFTER_MESSAGE,
    INSIST,
    CallStandIns,
    StandIns,
    attachment_place,
    continue_request,
    digested_content,
    result_place,
    stripped_arguments,
    stripped_content,
    summary_heading,
    work_heading,
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
from jp.conversation.resource import INTERRUPTED_CONTENT, Resource, ResourceBlock
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
from jp.conversation.turns import Answer, Attempt, Cycle, cycles_of, divide, is_blank, undone


def counted_answers(attempt: Attempt) -> tuple[Answer, ...]:
    """Return the answers that a view shows, before any compaction.

    A refused attempt has none. Of a failed one only the messages count, and the reasoning that led to them: they were
    shown, so the next attempt continued them; its calls never ran. Blank messages do not count. If the attempt broke
    off, reasoning counts only if something follows it, and, unless the provider's limit ended the attempt, only if its
    metadata closed it.
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
            broke_off = finish in {None, "error", "cancelled"}
            return bool(answer.metadata) or not (broke_off or is_blank(answer.reasoning))
        if answer.message is not None:
            return not is_blank(answer.message)
        return answer.data is not msgspec.UNSET and finish != "error"
    return finish != "error"


class Kept(msgspec.Struct, frozen=True, tag=True):
    """A turn of the stream, under its number in the stream."""

    number: int


class Summarised(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A summary that replaces turns `from_turn` to `to_turn` (0-based, inclusive).

    They are an unbroken run of the turns that it covers. `compaction` is the id of its overlay.
    """

    from_turn: int
    to_turn: int
    compaction: str


Origin = Kept | Summarised


class ProjectedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as the model sees it; without events where nothing of it is shown."""

    origin: Origin
    events: tuple[ViewEvent, ...]


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """A stream as a model sees it, in order."""

    turns: tuple[ProjectedTurn, ...]

    @property
    def events(self) -> tuple[ViewEvent, ...]:
        """Everything, flat."""
        return tuple(chain.from_iterable(turn.events for turn in self.turns))


class Responses:
    """The responses of a stream by the calls that they answer, wherever they stand."""

    def __init__(self, responses: Iterable[ToolCallResponse]) -> None:
        self._waiting: dict[str, list[ToolCallResponse]] = {}
        for response in responses:
            self._waiting.setdefault(response.request, []).append(response)

    def take(self, call: ToolCallRequest) -> ToolCallResponse:
        """Return the first response to `call` that no other call took; an error result if there is none."""
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


VERSION = 3
"""Of what views show. It grows whenever the same log, compacted or not, would give another one."""


class _Draft:
    """A view as it grows, before references between resources are settled."""

    def __init__(self) -> None:
        self.events: list[ViewEvent] = []
        self.spans: list[Span] = []
        self.origins: list[tuple[Origin, int]] = []
        self._summary: tuple[Coverage, int, int] | None = None

    def summarise(self, coverage: Coverage, turn: int) -> None:
        """Leave `turn` to a summary. It is shown once for every unbroken run of turns."""
        if self._summary is None or self._summary[0] is not coverage:
            self.end_run()
            self._summary = (coverage, turn, turn)
        else:
            self._summary = (coverage, self._summary[1], turn)

    def keep(self, turn: int) -> None:
        """Begin the events of `turn`."""
        self.end_run()
        origin = Kept(turn)
        if not self.origins or self.origins[-1][0] != origin:
            self.origins.append((origin, len(self.events)))

    def add_work(self, coverage: Coverage, turn: int) -> None:
        """Show the summary of finished cycles behind the requests of their turn.

        It is a message to the model: an assistant's own words could not stand between a request and signed reasoning.
        """
        text = f"{work_heading()}\n\n{coverage.summary}"
        self.keep(turn)
        self.events.append(UserText(text=text, turn=turn, origin=coverage.compaction.id, synthetic=True))

    def show(self, events: Sequence[ViewEvent], cycle: tuple[int, int], policies: Policies) -> None:
        """Show the events of a cycle of the turn that is kept."""
        self.spans.append(Span(start=len(self.events), point=cycle, superseded=policies.superseded))
        self.events += events

    def end_run(self) -> None:
        """Show the summary whose run is over, where there is one."""
        if self._summary is None:
            return
        (coverage, first, last), self._summary = self._summary, None
        identity = coverage.compaction.id
        origin = Summarised(from_turn=first, to_turn=last, compaction=identity)
        self.origins.append((origin, len(self.events)))
        heading = summary_heading(first, last)
        self.events += (
            UserText(text=heading, turn=first, origin=identity, synthetic=True),
            AssistantText(text=coverage.summary, turn=first, origin=identity, synthetic=True),
        )

    def settle(self) -> Settlement:
        """Return the events with references between them resolved."""
        self.end_run()
        spoken = (number for number, event in enumerate(self.events) if isinstance(event, (UserText, UserResource)))
        first = next(spoken, len(self.events))
        deliveries = [delivery for delivery in deliveries_in(self.events, self.spans) if delivery.position >= first]
        notes = superseded_notes(deliveries)
        return Settlement(
            first=first,
            before=self.events,
            after=settled(self.events, deliveries, notes),
            superseded=frozenset((deliveries[number].position, deliveries[number].block) for number in notes),
        )

    def finish(self) -> Projection:
        """Return the view, which begins with the user's words: providers accept no other beginning."""
        settlement = self.settle()
        events = settlement.after
        ends = [start for _, start in self.origins[1:]] + [len(events)]
        return Projection(
            turns=tuple(
                ProjectedTurn(origin=origin, events=tuple(events[max(start, settlement.first) : end]))
                for (origin, start), end in zip(self.origins, ends, strict=False)
            )
        )


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a view, each on its own and with references resolved; those from `first` on are shown.

    `superseded` are the snapshots, by position and block, that a note replaces because there is a newer one.
    """

    first: int
    before: list[ViewEvent]
    after: list[ViewEvent]
    superseded: frozenset[tuple[int, int]]


def settlement_of(entries: Sequence[AnyEntry], stand_ins: StandIns) -> Settlement:
    """Return the events of a stream's view before and after references are resolved. See `project`."""
    return _drafted(entries, stand_ins, continuing=False).settle()


def project(entries: Sequence[AnyEntry], stand_ins: StandIns, *, continuing: bool = False) -> Projection:
    """Return the view of a stream with its compactions applied.

    Contents stay as the log stores them. `continuing`: the last turn is about to be asked again, so a message that was
    cut at its end is followed by the request to continue it, as it will be once the answer is in the log, and an answer
    without a required call is followed by the request for one.
    """
    return _drafted(entries, stand_ins, continuing=continuing).finish()


def _drafted(entries: Sequence[AnyEntry], stand_ins: StandIns, *, continuing: bool) -> _Draft:
    division = divide(entries)
    gone = undone(entries)
    responses = Responses(division.responses)
    rejected = rejected_in(entries)

    @cache
    def cycles_at(number: int) -> list[Cycle]:
        return cycles_of(division.turns[number])

    winners = Winners(coverages(division, gone, cycles_at))
    draft = _Draft()
    lines = stand_ins.of(entries)
    for turn in division.turns:
        if turn.id in gone:
            continue
        view = TurnView(turn.number, responses, lines, rejected)
        summary = winners.summary_of(turn.number)
        if summary is None:
            _add_cycles(draft, view, cycles_at(turn.number), winners)
        else:
            draft.summarise(summary, turn.number)
        if continuing and turn is division.turns[-1]:
            draft.events += view.continuation()
    return draft


def _add_cycles(draft: _Draft, view: TurnView, cycles: Sequence[Cycle], winners: Winners) -> None:
    """Show a turn cycle by cycle: a summary may end inside it, or cover its finished cycles."""
    if not cycles:
        draft.keep(view.number)
    work: Coverage | None = None  # it never covers the newest cycle, so another one follows
    for cycle in cycles:
        place = (view.number, cycle.number)
        policies = winners.at(place)
        summary = policies.summary
        if work is not None and summary is not work:
            draft.add_work(work, view.number)
            work = None
        if summary is None:
            draft.keep(view.number)
            draft.show(view.cycle(cycle, policies), place, policies)
        elif summary.inside:
            draft.keep(view.number)
            draft.show(view.requests(cycle), place, policies)
            work = summary
        else:
            draft.summarise(summary, view.number)


class VisibleCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a resource in a view, as it is shown there: the entry that delivered it, and where that stands."""

    resource: Resource
    entry: str
    place: str


def newest_copy(uri: str, entries: Sequence[AnyEntry], stand_ins: StandIns) -> VisibleCopy | None:
    """Return the newest copy of `uri` in the view of `entries`; references to an older one do not count."""
    newest = None
    for event in project(entries, stand_ins).events:
        for copy in _copies_in(event):
            if copy.resource.uri == uri:
                newest = copy
    return newest


def _copies_in(event: ViewEvent) -> Iterator[VisibleCopy]:
    match event:
        case UserResource(resource=resource, origin=origin, turn=turn):
            yield VisibleCopy(resource=resource, entry=origin, place=attachment_place(turn))
        case ToolResult(content=content, origin=origin, turn=turn, call_id=call_id):
            for block in content:
                if isinstance(block, ResourceBlock):
                    yield VisibleCopy(resource=block.resource, entry=origin, place=result_place(turn, call_id))
        case _:
            pass

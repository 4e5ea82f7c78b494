"""What a summarizer is asked about the turns of a stream, and the overlay's text that comes of the answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from jp.compaction.fact_lines import nonce_of
from jp.compaction.log_contents import LogContent, contents_in
from jp.compaction.ranges import Range
from jp.compaction.summarising import LogArtifacts, Summarised, messages_of, summarising, superseded_states
from jp.context.handles import checksum_of
from jp.context.summary_asking import Terms
from jp.context.summary_request import Asking, SummaryRequest
from jp.context.summary_schema import StructuredSummary, SummaryError, SummaryReply
from jp.context.summary_state import SummaryState
from jp.context.summary_text import parse_summary
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    Header,
    InquiryRequest,
    InquiryResponse,
    Question,
    Revert,
    SummaryPolicy,
)
from jp.conversation.resource import Payload, Resource, checksum
from logs import ask, call, end, log, respond, say, start, think, whole_turn

ASKING = Asking(fence="0123456789abcdef", today="2026-01-01")
TERMS = Terms(window=100_000, limit=10_000, may_fall_back=False, calls=4)
ACCOUNT = StructuredSummary(goal="make the tests pass", next_step="run them", requirements=("question 0",))
HEADER = Header(id="h", format=1, created_at="", nonce="nonce123")


def turns(count: int) -> list[AnyEntry]:
    return [HEADER, *(entry for number in range(count) for entry in whole_turn(number))]


def text_of(content: LogContent) -> str | None:
    return getattr(content, "text", None)


def run(
    entries: Sequence[AnyEntry],
    found: Range,
    *replies: SummaryReply,
    terms: Terms = TERMS,
) -> tuple[Summarised | SummaryError, list[SummaryRequest]]:
    steps = summarising(log(*entries), found, terms=terms, asking=ASKING, load=text_of)
    asked: list[SummaryRequest] = []
    waiting = list(replies)
    try:
        asked.append(next(steps))
        while True:
            asked.append(steps.send(waiting.pop(0)))
    except StopIteration as end:
        outcome: Summarised | SummaryError = end.value
        return outcome, asked


def summary(first: int, last: int, state: SummaryState, identity: str = "s") -> Compaction:
    policy = SummaryPolicy(text="an older summary", state=msgspec.to_builtins(state))
    return Compaction(id=identity, from_turn=first, to_turn=last, summary=policy)


def test_a_summary_tells_of_the_turns_of_its_range_and_of_no_others() -> None:
    outcome, (asked,) = run(turns(4), Range(first=1, last=2), ACCOUNT)

    assert isinstance(outcome, Summarised)
    assert "question 1" in asked.record
    assert "question 2" in asked.record
    assert "output 1 output 1" in asked.record
    assert "question 0" not in asked.record
    assert "question 3" not in asked.record
    assert (outcome.calls, outcome.is_local) == (1, False)
    read = parse_summary(outcome.policy.text, nonce_of(turns(4)))
    assert read == msgspec.convert(outcome.policy.state, SummaryState)
    assert read is not None
    assert read.account.goal == "make the tests pass"


def test_no_view_and_no_earlier_summary_is_shown_to_a_summarizer() -> None:
    stripped = Compaction(from_turn=0, to_turn=2, reasoning="strip", tool_calls=None)
    earlier = summary(0, 1, SummaryState(account=ACCOUNT))

    _, (asked,) = run([*turns(3), stripped, earlier], Range(first=0, last=2), ACCOUNT)

    assert "an older summary" not in asked.record
    assert "make the tests pass" not in asked.record
    assert "question 0" in asked.record


def test_a_summary_inside_a_turn_tells_of_its_first_cycles_without_its_request() -> None:
    cycles = [
        entry
        for number in range(4)
        for entry in (
            think(f"thought {number}"),
            call(f"c{number}"),
            end("tools"),
            respond(f"c{number}", f"out {number}"),
        )
    ]
    unanswered = call("c9")
    entries = log(HEADER, *whole_turn(0), start(1), ask("the request"), *cycles, unanswered)

    told = messages_of(entries, Range(first=1, last=1, to_cycle=1))
    whole = messages_of(entries, Range(first=1, last=1, to_cycle=4))

    assert [message.role for message in told] == ["assistant", "tool", "assistant", "tool"]
    assert [message.role for message in whole] == ["assistant", "tool"] * 5
    outcome, (request,) = run(entries, Range(first=1, last=1, to_cycle=1), ACCOUNT)
    assert isinstance(outcome, Summarised)
    assert "out 1" in request.record
    assert "out 2" not in request.record
    assert "the request" not in request.record


def test_what_the_user_answered_to_tools_is_kept_as_the_users_words() -> None:
    question = Question(id="q", text="Which database?", kind="text")
    yes_or_no = Question(id="q2", text="Overwrite a.txt?", kind="boolean")
    asked: list[AnyEntry] = [
        call("call", "ask_user"),
        InquiryRequest(id="i1", request="call", question=question),
        InquiryResponse(id="r1", request="i1", answer="Postgres, never SQLite", answered_by="user"),
        InquiryRequest(id="i2", request="call", question=yes_or_no),
        InquiryResponse(id="r2", request="i2", answer=False, answered_by="user"),
        InquiryRequest(id="i3", request="call", question=question),
        InquiryResponse(id="r3", request="i3", answer="MongoDB", answered_by="assistant"),
        respond("call", "thank you"),
    ]
    entries = [HEADER, start(0), ask("choose for me"), *asked, say("done"), *whole_turn(1)]
    told = msgspec.structs.replace(ACCOUNT, requirements=("never SQLite", "Which database", "MongoDB", "choose for me"))

    outcome, (request,) = run(entries, Range(first=0, last=1), told)

    assert isinstance(outcome, Summarised)
    assert "person, asked 'Which database?':\nPostgres, never SQLite" in request.record
    assert outcome.policy.state["account"]["requirements"] == ("never SQLite", "choose for me")
    first = outcome.policy.state["spoken"]["first"]
    assert first == "choose for me\n\n(asked: Which database?) Postgres, never SQLite\n(asked: Overwrite a.txt?) no"
    falling_back = msgspec.structs.replace(TERMS, may_fall_back=True)
    locally, _ = run(entries, Range(first=0, last=1), SummaryError(kind="no_provider"), terms=falling_back)
    assert isinstance(locally, Summarised)
    assert "(asked: Which database?) Postgres, never SQLite" in locally.policy.text


def test_requirements_that_the_new_account_lost_come_from_the_summaries_that_it_supersedes() -> None:
    wanted = ("never use tabs", "question 1")
    older = SummaryState(account=StructuredSummary(goal="g", next_step="n", requirements=wanted))
    entries = [*turns(4), summary(0, 1, older)]

    outcome, _ = run(entries, Range(first=0, last=2), ACCOUNT)

    assert isinstance(outcome, Summarised)
    assert outcome.policy.state["account"]["requirements"] == ("question 1", "question 0")
    assert "never use tabs" not in outcome.policy.text
    apart, _ = run(entries, Range(first=2, last=3), ACCOUNT)
    assert isinstance(apart, Summarised)
    assert "question 1" not in apart.policy.text


def test_only_summaries_in_force_inside_of_the_range_that_can_be_read_are_superseded() -> None:
    state = SummaryState(account=ACCOUNT)
    unreadable = Compaction(id="u", from_turn=0, to_turn=0, summary=SummaryPolicy(text="x", state={"account": 1}))
    blank = Compaction(id="b", from_turn=0, to_turn=0, summary=SummaryPolicy(text=" "))
    plain = Compaction(id="p", from_turn=0, to_turn=0, reasoning="strip")
    undone = [summary(0, 0, state, "gone"), Revert(id="r", entries=("gone",))]
    entries = log(*turns(3), unreadable, blank, plain, *undone, summary(0, 1, state), summary(2, 2, state, "z"))

    assert superseded_states(entries, Range(first=0, last=1)) == [state]


def test_without_an_account_there_is_no_summary_unless_a_local_one_is_allowed() -> None:
    failure = SummaryError(kind="auth", detail="no key")

    refused, _ = run(turns(2), Range(first=0, last=1), failure)
    local, _ = run(turns(2), Range(first=0, last=1), failure, terms=msgspec.structs.replace(TERMS, may_fall_back=True))

    assert refused == failure
    assert isinstance(local, Summarised)
    assert (local.is_local, local.policy.state["provenance"]["is_local"]) == (True, True)
    assert "question 0" in local.policy.text


def test_turns_that_were_undone_are_not_told_of() -> None:
    entries = log(*turns(2), Revert(entries=("t1",)))

    assert {message.content for message in messages_of(entries, Range(first=1, last=1))} == set()


def test_what_was_attached_is_named_in_a_summary_and_not_told_as_words_of_the_user() -> None:
    once = Resource(uri="file:///w/a", text="line of a\n" * 100)
    longer = Resource(uri="file:///w/a.py", text="line of a.py\n" * 100)
    again = tuple(msgspec.structs.replace(resource, duplicate_of="q0") for resource in (once, longer))
    entries = [
        *(HEADER, start(0), ChatRequest(id="q0", content="look", resources=(once, longer)), say("yes")),
        *(start(1), ChatRequest(id="q1", content="and now?", resources=again), say("no")),
    ]

    outcome, _ = run(entries, Range(first=0, last=1), ACCOUNT)

    assert isinstance(outcome, Summarised)
    spoken = msgspec.convert(outcome.policy.state, SummaryState).spoken
    named = [f"[attached: text {one.uri}, {len(one.text or '')} bytes, recall {checksum(one)[:8]}]" for one in again]
    assert spoken.first == "\n\n".join(("look", *named))
    assert spoken.active == "[attached again: file:///w/a]\n\n[attached again: file:///w/a.py]\n\nand now?"
    assert outcome.policy.kept == ()


def test_what_a_summary_has_no_room_for_is_kept_beside_it_under_its_handle() -> None:
    words = [f"please see to item {number}, {'with all the care that it needs, ' * 200}" for number in range(12)]
    entries: list[AnyEntry] = [HEADER]
    for number, text in enumerate(words):
        entries += [start(number), ask(text), say("done")]

    outcome, _ = run(entries, Range(first=0, last=11), ACCOUNT, terms=msgspec.structs.replace(TERMS, limit=1500))

    assert isinstance(outcome, Summarised)
    assert outcome.policy.kept != ()
    overlay = Compaction(from_turn=0, to_turn=11, summary=outcome.policy)
    kept = [sha256 for sha256, _ in contents_in(overlay)]
    assert kept == [checksum_of(payload.text or "") for payload in outcome.policy.kept]
    assert all(sha256[:8] in outcome.policy.text for sha256 in kept)


def test_the_contents_of_a_log_are_recalled_by_their_handles_and_new_ones_kept() -> None:
    stored = Resource(uri="file:///a", text="in the log")
    entries = log(start(0), ask("x"), msgspec.structs.replace(ask("y"), resources=(stored,)))
    artifacts = LogArtifacts(entries, text_of)

    handle = artifacts.handle(checksum_of("in the log"))
    fresh = artifacts.keep("new")

    assert artifacts.recall(handle) == "in the log"
    assert artifacts.keep("in the log") == handle
    assert artifacts.recall(fresh) == "new"
    assert artifacts.recall("00000000") is None
    assert artifacts.recall(artifacts.handle(checksum_of("only named"))) is None
    assert artifacts.named_in(f"see {fresh}") == (Payload(text="new"),)
    assert artifacts.named_in("nothing") == ()


@pytest.mark.parametrize("found", [Range(first=0, last=0), Range(first=5, last=9)])
def test_turns_without_anything_said_have_no_summary(found: Range) -> None:
    outcome, asked = run([HEADER, start(0)], found)

    assert isinstance(outcome, SummaryError)
    assert asked == []

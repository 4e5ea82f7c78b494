from __future__ import annotations

from collections.abc import Sequence

import pytest

from jp.compaction.projection import project
from jp.compaction.status_lines import AFTER_MESSAGE, INSIST, PlainStatusFormatter, anchor_of, continue_request
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Finish,
    JsonObject,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    ToolOverride,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, Resource, TextBlock
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
from logs import ask, call, end, log, respond, say, start, think


def view(*entries: AnyEntry, continuing: bool = False) -> tuple[ViewEvent, ...]:
    return project(log(start(0), *entries), PlainStatusFormatter(), continuing=continuing).events


def texts(events: Sequence[ViewEvent]) -> list[str]:
    """The texts of a view; `...` where the model is asked to continue."""
    said = [event for event in events if isinstance(event, (UserText, AssistantText, AssistantReasoning))]
    asked = continue_request("").partition(".")[0]
    return ["..." if event.text.startswith(asked) else event.text for event in said]


def metadata_of(events: Sequence[ViewEvent]) -> list[JsonObject | None]:
    return [event.metadata for event in events if isinstance(event, (AssistantText, AssistantReasoning, ToolCall))]


def test_snapshots_stand_before_the_words_that_came_with_them() -> None:
    one, two = Resource(uri="file:///a", text="a"), Resource(uri="file:///b", text="b")

    events = view(ChatRequest(id="q", content="Look.", resources=(one, two)))

    assert events == (
        UserResource(resource=one, turn=0, origin="q"),
        UserResource(resource=two, turn=0, origin="q"),
        UserText(text="Look.", turn=0, origin="q"),
    )


def test_snapshots_without_words_stand_alone() -> None:
    resource = Resource(uri="file:///a", text="a")

    assert view(ChatRequest(id="q", content=" ", resources=(resource,))) == (
        UserResource(resource=resource, turn=0, origin="q"),
    )


def test_answers_are_shown_with_their_metadata_and_where_they_come_from() -> None:
    note = {"signature": "signed"}
    data = ChatResponse(id="d", data={"b": [1, None], "a": "ä"}, metadata=note)

    events = view(ask("go"), think("hm"), say("so", signature="signed"), data, end())

    assert events[1:] == (
        AssistantReasoning(text="hm", turn=0, origin="e2", metadata=note),
        AssistantText(text="so", turn=0, origin="e3", metadata=note),
        AssistantData(text='{"b":[1,null],"a":"ä"}', turn=0, origin="d", metadata=note),
    )


def test_structured_output_in_words_is_shown_as_it_came_and_its_schema_with_the_request() -> None:
    schema = {"type": "object"}
    data = ChatResponse(id="d", data={"a": 1}, text='Here: {"a": 1}')

    assert view(ChatRequest(id="q", content="go", schema=schema), data, end()) == (
        UserText(text="go", turn=0, origin="q", schema=schema),
        AssistantData(text='Here: {"a": 1}', turn=0, origin="d"),
    )


def test_results_follow_the_answers_in_the_order_of_the_calls_whenever_they_came() -> None:
    events = view(ask("go"), call("c1"), call("c2"), end("tools"), respond("c2", "two"), respond("c1", "one"))

    calls = [event.origin for event in events if isinstance(event, ToolCall)]
    results = [event for event in events if isinstance(event, ToolResult)]
    assert calls == ["c1", "c2"]
    assert [(result.call, result.content) for result in results] == [
        ("c1", (TextBlock(text="one"),)),
        ("c2", (TextBlock(text="two"),)),
    ]


def test_a_repeated_call_id_does_not_mix_up_results() -> None:
    events = view(
        ask("go"),
        *(call("c1", "first"), end("tools"), respond("c1", "one")),
        *(call("c2", "second"), end("tools"), respond("c2", "two")),
    )

    results = [event for event in events if isinstance(event, ToolResult)]
    assert [(result.call_id, result.name, result.call) for result in results] == [
        ("call_0", "first", "c1"),
        ("call_0", "second", "c2"),
    ]


def test_an_open_call_is_answered_by_an_error() -> None:
    events = view(ask("go"), call("c1"), end("tools"))

    assert events[-1] == ToolResult(
        call="c1", call_id="call_0", name="run", content=INTERRUPTED_CONTENT, turn=0, is_error=True
    )


def test_a_response_that_comes_after_later_requests_still_stands_with_its_call() -> None:
    events = view(ask("go"), call("c1"), end("tools"), ask("wait"), respond("c1", "one"), respond("c1", "again"))

    assert [type(event) for event in events] == [UserText, ToolCall, ToolResult, UserText]
    assert isinstance(result := events[2], ToolResult)
    assert result.content == (TextBlock(text="one"),)


def test_calls_that_share_an_id_after_a_hand_edit_each_have_a_response_of_their_own() -> None:
    events = view(ask("go"), call("c"), call("c"), end("tools"), respond("c", "one"), respond("c", "two"))

    results = [event.content for event in events if isinstance(event, ToolResult)]
    assert results == [(TextBlock(text="one"),), (TextBlock(text="two"),)]


def test_a_response_without_a_call_is_not_shown() -> None:
    assert texts(view(ask("go"), respond("nobody"), say("done"), end())) == ["go", "done"]
    assert len(view(ask("go"), respond("nobody"))) == 1


def test_calls_of_a_failed_attempt_are_not_shown_nor_are_responses_to_them() -> None:
    events = view(ask("go"), say("I will"), call("c1"), end("error"), respond("c1"))

    assert texts(events) == ["go", "I will"]
    assert len(events) == 2


def test_requests_without_an_answer_stay_in_order() -> None:
    assert texts(view(ask("one"), ask("two"), start(1), ask("three"))) == ["one", "two", "three"]


@pytest.mark.parametrize("finish", ["length", "error", "cancelled"])
def test_a_cut_message_that_is_continued_has_the_request_to_continue_between_its_pieces(finish: Finish) -> None:
    events = view(ask("go"), say("one"), end(finish), say("two"), end())

    assert texts(events) == ["go", "one", "...", "two"]
    assert isinstance(nudge := events[2], UserText)
    assert (nudge.synthetic, nudge.origin) == (True, "e3")


@pytest.mark.parametrize("finish", ["length", "error", "cancelled"])
def test_a_cut_message_that_is_about_to_be_continued_ends_with_the_request_to_continue(finish: Finish) -> None:
    entries = [ask("go"), say("one"), end(finish)]

    assert texts(view(*entries, continuing=True)) == ["go", "one", "..."]
    assert texts(view(*entries)) == ["go", "one"]
    assert texts(view(*entries, start(1), ask("next"), continuing=True)) == ["go", "one", "next"]


def test_the_request_to_continue_names_the_end_of_all_pieces() -> None:
    pieces = ("It was a dark and stormy night; ", "the rain fell ", "in torrents")
    said = [entry for piece in pieces for entry in (say(piece), end("error"))]

    events = view(ask("go"), *said, continuing=True)

    asked = [event.text for event in events if isinstance(event, UserText) and event.synthetic]
    assert asked == [continue_request("".join(pieces[:count])) for count in (1, 2, 3)]
    assert anchor_of("".join(pieces)) == "and stormy night; the rain fell in torrents"


def test_after_a_message_that_was_complete_the_model_is_asked_for_what_follows() -> None:
    entries = [ask("go"), say("one"), CycleEnd(attempt=1, finish="error", message_complete=True)]

    assert texts(view(*entries, continuing=True)) == ["go", "one", AFTER_MESSAGE]


def test_a_cut_message_that_the_user_replies_to_is_not_continued() -> None:
    assert texts(view(ask("go"), say("one"), end("cancelled"), ask("no"), say("ok"), end())) == [
        *("go", "one", "no", "ok"),
    ]


def test_attempts_that_fail_with_nothing_ask_once_to_continue() -> None:
    entries = [ask("go"), say("one"), end("error"), end("error", attempt=2)]

    assert texts(view(*entries, continuing=True)) == ["go", "one", "..."]
    assert texts(view(*entries, say("two"), end(attempt=3))) == ["go", "one", "...", "two"]
    assert texts(view(*entries, start(1), ask("next"))) == ["go", "one", "...", "next"]


def test_an_attempt_that_failed_with_nothing_shown_leaves_no_trace() -> None:
    entries = [ask("go"), think("hm"), call("c1"), end("error")]

    assert texts(view(*entries, continuing=True)) == ["go"]
    assert texts(view(*entries, say("done"), end(attempt=2))) == ["go", "done"]


def test_an_answer_without_a_call_that_is_asked_again_has_the_demand_for_one_behind_it() -> None:
    no = (say("no"), end("stop"))

    assert texts(view(ask("go"), *no, *no, *no, *no, call("c"), end("tools"))) == [
        *("go", "no", INSIST[0], "no", INSIST[1], "no", INSIST[2], "no", INSIST[2])
    ]
    assert texts(view(ask("go"), *no)) == ["go", "no"]
    assert texts(view(ask("go"), *no, continuing=True)) == ["go", "no", INSIST[0]]
    assert texts(view(ask("go"), *no, ask("and?"), *no, continuing=True)) == ["go", "no", "and?", "no", INSIST[0]]


def test_a_demand_is_shown_once_however_often_it_fails() -> None:
    entries = (ask("go"), say("no"), end("stop"), end("error"), end("error", attempt=2))

    assert texts(view(*entries, continuing=True)) == ["go", "no", INSIST[0]]


def test_rejected_reasoning_is_shown_without_its_metadata_and_so_is_what_was_tied_to_it() -> None:
    entries = (ask("go"), think("hm"), think(""), say("so", signature="s"), think("hm?"), end("stop"))
    rejected = CycleEnd(attempt=1, finish="error", rejected=("e2", "e3"))

    before = view(*entries)
    after = view(*entries, ask("and?"), rejected)

    assert metadata_of(before) == [{"signature": "signed"}, {"signature": "signed"}, {"signature": "s"}, None]
    assert texts(after) == ["go", "hm", "so", "hm?", "and?"]
    assert metadata_of(after) == [None, None, None]


def test_a_cut_answer_whose_calls_ran_is_not_asked_to_continue() -> None:
    events = view(ask("go"), say("one"), call("c1"), end("length"), respond("c1"), say("two"), end())

    assert texts(events) == ["go", "one", "two"]


def test_without_reasoning_what_the_provider_tied_to_it_is_dropped() -> None:
    entries = [ask("go"), think("hm"), say("so", signature="x"), call("c1", signature="y"), end("tools"), respond("c1")]
    strip = Compaction(from_turn=0, to_turn=0, reasoning="strip")

    assert metadata_of(view(*entries, strip)) == [None, None]
    assert metadata_of(view(*entries)) == [{"signature": "signed"}, {"signature": "x"}, {"signature": "y"}]


def test_where_there_was_no_reasoning_to_strip_metadata_stays() -> None:
    strip = Compaction(from_turn=0, to_turn=0, reasoning="strip")

    assert metadata_of(view(ask("go"), say("so", signature="x"), end(), strip)) == [{"signature": "x"}]


def test_where_reasoning_was_not_closed_what_it_led_to_loses_its_metadata() -> None:
    entries = [ask("go"), think("hm", signature=None), say("so", signature="x"), end("cancelled")]

    assert metadata_of(view(*entries)) == [None]


def test_stripped_requests_lose_their_metadata() -> None:
    strip = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", request=True))

    assert metadata_of(view(ask("go"), call("c1", signature="x"), end("tools"), respond("c1"), strip)) == [None]


def test_reasoning_that_led_to_an_omitted_call_stays_without_what_tied_it_to_that() -> None:
    omit = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="omit"))
    entries = [
        *(ask("go"), think("first"), call("c1"), think(""), call("c2"), think("last"), say("so"), end()),
        omit,
    ]

    events = view(*entries)

    assert texts(events) == ["go", "first", "last", "so"]
    assert metadata_of(events) == [None, {"signature": "signed"}, None]


def test_reasoning_that_a_whole_answer_ends_with_stays_without_its_metadata() -> None:
    events = view(ask("go"), think("hm"), think(""), end())

    assert texts(events) == ["go", "hm"]
    assert metadata_of(events) == [None]


def test_a_tool_may_keep_a_half_that_the_policy_strips_and_strips_none_that_it_leaves_alone() -> None:
    strip = Compaction(
        from_turn=0,
        to_turn=0,
        tool_calls=ToolCallPolicy(policy="strip", request=True, response=False),
        tool_overrides={"a": ToolOverride(request="keep", response="strip"), "b": ToolOverride()},
    )
    entries = [ask("go"), call("c1", "a"), call("c2", "b"), end("tools"), respond("c1"), respond("c2"), strip]

    events = view(*entries)

    assert [bool(event.arguments) for event in events if isinstance(event, ToolCall)] == [True, False]
    assert [event.content == respond("").content for event in events if isinstance(event, ToolResult)] == [True, True]


def test_tools_wishes_alone_strip_nothing_and_do_not_keep_what_is_omitted() -> None:
    wish = {"run": ToolOverride(request="strip", response="keep")}
    entries = [ask("go"), call("c1"), end("tools"), respond("c1")]

    assert view(*entries, Compaction(from_turn=0, to_turn=0, tool_overrides=wish)) == view(*entries)
    omit = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="omit"), tool_overrides=wish)
    assert len(view(*entries, omit)) == 1


def test_what_is_shorter_than_its_stand_in_stays() -> None:
    bare = ToolCallRequest(id="c1", call_id="x", name="run", arguments={}, metadata={"signature": "x"})
    response = ToolCallResponse(request="c1", content=(TextBlock(text="ok"),))
    strip = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", request=True, response=True))

    events = view(ask("go"), bare, end("tools"), response, strip)

    assert metadata_of(events) == [{"signature": "x"}]
    assert isinstance(result := events[-1], ToolResult)
    assert result.content == response.content

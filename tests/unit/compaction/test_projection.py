"""What a compaction does to a view, case by case; the structure that the original's own tests ask for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jp.compaction.projection import Origin, SummaryOrigin, TurnOrigin, project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    ConfigDelta,
    Header,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    Unknown,
)
from jp.conversation.resource import TextBlock
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserText,
    ViewEvent,
)
from logs import ask, call, end, log, respond, say, start, think, whole_turn

STRIP_BOTH = ToolCallPolicy(policy="strip", request=True, response=True)
STRIP_REQUESTS = ToolCallPolicy(policy="strip", request=True)
STRIP_RESPONSES = ToolCallPolicy(policy="strip", response=True)
OMIT = ToolCallPolicy(policy="omit")


def turns(count: int) -> list[AnyEntry]:
    return [entry for number in range(count) for entry in whole_turn(number)]


def summary(first: int, last: int, text: str = "what happened", *, identity: str = "") -> Compaction:
    return Compaction(id=identity, from_turn=first, to_turn=last, summary=SummaryPolicy(text=text))


def events_of(*entries: AnyEntry, continuing: bool = False) -> tuple[ViewEvent, ...]:
    return project(log(*entries), PlainStatusFormatter(), continuing=continuing).events


def origins_of(*entries: AnyEntry) -> list[Origin]:
    return [turn.origin for turn in project(log(*entries), PlainStatusFormatter()).turns]


def outline(events: Sequence[ViewEvent]) -> list[str]:
    """A view as short lines."""
    lines: list[str] = []
    for event in events:
        match event:
            case UserText(text=text):
                lines.append(f"user: {text}")
            case AssistantText(text=text):
                lines.append(f"assistant: {text}")
            case AssistantReasoning(text=text):
                lines.append(f"reasoning: {text}")
            case ToolCall(name=name, arguments=arguments):
                lines.append(f"call: {name} {'with' if arguments else 'without'} arguments")
            case ToolResult(content=(TextBlock(text=text), *_), is_error=is_error):
                lines.append(f"{'error' if is_error else 'result'}: {(text or '')[:8]}")
            case _:
                lines.append(type(event).__name__)
    return lines


def raw(number: int) -> list[str]:
    return [
        f"user: question {number}",
        f"reasoning: thought {number}",
        "call: run with arguments",
        f"result: output {number}",
        f"assistant: answer {number}",
    ]


def summarised(first: int, last: int, text: str = "what happened") -> list[str]:
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    return [f"user: [summary of {turns} of this conversation; a record, not a request]", f"assistant: {text}"]


def test_a_stream_without_overlays_is_shown_as_it_is() -> None:
    assert outline(events_of(*turns(2))) == raw(0) + raw(1)
    assert origins_of(*turns(2)) == [TurnOrigin(0), TurnOrigin(1)]


def test_an_empty_stream_has_an_empty_view_whatever_covers_it() -> None:
    assert project([], PlainStatusFormatter()).turns == ()
    assert origins_of(Header(format=1, created_at="", nonce=""), summary(0, 5)) == []


def test_a_turn_without_anything_to_show_keeps_its_place() -> None:
    assert origins_of(*whole_turn(0), start(1)) == [TurnOrigin(0), TurnOrigin(1)]
    assert origins_of(*whole_turn(0), start(1), summary(0, 1, identity="z")) == [
        SummaryOrigin(from_turn=0, to_turn=0, compaction="z"),
        TurnOrigin(1),
    ]


def test_stripping_reasoning_leaves_the_rest() -> None:
    events = events_of(*turns(1), Compaction(from_turn=0, to_turn=0, reasoning="strip"))

    assert outline(events) == [line for line in raw(0) if not line.startswith("reasoning")]


def test_a_policy_that_strips_keeps_the_turns_one_to_one() -> None:
    compaction = Compaction(from_turn=0, to_turn=2, reasoning="strip", tool_calls=OMIT)

    assert origins_of(*turns(3), compaction) == [TurnOrigin(0), TurnOrigin(1), TurnOrigin(2)]


def test_stripping_requests_keeps_names_ids_and_responses() -> None:
    events = events_of(*turns(1), Compaction(from_turn=0, to_turn=0, tool_calls=STRIP_REQUESTS))

    assert outline(events)[2:4] == ["call: run without arguments", "result: output 0"]
    assert (events[2].origin, events[3].turn) == ("c0", 0)


def test_stripping_responses_keeps_arguments() -> None:
    events = events_of(*turns(1), Compaction(from_turn=0, to_turn=0, tool_calls=STRIP_RESPONSES))

    assert outline(events)[2] == "call: run with arguments"
    assert isinstance(result := events[3], ToolResult)
    assert result.content == (TextBlock(text="[compacted] run: success"),)


def test_stripping_both_keeps_the_pair_and_that_it_was_an_error() -> None:
    entries = whole_turn(0, tool="cargo_test", is_error=True)
    events = events_of(*entries, Compaction(from_turn=0, to_turn=0, tool_calls=STRIP_BOTH))

    assert outline(events)[2] == "call: cargo_test without arguments"
    assert isinstance(result := events[3], ToolResult)
    assert result.content == (TextBlock(text="[compacted] cargo_test: error"),)
    assert (result.is_error, result.call, result.call_id) == (True, "c0", "call_0")


def test_omitted_calls_take_their_responses_with_them() -> None:
    events = events_of(*turns(1), Compaction(from_turn=0, to_turn=0, tool_calls=OMIT))

    assert outline(events) == ["user: question 0", "reasoning: thought 0", "assistant: answer 0"]


def test_a_summary_replaces_everything_in_its_range_and_is_a_turn_of_its_own() -> None:
    compaction = summary(1, 4, identity="z")
    projection = project(log(*turns(6), compaction), PlainStatusFormatter())

    assert [turn.origin for turn in projection.turns] == [
        TurnOrigin(0),
        SummaryOrigin(from_turn=1, to_turn=4, compaction="z"),
        TurnOrigin(5),
    ]
    assert outline(projection.events) == raw(0) + summarised(1, 4) + raw(5)


def test_a_summary_is_marked_so_that_nobody_takes_it_for_a_request() -> None:
    heading, text = events_of(*turns(2), summary(0, 1, identity="z"))

    assert isinstance(heading, UserText)
    assert isinstance(text, AssistantText)
    assert (heading.synthetic, text.synthetic) == (True, True)
    assert (heading.origin, text.origin) == ("z", "z")


def test_a_summary_ignores_its_own_other_policies() -> None:
    compaction = Compaction(
        from_turn=0, to_turn=0, summary=SummaryPolicy(text="s"), reasoning="strip", tool_calls=STRIP_BOTH
    )

    assert outline(events_of(*turns(1), compaction)) == summarised(0, 0, "s")


def test_a_summary_wins_over_a_newer_policy_on_its_turns() -> None:
    mechanical = Compaction(from_turn=0, to_turn=1, reasoning="strip")

    lines = outline(events_of(*turns(2), summary(0, 0, "s"), mechanical))

    assert lines == summarised(0, 0, "s") + [line for line in raw(1) if not line.startswith("reasoning")]


def test_a_newer_summary_inside_an_older_one_leaves_that_before_and_after_it() -> None:
    entries = [*turns(4), summary(0, 3, "outer", identity="o"), summary(1, 2, "inner", identity="i")]

    assert outline(events_of(*entries)) == (
        summarised(0, 0, "outer") + summarised(1, 2, "inner") + summarised(3, 3, "outer")
    )
    assert origins_of(*entries) == [
        SummaryOrigin(from_turn=0, to_turn=0, compaction="o"),
        SummaryOrigin(from_turn=1, to_turn=2, compaction="i"),
        SummaryOrigin(from_turn=3, to_turn=3, compaction="o"),
    ]


@pytest.mark.parametrize("identity", ["", "z"])
def test_adjacent_summaries_with_the_same_text_stay_two(identity: str) -> None:
    entries = [*turns(2), summary(0, 0, "s", identity=identity), summary(1, 1, "s", identity=identity)]

    assert len(project(entries, PlainStatusFormatter()).turns) == 2


def test_a_blank_summary_is_no_summary() -> None:
    assert outline(events_of(*turns(1), summary(0, 0, " \n"))) == raw(0)


def test_the_later_of_two_policies_of_one_type_wins() -> None:
    older = Compaction(from_turn=0, to_turn=0, tool_calls=OMIT, at="2026-11-20T12:00:09Z")
    newer = Compaction(from_turn=0, to_turn=0, tool_calls=STRIP_REQUESTS, at="2026-11-20T12:00:00Z")

    assert outline(events_of(*turns(1), older, newer))[2:4] == ["call: run without arguments", "result: output 0"]
    assert len(events_of(*turns(1), newer, older)) == 3


def test_a_policy_for_one_type_leaves_an_older_one_for_another_in_force() -> None:
    entries = [
        *turns(1),
        Compaction(from_turn=0, to_turn=0, reasoning="strip"),
        Compaction(from_turn=0, to_turn=0, tool_calls=OMIT),
    ]

    assert outline(events_of(*entries)) == ["user: question 0", "assistant: answer 0"]


def test_each_compaction_concerns_its_own_turns() -> None:
    entries = [
        *turns(3),
        Compaction(from_turn=0, to_turn=0, reasoning="strip"),
        Compaction(from_turn=2, to_turn=2, tool_calls=OMIT),
    ]

    assert outline(events_of(*entries)) == (
        [line for line in raw(0) if not line.startswith("reasoning")]
        + raw(1)
        + ["user: question 2", "reasoning: thought 2", "assistant: answer 2"]
    )


def test_a_range_beyond_the_last_turn_ends_there_and_never_reaches_turns_that_come_later() -> None:
    compaction = Compaction(from_turn=1, to_turn=99, reasoning="strip")

    lines = outline(events_of(*turns(2), compaction, *whole_turn(2)))

    assert [line for line in lines if line.startswith("reasoning")] == ["reasoning: thought 0", "reasoning: thought 2"]


def test_what_is_no_event_is_not_shown_and_changes_nothing() -> None:
    entries = turns(2)
    entries[3:3] = [ConfigDelta(delta={"a": 1}), Unknown(raw=b'{"type":"x"}', id="u", type="x")]

    assert outline(events_of(*entries)) == raw(0) + raw(1)


def test_turns_count_from_an_unstarted_one_where_events_stand_before_any_start() -> None:
    leading = [ask("early"), say("yes"), end()]

    assert origins_of(*leading, *whole_turn(1)) == [TurnOrigin(0), TurnOrigin(1)]
    assert outline(events_of(*leading, *whole_turn(1), summary(1, 1, "s"))) == ([
        "user: early",
        "assistant: yes",
        *summarised(1, 1, "s"),
    ])


def test_reverted_turns_are_gone_and_the_others_keep_their_numbers() -> None:
    entries = [*turns(3), Revert(entries=("t1",), id="r")]

    assert origins_of(*entries) == [TurnOrigin(0), TurnOrigin(2)]
    assert outline(events_of(*entries)) == raw(0) + raw(2)
    assert origins_of(*entries, Revert(entries=("r",))) == [TurnOrigin(0), TurnOrigin(1), TurnOrigin(2)]


def test_a_summary_runs_on_over_a_reverted_turn() -> None:
    entries = [*turns(4), summary(0, 3, identity="z"), Revert(entries=("t1", "t3"))]

    assert origins_of(*entries) == [SummaryOrigin(from_turn=0, to_turn=2, compaction="z")]


def test_reverted_compactions_do_not_exist() -> None:
    entries = [*turns(1), summary(0, 0, identity="z"), Revert(entries=("z",), id="r")]

    assert outline(events_of(*entries)) == raw(0)
    assert outline(events_of(*entries, Revert(entries=("r",)))) == summarised(0, 0)


def test_a_summary_that_stands_inside_a_turn_covers_what_that_turn_held_by_then() -> None:
    entries = [*whole_turn(0), *whole_turn(1)[:6], summary(0, 1, identity="z"), say("more"), end()]

    assert outline(events_of(*entries)) == [*summarised(0, 1), "assistant: more"]
    assert origins_of(*entries) == [SummaryOrigin(from_turn=0, to_turn=1, compaction="z"), TurnOrigin(1)]


def test_a_policy_that_stands_inside_a_turn_covers_what_that_turn_held_by_then() -> None:
    entries = [
        *whole_turn(0)[:6],
        Compaction(from_turn=0, to_turn=0, reasoning="strip"),
        think("later"),
        say("more"),
        end(),
    ]

    assert outline(events_of(*entries))[1:] == [
        "call: run with arguments",
        "result: output 0",
        "reasoning: later",
        "assistant: more",
    ]


def long_turn(count: int) -> list[AnyEntry]:
    entries: list[AnyEntry] = [start(0), ask("question")]
    for number in range(count):
        entries += [think(f"thought {number}"), call(f"c{number}"), end("tools"), respond(f"c{number}")]
    return entries


def stripped_results(*entries: AnyEntry) -> list[int]:
    results = [event for event in events_of(*entries) if isinstance(event, ToolResult)]
    return [
        number
        for number, result in enumerate(results)
        if result.content[0] == TextBlock(text="[compacted] run: success")
    ]


@pytest.mark.parametrize(
    ("to_cycle", "expected"),
    [(-1, []), (0, [0]), (2, [0, 1, 2]), (3, [0, 1, 2, 3]), (4, [0, 1, 2, 3]), (99, [0, 1, 2, 3])],
)
def test_inside_a_turn_responses_are_stripped_up_to_a_cycle_but_never_the_newest_three(
    to_cycle: int, expected: list[int]
) -> None:
    compaction = Compaction(from_turn=0, to_turn=0, to_cycle=to_cycle, tool_calls=STRIP_BOTH)

    assert stripped_results(*long_turn(7), compaction) == expected
    assert stripped_results(*long_turn(7), compaction, *long_turn(9)[2:]) == expected


def test_inside_a_turn_nothing_but_responses_is_touched() -> None:
    compaction = Compaction(
        from_turn=0,
        to_turn=0,
        to_cycle=2,
        reasoning="strip",
        tool_calls=STRIP_BOTH,
        resources="superseded",
    )
    plain = events_of(*long_turn(6))

    changed = [event for event in events_of(*long_turn(6), compaction) if event not in plain]

    assert len(changed) == 3
    assert all(isinstance(event, ToolResult) for event in changed)


@pytest.mark.parametrize(("to_cycle", "left"), [(0, 5), (2, 3), (4, 1), (9, 1)])
def test_a_summary_inside_a_turn_stands_for_finished_cycles_behind_the_users_request(to_cycle: int, left: int) -> None:
    compaction = Compaction(id="z", from_turn=0, to_turn=0, to_cycle=to_cycle, summary=SummaryPolicy(text="I did it."))
    plain = events_of(*long_turn(6))

    shown = events_of(*long_turn(6), compaction)

    request, summary, *rest = shown
    assert request == plain[0]
    assert isinstance(summary, UserText)
    assert summary.synthetic
    assert summary.text.endswith("\n\nI did it.")
    assert rest == list(plain[-3 * left :])
    grown = events_of(*long_turn(6), compaction, *long_turn(8)[-8:])
    assert grown[: len(shown)] == shown
    assert events_of(*long_turn(6), compaction, Revert(entries=("z",))) == plain


def test_a_summary_inside_a_turn_stands_before_what_another_overlay_summarises_next() -> None:
    """Damaged logs have overlays that no planner makes: a summary of a turn that began before another one's did."""
    inside = Compaction(from_turn=0, to_turn=0, to_cycle=1, summary=SummaryPolicy(text="early work"))
    other = Compaction(from_turn=0, to_turn=0, to_cycle=4, summary=SummaryPolicy(text="later work"))

    texts = [event.text for event in events_of(*long_turn(6), other, inside) if isinstance(event, UserText)]

    assert [text.split("\n\n")[-1] for text in texts] == ["question", "early work", "later work"]


def test_a_later_summary_inside_a_turn_or_of_all_of_it_takes_the_place_of_an_earlier_one() -> None:
    early = Compaction(from_turn=0, to_turn=0, to_cycle=1, summary=SummaryPolicy(text="early"))
    late = Compaction(from_turn=0, to_turn=0, to_cycle=4, summary=SummaryPolicy(text="late"))
    whole = Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="whole"))

    inside = [event.text for event in events_of(*long_turn(6), early, late) if isinstance(event, UserText)]
    told = events_of(*long_turn(6), say("done"), early, late, whole)

    assert [text.split("\n\n")[-1] for text in inside] == ["question", "late"]
    assert [event.text for event in told if isinstance(event, AssistantText)] == ["whole"]


@pytest.mark.parametrize("tool_calls", [None, OMIT, STRIP_REQUESTS])
def test_inside_a_turn_calls_are_never_omitted(tool_calls: ToolCallPolicy | None) -> None:
    compaction = Compaction(from_turn=0, to_turn=0, to_cycle=2, tool_calls=tool_calls)

    assert events_of(*long_turn(6), compaction) == events_of(*long_turn(6))


def test_an_overlay_that_ends_inside_a_turn_covers_the_turns_before_it_wholly() -> None:
    inside = [entry for entry in long_turn(5) if entry.id != "t0"]
    entries = [*whole_turn(8), start(1), *inside, Compaction(from_turn=0, to_turn=1, to_cycle=1, reasoning="strip")]

    reasoning = [event.text for event in events_of(*entries) if isinstance(event, AssistantReasoning)]

    assert reasoning == [f"thought {number}" for number in range(5)]


def test_a_later_strip_inside_a_turn_brings_back_what_an_older_overlay_omitted() -> None:
    entries = [
        *long_turn(5),
        Compaction(from_turn=0, to_turn=0, tool_calls=OMIT),
        Compaction(from_turn=0, to_turn=0, to_cycle=1, tool_calls=STRIP_BOTH),
    ]

    calls = [event for event in events_of(*entries) if isinstance(event, ToolCall)]

    assert [event.origin for event in calls] == ["c0", "c1"]
    assert all(event.arguments == {"command": "make test"} for event in calls)


def test_an_overlay_that_ends_inside_an_older_turn_leaves_that_turns_newest_cycles_alone() -> None:
    compaction = Compaction(from_turn=0, to_turn=0, to_cycle=9, tool_calls=STRIP_RESPONSES)

    assert stripped_results(*long_turn(5), *whole_turn(1), compaction) == [0, 1]


def test_a_view_begins_with_the_user() -> None:
    entries = [say("early"), call("c0"), end("tools"), respond("c0"), start(1), ask("now")]

    assert outline(events_of(*entries)) == ["user: now"]
    assert origins_of(*entries) == [TurnOrigin(0), TurnOrigin(1)]
    assert events_of(say("alone")) == ()

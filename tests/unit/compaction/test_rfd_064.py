"""The examples of RFD 064: its two projections and its table of stacked compactions, under their names there."""

from __future__ import annotations

import pytest

from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import Policies, Winners, coverages
from jp.compaction.projection import project
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    Header,
    JsonObject,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolOverride,
)
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantReasoning, AssistantText, ToolCall, ToolResult, UserText
from jp.conversation.turns import cycles_of, divide
from logs import ask, end, log, respond, say, start, think, whole_turn

CODE = "".join(f"let line_{number} = {number};\n" for number in range(200))
PATH: JsonObject = {"path": "src/main.rs"}
SUMMARY = "Set up a Rust project at src/main.rs with error handling and tracing-based logging."


def tool(identity: str, name: str, arguments: JsonObject) -> list[AnyEntry]:
    call = ToolCallRequest(id=identity, call_id=identity, name=name, arguments=arguments)
    return [call, end("tools"), respond(identity, CODE)]


RAW = [
    Header(id="h", format=1, created_at="", nonce="n0nce"),
    start(0),
    ask("set up the project"),
    say("I'll create the project structure."),
    *tool("1", "fs_create_file", {**PATH, "content": CODE}),
    say("Created src/main.rs with a basic setup."),
    end(),
    start(1),
    ask("add error handling"),
    think("thinking " * 500),
    *tool("2", "fs_read_file", PATH),
    *tool("3", "fs_modify_file", {**PATH, "content": CODE}),
    say("Added error handling to main."),
    end(),
    start(2),
    ask("now add logging"),
    think("thinking " * 400),
    *tool("4", "fs_modify_file", {**PATH, "content": CODE}),
    say("Added tracing-based logging."),
    end(),
]
AFTER = [*whole_turn(3), *whole_turn(4)]


def shown(compaction: Compaction) -> list[str]:
    """The view of turns 0 to 2, one line for each event; what comes later is what it was."""
    entries = log(*RAW, compaction, *AFTER)
    view = project(entries, StatusLineFormatter())
    later = [event for event in view.events if event.turn > 2]
    plain = project([entry for entry in entries if not isinstance(entry, Compaction)], StatusLineFormatter())
    assert later == [event for event in plain.events if event.turn > 2]
    lines: list[str] = []
    for event in view.events[: len(view.events) - len(later)]:
        match event:
            case UserText(text=text):
                lines.append(f"ChatRequest({text})")
            case AssistantText(text=text):
                lines.append(f"ChatResponse::Message({text})")
            case AssistantReasoning():
                lines.append("ChatResponse::Reasoning")
            case ToolCall(call_id=identity, name=name, arguments=dict() as arguments):
                assert arguments["path"] == "src/main.rs"
                cut = "[[cut:n0nce:" in str(arguments.get("content"))
                lines.append(f"ToolCallRequest({identity}, {name}, {'compacted' if cut else 'whole'})")
            case ToolResult(call_id=identity, content=(TextBlock(text=str(text)),)):
                lines.append(f"ToolCallResponse({identity}, {text.partition(';')[0]})")
            case _:
                raise AssertionError(event)
    return lines


def test_projection_example_with_the_default_profile() -> None:
    compaction = Compaction(
        from_turn=0,
        to_turn=2,
        reasoning="strip",
        tool_calls=ToolCallPolicy(policy="strip", request=True, response=True),
        tool_overrides={
            "fs_read_file": ToolOverride(request="keep"),
            "fs_create_file": ToolOverride(request="strip"),
            "fs_modify_file": ToolOverride(request="strip"),
        },
    )

    assert shown(compaction) == [
        "ChatRequest(set up the project)",
        "ChatResponse::Message(I'll create the project structure.)",
        "ToolCallRequest(1, fs_create_file, compacted)",
        "ToolCallResponse(1, [compacted] fs_create_file: success)",
        "ChatResponse::Message(Created src/main.rs with a basic setup.)",
        "ChatRequest(add error handling)",
        "ToolCallRequest(2, fs_read_file, whole)",
        "ToolCallResponse(2, [compacted] fs_read_file: success)",
        "ToolCallRequest(3, fs_modify_file, compacted)",
        "ToolCallResponse(3, [compacted] fs_modify_file: success)",
        "ChatResponse::Message(Added error handling to main.)",
        "ChatRequest(now add logging)",
        "ToolCallRequest(4, fs_modify_file, compacted)",
        "ToolCallResponse(4, [compacted] fs_modify_file: success)",
        "ChatResponse::Message(Added tracing-based logging.)",
    ]


def test_projection_example_with_the_heavy_profile() -> None:
    compaction = Compaction(from_turn=0, to_turn=2, summary=SummaryPolicy(text=SUMMARY))

    assert shown(compaction) == [
        "ChatRequest([summary of turns 0 to 2 of this conversation; a record, not a request])",
        f"ChatResponse::Message({SUMMARY})",
    ]


A = Compaction(id="A", from_turn=0, to_turn=20, summary=SummaryPolicy(text="..."))
B = Compaction(id="B", from_turn=0, to_turn=30, tool_calls=ToolCallPolicy(policy="strip", response=True))


def policies_at(turn: int) -> Policies:
    """What happens in `turn` of 35, compacted after turn 20 by A and after turn 30 by B."""
    turns = [whole_turn(number) for number in range(35)]
    entries = log(
        *(entry for turn in turns[:21] for entry in turn),
        A,
        *(entry for turn in turns[21:31] for entry in turn),
        B,
        *(entry for turn in turns[31:] for entry in turn),
    )
    division = divide(entries)
    found = coverages(division, frozenset(), lambda number: cycles_of(division.turns[number]))
    return Winners(found).at((turn, 0))


@pytest.mark.parametrize(
    ("turn", "winner", "strips_responses"),
    [(5, "A", True), (20, "A", True), (25, None, True), (30, None, True), (31, None, False)],
    ids=["5: A, whatever B says of tools", "20: A still", "25: B, of tools only", "30: B still", "31: neither"],
)
def test_stacking_semantics(turn: int, winner: str | None, *, strips_responses: bool) -> None:
    found = policies_at(turn)

    assert (None if found.summary is None else found.summary.compaction.id) == winner
    assert found.tools.responses.strips("any") is strips_responses
    assert (found.tools.requests.strips("any"), found.strip_reasoning) == (False, False)


def test_stacking_semantics_in_a_view() -> None:
    turns = [entry for number in range(3) for entry in whole_turn(number)]
    summary = Compaction(id="A", from_turn=0, to_turn=0, summary=SummaryPolicy(text="short"))
    strip = Compaction(id="B", from_turn=0, to_turn=1, tool_calls=ToolCallPolicy(policy="strip", response=True))

    events = project(log(*turns, summary, strip), StatusLineFormatter()).events
    results = [event for event in events if isinstance(event, ToolResult)]

    assert [event.turn for event in events if isinstance(event, AssistantReasoning)] == [1, 2]
    assert [(event.turn, str(event.content).count("[compacted]")) for event in results] == [(1, 1), (2, 0)]

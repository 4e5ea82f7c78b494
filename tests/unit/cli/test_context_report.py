from __future__ import annotations

from hypothesis import given
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from jp.app.reports import ContextReport, Known, context_report_of
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.planning import Planner
from jp.context.markers import checksum_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Facts,
    Header,
    RequestContext,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
)
from jp.conversation.resource import Payload, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.provider.base import ModelDetails
from jp.turn.request import InlineLoader, RequestSettings
from jp.turn.sent import settings_of
from streams import any_streams

PROMPT = "You help. It is 2026-11-20T12:00:00Z."
TOOLS = '[{"description":"Run it.","name":"run","parameters":{"type":"object"}}]'
CONTEXT = RequestContext(
    id="c",
    provider="p",
    model="m",
    renderer=1,
    system=(Payload(text=PROMPT), Payload(text="# Rules\n\nBe brief.")),
    tools=Payload(text=TOOLS),
)
KNOWN = Known(
    details=ModelDetails(provider="p", id="m", context_window=10_000, max_output=2_000), ratio=1.5, prompt=PROMPT
)
USAGE = Usage(input=1_000, cache_read=500, output=20)
FILE = Resource(uri="file:///a", text="attached " * 300)
STREAM: tuple[AnyEntry, ...] = (
    Header(id="h", format=1, created_at="2026-01-01T00:00:00Z"),
    TurnStart(id="t"),
    ChatRequest(id="q", content="Why?", resources=(FILE,)),
    CONTEXT,
    ChatResponse(id="a", reasoning="hm", metadata={"signature": "s"}),
    ToolCallRequest(id="k", call_id="1", name="run", arguments={"script": "x = 1\n" * 200, "n": 1}),
    ToolCallRequest(id="l", call_id="2", name="made_up", arguments={}),
    CycleEnd(id="e", attempt=1, finish="tools", usage=USAGE),
    ToolCallResponse(
        id="r",
        request="k",
        content=(
            ResourceBlock(resource=Resource(uri="file:///b", text="read " * 500)),
            TextBlock(text="and " * 400),
            ResourceLink(uri="https://example.org/"),
        ),
        facts=Facts(path="src/b.py"),
    ),
    ToolCallResponse(id="s", request="l", content=(), is_error=True),
)


def report(*entries: AnyEntry, known: Known = KNOWN, settings: RequestSettings | None = None) -> ContextReport:
    loader = InlineLoader()
    found = settings_of(CONTEXT, loader) if settings is None else settings
    return context_report_of(Planner(entries, StatusLineFormatter(), {}, now=0.0), found, known, loader=loader)


def handle(text: str) -> str:
    return checksum_of(text)[:8]


def test_what_was_reported_counts_and_what_came_since_is_estimated() -> None:
    found = report(*STREAM)
    last = found.last_cycle

    assert last is not None
    assert last.added is not None
    assert (last.turn, last.cycle, last.reported, asdict(last.usage)) == (0, 0, 1_500, asdict(USAGE))
    assert found.source == "provider_usage+estimate"
    assert found.used == 1_500 + last.added
    assert found.estimated == last.estimated + last.added
    assert sum(bucket.tokens for bucket in found.buckets) == found.used
    assert [bucket.kind for bucket in found.buckets if bucket.items] == [
        "system_prompt",
        "tool_definitions",
        "rules",
        "conversation",
    ]
    assert [tool.kind for tool in found.tools] == ["run", "?"]
    assert [volatile.kind for volatile in found.volatile] == ["timestamp"]


def test_the_room_is_what_the_window_leaves_for_the_answer() -> None:
    room = report(*STREAM)
    greedy = Known(details=ModelDetails(provider="p", id="m", context_window=10_000, max_output=10_000))
    asked = replace(CONTEXT, parameters={"max_tokens": 100})

    assert (room.window, room.reserved, room.threshold) == (10_000, 2_000, 6_400)
    assert report(*STREAM, known=greedy).reserved == 5_000
    assert report(*STREAM, settings=settings_of(asked, InlineLoader())).reserved == 100
    assert report(*STREAM, known=Known(details=ModelDetails(provider="p", id="m"))).window is None


def test_the_threshold_is_where_compaction_happens_by_itself() -> None:
    known = Known(
        details=ModelDetails(provider="p", id="m", context_window=10_000, max_output=2_000), trigger_ratio=0.25
    )

    assert report(*STREAM, known=known).threshold == 2_000


def test_the_largest_things_have_the_handles_of_their_contents() -> None:
    found = report(*STREAM).largest
    items = [(item.kind, item.handle, item.tool, item.source) for item in found]

    assert items[:4] == [
        ("attachments", handle(FILE.text or ""), None, "file:///a"),
        ("results", handle("read " * 500), "run", "file:///b"),
        ("results", handle("and " * 400), "run", "src/b.py"),
        ("arguments", handle("x = 1\n" * 200), "run", None),
    ]
    ratio = report(*STREAM).ratio
    assert ratio is not None
    assert [round(item.estimated * ratio) for item in found] == [item.tokens for item in found]
    rest = {kind: (its, tool) for kind, its, tool, _ in items[4:]}
    assert rest["arguments"] == (None, "made_up")
    assert rest["user"] == rest["reasoning"] == (None, None)
    assert {item.turn for item in found} == {0}


def test_after_a_compaction_the_report_only_teaches_how_far_estimates_are_off() -> None:
    strip = Compaction(id="z", from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    more = (
        TurnStart(id="t2"),
        ChatRequest(id="q2", content="Go on."),
        ChatResponse(id="a2", message="Yes."),
        CycleEnd(id="e2", attempt=1, finish="stop", usage=USAGE),
    )
    found = report(*STREAM, *more, strip)
    last = found.last_cycle

    assert last is not None
    assert (last.turn, last.added, found.source) == (1, None, "local_estimate")
    assert found.ratio is not None
    assert abs(found.ratio - last.ratio) < 0.01
    stripped = next(item for item in found.largest if item.kind == "digests")
    assert stripped.handle == handle("read " * 500)


def test_another_model_goes_by_what_is_known_of_it() -> None:
    other = replace(settings_of(CONTEXT, InlineLoader()), model="n")
    changed = replace(CONTEXT, id="c2", model="n")
    found = report(*STREAM, changed, settings=other)

    assert found.last_cycle is not None
    assert (found.model, found.last_cycle.model, found.last_cycle.added) == ("p/n", "p/m", None)
    assert found.ratio is not None
    assert abs(found.ratio - 1.5) < 0.01


def test_a_log_that_says_nothing_of_requests_is_estimated() -> None:
    unsaid = RequestSettings(provider="", model="", renderer=0, system=("Only this.", "And that."))
    found = report(*STREAM[:3], settings=unsaid)

    assert (found.model, found.last_cycle, found.source) == ("not known", None, "local_estimate")
    assert [(bucket.kind, bucket.items) for bucket in found.buckets[:3]] == [
        ("system_prompt", 1),
        ("tool_definitions", 0),
        ("rules", 1),
    ]


def test_a_tool_that_ran_is_known_though_the_log_does_not_say_that_it_was_offered() -> None:
    said = tuple(entry for entry in STREAM if entry is not CONTEXT)

    assert [tool.kind for tool in report(*said).tools] == ["run", "?"]


def test_a_cycle_without_tokens_is_passed_over() -> None:
    silent = (
        TurnStart(id="t2"),
        ChatRequest(id="q2", content="Go on."),
        ChatResponse(id="a2", message="Yes."),
        CycleEnd(id="e2", attempt=1, finish="stop"),
        TurnStart(id="t3"),
        ChatRequest(id="q3", content="Go on."),
        CycleEnd(id="e3", attempt=1, finish="error", error="network"),
    )

    last = report(*STREAM, *silent).last_cycle

    assert last is not None
    assert last.turn == 0


@given(any_streams())
def test_every_log_has_a_report_that_adds_up(entries: tuple[AnyEntry, ...]) -> None:
    found = report(*entries)

    value = to_builtins(found)
    assert sum(bucket["tokens"] for bucket in value["buckets"]) + value["other"] == value["used"]
    assert len(value["largest"]) <= 10

from __future__ import annotations

from contextlib import aclosing

import anyio
import pytest

from doubles import EchoTools, FakeClock, MemoryRecorder, Screen, ScriptedProvider, Step, answer, call, kinds, messages
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import ChatRequest, CycleEnd, ToolCallResponse, Usage
from jp.conversation.thread import Thread, UserText
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    KeepAlive,
    ModelDetails,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.errors import ProviderError
from jp.turn.cost_cap import CUT, CappedProvider, Meter, Prices, Purse, allows, least_cost, prices_of
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings

MILLION = 1_000_000
BARE = ModelDetails(provider="p", id="m", input_price=1.0, output_price=10.0)
DETAILS = ModelDetails(
    provider="p",
    id="m",
    input_price=1.0,
    output_price=10.0,
    cache_read_price=0.1,
    cache_write_price=1.25,
    cache_write_long_price=2.0,
)
SETTINGS = RequestSettings(provider="scripted", model="m", renderer=1)


def prices(details: ModelDetails = DETAILS, *, cache: str = "short") -> Prices:
    found = prices_of(details, cache=cache)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("details", "cache", "usage", "usd"),
    [
        (DETAILS, "short", Usage(cache_write=MILLION), 1.25),
        (DETAILS, "long", Usage(cache_write=MILLION), 2.0),
        (DETAILS, "short", Usage(cache_read=MILLION), 0.1),
        (BARE, "long", Usage(cache_write=MILLION), 1.0),
        (BARE, "short", Usage(cache_read=MILLION, cache_write=MILLION, output=MILLION), 12.0),
    ],
)
def test_what_is_not_said_of_the_cache_costs_what_input_does(
    details: ModelDetails, cache: str, usage: Usage, usd: float
) -> None:
    assert prices(details, cache=cache).usd(usage) == pytest.approx(usd)


def test_without_the_price_of_input_and_output_there_is_none() -> None:
    assert prices_of(ModelDetails(provider="p", id="m", input_price=1.0), cache="short") is None
    assert prices_of(ModelDetails(provider="p", id="m", output_price=1.0), cache="short") is None


@pytest.mark.parametrize(
    ("tokens", "cached", "usd"), [(MILLION, 0, 1.0), (MILLION, MILLION // 2, 0.55), (MILLION, 9 * MILLION, 0.1)]
)
def test_a_prompt_costs_at_least_what_the_cache_leaves(tokens: int, cached: int, usd: float) -> None:
    assert least_cost(tokens, prices(), cached=cached) == pytest.approx(usd)


@pytest.mark.parametrize(
    ("spent", "upcoming", "is_allowed"),
    [(0.0, 1.0, True), (0.0, 1.1, False), (0.9, 0.1, True), (1.0, 0.0, False), (1.1, 0.0, False), (0.9, 0.2, False)],
)
def test_a_request_is_sent_only_if_it_can_be_paid(spent: float, upcoming: float, *, is_allowed: bool) -> None:
    assert allows(1.0, spent=spent, upcoming=upcoming) is is_allowed


@pytest.mark.parametrize(
    ("parts", "tokens"),
    [
        ([], Usage()),
        ([KeepAlive()], Usage(input=100)),
        ([TextDelta(0, "four" * 5)], Usage(input=100, output=5)),
        ([ReasoningDelta(0, "a"), DataDelta(0, "b"), ToolArgumentsDelta(1, "c")], Usage(input=100, output=3)),
        ([UsageReport(Usage(input=7, output=1)), TextDelta(0, "four" * 5)], Usage(input=7, output=6)),
        ([TextDelta(0, "four" * 5), UsageReport(Usage(input=7, output=9))], Usage(input=7, output=9)),
    ],
)
def test_what_a_provider_has_not_reported_yet_is_estimated(parts: list[Part], tokens: Usage) -> None:
    meter = Meter(prompt=100)
    for part in parts:
        meter = meter.after(part)

    assert meter.tokens() == tokens


class Stage:
    """A turn that may cost `limit` USD in all."""

    def __init__(self, limit: float, *answers: list[Step]) -> None:
        self.provider = ScriptedProvider(*answers)
        self.cap = CappedProvider(self.provider, Purse(limit), prices())
        self.recorder = MemoryRecorder()
        self.screen = Screen()

    def play(self) -> TurnOutcome:
        ports = TurnPorts(
            provider=self.cap,
            recorder=self.recorder,
            renderer=self.screen,
            tools=EchoTools(),
            clock=FakeClock(),
            status_formatter=PlainStatusFormatter(),
            cap=self.cap,
        )
        turn = TurnLoop(ports, SETTINGS, limits=Limits(), retry=RetryPolicy(max_retries=2))
        return anyio.run(turn.run, ChatRequest(content="Hi"))

    @property
    def finishes(self) -> list[str]:
        return [entry.finish for entry in self.recorder.entries if isinstance(entry, CycleEnd)]


def used(output: int) -> UsageReport:
    return UsageReport(Usage(input=10, output=output))


def calling(arguments: str, report: UsageReport) -> list[Step]:
    """A whole call, of which the provider says at its end what it took."""
    *call_parts, finished = call(arguments)
    return [*call_parts, report, finished]


def test_no_further_request_is_sent_where_the_purse_is_empty() -> None:
    stage = Stage(1.0, calling("{}", used(MILLION)), answer("never asked for"))

    outcome = stage.play()

    assert (outcome.ending, outcome.cycles) == ("capped", 1)
    assert stage.cap.stopped
    assert stage.finishes == ["tools"]
    assert any(isinstance(entry, ToolCallResponse) for entry in stage.recorder.entries)  # the next turn goes on here


def test_a_request_that_cannot_be_paid_any_more_is_not_sent() -> None:
    stage = Stage(0.5, calling(f'{{"text": "{"x" * 100_000}"}}', used(49_000)), answer("never asked for"))

    outcome = stage.play()

    assert (outcome.ending, stage.cap.stopped) == ("capped", True)
    assert stage.cap.purse.spent < stage.cap.purse.limit
    assert stage.cap.least_refused > 0.01


def test_a_failed_request_is_not_repeated_where_nothing_is_left() -> None:
    stage = Stage(1.0, [used(MILLION), ProviderError("overloaded", kind="transient")], answer("never asked for"))

    assert stage.play().ending == "capped"
    assert stage.finishes == ["error"]


def test_an_answer_is_cut_where_the_purse_is_empty_and_what_came_is_kept() -> None:
    pieces = [TextDelta(0, "word " * 20) for _ in range(10)]
    stage = Stage(0.001, [UsageReport(Usage(input=10, output=1)), *pieces, BlockEnd(0), Finished("stop")])

    outcome = stage.play()

    assert (outcome.ending, outcome.detail) == ("capped", CUT)
    assert stage.finishes == ["length"]
    (kept,) = messages(stage.recorder.entries)
    assert kept == stage.screen.shown == "word " * 20 * 4  # 4 times 25 tokens, at 10 USD for a million
    assert kinds(stage.recorder.entries)[-2:] == ["chat_response", "cycle_end"]


def test_the_calls_that_came_whole_before_a_cut_have_their_responses() -> None:
    whole: list[Step] = [ToolCallStart(0, "c", "echo"), ToolArgumentsDelta(0, "{}"), BlockEnd(0)]
    stage = Stage(0.5, [*whole, used(MILLION), ToolCallStart(1, "d", "echo"), BlockEnd(1), Finished("tools")])

    assert stage.play().ending == "capped"
    assert stage.screen.results == ["echo: ok"]


def test_an_answer_that_is_whole_is_not_cut() -> None:
    stage = Stage(0.001, [TextDelta(0, "Hello"), used(MILLION), BlockEnd(0), KeepAlive(), Finished("stop")])

    assert stage.play().ending == "answered"
    assert not stage.cap.stopped


def test_requests_are_paid_from_one_purse_at_the_prices_of_their_models() -> None:
    purse = Purse(100.0)
    cheap = ModelDetails(provider="p", id="cheap", input_price=0.0, output_price=1.0)
    main = CappedProvider(ScriptedProvider([used(MILLION), *answer("a")]), purse, prices())
    title = CappedProvider(ScriptedProvider([used(MILLION), *answer("b")]), purse, prices(cheap))

    async def read(provider: CappedProvider) -> None:
        async with aclosing(provider.stream(provider.render(thread()))) as parts:
            async for _ in parts:
                pass

    anyio.run(read, main)
    anyio.run(read, title)

    assert purse.spent == pytest.approx(11.00001)
    assert not purse.is_empty


def thread() -> Thread:
    return Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def test_a_capped_provider_is_the_provider_in_all_else() -> None:
    inner = ScriptedProvider()
    inner.located = ("e1",)
    capped = CappedProvider(inner, Purse(1.0), prices())
    request = capped.render(thread())

    assert (capped.id, capped.renderer) == ("scripted", 1)
    assert request == inner.render(thread())
    assert capped.locate_rejected(thread(), ProviderError("x", kind="transient")) == ("e1",)

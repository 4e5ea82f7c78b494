"""Cost of sessions under jp's automatic compaction, simulated request by request on small windows.

The log grows as it did, and each request is prepared by the code that a turn runs. What a request has in common with
the one before it, message by message, is read at a tenth of the price of input; the rest is written at one and a
quarter. Baselines are compacted at the same threshold, to the same target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, TypeVar
from unittest.mock import create_autospec, patch

import anyio

from context.availability import BASELINES
from context.baselines import Masking, Placeholders
from context.conversations import LogWriter
from context.gold import Fact, availability, found_in, gold_of, places_of
from context.rounds import index_groups
from context.schemes import Scheme
from context.sessions import Session
from context.workers import spread
from jp.app.options import Options, open_session
from jp.app.query import auto_compaction
from jp.app.query.arguments import QueryArguments
from jp.app.query.conversation import QueryContext
from jp.app.query.screen import Dialogue, NoScreen
from jp.app.query.wiring import Wiring
from jp.app.settings import read_sources
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.projection import project
from jp.compaction.transcript import transcript_of
from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.context.budget import estimate_message, estimate_messages
from jp.context.types import Transcript
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.resource import Carrier
from jp.conversation.turns import turns_of
from jp.provider.errors import ProviderError
from jp.provider.registry import ModelId
from jp.provider.script.provider import create
from jp.tool.consent import Answers, Consent
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.turn.ports import Renderer, SystemClock, TurnPorts
from jp.turn.preparation import Preparation
from jp.turn.request import RequestSettings
from jp.workspace.workspace import Workspace, create_workspace, find_workspace
from results import Report

READ = 0.1
WRITTEN = 1.25
TRIGGER = 0.75
"""The built-in `trigger_ratio`; the target is half of it."""

WINDOWS: Mapping[int, float] = {32_000: 91, 64_000: 95, 128_000: 97, 200_000: 97.5}
"""Windows, and percent of what is sent that has to be read from the cache."""

SECONDS_A_REQUEST = 30.0

Summarizer = Literal["reliable", "failing", "none"]
SUMMARIZERS: Mapping[Summarizer, str] = {
    "reliable": """text = '{"goal": "do what was asked", "next_step": "go on", "requirements": []}'""",
    "failing": 'text = "I would rather not."',
    "none": "",
}

_C = TypeVar("_C", bound=Carrier)


class Bill(NamedTuple):
    """One way over a session, in estimated tokens; `billed` are such as an uncached one costs.

    `breaks` are the requests that do not begin with all of the request before. `in_view` are the facts that the last
    request has. A session that is not `finished` had a request that could not be sent.
    """

    requests: int = 0
    prompt: int = 0
    read: int = 0
    compactions: int = 0
    breaks: int = 0
    longest: int = 0
    in_view: float = 0.0
    finished: bool = True

    @property
    def billed(self) -> float:
        """Return the cost of all requests."""
        return READ * self.read + WRITTEN * (self.prompt - self.read)


class Meter:
    """Adds up what requests cost."""

    def __init__(self) -> None:
        self._sent: Transcript = ()
        self.bill = Bill()

    def send(self, messages: Transcript) -> None:
        """Take the next request."""
        common = _common(self._sent, messages)
        sizes = [estimate_message(message) for message in messages]
        bill = self.bill
        self.bill = bill._replace(
            requests=bill.requests + 1,
            prompt=bill.prompt + sum(sizes),
            read=bill.read + sum(sizes[:common]),
            breaks=bill.breaks + (common < len(self._sent)),
            longest=max(bill.longest, sum(sizes)),
        )
        self._sent = messages

    def finish(self, facts: Sequence[Fact], compactions: int, *, finished: bool = True) -> Bill:
        """Return the bill of the session."""
        found = found_in(facts, places_of(self._sent))
        return self.bill._replace(compactions=compactions, in_view=availability(facts, found), finished=finished)


def _common(before: Transcript, after: Transcript) -> int:
    pairs = zip(before, after, strict=False)
    differ = (at for at, (old, new) in enumerate(pairs) if old is not new and old != new)
    return next(differ, min(len(before), len(after)))


def requests_of(messages: Transcript) -> Iterator[Transcript]:
    """Yield the messages that each request adds: an answer with the results of its calls, or a user message."""
    start = 0
    for group in index_groups(messages).groups:
        if messages[group.start].role == "assistant":
            yield messages[start : group.start]
            start = group.start


def baseline_bill(scheme: Scheme, messages: Transcript, window: int, facts: Sequence[Fact]) -> Bill:
    """Return the cost of the requests for all answers in `messages`, where a baseline makes room."""
    meter = Meter()
    context: Transcript = ()
    compactions = 0
    threshold = int(window * TRIGGER)
    for new in requests_of(messages):
        context = (*context, *new)
        if isinstance(scheme, Masking | Placeholders):
            context = scheme.applied(context)
        if estimate_messages(context) > threshold:
            context = scheme.compact(context, threshold // 2)
            compactions += 1
        meter.send(context)
    return meter.finish(facts, compactions)


class MemoryLog:
    """The port `jp.turn.ports.Recorder`, without a file."""

    def __init__(self) -> None:
        self.writer = LogWriter()

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """See the port."""
        return self.writer.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        """See the port."""
        return self.writer.append(entry)

    def load(self, carrier: _C, /) -> _C:
        """Everything is inline."""
        return carrier


class Simulation:
    """One session under automatic compaction."""

    def __init__(self, root: Path, window: int, summarizer: Summarizer) -> None:
        self.log = MemoryLog()
        self.meter = Meter()
        self.compactions = 0
        self._lines = StatusLineFormatter()
        workspace = find_workspace(root / "work", user_data=root / "user")
        scenarios = root / "work" / ".jp" / "scenarios"
        scenarios.mkdir(exist_ok=True)
        for name, reply in (("main", 'text = ""'), ("summaries", SUMMARIZERS[summarizer] or 'text = ""')):
            (scenarios / f"{name}.toml").write_text(f"[[reply]]\n{reply}\n", encoding="utf-8")
        self._wiring = wired(root / "work", window, summarizer, workspace)

    async def run(self, messages: Transcript) -> bool:
        """Prepare each request; return whether all of them could be sent."""
        preparation: Preparation | None = None
        turns = 0
        for new in requests_of(messages):
            self.log.writer.add(new)
            if preparation is None or len(turns_of(self.log.entries)) > turns:
                turns = len(turns_of(self.log.entries))
                preparation = self._turn()
            made = self._overlays()
            try:
                await preparation.prepare(going_on=False)
            except ProviderError:
                return False
            self.compactions += self._overlays() > made
            view = project(self.log.entries, self._lines)
            self.meter.send(transcript_of(view, self.log.entries).messages)
        return True

    def _overlays(self) -> int:
        return sum(isinstance(entry, Compaction) for entry in self.log.entries)

    def _turn(self) -> Preparation:
        automatic = auto_compaction.AutomaticCompaction(self._wiring, self.log, "benchmark")
        ports = TurnPorts(
            provider=self._wiring.provider,
            recorder=self.log,
            renderer=create_autospec(Renderer, instance=True),
            tools=self._wiring.tools,
            clock=SystemClock(),
            status_formatter=self._lines,
            room=automatic,
        )
        return Preparation(ports, self._wiring.settings)


def wired(root: Path, window: int, summarizer: Summarizer, workspace: Workspace) -> Wiring:
    """Return what a turn works with, for a model with this window."""
    summary = {} if summarizer == "none" else {"summary": {"policy": "summarize", "model": "script/summaries"}}
    profile = {"reasoning": "strip", "tool_calls": "digest", "resources": "superseded", **summary}
    config = config_of(
        read_partial({
            "assistant": {"request": {"max_retries": 0}},
            "conversation": {
                "compaction": {"auto": {"enabled": True, "profile": "told"}, "profiles": {"told": profile}},
            },
            "providers": {"llm": {"script": {"models": {"main": {"context_window": window, "max_output": 1}}}}},
        })
    )
    provider = create("main", root=root, scenario=None)
    options = Options()
    context = QueryContext(
        options=options,
        arguments=QueryArguments(),
        screen=NoScreen(),
        workspace=workspace,
        session=open_session(workspace),
        root=root,
        sources=read_sources(options, workspace),
    )
    return Wiring(
        context=context,
        config=config,
        model=ModelId("script", "main"),
        provider=provider,
        tools=ToolCoordinator({}, ToolPorts(root=root, consent=Consent(Answers(), None))),
        settings=RequestSettings(provider="script", model="main", renderer=provider.renderer),
        dialogue=Dialogue(),
    )


def product_bill(messages: Transcript, window: int, summarizer: Summarizer, facts: Sequence[Fact]) -> Bill:
    """Return the cost of the requests for all answers in `messages` under jp's automatic compaction."""
    clock = count(1_000_000.0, SECONDS_A_REQUEST)
    with TemporaryDirectory() as folder, patch.object(auto_compaction, "time", lambda: next(clock)):
        root = Path(folder)
        create_workspace(root / "work", commit_conversations=False)
        simulation = Simulation(root, window, summarizer)
        finished = anyio.run(simulation.run, messages)
        return simulation.meter.finish(facts, simulation.compactions, finished=finished)


def lines(sessions: Sequence[Session], report: Report) -> Iterator[str]:
    """The table: jp with each summarizer, and the cheapest baseline that keeps as many facts, for each window."""
    names = ("sessions", "finished", "compacted", "breaks", "hit rate %", "billed tokens", "in view %")
    yield f"{'window':>8}  {'':<34}" + "".join(f"{name:>{max(len(name) + 3, 10)}}" for name in names)
    facts = [gold_of(session.messages) for session in sessions]
    notes: list[str] = []
    rates: list[float] = []
    for window in WINDOWS:
        chosen = [
            (session.messages, of)
            for session, of in zip(sessions, facts, strict=True)
            if estimate_messages(session.messages) > window * TRIGGER
        ]
        report(f"automatic compaction, a window of {window:,}")
        baselines: dict[str, list[Bill]] = {}
        for named in BASELINES:
            baselines[named.name] = spread(
                lambda one, named=named, window=window: baseline_bill(named.make(), one[0], window, one[1]), chosen
            )
        tasks: list[tuple[Summarizer, Transcript, tuple[Fact, ...]]]
        tasks = [(summarizer, *one) for summarizer in SUMMARIZERS for one in chosen]
        bills = spread(lambda task, window=window: product_bill(task[1], window, task[0], task[2]), tasks)
        for number, summarizer in enumerate(SUMMARIZERS):
            ours = bills[number * len(chosen) : (number + 1) * len(chosen)]
            yield line(window, f"jp, summarizer: {summarizer}", ours)
            rates.append(hit_rate(ours))
            notes += missed(window, summarizer, ours, baselines)
        for name, found in baselines.items():
            yield line(window, name, found)
    report.figures |= {"least hit rate": min(rates), "greatest hit rate": max(rates)}
    yield ""
    yield from notes


def line(window: int, name: str, bills: Sequence[Bill]) -> str:
    """A row of the table, over all sessions of a window."""
    values = (
        str(len(bills)),
        str(sum(bill.finished for bill in bills)),
        str(sum(bill.compactions for bill in bills)),
        str(sum(bill.breaks for bill in bills)),
        f"{hit_rate(bills):.1f}",
        f"{sum(bill.billed for bill in bills):,.0f}",
        f"{mean_in_view(bills) * 100:.1f}",
    )
    widths = (11, 11, 12, 10, 13, 16, 12)
    return f"{window:>8,}  {name:<34}" + "".join(
        f"{value:>{width}}" for value, width in zip(values, widths, strict=True)
    )


def hit_rate(bills: Sequence[Bill]) -> float:
    """Return the per cent of what is sent that is read from the cache."""
    return sum(bill.read for bill in bills) / max(sum(bill.prompt for bill in bills), 1) * 100


def mean_in_view(bills: Sequence[Bill]) -> float:
    """The mean share of facts that the last requests have."""
    return sum(bill.in_view for bill in bills) / max(len(bills), 1)


def missed(
    window: int, summarizer: Summarizer, bills: Sequence[Bill], baselines: Mapping[str, Sequence[Bill]]
) -> Iterator[str]:
    """Yield the bars that jp misses."""
    at = f"below the bar: window {window:,}, summarizer {summarizer}"
    rate = hit_rate(bills)
    if rate < WINDOWS[window]:
        yield f"{at}: {rate:.1f} % are read from the cache, {WINDOWS[window]} % are asked for"
    if unfinished := sum(not bill.finished or bill.longest > window for bill in bills):
        yield f"{at}: {unfinished} sessions do not finish"
    worst = max((bill.breaks - bill.compactions for bill in bills), default=0)
    if worst > 0:
        yield f"{at}: {worst} breaks more than compactions"
    seen, billed = mean_in_view(bills), sum(bill.billed for bill in bills)
    for name, others in baselines.items():
        cost = sum(bill.billed for bill in others)
        if mean_in_view(others) >= seen and cost < billed:
            yield f"{at}: {name} is billed {cost:,.0f} and keeps as much, jp {billed:,.0f}"

"""A compaction in other processes: this file is also the script that runs there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.compaction.budgeting import Budgeting
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import LogContent
from jp.compaction.overlays import Range, RangeRequest
from jp.compaction.planning import Planner, requested_policies
from jp.compaction.projection import project
from jp.compaction.summaries import SummaryResult, summarize_turns
from jp.compaction.transcript import transcript_of
from jp.config.model import PROFILES
from jp.context.breakdown import break_down
from jp.context.budget import items_of
from jp.context.cache_hints import find_volatile
from jp.context.summary_asking import QuestionSettings, Terms
from jp.context.summary_schema import SummaryError
from jp.conversation.entries import AnyEntry, Header, ToolCallRequest
from logs import ask, end, log, respond, say, start, think
from transcripts import SECRET

BODIES = (
    "src/a.py:12:def one(): pass\n" * 60,
    "FAILED tests/test_a.py::test_one - assert\n" * 40 + "1 failed in 0.1s\n",
    '[{"id": 1, "api_key": "' + SECRET + '"}, ' + '{"id": 2}, ' * 90 + "3]",
    "see #12, 936f90d5 and https://example.test/a\n" * 70,
    f"https://user:{SECRET}@host/\n" + "prose " * 200,
)


def conversation() -> list[AnyEntry]:
    entries: list[AnyEntry] = [Header(id="h", format=1, created_at="", nonce="5eed5eed")]
    for number in range(10):
        name = f"c{number}"
        arguments = {"path": f"src/{number}.py", "content": f"line {number}\n" * 90}
        called = ToolCallRequest(id=name, call_id=name, name="run", arguments=arguments)
        entries += [start(number), ask(f"question {number}"), think("hm " * 90), called, end("tools")]
        entries += [respond(name, f"{number}\n{BODIES[number % len(BODIES)]}"), say("done"), end()]
    return log(*entries)


def everything() -> bytes:
    """The views that budgets leave, a summary without a model, and what is told of all of it."""
    entries = conversation()
    planner = Planner(tuple(entries), StatusLineFormatter(), {}, now=0.0)
    told: list[object] = []
    for percent in (10, 50, 80):
        plan = Budgeting(
            planner, requested_policies(PROFILES["default"]), RangeRequest(), planner.tokens * percent // 100
        ).plan()
        after = [*entries, *(replace(overlay, id="z") for overlay in plan.overlays)]
        messages = transcript_of(project(after, StatusLineFormatter()), after).messages
        told += [plan.overlays, messages, break_down((), items_of(messages), known_tools={"run", "look"})]
    told.append(find_volatile(["Now: 12:34:56, turn #3", "/var/folders/x"]))
    return msgspec.json.encode([*told, summary(entries)])


def text_of(content: LogContent) -> str | None:
    return getattr(content, "text", None)


def summary(entries: list[AnyEntry]) -> SummaryResult | SummaryError:
    asking = QuestionSettings(fence="a1B2c3D4e5F6a7B8", today="2026-11-21")
    terms = Terms(window=100_000, limit=900, may_fall_back=True, calls=1)
    steps = summarize_turns(entries, Range(first=0, last=9), terms=terms, asking=asking, load=text_of)
    next(steps)
    try:
        steps.send(SummaryError(kind="network"))
    except StopIteration as end:
        return end.value
    raise AssertionError("nobody is asked again")


def test_another_process_with_another_order_of_sets_does_the_same() -> None:
    here = everything()

    there = [
        subprocess.run(
            [sys.executable, __file__],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert b"[[cut:" in here
    assert b"[compacted]" in here
    assert b"[[summary:" in here
    assert there == [here, here]


if __name__ == "__main__":
    sys.stdout.buffer.write(everything())

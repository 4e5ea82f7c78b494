"""The passes in other processes: this file is also the script that runs there."""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle
from pathlib import Path

import msgspec
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.breakdown import break_down
from jp.context.cache_hints import ToolSchema, cache_hints, find_volatile, static_prefix_key
from jp.context.compress import compressing, run
from jp.context.digest import Digester, digest_results
from jp.context.digest_lines import ToolRule
from jp.context.groups import index_groups
from jp.context.items import items_of
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter
from jp.context.sanitize import sanitize_pairs
from jp.context.tail import bounding, relieve_pressure
from jp.context.types import Call, Facts, Message, Meta, Transcript
from summaries import ACCOUNT, AT, FRESH, TERMS, Played, compact, setup

CALLS = tuple(Call(id=f"c{number}", name="run", arguments=f'["{str(number) * 900}"]') for number in range(5))
MESSAGES: Transcript = (
    Message(role="assistant", calls=CALLS),
    *(Message(role="tool", content=str(number) * 300, call_id=f"c{number % 7}") for number in range(20)),
    Message(role="user", content="go"),
    *(Message(role="tool", content=str(number) * 300, call_id=f"c{number % 7}") for number in range(20)),
    Message(role="assistant", calls=CALLS * 2),
    *(Message(role="tool", content=str(number) * 300, call_id=f"c{number % 7}") for number in range(20)),
)
KINDS = ("terminal", "test", "read", "search", "list", "web", "write", "patch", "json", "agent", "other", "unheard of")
SECRET = "sk-ant-api03-Th1sM4yN0tLeak"
BODIES = (
    "src/a.py:12:def one(): pass\n" * 60,
    "FAILED tests/test_a.py::test_one - assert\n" * 40 + "1 failed in 0.1s\n",
    '[{"id": 1, "api_key": "' + SECRET + '"}, ' + '{"id": 2}, ' * 90 + "3]",
    "+ added\n- removed\n" * 70,
    f"https://user:{SECRET}@host/\n" + "prose " * 200,
)


def everything() -> bytes:
    """What all passes together make of the messages, and what the first one did."""
    store = MemoryArtifacts()
    cutter = Cutter("5eed5eed", store)
    sanitized = sanitize_pairs(MESSAGES, store)
    shrunk = shrink_old_arguments(
        sanitized.messages, index_groups(sanitized.messages), cutter, between=(0, 999), max_leaf=100
    )
    relieved = relieve_pressure(
        shrunk.messages, index_groups(shrunk.messages), bounding(cutter, 100), tail_start=0, ceiling=0
    )
    summed_up = compact(sanitized.messages, 3, Played(ACCOUNT), setup(desk=cutter))
    host = setup(replace(TERMS, has_provider=False), cutter)
    chained = [
        run(compressing(sanitized.messages, target, host, policy=FRESH, at=AT), Played()) for target in (400, 1_500)
    ]
    return msgspec.json.encode((sanitized.actions, shrunk.cuts, relieved, summed_up, chained, digested(), reports()))


def digested() -> tuple[object, ...]:
    """What a digest of a few results is, with all kinds among them."""
    rows: list[Message] = []
    for number, (kind, body) in enumerate(zip(KINDS, cycle(BODIES), strict=False)):
        rows += [
            Message(role="assistant", calls=(Call(id="c", name=f"t{number % 3}", arguments='{"a":"b"}'),)),
            Message(role="tool", call_id="c", content=body, meta=Meta(facts=Facts(kind=kind, path="p"))),
        ]
    digester = Digester(MemoryArtifacts(), {"t1": ToolRule(kind="search", subject="path")})
    found = digest_results(tuple(rows), index_groups(tuple(rows)), digester, between=(0, 999))
    return found.messages, found.actions


def reports() -> tuple[object, ...]:
    """What is told of the messages without changing them."""
    tools = [ToolSchema(name=name, wire=b'{"b":1,"a":[2]}') for name in ("run", "look")]
    return (
        static_prefix_key(("Now: 12:34:56, turn #3",), tools, provider="p", model="m"),
        cache_hints(MESSAGES, tool_tokens=(9, 9)),
        find_volatile(["Now: 12:34:56, turn #3", "/var/folders/x"]),
        break_down((), items_of(MESSAGES), known_tools={"run", "look"}),
    )


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
    assert there == [here, here]


if __name__ == "__main__":
    sys.stdout.buffer.write(everything())

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counting import count_calls
from jp.config.entries import ToolConfig
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.coordinator import CallOrder, paths_named
from jp.tool.rules import CheckedCall


class Writer:
    definition = ToolDefinition(name="write", description="", parameters={})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


class Reader(Writer):
    reads_only = True


def checked(identity: str, arguments: JsonObject, tool: Writer | None = None) -> CheckedCall:
    call = ToolCallRequest(id=identity, call_id="x", name="write", arguments=arguments)
    configured = ConfiguredTool(tool=tool or Writer(), settings=ToolConfig())
    return CheckedCall(call=call, configured=configured, arguments=arguments)


def waits(second: CheckedCall, first: CheckedCall, *, changed: CheckedCall | None = None) -> bool:
    """Whether the second call of a cycle waits until the first is over."""
    log: list[str] = []

    async def run_second(order: CallOrder) -> None:
        await order.wait("second")
        log.append("second runs")

    async def run() -> None:
        order = CallOrder(Path("/w"))
        order.enter(first)
        order.enter(second)
        await order.wait("first")
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_second, order)
                await anyio.wait_all_tasks_blocked()
                if changed is not None:
                    order.enter(changed)
                log.append("first is over")
                order.leave("first")

    anyio.run(run)
    return log == ["first is over", "second runs"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": "a.py"}, {"path": "a.py"}),
        ({"path": "a.py"}, {"path": "/w/src/../a.py"}),
        ({"path": "src"}, {"path": "src/a.py"}),
        ({"path": "src/a.py"}, {"path": "./src"}),
        ({"source": "a.py", "target": "b.py"}, {"paths": ["c.py", "b.py"]}),
        ({"path": "."}, {"path": "a.py"}),
    ],
)
def test_calls_about_the_same_files_wait_for_each_other(first: JsonObject, second: JsonObject) -> None:
    assert waits(checked("second", second), checked("first", first))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": "a.py"}, {"path": "a.pyc"}),
        ({"path": "a.py"}, {"text": "a.py"}),
        ({"path": "a.py"}, {"path": 3}),
        ({}, {}),
    ],
)
def test_others_do_not(first: JsonObject, second: JsonObject) -> None:
    assert not waits(checked("second", second), checked("first", first))


def test_calls_that_only_read_never_wait_for_each_other() -> None:
    read, write = checked("first", {"path": "a"}, Reader()), checked("first", {"path": "a"})
    then_read, then_write = checked("second", {"path": "a"}, Reader()), checked("second", {"path": "a"})

    assert not waits(then_read, read)
    assert waits(then_read, write)
    assert waits(then_write, read)


def test_a_call_that_waits_goes_on_though_the_other_has_got_other_arguments() -> None:
    assert waits(checked("second", {"path": "a"}), checked("first", {"path": "a"}), changed=checked("first", {}))


def test_paths_are_those_of_arguments_that_are_called_so() -> None:
    arguments: JsonObject = {"path": "a/../b", "files": ["/c", 1], "content": "d", "to": "e"}

    assert paths_named(arguments, "/w") == {"/w/b", "/c", "/w/e"}


PATHS = st.sampled_from(["/", "//", "/w", ".", "a", "a/b", "a/b/c", "a/bc", "b", "../w/a", "//w/a"])
CALLS = st.lists(st.tuples(st.lists(PATHS, max_size=3), st.booleans()), max_size=8)


def conflict(one: tuple[list[str], bool], other: tuple[list[str], bool]) -> bool:
    """Whether two calls, each with its paths and whether it only reads, may not run at the same time."""
    pairs = ((a, b) for a in paths_named({"paths": one[0]}, "/w") for b in paths_named({"paths": other[0]}, "/w"))
    touch = any(a == b or a.startswith(b.rstrip("/") + "/") or b.startswith(a.rstrip("/") + "/") for a, b in pairs)
    return touch and not (one[1] and other[1])


@given(CALLS)
def test_a_call_runs_as_soon_as_those_before_it_that_it_conflicts_with_are_over(
    calls: list[tuple[list[str], bool]],
) -> None:
    async def run() -> None:
        order, started, over = CallOrder(Path("/w")), set[int](), set[int]()

        async def wait(number: int) -> None:
            await order.wait(str(number))
            started.add(number)

        for number, (paths, reads_only) in enumerate(calls):
            order.enter(checked(str(number), {"paths": paths}, Reader() if reads_only else Writer()))
        async with anyio.create_task_group() as tasks:
            for number in range(len(calls)):
                tasks.start_soon(wait, number)
            for finished in range(len(calls)):
                await anyio.wait_all_tasks_blocked()
                assert started == {
                    number
                    for number in range(len(calls))
                    if not any(conflict(calls[other], calls[number]) for other in range(number) if other not in over)
                }
                over.add(finished)
                order.leave(str(finished))

    anyio.run(run)


def test_many_calls_are_ordered_without_comparing_each_with_each() -> None:
    async def enter(count: int) -> None:
        order = CallOrder(Path("/w"))
        for number in range(count):
            order.enter(checked(str(number), {"path": f"src/{number}.py"}, Reader() if number % 2 else Writer()))
        for number in range(count):
            await order.wait(str(number))

    counts = [count_calls(anyio.run, enter, count) for count in (100, 200, 400)]

    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])

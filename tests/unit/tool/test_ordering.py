from __future__ import annotations

from pathlib import Path

import anyio
import pytest

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

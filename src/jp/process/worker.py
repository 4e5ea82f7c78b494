"""Worker processes with bounds on memory and CPU time, and a check for templates that need none."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jinja2 import Environment
    from jinja2.nodes import Node

    from jp.process.guardian import OutputLimits, ProcessResult


_MOST_NODES = 2_000
_PLACING = frozenset({
    *(
        "Template",
        "Output",
        "TemplateData",
        "Name",
        "Getattr",
        "Getitem",
        "Const",
        "Slice",
        "Filter",
        "Test",
        "Keyword",
    ),
    *("If", "CondExpr", "And", "Or", "Not", "Compare", "Operand"),
})
"""Nodes that render in time linear in the template and its values."""

_FILTERS = frozenset({
    *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last", "length", "lower"),
    *("string", "title", "tojson", "trim", "upper"),
})


def is_simple_template(environment: Environment, template: str) -> bool:
    """Return whether `template` only inserts values, without loops, calls and arithmetic.

    Raises:
        TemplateSyntaxError: `template` is malformed.
        RecursionError: it is nested too deeply.
    """
    return all(
        count < _MOST_NODES and type(node).__name__ in _PLACING and not _is_further_filter(node)
        for count, node in enumerate(_nodes(environment.parse(template)))
    )


def _nodes(root: Node) -> Iterator[Node]:
    """Yield `root` and all nodes below it, without recursion, whose depth is limited."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.iter_child_nodes())


def _is_further_filter(node: Node) -> bool:
    """Return whether a node is a filter with a possibly huge result, such as `tojson(indent=10 ** 9)`."""
    if type(node).__name__ != "Filter":
        return False
    found = cast("Any", node)
    has_arguments = any((found.args, found.kwargs, found.dyn_args, found.dyn_kwargs))
    return found.name not in _FILTERS or (has_arguments and found.name not in {"d", "default"})


def reason_of(error: Exception) -> str:
    """Return the reason of an exception that a template raised, as text."""
    match error:
        case MemoryError():
            return "it needs too much memory"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error) or type(error).__name__


MOST_MEMORY = 1024 * 1024 * 1024
"""Maximum bytes of address space of a worker, including Python, if the system enforces it."""

COMPUTING_SECS = 5.0
"""Maximum seconds of CPU time for one template."""

_MOST_BYTES = 256 * 1024 * 1024

_PROGRAM = (
    "import sys; secs, module = sys.argv[1:3]; sys.path[:] = sys.argv[3:]; "
    "from jp.process.worker import confine; confine(float(secs)); "
    "from importlib import import_module; import_module(module).main()"
)


class WorkerError(Exception):
    """A template was not rendered; its text says why."""


async def run_worker(
    module: str, task: bytes, *, output: OutputLimits, computing_secs: float = math.inf
) -> ProcessResult:
    """Run `main` of `module` in a worker with `task` as standard input. Canceling ends the worker.

    Python is isolated, with this process's `sys.path`, so that it imports nothing from the current directory. After
    `computing_secs` of CPU time the kernel ends it with SIGPROF, in any case. It has its own session, so that it gets
    no signals from the terminal.

    Raises:
        OSError: the worker cannot be started.
    """
    from jp.process.environment import scrubbed
    from jp.process.guardian import ProcessLimits, Program, run

    words = (sys.executable, "-I", "-c", _PROGRAM, str(computing_secs), module, *sys.path)
    program = Program(words=words, directory=".", environment=scrubbed(os.environ), stdin=task)
    return await run(program, output=output, limits=ProcessLimits(timeout_secs=math.inf))


def confine(computing_secs: float) -> None:
    """Limit the memory of this process, and its CPU time if `computing_secs` is finite."""
    import resource
    import signal
    from contextlib import suppress

    # macOS has the limit, but may not accept it.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if math.isfinite(computing_secs):
        signal.setitimer(signal.ITIMER_PROF, computing_secs)


async def render_in_worker(module: str, task: object) -> Any:
    """Return what `serve_task(…)` in `main` of `module` made of `task`, in a process of its own.

    Raises:
        ApartError: it took too long or too much memory, or could not be run.
    """
    import json
    import pickle
    import signal

    from jp.process.guardian import OutputLimits

    output = OutputLimits(kept=2 * _MOST_BYTES, most=_MOST_BYTES)
    try:
        ended = await run_worker(module, pickle.dumps(task), output=output, computing_secs=COMPUTING_SECS)
    except OSError as error:
        raise WorkerError(f"its process cannot be started: {error.strerror or error}") from None
    if ended.exit_code == -signal.SIGPROF:
        raise WorkerError(f"it takes more than {COMPUTING_SECS:g} s of computing")
    if ended.exit_code != 0 or ended.stopped:
        raise WorkerError("it needs too much memory, or its process was ended")
    return json.loads(ended.stdout.head + ended.stdout.tail)


def serve_task(work: Callable[[Any], object]) -> None:
    """Run `work` on the task of this worker, and write its result as JSON."""
    import json
    import pickle
    import signal

    task = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - from the jp that started this process
    found = json.dumps(work(task))
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(found)
    sys.stdout.flush()

"""Python in a process of its own, because it may take all time or all memory, and templates within bounds."""

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
"""Nodes whose rendering takes time linear in the template and its values."""

_FILTERS = frozenset({
    *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last", "length", "lower"),
    *("string", "title", "tojson", "trim", "upper"),
})


def is_simple_template(environment: Environment, template: str) -> bool:
    """Return whether `template` does no more than to put values in their places; it loops, calls and computes nothing.

    Raises:
        TemplateSyntaxError: it is no template.
        RecursionError: it is nested too deeply.
    """
    return all(
        count < _MOST_NODES and type(node).__name__ in _PLACING and not _is_further_filter(node)
        for count, node in enumerate(_nodes(environment.parse(template)))
    )


def _nodes(root: Node) -> Iterator[Node]:
    """Yield every node below `root`, and `root`; without recursion, which nesting could exhaust."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.iter_child_nodes())


def _is_further_filter(node: Node) -> bool:
    """Return whether it is a filter that may make much of little, such as `tojson(indent=10 ** 9)`."""
    if type(node).__name__ != "Filter":
        return False
    found = cast("Any", node)
    has_arguments = any((found.args, found.kwargs, found.dyn_args, found.dyn_kwargs))
    return found.name not in _FILTERS or (has_arguments and found.name not in {"d", "default"})


def reason_of(error: Exception) -> str:
    """Return why a template cannot be rendered, of whatever was raised."""
    match error:
        case MemoryError():
            return "it needs too much memory"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error) or type(error).__name__


MOST_MEMORY = 1024 * 1024 * 1024
"""Most bytes that such a process may map, with Python and its libraries, if the system enforces it."""

COMPUTING_SECS = 5.0
"""Most seconds of computing for one template."""

_MOST_BYTES = 256 * 1024 * 1024

_PROGRAM = (
    "import sys; secs, module = sys.argv[1:3]; sys.path[:] = sys.argv[3:]; "
    "from jp.process.worker import confine; confine(float(secs)); "
    "from importlib import import_module; import_module(module).main()"
)


class WorkerError(Exception):
    """A template was not rendered; the text says why."""


async def run_worker(
    module: str, task: bytes, *, output: OutputLimits, computing_secs: float = math.inf
) -> ProcessResult:
    """Run `main` of `module`, whose standard input is `task`. Where the wait is cancelled, the process is ended.

    Python is isolated, with the places of this one: nothing of the current directory may be imported. After so many
    seconds of computing the kernel ends it with SIGPROF, even if nobody waits for it any more. Its session of its own
    keeps the signals of a terminal away from it.

    Raises:
        OSError: it cannot be started.
    """
    from jp.process.environment import scrubbed
    from jp.process.guardian import ProcessLimits, Program, run

    words = (sys.executable, "-I", "-c", _PROGRAM, str(computing_secs), module, *sys.path)
    program = Program(words=words, directory=".", environment=scrubbed(os.environ), stdin=task)
    return await run(program, output=output, limits=ProcessLimits(timeout_secs=math.inf))


def confine(computing_secs: float) -> None:
    """Bound the memory of this process, and where `computing_secs` is finite what it may compute."""
    import resource
    import signal
    from contextlib import suppress

    # macOS knows the limit, and may refuse it.
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
    """Do what this process was started for: give `work` the task, and tell what it returns, which is JSON."""
    import json
    import pickle
    import signal

    task = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - from the jp that started this process
    found = json.dumps(work(task))
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(found)
    sys.stdout.flush()

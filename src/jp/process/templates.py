"""Jinja's templates within bounds: `'a' * 10 ** 10` is quick to write and takes all memory.

What only puts values in their places is rendered here and now. Everything else is rendered apart, in a process whose
time and memory are bounded.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jinja2 import Environment
    from jinja2.nodes import Node

COMPUTING_SECS = 5.0
"""How much one template may compute."""

_MOST_BYTES = 256 * 1024 * 1024
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
"""What takes no longer than its values and the template are long."""

_FILTERS = frozenset({
    *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last", "length", "lower"),
    *("string", "title", "tojson", "trim", "upper"),
})


class ApartError(Exception):
    """A template was not rendered; the text says why."""


def is_placing(environment: Environment, template: str) -> bool:
    """Whether `template` does no more than to put values in their places; it loops, calls and computes nothing.

    Raises:
        TemplateSyntaxError: it is no template.
        RecursionError: it is nested too deeply.
    """
    return all(
        count < _MOST_NODES and type(node).__name__ in _PLACING and not _is_further_filter(node)
        for count, node in enumerate(_nodes(environment.parse(template)))
    )


def _nodes(root: Node) -> Iterator[Node]:
    """Every node below `root`, and `root`; without recursion, which nesting could exhaust."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.iter_child_nodes())


def _is_further_filter(node: Node) -> bool:
    """Whether it is a filter that may make much of little, such as `tojson(indent=10 ** 9)`."""
    if type(node).__name__ != "Filter":
        return False
    found = cast("Any", node)
    has_arguments = any((found.args, found.kwargs, found.dyn_args, found.dyn_kwargs))
    return found.name not in _FILTERS or (has_arguments and found.name not in {"d", "default"})


async def rendered_apart(module: str, task: object) -> Any:
    """Return what `answer(…)` in `main` of `module` made of `task`, in a process of its own.

    Raises:
        ApartError: it took too long or too much memory, or could not be run.
    """
    import pickle

    from jp.process.apart import run_apart
    from jp.process.running import OutputLimits

    output = OutputLimits(kept=2 * _MOST_BYTES, most=_MOST_BYTES)
    try:
        ended = await run_apart(module, pickle.dumps(task), output=output, computing_secs=COMPUTING_SECS)
    except OSError as error:
        raise ApartError(f"its process cannot be started: {error.strerror or error}") from None
    if ended.exit_code == -signal.SIGPROF:
        raise ApartError(f"it takes more than {COMPUTING_SECS:g} s of computing")
    if ended.exit_code != 0 or ended.stopped:
        raise ApartError("it needs too much memory, or its process was ended")
    return json.loads(ended.stdout.head + ended.stdout.tail)


def answer(work: Callable[[Any], object]) -> None:
    """Do what this process was started for: give `work` the task, and tell what it returns, which is JSON."""
    import pickle

    task = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - from the jp that started this process
    found = json.dumps(work(task))
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(found)
    sys.stdout.flush()


def reason_of(error: Exception) -> str:
    """Return why a template cannot be rendered, of whatever was raised."""
    match error:
        case MemoryError():
            return "it needs too much memory"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error) or type(error).__name__

"""Jinja's templates within bounds: `'a' * 10 ** 10` is quick to write and takes all memory.

What only puts values in their places is rendered here and now; everything else by `jp.process.apart`. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment
    from jinja2.nodes import Node

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


def reason_of(error: Exception) -> str:
    """Return why a template cannot be rendered, of whatever was raised."""
    match error:
        case MemoryError():
            return "it needs too much memory"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error) or type(error).__name__

"""Reads each module of the sources once for all tests about its text."""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple


class Parsed(NamedTuple):
    """The parts of a module that tests look at, each in the order of `ast.walk`."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    docstrings: tuple[tuple[int, str], ...]
    """Line and text of each."""
    texts: tuple[tuple[int, str], ...]
    """Line and value of each other string."""
    identifiers: frozenset[str]
    """The names that are read or assigned, also as attributes."""


@cache
def parsed(source: str) -> Parsed:
    """Return the parts of a module with this source."""
    nodes = list(ast.walk(ast.parse(source)))
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = [(node, node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return Parsed(
        imports=tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)),
        docstrings=tuple((node.lineno, value) for node, value in strings if id(node) in statements),
        texts=tuple((node.lineno, value) for node, value in strings if id(node) not in statements),
        identifiers=frozenset(
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in nodes
            if isinstance(node, ast.Attribute | ast.Name)
        ),
    )

"""Patterns in a schema: whether Python knows them, and whether a value could keep one searching without end. Pure."""

from __future__ import annotations

import re
import warnings
from typing import cast

from jp.conversation.entries import JsonObject

HINT = (
    "patterns are read as regular expressions of Python, which lack some constructs of ECMA-262: "
    r"`[^\W\d_]` is a letter, as `\p{L}` is there"
)
DIALECT = "regular expression of Python"


def why_not(pattern: str) -> str:
    """Why Python does not take `pattern`; empty where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def searches(schema: JsonObject) -> bool:
    """Whether to hold a value against `schema` may mean to search it for a pattern, or to read it as one.

    It is the whole of the schema that is looked through, as a reference may lead anywhere in it.
    """
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            members = cast("JsonObject", part)
            if _is_search(members):
                return True
            waiting += members.values()
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
    return False


def _is_search(schema: JsonObject) -> bool:
    return (
        isinstance(schema.get("pattern"), str)
        or isinstance(schema.get("patternProperties"), dict)
        or schema.get("format") == "regex"
    )

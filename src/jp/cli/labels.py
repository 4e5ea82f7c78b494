"""Labels as the command line writes them: `K=V`, or `K` alone for one without a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jp.errors import UsageError

_NAME = re.compile(r"[^\s=@,:]+")
_HINT = "write it as K=V, such as area=lexer, or just K"


def parse_labels(texts: Iterable[str], *, option: str) -> dict[str, str]:
    """Names and values; of a name that is given twice the last value.

    Raises:
        UsageError: one of them is none; it names `option`.
    """
    return dict(_parsed(text, option) for text in texts)


def check_name(text: str, *, option: str) -> str:
    """`text`, which is the name of a label.

    Raises:
        UsageError: it cannot be; it names `option`.
    """
    if _NAME.fullmatch(text) is None or not text.isprintable():
        raise UsageError(f"{option} cannot be {text!r}", hint="a label's name has no spaces and none of = @ , :")
    return text


def has_labels(labels: Mapping[str, str], wanted: Iterable[str]) -> bool:
    """Whether all of `wanted` are there: `K=V` with this value, `K` with any."""
    for text in wanted:
        name, equals, value = text.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def label_text(name: str, value: str) -> str:
    """A label as it is written."""
    return f"{name}={value}" if value else name


def _parsed(text: str, option: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not value.isprintable() and value:
        raise UsageError(f"{option} cannot be {text!r}", hint=_HINT)
    if _NAME.fullmatch(name) is None or not name.isprintable():
        raise UsageError(f"{option} cannot be {text!r}", hint=_HINT)
    return name, value

"""The page that an editor is given: the text of a query, a cut line, and below it what helps in writing. Pure.

The cut line holds a mark that stands in no line of the text, so that whatever is written above it comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = re.compile(r"[0-9a-z]{8,32}")


def lay_out(text: str, mark: str, below: str) -> str:
    """The page. `mark` must not stand in `text`, see `choose_mark`."""
    return f"{text}\n\n{_cut_line(mark)}\n\n{below}"


def text_above(page: str, mark: str) -> str:
    """The text above the cut line, all of the page where somebody removed that line."""
    cut = _cut_line(mark)
    lines = page.split("\n")
    found = next((number for number, line in enumerate(lines) if line.rstrip() == cut), None)
    if found is None:
        return page
    return "\n".join(lines[:found]).removesuffix("\n")


def choose_mark(text: str, candidates: Iterable[str]) -> str:
    """The first candidate that does not stand in `text`."""
    return next(mark for mark in candidates if mark not in text)


def trimmed(text: str) -> str:
    """What is asked of a text from an editor: no blank lines around it, and line feeds only."""
    lines = text.replace("\r\n", "\n").rstrip()
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", lines)


def _cut_line(mark: str) -> str:
    return f"<!-- jp {mark}: this line and everything below it is not asked -->"

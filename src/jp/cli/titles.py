"""Titles as a person types them."""

from __future__ import annotations

from jp.errors import UsageError


def given_title(text: str, *, option: str = "--title") -> str:
    """The title that `text` is: in one line, without anything that steers a terminal.

    Raises:
        UsageError: it has no words; the message names `option`.
    """
    from jp.render.sanitize import one_line

    title = one_line(text)
    if not title:
        raise UsageError(f"{option}: a title has words in it", hint="`jp conversation edit --no-title` takes one away")
    return title

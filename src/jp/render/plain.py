"""Renderer for pipes: stdout is the message as it came, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.render.answer import AnswerRenderer
from jp.render.aside import Aside
from jp.render.channel import Channel

if TYPE_CHECKING:
    from jp.render.plain_text import PlainText


def plain_renderer(out: Channel, aside: Aside, *, is_streaming: bool = True) -> AnswerRenderer:
    """A renderer that writes the message to `out` as it comes. What that needs is imported with the first text."""

    def new_text() -> PlainText:
        from jp.render.plain_text import PlainText

        return PlainText()

    return AnswerRenderer(out, aside, new_text, is_streaming=is_streaming)

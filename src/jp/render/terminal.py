"""Renderer for terminals: the message as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.render.answer import AnswerRenderer
from jp.render.aside import Aside
from jp.render.channel import Channel
from jp.render.theme import Look, Measure

if TYPE_CHECKING:
    from jp.render.markdown import MarkdownStream


def terminal_renderer(
    out: Channel, aside: Aside, *, look: Look, measure: Measure | None = None, is_streaming: bool = True
) -> AnswerRenderer:
    """A renderer that shows the message on `out`, in `look`. What that needs is imported while the model is awaited."""

    def new_stream() -> MarkdownStream:
        from jp.render.markdown import MarkdownStream

        return MarkdownStream(look, measure)

    return AnswerRenderer(out, aside, new_stream, is_streaming=is_streaming)

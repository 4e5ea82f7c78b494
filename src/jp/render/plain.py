"""Renderer for pipes: stdout is the message as it came, and nothing else.

Control sequences are taken out here too: what a pipe carries is shown somewhere in the end, and `--format json` has the
text as it came.
"""

from __future__ import annotations

from jp.render.answer import AnswerRenderer
from jp.render.aside import Aside
from jp.render.channel import Channel
from jp.render.sanitise import Sanitiser


class PlainText(Sanitiser):
    """The text without control sequences, at once."""

    def settle(self) -> str:
        """Nothing: only what may be part of a control sequence is held back."""
        return ""


def plain_renderer(out: Channel, aside: Aside, *, is_streaming: bool = True) -> AnswerRenderer:
    """A renderer that writes the message to `out` as it comes."""
    return AnswerRenderer(out, aside, PlainText, is_streaming=is_streaming)

"""Renderer for answers of which only a part is wanted: nothing of the message is written, everything else is."""

from __future__ import annotations

from jp.render.answer import AnswerRenderer
from jp.render.aside import Aside
from jp.render.channel import Channel


class _Silence:
    def feed(self, text: str) -> str:
        """Nothing."""
        return ""

    def preview(self) -> str:
        """Nothing."""
        return ""

    def settle(self) -> str:
        """Nothing."""
        return ""

    def finish(self) -> str:
        """Nothing."""
        return ""


def silent_renderer(out: Channel, aside: Aside) -> AnswerRenderer:
    """A renderer that leaves stdout to whoever knows the whole answer."""
    return AnswerRenderer(out, aside, _Silence)

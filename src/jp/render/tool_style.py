"""How calls of a tool look, as whoever shows them asks."""

from __future__ import annotations

from collections.abc import Callable

from jp.config.tools import ToolStyleConfig

StyleOf = Callable[[str], ToolStyleConfig]
"""How calls of the tool with this name look."""

_USUAL = ToolStyleConfig()


def usual_style(name: str) -> ToolStyleConfig:
    """The style of tools of which nothing is said."""
    del name
    return _USUAL

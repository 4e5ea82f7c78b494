"""What a turn looks like to whoever called jp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jp.cli.looks import preferences, standard_streams
from jp.cli.options import GlobalOptions
from jp.cli.query.arguments import DisplayOptions
from jp.config.model import AppConfig
from jp.config.tools import ToolStyleConfig
from jp.conversation.entries import AnyEntry
from jp.render.stream import Display, open_renderer
from jp.turn.ports import Clock

if TYPE_CHECKING:
    from jp.render.json_lines import JsonRenderer
    from jp.render.stream import AnswerRenderer


def open_display(
    options: GlobalOptions, display: DisplayOptions, config: AppConfig, *, clock: Clock, entries: Sequence[AnyEntry]
) -> AnswerRenderer | JsonRenderer:
    """The renderer of a turn. `entries` is the stream, which grows: it says which turn a copy was delivered at."""

    def turn_of(entry_id: str) -> int | None:
        from jp.conversation.turns import turns_of

        found = (turn.number for turn in turns_of(entries) if any(entry.id == entry_id for entry in turn.entries))
        return next(found, None)

    def tool_style(name: str) -> ToolStyleConfig:
        from jp.tool.toolbox import settings_of

        return settings_of(name, config.conversation.tools).style

    style = config.style
    shown = Display(
        preferences=preferences(options, style),
        answer=display.answer,
        reasoning=display.reasoning and style.reasoning.display == "full",
        tools=display.tools,
        tool_style=tool_style,
        is_streaming=display.stream,
        quiet=options.quiet,
    )
    return open_renderer(options.format, shown, standard_streams(), clock=clock, turn_of=turn_of)

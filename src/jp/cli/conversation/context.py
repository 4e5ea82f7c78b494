"""`jp conversation context`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.cli.held import ReadConversation
    from jp.turn.request import RequestSettings


def context(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> None:
    """Show what fills the context of a conversation, and how much room is left.

    A bar for each part of what the model would be sent now, the largest ten things with the handles by which they can
    be recalled, what each compaction profile would free, and how near the window is. What the provider reported with
    the last request counts; what came since, and what nobody reported, is estimated. Nothing is sent, and nothing is
    written.

    Examples:
        jp conversation context
        jp conversation context last --width 120
        jp conversation context --format json | jq '.largest[].handle'
    """
    from msgspec.structs import replace

    from jp.cli.compacting.gains import gains_of
    from jp.cli.conversation.context_report import Known, report_of
    from jp.cli.conversation.context_text import report_text
    from jp.cli.conversation.context_value import report_value
    from jp.cli.estimates import known_of
    from jp.cli.held import read_conversation
    from jp.cli.looks import look_of_stdout, width_of_stdout
    from jp.cli.model_details import details_of
    from jp.cli.output import print_result
    from jp.cli.streams import write_stdout
    from jp.compaction.fact_lines import FactLines
    from jp.provider.registry import ModelId
    from jp.tool.mcp.offered import on_servers

    read = read_conversation(options, target)
    if read.info is None:
        return
    settings = _settings(read)
    config = read.resolved.config
    model = ModelId(settings.provider, settings.model)
    auto = config.conversation.compaction.auto
    known = Known(
        details=details_of(config, model),
        ratio=known_of(str(model)).ratio,
        prompt=config.assistant.system_prompt,
        on_servers=on_servers([tool.name for tool in settings.tools], config.conversation.tools),
        trigger_ratio=auto.trigger_ratio if auto.enabled else None,
    )
    report = report_of(read.entries, settings, known, loader=read.loader, stand_ins=FactLines())
    ratio = report.breakdown.ratio or 1.0
    gains = gains_of(read.entries, config, window=known.details.context_window, ratio=ratio)
    report = replace(report, gains=tuple(gains))
    if options.format == "json":
        print_result(options, text="", value={"id": read.info.id, **report_value(report)})
        return
    # Every word of others in it is one line without control characters, and the bars may have colors.
    look = look_of_stdout(options, config.style)
    write_stdout(report_text(report, look, table_width=width_of_stdout(options)))


def _settings(read: ReadConversation) -> RequestSettings:
    """What the newest request held besides the stream; of a log that does not say, what is configured."""
    from jp.provider.registry import ModelId, parse_model_id
    from jp.turn.request import RequestSettings, context_in_force
    from jp.turn.sent import settings_of
    from jp.turn.settings import parameters_of, system_parts

    current = context_in_force(read.entries)
    if current is not None:
        return settings_of(current, read.loader)
    config = read.resolved.config
    assistant = config.assistant
    model = ModelId("", "") if assistant.model.id is None else parse_model_id(assistant.model.id, config.providers.llm)
    return RequestSettings(
        provider=model.provider,
        model=model.name,
        renderer=0,
        system=system_parts(assistant),
        parameters=parameters_of(assistant),
    )

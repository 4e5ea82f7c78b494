"""`--extract`: the first fenced code block of what was said in a turn. Read from the log."""

from __future__ import annotations

from collections.abc import Sequence

from jp.cli.options import GlobalOptions
from jp.cli.query.past import message_of
from jp.cli.query.structured import where_to_look
from jp.conversation.entries import AnyEntry
from jp.conversation.turns import cycles_of, is_blank, turns_of
from jp.errors import ExitCode, JpError


class NoCodeError(JpError):
    """The answer has no code block; it is in the log."""

    exit_code = ExitCode.SCHEMA_MISMATCH


def print_code(options: GlobalOptions, entries: Sequence[AnyEntry]) -> None:
    """Print the code in the newest turn. As JSON, the log's entries have been printed already.

    Raises:
        NoCodeError: there is none.
    """
    code = first_code_block(said_in_newest_turn(entries))
    if code is None:
        hint = f"ask for one in so many words; {where_to_look(options)}"
        raise NoCodeError("the answer has no fenced code block", hint=hint)
    if options.format != "json":
        from jp.cli.streams import write_stdout
        from jp.render.sanitize import sanitize

        text = sanitize(code)
        write_stdout(text if text.endswith("\n") else f"{text}\n")


def said_in_newest_turn(entries: Sequence[AnyEntry]) -> str:
    """The messages of a turn, each whole where it was continued."""
    messages = [message_of(cycle) for turn in turns_of(entries)[-1:] for cycle in cycles_of(turn)]
    return "\n\n".join(message for message in messages if message)


def first_code_block(text: str) -> str | None:
    """What stands in the first fence that is not empty, wherever it is nested; one that is not closed ends the text."""
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").disable("inline").parse(text)
    return next((block.content for block in blocks if block.type == "fence" and not is_blank(block.content)), None)

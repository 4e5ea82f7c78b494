"""The text of a query: what was typed, and what is piped in."""

from __future__ import annotations

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments
from jp.errors import UsageError


async def read_question(options: GlobalOptions, arguments: QueryArguments) -> str:
    """The query's text.

    Raises:
        UsageError: there is none.
    """
    from jp.cli.stdin import compose_query, read_piped, stdin_source

    source = stdin_source(asked="-" in arguments.words, refused=arguments.no_stdin)
    piped = await read_piped(source, on_idle=lambda: notice(options, "reading standard input … (--no-stdin to skip)"))
    if piped is not None and piped.is_damaged:
        notice(options, "what was piped in is not UTF-8; its invalid bytes were replaced")
    text = compose_query(arguments.words, None if piped is None else piped.text)
    if not text.strip():
        raise UsageError("there is no query", hint='type one, as in `jp query "why does this fail?"`, or pipe it in')
    return text

"""`jp query`: its options."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.app.values import DEFAULT_LIFETIME, is_duration
from jp.cli.command_line.argv import is_number
from jp.cli.command_line.loading import is_usual_profile, optional_value, switched_value
from jp.cli.options import GlobalOptions


def query(
    options: GlobalOptions,
    *,
    words: Annotated[
        list[str] | None, typer.Argument(help="The question; '-' reads it from stdin", metavar="QUERY")
    ] = None,
    new: Annotated[bool, typer.Option("-n", "--new", help="Start a new conversation")] = False,
    target: Annotated[str | None, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)] = None,
    or_new: Annotated[
        bool,
        typer.Option("--or-new", help="With --id and a label or title: start a conversation with it if there is none"),
    ] = False,
    fork: Annotated[
        str | None,
        optional_value(
            "--fork",
            bare="-1",
            metavar="TURN",
            reads=is_number,
            help_text="Ask in a copy of the conversation, up to and including TURN (or ID:TURN); bare: all of it",
        ),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="With --new or --fork: store it outside the workspace")
    ] = False,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="With --new or --fork: its title")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="With --new or --fork: a label; repeatable")
    ] = None,
    tmp: Annotated[
        str | None,
        optional_value(
            "--tmp",
            bare=DEFAULT_LIFETIME,
            metavar="DURATION",
            reads=is_duration,
            help_text=f"With --new or --fork: delete it after this long; bare: {DEFAULT_LIFETIME}",
        ),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option(
            "-a",
            "--attach",
            "--attachment",
            metavar="URI",
            help="Attach a file, directory, glob, web address, cmd:COMMAND, clipboard:, gh:…, mcp+SERVER+URI, a "
            "conversation by its id, or standard input with '-'; !URI excludes",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="ID", help="The model, as provider/name or an alias; sticks")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("-p", "--param", metavar="K=V", help="A parameter, such as temperature=0; sticks"),
    ] = None,
    reasoning: Annotated[
        str | None,
        typer.Option(
            "-r",
            "--reasoning",
            metavar="LEVEL",
            help="Reasoning effort: off, low, medium, high, … or a number of tokens; sticks",
        ),
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="The system prompt; sticks")] = None,
    tools: Annotated[
        list[str] | None,
        switched_value(
            "-t",
            "--tool",
            off=("-T", "--no-tool"),
            bare="*",
            metavar="NAME",
            help_text="Offer the model a tool, or with -T no longer; NAME may be a pattern such as 'fs_*', bare: all. "
            "Left to right; sticks",
        ),
    ] = None,
    tool_use: Annotated[
        str | None,
        typer.Option(
            "-u",
            "--tool-use",
            metavar="WHEN",
            help="Tool choice: auto, none, required, or a tool's name; sticks",
        ),
    ] = None,
    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="NAME,…", help="Run these tools without asking")
    ] = None,
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Run every enabled tool without asking")] = False,
    deny_all: Annotated[bool, typer.Option("--deny-all", help="Deny every tool that would ask")] = False,
    edit: Annotated[bool, typer.Option("-e", "--edit", help="Write or finish the query in an editor")] = False,
    no_edit: Annotated[bool, typer.Option("-E", "--no-edit", help="Never open an editor")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Undo the last turn and send its request again, with the words added")
    ] = False,
    quote: Annotated[bool, typer.Option("--quote", help="Quote the last answer, and write below it")] = False,
    template: Annotated[
        bool, typer.Option("-%", "--template", help="The query is a Jinja template of `template.values`")
    ] = False,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", metavar="NAME", help="A saved prompt around the query; see `jp prompt`"),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--schema",
            metavar="SCHEMA",
            help="Answer with a JSON value that fits SCHEMA: JSON Schema, fields such as 'name, age int', or @FILE",
        ),
    ] = None,
    extract: Annotated[
        bool, typer.Option("-x", "--extract", help="Print the first fenced code block of the answer, and only that")
    ] = False,
    compact: Annotated[
        str | None,
        optional_value(
            "--compact",
            bare="",
            metavar="PROFILE",
            reads=is_usual_profile,
            help_text="First shrink the context; see `jp conversation compact`",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent; send and write nothing")] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="With --dry-run: let the provider count tokens; needs an API key and network"),
    ] = False,
    max_cycles: Annotated[
        int | None, typer.Option("--max-cycles", metavar="N", min=1, help="Stop after N requests to the model")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="USD", help="Stop before the cost exceeds this; keep the output so far"),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline", metavar="DURATION", help="Stop after this time, such as 90s or 5m; keep the output so far"
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="Time to wait while another process writes the conversation; 0: do not wait",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send the input even if it is very large")] = False,
    no_stdin: Annotated[bool, typer.Option("--no-stdin", help="Do not read standard input")] = False,
    print_id: Annotated[
        bool, typer.Option("--print-id", help="Print the conversation's id first, in a line before the answer")
    ] = False,
    hide_reasoning: Annotated[bool, typer.Option("--hide-reasoning", help="Do not show the model's reasoning")] = False,
    hide_tools: Annotated[bool, typer.Option("--hide-tools", help="Do not show tool calls")] = False,
    no_stream: Annotated[bool, typer.Option("--no-stream", help="Show the answer when it is complete")] = False,
) -> int:
    """Ask a question and print the answer.

    It continues this terminal's active conversation, or starts one if there is none. If neither stdin nor stderr is a
    terminal (a script), or git runs it (a hook), it does not ask, and starts a new one unless --id names one. Piped
    input follows the typed words. An option marked `sticks` also applies to later turns of the
    conversation. --model can switch to any provider's model (`jp model ls`); it reads the earlier turns.

    A word @path is the text of a file. Without any text, at a terminal, the query is written in your editor.

    With --schema, stdout is one JSON value, and the exit code is 9 if no answer fits, even after a second request. A
    field is `[?]name [type] [: description]`; `?` makes it optional; types are str, int, float, bool, any, "constant",
    [T], {fields} and A|B.

    Examples:
        jp query --attach src/main.py "why does this fail?"
        git diff --cached | jp query "write a commit message"
        jp query --new --model anthropic/claude-sonnet-5-5 "hello"
        jp query --model ollama/qwen3:8b "and what do you think?"
        jp query --attach 'cmd:git log --oneline -20' "what changed?"
        jp query --tool='fs_*' --no-tool=fs_delete_file "where is the parser?"
        jp query --dry-run --attach 'docs/**/*.md' "summarize these"
        jp query --dry-run --exact --attach book.txt "who did it?"
        jp query --compact "go on with the lexer"
        jp query --compact=heavy "go on with the lexer"
        git diff | jp query --prompt review
        jp query --edit
        jp query --replay "but shorter"
        jp query --fork=3 "what if we had used a queue?"
        jp query --new --tmp=2h --label topic=lunch "where to eat?"
        jp query --id @topic=lexer --or-new "what is left to do?"
        jp query --schema 'name, age int' "invent a person" | jq -r .name
        jp query --schema 'risk "low"|"high", why: in a line' --attach app.log "?"
        jp query --schema @release.json "summarize the last release"
        jp query --extract "a shell script that counts lines" > count.sh
        jp query --max-cost 0.50 "find out why the tests are slow"
    """
    import anyio

    from jp.app.query.arguments import DisplayOptions, QueryArguments
    from jp.cli.query.outcome import run_query

    target, fork = _forked(target, fork)
    arguments = QueryArguments(
        words=tuple(words or ()),
        new=new,
        target=target,
        or_new=or_new,
        fork=fork,
        local=local,
        title=_title(title),
        labels=_labels(labels or []),
        expires_at=_end(tmp),
        attach=tuple(attach or ()),
        model=model,
        params=tuple(params or ()),
        reasoning=reasoning,
        system=system,
        tools=tuple(tools or ()),
        tool_use=tool_use,
        compact=compact,
        approve=frozenset(name for names in approve or () for name in names.split(",") if name),
        approve_all=approve_all,
        deny_all=deny_all,
        edit=edit,
        no_edit=no_edit,
        replay=replay,
        quote=quote,
        template=template,
        prompt=prompt,
        schema=schema,
        extract=extract,
        dry_run=dry_run,
        exact=exact,
        max_cycles=max_cycles,
        max_cost=max_cost,
        deadline=_seconds(deadline, "--deadline"),
        patience=_seconds(wait, "--wait"),
        yes=yes,
        reads_stdin=not no_stdin,
        print_id=print_id,
        display=DisplayOptions(
            answer=not extract, reasoning=not hide_reasoning, tools=not hide_tools, stream=not no_stream
        ),
    )
    return anyio.run(run_query, options, arguments)


def _forked(target: str | None, fork: str | None) -> tuple[str | None, str | None]:
    """Return the conversation and the turn of `--fork=ID:TURN`."""
    if fork is None or ":" not in fork:
        return target, fork

    from jp.app.values import split_turn
    from jp.errors import UsageError

    source, turn = split_turn(fork)
    if target is not None and turn is not None:
        raise UsageError(f"--fork={fork} and --id both name a conversation", hint="remove --id")
    return (target, fork) if turn is None else (source, turn)


def _title(text: str | None) -> str | None:
    if text is None:
        return None

    from jp.app.values import given_title

    return given_title(text)


def _labels(texts: list[str]) -> dict[str, str]:
    if not texts:
        return {}

    from jp.app.targets import parse_labels

    return parse_labels(texts, option="--label")


def _end(lifetime: str | None) -> str | None:
    if lifetime is None:
        return None

    from jp.app.values import end_of_life

    return end_of_life(lifetime, option="--tmp")


def _seconds(duration: str | None, option: str) -> float | None:
    if duration is None:
        return None

    from jp.app.values import parse_duration

    return parse_duration(duration, option=option)

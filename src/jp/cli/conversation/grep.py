"""`jp conversation grep`, `export` and `merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from jp.app.export import Format
    from jp.app.grep import FoundLine, GrepMatch, Kind

_FORMS: tuple[Format, ...] = ("md", "json", "html", "bundle")
_ORIGINAL = "jp-original"


def grep(
    options: GlobalOptions,
    *,
    pattern: Annotated[list[str], typer.Argument(metavar="PATTERN", help="Words, or a regular expression")],
    kinds: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="KIND,…", help="Only in user, assistant, tool or attachment; repeatable"),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="Only conversations with this label; repeatable")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only those used since: 2d, 3h or 2026-01-31")
    ] = None,
    around: Annotated[
        int, typer.Option("-C", "--context", metavar="N", min=0, help="N lines before and after each match")
    ] = 0,
    everywhere: Annotated[bool, typer.Option("--all", help="Search all known workspaces")] = False,
    regex: Annotated[bool, typer.Option("--regex", help="PATTERN is a regular expression")] = False,
    words: Annotated[bool, typer.Option("--words", help="PATTERN is words")] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Match an expression in any case; words always do")
    ] = False,
) -> ExitCode | None:
    """Search messages, tool calls, results and attachments. The exit code is 1 without a match.

    PATTERN is words, all of which have to be in one passage (a message or a part of a long one), in any order and
    case. With an operator such as `|`, `*`, `(` or `[` it is a regular expression that a line has to match. Each match
    begins with ID:TURN, which `print`, `--attach` and `--fork` accept. Archived conversations are searched too, undone
    turns are not, and secrets are redacted. --all searches your own conversations, the local ones of every workspace,
    and workspaces that were searched before.

    Examples:
        jp conversation grep parser error
        jp conversation grep 'TODO|FIXME' --in tool -C 2
        jp conversation grep deadlock --since 7d --format json
        jp conversation print "$(jp c grep deadlock | tail -1 | cut -d' ' -f1)"
    """
    from msgspec import to_builtins

    from jp.app.grep import GrepRequest
    from jp.app.grep import grep as search
    from jp.app.targets import parse_labels
    from jp.cli.output import print_result

    if regex and words:
        raise UsageError("--regex and --words exclude each other", hint="remove one of them")
    parse_labels(labels or (), option="--label")
    text = " ".join(pattern)
    request = GrepRequest(
        pattern=text,
        syntax="regex" if regex else "words" if words else "auto",
        kinds=_kinds(kinds),
        labels=tuple(labels or ()),
        since=None if since is None else _moment(since),
        context=around,
        everywhere=everywhere,
        ignore_case=ignore_case,
    )
    found = search(options, request)
    value = {"matches": [{"target": match.name, **to_builtins(match)} for match in found]}
    print_result(options, text=_text(found, around), value=value, nothing=f"nothing matches {text!r}")
    return None if found else ExitCode.FAILURE


def _kinds(given: list[str] | None) -> frozenset[Kind]:
    from jp.app.grep import KINDS

    names = {name.strip() for text in given or () for name in text.split(",")}
    if unknown := sorted(names.difference(KINDS)):
        raise UsageError(f"--in cannot be {unknown[0]!r}", hint=f"use {', '.join(KINDS)}")
    return frozenset(kind for kind in KINDS if not names or kind in names)


def _moment(text: str) -> float:
    """Return seconds since the Unix epoch."""
    from datetime import datetime
    from time import time

    from jp.app.values import is_duration, parse_duration

    if is_duration(text):
        return time() - parse_duration(text, option="--since")
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since cannot be {text!r}", hint="use a duration such as 7d, or a date such as 2026-01-31"
        ) from None


def _text(found: list[GrepMatch], context: int) -> str:
    blocks = ["\n".join(_line(match, line) for line in match.lines) for match in found]
    return ("\n--\n" if context else "\n").join(blocks)


def _line(match: GrepMatch, line: FoundLine) -> str:
    from jp.render.sanitize import escape_line

    return f"{match.name} {match.kind}{':' if line.matches else '-'} {escape_line(line.text)}"


def export(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    form: Annotated[str, typer.Option("--to", metavar="FORM", help="md, json, html, bundle or jp-original")] = "md",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="A new file to write (default: stdout)")
    ] = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Keep secrets; bundle and jp-original always do")
    ] = False,
) -> None:
    """Export a conversation as Markdown, JSON, an HTML page, a bundle, or files of JP (Rust).

    html is one page that needs no network: reasoning and tool calls fold, attachments are in it, a chart shows what
    filled the context. json is a versioned document. A bundle is a ZIP file with the log and its attachments, which
    `jp conversation import` reads. jp-original is a directory that the original JP reads, created in the one that
    --output names, such as `.jp/conversations` of its workspace; a note says what it cannot hold. Keys and passwords
    are redacted, except in a bundle and in jp-original; look before you share.

    Examples:
        jp conversation export last --to html -o talk.html
        jp conversation export --to json | jq '.turns[].parts[].type'
        jp conversation export --to bundle -o talk.zip
        jp conversation export --to jp-original -o ../other/.jp/conversations
    """
    import os

    from jp.app.export import export as export_conversation
    from jp.cli.output import print_result
    from jp.cli.terminal.streams import write_stdout_bytes

    if form == _ORIGINAL:
        _export_original(options, target, output)
        return
    if form not in _FORMS:
        raise UsageError(f"--to cannot be {form!r}", hint=f"use {', '.join((*_FORMS, _ORIGINAL))}")
    if form == "bundle" and output is None and os.isatty(1):
        raise UsageError("a bundle is no text for a terminal", hint="add --output FILE")
    data = export_conversation(options, target, form, with_secrets=with_secrets)
    if output is None:
        write_stdout_bytes(data)
        return
    path = _created(output, data)
    value = {"path": str(path), "form": form, "bytes": len(data)}
    print_result(
        options, text=f"wrote {str(path)!r} ({len(data):,} bytes)", value=value, paths={str(path): path.absolute()}
    )


def _export_original(options: GlobalOptions, target: str, output: str | None) -> None:
    from pathlib import Path

    from jp.app.export import export_original
    from jp.cli.output import print_result
    from jp.workspace.files import create_file, make_directories, storage_errors

    if output is None:
        raise UsageError("jp-original is a directory", hint="add --output DIRECTORY, in which it is created")
    found = export_original(options, target)
    path = Path(output).expanduser() / found.name
    if path.exists():
        raise UsageError(f"{str(path)!r} exists", hint="name another directory, or delete it")
    with storage_errors("write", path):
        make_directories(path, private=True)
        for name, data in found.files.items():
            create_file(path / name, data)
    if found.omitted:
        options.notice(f"not written, because the original JP has no place for it: {found.omitted}")
    value = {"path": str(path), "form": _ORIGINAL, "bytes": sum(map(len, found.files.values()))}
    print_result(options, text=f"wrote {str(path)!r}", value=value, paths={str(path): path.absolute()})


def _created(name: str, data: bytes) -> Path:
    """Write a new file that only its owner can read."""
    from pathlib import Path

    from jp.workspace.files import create_file, storage_errors

    path = Path(name).expanduser()
    if path.exists():
        raise UsageError(f"{name!r} exists", hint="name another file, or delete it")
    with storage_errors("write", path):
        create_file(path, data)
    return path


def merge(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    fork: Annotated[bool, typer.Option("--fork", help="Make the other side a conversation of its own")] = False,
) -> None:
    """Resolve a git conflict in a conversation that two branches continued.

    The turns of both sides are kept, this branch's first. With --fork this branch's turns stay, and the other side
    becomes a conversation of its own with all its turns. No turn is lost.

    In a workspace that was created with `jp init --commit-conversations`, git merges logs without a conflict. Then
    --fork makes the side that was merged last a conversation of its own, and undoes its turns in this one.

    Examples:
        jp conversation merge jp-c17800836875
        jp conversation merge --fork last
    """
    from msgspec import to_builtins

    from jp.app.conversations import merge as merge_conversation
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation merge")
    report = merge_conversation(options, target, fork=fork)
    turns = f"{report.turns} {'turn' if report.turns == 1 else 'turns'}"
    text = f"{report.id} has {turns}" + (f"; the other side is {report.fork}" if report.fork else " of both sides")
    print_result(options, text=text, value=to_builtins(report))
    if report.was_conflict:
        options.notice("tell git that the conflict is resolved: `git add .jp`")

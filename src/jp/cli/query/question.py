"""The text of a query: what was typed, what is piped in, and how both become the turn's request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Held, is_attended
from jp.cli.query.file_words import Part
from jp.conversation.entries import AnyEntry, ChatRequest, Revert
from jp.errors import UsageError

if TYPE_CHECKING:
    from jp.cli.query.keeping import Keeper
    from jp.turn.ports import Recorder
    from jp.workspace.log import Log

_MOST_TOPIC_CHARS = 200
_MOST_CHARS_OF_FIRST_WORDS = 80
_LONGEST_SECRET = 8_000
"""So much behind a cut is looked at for the rest of a secret that begins before it."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line and standard input hold, and whether an editor has to be opened."""

    typed: str = ""
    parts: tuple[Part, ...] = ()
    piped: str = ""
    opens_editor: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return not (self.typed.strip() or self.piped.strip())


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a turn, before anything is attached to it; `revert` undoes the turn that it replaces."""

    request: ChatRequest
    revert: Revert | None = None

    def after(self, entries: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        """The stream that the request comes after, of which what it replaces is no part."""
        return entries if self.revert is None else (*entries, self.revert)

    def recorder(self, log: Log) -> Recorder:
        """A recorder for the turn: with its request, what it replaces is undone."""
        if self.revert is None:
            return log

        from jp.cli.query.replaying import ReplacingRecorder

        return ReplacingRecorder(log, self.revert)


class Composed:
    """A query whose words are all there. `replayed` is the id of the turn whose request these already hold."""

    def __init__(
        self, text: str, piped: str = "", *, replays: bool = False, replayed: str = "", keeper: Keeper | None = None
    ) -> None:
        self._text = text
        self._piped = piped
        self._replays = replays
        self._replayed = replayed
        self._keeper = keeper

    @property
    def topic(self) -> str:
        """What a new conversation is named after, without secrets."""
        return _beginning(self._text)

    @property
    def first_words(self) -> str | None:
        """What a new conversation is called: what was typed, else the first line of what was piped in; no secrets."""
        typed = self.topic
        first_piped = _beginning(self._piped.lstrip("\ufeff \t\r\n")).partition("\n")[0]
        line = " ".join((typed if typed.strip() else first_piped).split())
        if not line.isprintable():
            from jp.render.sanitize import one_line

            line = one_line(line)
        return line[:_MOST_CHARS_OF_FIRST_WORDS].rstrip() or None

    def question(self, held: Held | None, *, author: str | None) -> Question:
        """The request to a conversation, None for a new one.

        Raises:
            UsageError: a request is to be asked again and there is none, or another than the one that was edited.
        """
        words = "\n\n".join(part for part in (self._text, self._piped) if part.strip())
        if not self._replays:
            return Question(request=ChatRequest(content=words, author=author))

        from jp.cli.query.replaying import again

        request, revert = again(held, words, author=author, edited=self._replayed)
        return Question(request=request, revert=revert)

    def begun(self) -> None:
        """The conversation is there and active: a draft goes with it."""
        if self._keeper is not None:
            self._keeper.follow()

    def answered(self) -> None:
        """The turn came to its end: a draft need not be kept once the log is closed."""
        if self._keeper is not None:
            self._keeper.is_needed = False


def _beginning(text: str) -> str:
    """The beginning of `text`. Secrets are replaced before it is cut, as half of one would not be known."""
    from jp.context.redaction import redact

    return redact(text[: _MOST_TOPIC_CHARS + _LONGEST_SECRET]).text[:_MOST_TOPIC_CHARS]


async def read_question(options: GlobalOptions, arguments: QueryArguments) -> Given:
    """What is asked, or from what an editor starts.

    Raises:
        UsageError: nothing is asked and nobody can be; an editor is asked for and there is no terminal; or a file
            cannot be read.
    """
    from jp.cli.query.file_words import files_among, typed_text
    from jp.cli.stdin import read_piped, stdin_source

    source = stdin_source(asked="-" in arguments.words, refused=arguments.no_stdin)
    typed = await typed_text(arguments.words)
    if arguments.attach and (files := files_among(arguments.words)):
        named = repr(files[0]) if len(files) == 1 else f"{files[0]!r} and {len(files) - 1} more"
        notice(options, f"not attached, but words of the query: {named}; quote a pattern, and repeat --attach for each")
    piped = await read_piped(source, on_idle=lambda: notice(options, "reading standard input … (--no-stdin to skip)"))
    if piped is not None and piped.is_damaged:
        notice(options, "what was piped in is not UTF-8; its invalid bytes were replaced")
    given = Given(typed=typed.text, parts=typed.parts, piped="" if piped is None else piped.text)
    if _wants_editor(arguments, given):
        return msgspec.structs.replace(given, opens_editor=True)
    if given.is_empty and not arguments.replay:
        raise nothing_asked(more="; `--replay` asks the last request again" if arguments.no_edit else "")
    return given


def nothing_asked(*, more: str = "") -> UsageError:
    """What is said where there is no text; `more` is another way to give one."""
    return UsageError(
        "there is no query", hint=f'type one, as in `jp query "why does this fail?"`, or pipe it in{more}'
    )


def _has_person() -> bool:
    return is_attended() and os.isatty(0)


def _wants_editor(arguments: QueryArguments, given: Given) -> bool:
    """Whether an editor has to be opened: where it is asked for, or a person at a terminal typed nothing at all."""
    if arguments.no_edit:
        return False
    asked = "--edit" if arguments.edit else "--quote" if arguments.quote else ""
    if not asked and (not given.is_empty or arguments.replay or "-" in arguments.words or not _has_person()):
        return False

    from jp.cli.editor import has_terminal

    if has_terminal():
        return True
    if not asked:
        return False
    raise UsageError(
        f"{asked} needs a terminal for the editor",
        hint="run it at a terminal, in the foreground"
        + ("" if arguments.edit else ", or add --no-edit, which sends the quote with the words that you type"),
    )

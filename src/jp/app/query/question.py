"""The text of a query: what was typed, what is piped in, and the draft that keeps it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from jp.app.drafts import Draft, NotAskedError, drafts_directory
from jp.app.options import Options
from jp.app.query.arguments import QueryArguments
from jp.app.query.conversation import QueryContext, QueryConversation, is_attended
from jp.app.values import MOST_BYTES, decode
from jp.conversation.entries import AnyEntry, ChatRequest, Revert
from jp.conversation.ids import ConversationId
from jp.errors import ExitCode, JpError, UsageError
from jp.remedies import Ask, Option, UseOption, phrase

if TYPE_CHECKING:
    from jp.conversation.resource import Resource
    from jp.turn.ports import Recorder
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.log import Log


_MARK = "@"
STDIN = "-"
"""The name of standard input, among the words and among the attachments."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/\d+")
"""A pipe that a shell makes of `<(command)`."""

_SIGNATURE_BYTES = 16


class Part(msgspec.Struct, frozen=True):
    """A part of what was typed: its first line there, counted from 1, and the file that it is of, empty for words."""

    line: int
    file: str


class TypedText(msgspec.Struct, frozen=True):
    """The typed text, and the parts it is made of, in their order."""

    text: str
    parts: tuple[Part, ...]


async def typed_text(words: Sequence[str]) -> TypedText:
    """Return the typed text. A word `@path` becomes a paragraph with the file's text, `@@x` is the word `@x`.

    A word that is only `@`, or that has white space in it, stays as it is; `-`, which asks for standard input, is left
    out.

    Raises:
        UsageError: a file cannot be read, is too large, or is no text.
    """
    paragraphs: list[tuple[str, str]] = []
    run: list[str] = []
    for word in words:
        if _names_file(word):
            paragraphs += [(" ".join(run), ""), (await _text_of(word[1:]), word[1:])]
            run = []
        elif word != STDIN:
            run.append(word[1:] if _is_word(word) and word.startswith(_MARK * 2) else word)
    said = [(text, file) for text, file in (*paragraphs, (" ".join(run), "")) if text.strip()]
    parts: list[Part] = []
    line = 1
    for text, file in said:
        parts.append(Part(line, file))
        line += text.count("\n") + 2
    return TypedText("\n\n".join(text for text, _ in said), tuple(parts))


def files_among(words: Sequence[str]) -> list[str]:
    """Return the words that are paths of files, such as those that a shell makes of `--attach *.py`."""
    return [word for word in words if _is_word(word) and os.path.isfile(word)]  # noqa: PTH113 - False for any text


def _is_word(text: str) -> bool:
    return not any(character.isspace() for character in text)


def _names_file(word: str) -> bool:
    return word.startswith(_MARK) and word != _MARK and not word.startswith(_MARK * 2) and _is_word(word)


def _attaching(name: str) -> Ask:
    return Ask((UseOption(Option.ATTACH, name),), is_open=True)


async def _text_of(name: str) -> str:
    text = decode(await _content_of(name))
    if text.is_damaged or "\0" in text.text:
        raise UsageError(f"the file {name!r} is no text", hint=phrase("attach it: `", _attaching(name), "`"))
    return text.text


async def _content_of(name: str) -> bytes:
    try:
        path, mode = _found(name)
        content = _read(path) if stat.S_ISREG(mode) else await _read_slowly(name, path, mode)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreadable(name, error) from None
    if len(content) > MOST_BYTES:
        raise UsageError(
            f"the file {name!r} has more than {MOST_BYTES:,} bytes", hint="attach a part of it, or ask about less"
        )
    return content


def _found(name: str) -> tuple[Path, int]:
    path = Path(name).expanduser()
    return path, path.stat().st_mode


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks: list[bytes] = []
        room = MOST_BYTES + 1
        while room and (chunk := os.read(descriptor, min(room, 1 << 20))):
            chunks.append(chunk)
            room -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


async def _read_slowly(name: str, path: Path, mode: int) -> bytes:
    """Read what may have to be waited for, such as the pipe of a shell's `<(command)`."""
    from anyio.to_thread import run_sync

    if stat.S_ISDIR(mode):
        hint = phrase("attach what is in it: `", _attaching(name), "`")
        raise UsageError(f"{name!r} is a directory", hint=hint)
    return await run_sync(_read, path, abandon_on_cancel=True)


def _unreadable(name: str, error: Exception) -> UsageError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    literal = f"{_MARK * 2}{name} is the word itself"
    near = _near_names(name) if isinstance(error, FileNotFoundError) else []
    hint = f"did you mean {' or '.join(f'{_MARK}{other}' for other in near)}? {literal}" if near else literal
    return UsageError(f"cannot read the file {name!r}: {reason}", hint=hint)


def _near_names(name: str) -> list[str]:
    """Files in the same directory whose names are like this one's, written as it is."""
    from jp.suggestions import closest_names

    directory, slash, base = name.rpartition("/")
    try:
        names = [path.name for path in Path(directory + slash or ".").expanduser().iterdir()]
    except (OSError, RuntimeError):
        return []
    return [f"{directory}{slash}{near}" for near in closest_names(base, names, most=3)]


class DraftKeeper:
    """Holds a draft until the context is left: then it is removed if nobody needs it any more, and kept otherwise.

    `is_needed` says that it is. What is blank is never kept, and nothing is with `--no-persist`.
    """

    def __init__(self, draft: Draft, context: QueryContext, chosen: ConversationInfo | None) -> None:
        self.is_needed = True
        self._draft = draft
        self._options = context.options
        self._context = context
        self._start = None if chosen is None else chosen.id
        self._home = self._start
        self._is_moving = False

    def follow(self) -> None:
        """Move the draft to the conversation that is active now, where there is one."""
        self._is_moving = True
        home = self._context.session.active() or self._start
        if self._options.persist and home != self._home:
            self._draft.move_to(self._directory(home))
            self._home = home

    def explain(self, error: NotAskedError) -> None:
        """Say in the hint of `error` where the text is, if there is any."""
        if not self._draft.is_blank and self._options.persist:
            error.hint = self._kept()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._is_over(error) or not self._options.persist or self._draft.is_blank:
                self._draft.remove()
                return
            if self._is_moving:  # what was begun may have been taken back
                self.follow()
            self._draft.protect()
            if not isinstance(error, NotAskedError):
                self._options.notice(self._kept())
        finally:
            self._draft.close()

    def _is_over(self, error: BaseException | None) -> bool:
        """Return whether the text is no longer needed: after an answer, even one that a cap has cut, it is not."""
        capped = isinstance(error, JpError) and error.exit_code == ExitCode.CAPPED
        return capped or (not self.is_needed and error is None)

    def _kept(self) -> str:
        return phrase(f"what you wrote is kept in {str(self._draft.path)!r}; `", self._editing(), "` goes on with it")

    def _editing(self) -> Ask:
        if self._home == self._context.session.active():
            return Ask((UseOption(Option.EDIT),))
        where = UseOption(Option.NEW) if self._home is None else UseOption(Option.TARGET, str(self._home))
        return Ask((where, UseOption(Option.EDIT)))

    def _directory(self, home: ConversationId | None) -> Path:
        return drafts_directory(self._context.workspace, "" if home is None else home.digits, persistent=True)


_MOST_TOPIC_CHARS = 200
_MOST_CHARS_OF_FIRST_WORDS = 80
_LONGEST_SECRET = 8_000
"""So much behind a cut is looked at for the rest of a secret that begins before it."""


class QueryInput(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the command line and standard input, and whether an editor has to be opened.

    `resources` are attached and can be read only once: standard input, and the pipes of `<(command)`.
    """

    typed: str = ""
    parts: tuple[Part, ...] = ()
    piped: str = ""
    resources: tuple[Resource, ...] = ()
    opens_editor: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing is asked."""
        return not (self.typed.strip() or self.piped.strip())


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a turn, before anything is attached to it; `revert` undoes the turn that it replaces."""

    request: ChatRequest
    revert: Revert | None = None

    def after(self, entries: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        """Return the stream that the request comes after, of which what it replaces is no part."""
        return entries if self.revert is None else (*entries, self.revert)

    def recorder(self, log: Log) -> Recorder:
        """Return a recorder for the turn: with its request, what it replaces is undone."""
        if self.revert is None:
            return log

        from jp.app.query.earlier_turns import ReplacingRecorder

        return ReplacingRecorder(log, self.revert)


class ComposedQuery:
    """A query whose words are all there. `replayed` is the id of the turn whose request these already hold."""

    def __init__(
        self,
        text: str,
        piped: str = "",
        *,
        replays: bool = False,
        replayed: str = "",
        keeper: DraftKeeper | None = None,
    ) -> None:
        self._text = text
        self._piped = piped
        self._replays = replays
        self._replayed = replayed
        self._keeper = keeper

    @property
    def topic(self) -> str:
        """The topic that a new conversation is named after, without secrets."""
        return _beginning(self._text)

    @property
    def first_words(self) -> str | None:
        """The name of a new conversation: what was typed, else the first line of what was piped in; no secrets."""
        typed = self.topic
        first_piped = _beginning(self._piped.lstrip("\ufeff \t\r\n")).partition("\n")[0]
        line = " ".join((typed if typed.strip() else first_piped).split())
        if not line.isprintable():
            from jp.render.sanitize import one_line

            line = one_line(line)
        return line[:_MOST_CHARS_OF_FIRST_WORDS].rstrip() or None

    def question(self, held: QueryConversation | None, *, author: str | None) -> Question:
        """Return the request to a conversation, None for a new one.

        Raises:
            UsageError: a request is to be asked again and there is none, or another than the one that was edited.
        """
        words = "\n\n".join(part for part in (self._text, self._piped) if part.strip())
        if not self._replays:
            return Question(request=ChatRequest(content=words, author=author))

        from jp.app.query.earlier_turns import request_again

        request, revert = request_again(held, words, author=author, edited=self._replayed)
        return Question(request=request, revert=revert)

    def begun(self) -> None:
        """Move a draft to the conversation, which is there and active; once the turn came to its end, it may go."""
        if self._keeper is not None:
            self._keeper.follow()
            self._keeper.is_needed = False


def _beginning(text: str) -> str:
    """Return the beginning of `text`. Secrets are replaced before it is cut, as half of one would not be known."""
    from jp.context.redaction import redact

    return redact(text[: _MOST_TOPIC_CHARS + _LONGEST_SECRET]).text[:_MOST_TOPIC_CHARS]


async def read_question(options: Options, arguments: QueryArguments) -> QueryInput:
    """Read the question, or the text that an editor starts from.

    Raises:
        UsageError: nothing is asked and nobody can be; an editor is asked for and there is no terminal; or a file
            cannot be read.
        AttachmentError: standard input, or what else is attached and can be read only once, is no text, picture or PDF.
    """
    from jp.app.values import read_piped_bytes, stdin_source

    is_attached = STDIN in arguments.attach
    source = stdin_source(asked=is_attached or STDIN in arguments.words, refused=not arguments.reads_stdin)
    typed = await typed_text(arguments.words)
    if arguments.attach and (files := files_among(arguments.words)):
        named = repr(files[0]) if len(files) == 1 else f"{files[0]!r} and {len(files) - 1} more"
        told = f"not attached, but words of the query: {named}; quote a pattern, and repeat "
        options.notice(phrase(told, Option.ATTACH, " for each"))
    reading = phrase("reading standard input … (", Option.NO_STDIN, " to skip)")
    data = await read_piped_bytes(source, on_idle=lambda: options.notice(reading))
    resources = [_read_once(await _content_of(name), name) for name in filter(_DESCRIPTOR.fullmatch, arguments.attach)]
    if is_attached or (data and not _is_query(data)):
        resources.append(_read_once(data, "stdin"))
        data = b""
    piped = decode(data)
    if piped.is_damaged:
        options.notice("what was piped in is not UTF-8; its invalid bytes were replaced")
    given = QueryInput(typed=typed.text, parts=typed.parts, piped=piped.text, resources=tuple(resources))
    if _wants_editor(arguments, given):
        return msgspec.structs.replace(given, opens_editor=True)
    if given.is_empty and not arguments.replay and arguments.prompt is None:
        raise nothing_asked(
            more=phrase("; `", Option.REPLAY, "` asks the last request again") if arguments.no_edit else ""
        )
    return given


def is_read_once(attached: str) -> bool:
    """Return whether something to attach is standard input or the pipe of `<(command)`, and no declaration."""
    return attached == STDIN or _DESCRIPTOR.fullmatch(attached) is not None


def _is_query(data: bytes) -> bool:
    """Return whether what is piped in is text, and so a part of the query."""
    from jp.attachment.media import may_be_sent, signature

    head = data[:_SIGNATURE_BYTES]
    return signature(head) is None and b"\0" not in data and may_be_sent(head)


def _read_once(data: bytes, name: str) -> Resource:
    """Return a snapshot of what cannot be read again."""
    import hashlib

    from jp.attachment.base import AttachmentError
    from jp.attachment.media import BinaryMedia, UnsupportedMedia, identify
    from jp.conversation.resource import Resource

    media = identify(data, name)
    if isinstance(media, UnsupportedMedia):
        raise AttachmentError(f"{name!r} is {media.reason}", hint=media.hint)
    if not data:
        raise AttachmentError(f"{name!r} is empty", hint="what writes to it wrote nothing; look at its errors")
    uri = f"pipe:{hashlib.sha256(data).hexdigest()[:12]}"
    if isinstance(media, BinaryMedia):
        return Resource(uri=uri, mime_type=media.mime_type, name=name, blob=data)
    return Resource(uri=uri, mime_type=media.mime_type, name=name, text=media.text)


class NoQueryError(UsageError):
    """A query has no text."""


def nothing_asked(*, more: str = "") -> NoQueryError:
    """Return the error for a query without text; `more` is another way to give one."""
    example = Ask(words="why does this fail?")
    return NoQueryError("there is no query", hint=phrase("type one, as in `", example, "`, or pipe it in", more))


def _has_person() -> bool:
    return is_attended() and os.isatty(0)


def _wants_editor(arguments: QueryArguments, given: QueryInput) -> bool:
    """Return whether to open an editor: where it is asked for, or a person at a terminal typed nothing at all."""
    if arguments.no_edit:
        return False
    asked = Option.EDIT if arguments.edit else Option.QUOTE if arguments.quote else None
    has_text = not given.is_empty or arguments.replay or arguments.prompt is not None
    if not asked and (has_text or "-" in arguments.words or not _has_person()):
        return False

    from jp.app.drafts import has_terminal

    if has_terminal():
        return True
    if not asked:
        return False
    without = phrase(", or add ", Option.NO_EDIT, ", which sends the quote with the words that you type")
    raise UsageError(
        phrase(asked, " needs a terminal for the editor"),
        hint=phrase("run it at a terminal, in the foreground", "" if arguments.edit else without),
    )

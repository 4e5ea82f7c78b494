"""`jp chat`: queries in a loop, in one conversation."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode, JpError, UsageError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from jp.app.query.arguments import QueryArguments

_PROMPT = "> "
_USUAL_SIZE = (80, 24)
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)
_COMMANDS: Mapping[str, str] = {
    "attach": "/attach [URI…]   attach to the next message; without a URI, nothing",
    "compact": "/compact [NAME]  shrink the context, as `jp conversation compact` does",
    "context": "/context         show what fills the context",
    "edit": "/edit [TEXT]     write the next message in your editor",
    "exit": "/exit            leave, as Ctrl-D does",
    "help": "/help            list the commands",
    "model": "/model [ID]      show the model, or answer with another from now on",
    "undo": "/undo            undo the last turn, compaction or setting",
}


def chat(
    options: GlobalOptions,
    *,
    words: Annotated[list[str] | None, typer.Argument(help="The first message", metavar="QUERY")] = None,
    new: Annotated[bool, typer.Option("-n", "--new", help="Start a new conversation")] = False,
    target: Annotated[str | None, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option("-a", "--attach", metavar="URI", help="Attach to the first message; as in `jp query`"),
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="ID", help="The model, as provider/name or an alias; sticks")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="The system prompt; sticks")] = None,
) -> int:
    """Ask one question after the other, in one conversation.

    Each message is a turn, recorded as by `jp query`, so that both continue the same conversation. It continues this
    terminal's active conversation, or starts one if there is none.

    Enter sends a message; Alt-Enter or Ctrl-J begins a new line. Up and Ctrl-R find earlier messages. Ctrl-C stops the
    answer and keeps the output so far. Ctrl-D leaves. A line that begins with `/` is a command; `/help` lists them.

    Examples:
        jp chat
        jp chat --new --model opus
        jp chat --id last "where were we?"
    """
    from jp.app.query.arguments import QueryArguments
    from jp.render.tty import can_ask

    require_persistence(options, "jp chat")
    if options.format == "json" or not (os.isatty(0) and os.isatty(1) and can_ask()):
        raise UsageError(
            "jp chat needs a terminal", hint="`jp query` works in scripts and pipes, with --format json too"
        )
    first = QueryArguments(new=new, target=target, attach=tuple(attach or ()), model=model, system=system)
    return Chat(options, first).run(" ".join(words or ()))


class Chat:
    """A loop of messages and commands; `following` has the options of the next message."""

    def __init__(self, options: GlobalOptions, following: QueryArguments) -> None:
        self._options = options
        self._following = following
        self._target = None if following.new else following.target or "."
        self._unsent = ""

    def run(self, first: str = "") -> int:
        """Read and answer until the person leaves; return the exit code."""
        from jp.cli.terminal.approval import run_question

        self._options.notice("/help lists the commands, Ctrl-D leaves")
        session = _open_session(self._history())
        while True:
            try:
                text = first or run_question(partial(session.prompt_async, default=self._unsent))
            except KeyboardInterrupt:
                text = ""
            except EOFError:
                return ExitCode.OK
            first = self._unsent = ""
            code = self._answer(text) if text.strip() else ExitCode.OK
            if code in {ExitCode.TERMINATED, None}:
                return ExitCode.OK if code is None else code

    def _answer(self, text: str) -> int | None:
        """Send a message, or run a command; return its exit code, None to leave."""
        found = _COMMAND.fullmatch(text.rstrip())
        if found is None:
            return self._send(text)
        name, rest = found[1], (found[2] or "").strip()
        if name == "exit" and not rest:
            return None
        if name == "edit":
            return self._send(rest, edit=True)
        return self._guarded(partial(self._command, name, rest))

    def _command(self, name: str, rest: str) -> int:
        if rest and name in {"context", "exit", "help", "undo"}:
            raise UsageError(f"/{name} takes no argument, but got {rest!r}", hint=f"write just /{name}")
        match name:
            case "attach":
                self._attach(rest)
            case "compact":
                self._compact(rest)
            case "context":
                self._context()
            case "help":
                self._help()
            case "model":
                self._model(rest)
            case "undo":
                self._undo()
            case _:
                raise UsageError(
                    f"there is no command '/{name}'",
                    hint="/help lists them; a space before the '/' makes it a message",
                )
        return ExitCode.OK

    def _send(self, text: str, *, edit: bool = False) -> int:
        """Ask; what sticks, or was attached, is not given again once the message is in the conversation."""
        import anyio
        from msgspec.structs import replace

        from jp.app.query.arguments import QueryArguments
        from jp.cli.query.outcome import run_query

        arguments = replace(self._following, words=(text,) if text else (), edit=edit)
        before = self._position()
        code = self._guarded(lambda: anyio.run(partial(run_query, self._options, arguments, has_menu=False)))
        after = self._position()
        if after != before:
            self._target = after[0]
            self._following = QueryArguments(target=self._target)
        elif code not in {ExitCode.OK, ExitCode.INTERRUPTED}:
            self._unsent = f"/edit {text}".rstrip() if edit else text
        if code == ExitCode.INTERRUPTED:
            self._options.notice("stopped; what came is kept")
        return code

    def _guarded(self, work: Callable[[], int]) -> int:
        """Return the exit code of `work`, which does not end the loop when it fails."""
        from jp.cli.terminal.exit import flush_stdout, guard

        code = guard(work, as_json=False, verbosity=self._options.verbosity)
        return flush_stdout(code, as_json=False)

    def _position(self) -> tuple[str, int]:
        """Return the active conversation and the size of its log: a message that was sent changes them."""
        from jp.app.options import open_session, open_workspace
        from jp.workspace.layout import EVENTS

        workspace = open_workspace(self._options)
        active = open_session(workspace).active()
        info = None if active is None else workspace.get(active)
        if info is None:
            return "", 0
        log = info.directory / EVENTS
        return str(info.id), log.stat().st_size if log.exists() else 0

    def _conversation(self) -> str:
        """Return the target of commands about the conversation.

        Raises:
            UsageError: there is none yet.
        """
        if self._target is None:
            raise UsageError("this conversation has no message yet", hint="write one first")
        return self._target

    def _attach(self, rest: str) -> None:
        import shlex

        from msgspec.structs import replace

        try:
            added = tuple(shlex.split(rest))
        except ValueError as error:
            raise UsageError(f"/attach cannot read {rest!r}: {error}", hint="quote a name with spaces in it") from error
        attach = (*self._following.attach, *added) if added else ()
        self._following = replace(self._following, attach=attach)
        listed = ", ".join(attach) or "nothing"
        self._options.notice(f"attached to the next message: {listed}")

    def _model(self, rest: str) -> None:
        from msgspec.structs import replace

        from jp.app.settings import trusted_config
        from jp.provider.registry import parse_model_id

        if rest:
            model = parse_model_id(rest, trusted_config(self._options).providers.llm)
            self._following = replace(self._following, model=str(model))
        self._options.notice(f"model: {self._following.model or self._current_model() or 'none is set'}")

    def _current_model(self) -> str | None:
        from jp.app.conversations import read_conversation
        from jp.app.settings import trusted_config

        if self._target is not None and (self._target != "." or self._position()[0]):
            return read_conversation(self._options, self._target).resolved.config.assistant.model.id
        return trusted_config(self._options).assistant.model.id

    def _compact(self, rest: str) -> None:
        from jp.cli.conversation.compact import compact

        compact(self._options, targets=[self._conversation()], profile=rest or None)

    def _context(self) -> None:
        from jp.cli.conversation.context import context

        context(self._options, target=self._conversation())

    def _undo(self) -> None:
        from jp.cli.conversation.show import undo

        undo(self._options, target=self._conversation())

    def _help(self) -> None:
        from jp.cli.terminal.streams import write_stdout

        write_stdout("".join(f"{text}\n" for text in _COMMANDS.values()))

    def _history(self) -> Path | None:
        """Return the file of earlier messages, which only the user can read; None if there is no place for it."""
        from jp.app.options import open_workspace
        from jp.workspace.files import make_directories

        path = open_workspace(self._options).user_data / "chat_history"
        try:
            make_directories(path.parent, private=True)
            os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        except (OSError, JpError):
            return None
        return path


def _open_session(history: Path | None) -> PromptSession[str]:
    """Return the line editor at the standard streams, with the earlier messages of `history`."""
    import sys

    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        return Size(rows=rows or _USUAL_SIZE[1], columns=columns or _USUAL_SIZE[0])

    # Asking the terminal where its cursor is would mix its answer with what the person types.
    output = Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False)
    return PromptSession(
        _PROMPT,
        output=output,
        history=InMemoryHistory() if history is None else FileHistory(history),
        multiline=True,
        key_bindings=_keys(),
        completer=WordCompleter([f"/{name}" for name in _COMMANDS], sentence=True),
        complete_while_typing=False,
        enable_suspend=True,
        prompt_continuation="  ",
    )


def _keys() -> KeyBindings:
    from prompt_toolkit.filters import is_searching
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys

"""The options that every command has, read from what `jp.cli.command_line.argv` collected."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal, TextIO, TypeVar

import msgspec

from jp.app.options import Options, Tell
from jp.errors import UsageError

if TYPE_CHECKING:
    from jp.app.targets import Picker
    from jp.render.status_line import ProgressLine

Format = Literal["text", "pretty", "json"]
ColorMode = Literal["auto", "always", "never"]

_FORMATS: tuple[Literal["auto"] | Format, ...] = ("auto", "text", "pretty", "json")
_COLORS: tuple[ColorMode, ...] = ("auto", "always", "never")

C = TypeVar("C", bound=str)


def _no_lines() -> list[ProgressLine]:
    return []


class GlobalOptions(Options, frozen=True, kw_only=True):
    """The first parameter of every command. Notices and logs go to stderr.

    Args:
        format: resolved; `auto` is `pretty` on a terminal, else `text`.
        quiet: no notices.
        verbosity: the count of `-v`.
        told: the notices that are not repeated.
        lines: the line that shows progress, once there was some.
        width: columns; None if the terminal decides.
    """

    format: Format = "text"
    quiet: bool = False
    verbosity: int = 0
    color: ColorMode = "auto"
    width: int | None = None
    told: set[str] = msgspec.field(default_factory=set[str])
    lines: list[ProgressLine] = msgspec.field(default_factory=_no_lines)

    def notice(self, text: str) -> None:
        """Write `text` to stderr, without secrets, unless `--quiet`."""
        if not self.quiet:
            self._say("note", text)

    def notice_once(self, text: str) -> None:
        """Write `text` to stderr as a notice if that was not done before."""
        if text not in self.told:
            self.told.add(text)
            self.notice(text)

    def log(self, text: str, *, level: int = 1) -> None:
        """Write `text` to stderr, without secrets, where `-v` was given at least `level` times."""
        if self.verbosity >= level:
            self._say("log", text)

    @property
    def is_verbose(self) -> bool:
        """True with `-v`."""
        return self.verbosity > 0

    def progress(self, text: str) -> AbstractContextManager[Tell]:
        """Show on the terminal what is done, if that takes a while. The line goes with the block."""
        line = self.progress_line()
        return super().progress(text) if line is None else line.shown(text)

    def progress_line(self) -> ProgressLine | None:
        """Return the line that shows progress; None without a terminal, with `--quiet`, and as JSON."""
        if self.quiet or self.format == "json":
            return None
        from jp.render.theme import Preferences, is_live

        if not is_live(sys.stderr, os.environ):
            return None
        if not self.lines:
            from jp.render.status_line import open_progress_line

            wanted = Preferences(color=self.color, width=self.width)
            self.lines.append(open_progress_line(sys.stderr, sys.stdout, wanted, os.environ))
        return self.lines[0]

    def picker(self) -> Picker | None:
        """Return the picker where a person sits at a terminal that can show it."""
        from jp.cli.terminal import picker

        return picker.TerminalPicker(self) if picker.can_pick() else None

    def _say(self, kind: str, text: str) -> None:
        from jp.cli.terminal.streams import SCHEMA, json_text, write_stderr
        from jp.cli.terminal.wording import worded
        from jp.context.redaction import redact

        text = redact(worded(text)).text
        if self.format == "json":
            write_stderr(json_text({"schema": SCHEMA, kind: text}) + "\n")
            return
        with self.lines[0].hidden() if self.lines else nullcontext():
            write_stderr(f"{kind}: {text}\n", links=self.shows_links(sys.stderr))

    def shows_links(self, stream: TextIO) -> bool:
        """Return whether what `stream` names can be opened: on a terminal, with color."""
        from jp.render.theme import reads_osc, use_color

        return reads_osc(stream, os.environ) and use_color(self.color, os.environ, is_terminal=True)


def read_options(settings: Sequence[tuple[str, str]], *, stdout_is_terminal: bool) -> GlobalOptions:
    """Return the settings as options; the last value of a setting that is not repeatable wins.

    Raises:
        UsageError: a value is not one of those allowed.
    """
    last = dict(settings)
    chosen: Literal["auto"] | Format = _one_of("--format", last.get("--format", "auto"), _FORMATS)
    automatic: Format = "pretty" if stdout_is_terminal else "text"
    return GlobalOptions(
        config=tuple(value for name, value in settings if name == "--cfg"),
        format=automatic if chosen == "auto" else chosen,
        quiet="--quiet" in last,
        verbosity=sum(name == "--verbose" for name, _ in settings),
        workspace=last.get("--workspace"),
        persist="--no-persist" not in last,
        color=_one_of("--color", last.get("--color", "auto"), _COLORS),
        width=_width(last.get("--width")),
    )


def require_persistence(options: GlobalOptions, command: str) -> None:
    """Refuse `--no-persist` for a command that does nothing but write.

    Raises:
        UsageError: it is given.
    """
    if not options.persist:
        raise UsageError(f"--no-persist leaves nothing for `{command}` to do", hint="leave --no-persist out")


def _one_of(name: str, value: str, allowed: tuple[C, ...]) -> C:
    for choice in allowed:
        if choice == value:
            return choice
    raise UsageError(f"{name} cannot be {value!r}", hint=f"use one of {', '.join(allowed)}")


def _width(value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdecimal() or int(value) == 0:
        raise UsageError(f"--width cannot be {value!r}", hint="use a number of columns, such as --width 80")
    return int(value)

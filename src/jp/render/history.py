"""Printing a stored conversation: pretty for a person, as text for scripts and diffs, as lines of JSON."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import assert_never

from jp.conversation.entries import AnyEntry
from jp.conversation.thread import CarrierChange, map_carriers
from jp.conversation.turns import turns_of
from jp.render.json_lines import entry_line
from jp.render.sanitize import one_line, sanitize
from jp.render.tables import count_text
from jp.render.theme import Look, styled
from jp.render.transcript import Data, Extent, Heading, Message, Note, Output, Part, Reasoning, Request, transcript

_INDENT = "    "
_BOLD, _DIM, _FAILED = "1", "2", "31"
_EVERYTHING = Extent()


def text_history(entries: Sequence[AnyEntry], *, load: CarrierChange, extent: Extent = _EVERYTHING) -> Iterator[str]:
    """Yield the conversation as text that depends on nothing but the log, in pieces that end in a line feed.

    A heading begins with `=== `. Requests and messages are as stored; everything else is indented.
    """
    return text_of(transcript(entries, load=load, extent=extent))


def pretty_history(
    entries: Sequence[AnyEntry], *, load: CarrierChange, look: Look, extent: Extent = _EVERYTHING
) -> Iterator[str]:
    """Yield the conversation for a terminal, in pieces that end in a line feed."""
    return pretty_of(transcript(entries, load=load, extent=extent), look)


def text_of(parts: Iterable[Part]) -> Iterator[str]:
    """Parts as text; see `text_history`."""
    return _spaced(parts, _plain)


def pretty_of(parts: Iterable[Part], look: Look) -> Iterator[str]:
    """Parts for a terminal; see `pretty_history`."""
    return _spaced(parts, _Pretty(look).show)


def json_history(
    entries: Sequence[AnyEntry], *, load: CarrierChange, turns: Container[int] | None = None
) -> Iterator[str]:
    """Yield every entry, or every one of `turns`, as `jp.render.json_lines` writes it, with all its content inline.

    Raises:
        StorageError: content is missing or damaged.
    """
    chosen: Iterable[AnyEntry] = entries
    if turns is not None:
        chosen = (entry for turn in turns_of(entries) if turn.number in turns for entry in turn.entries)
    for entry in chosen:
        yield entry_line(map_carriers(entry, load))


def _spaced(parts: Iterable[Part], show: Callable[[Part], str]) -> Iterator[str]:
    """Yield the shown parts, with a blank line before a heading, and between messages and tool calls."""
    before: Part | None = None
    for part in parts:
        shown = show(part)
        if not shown:
            continue
        is_close = isinstance(before, Heading) or (_is_aside(part) and _is_aside(before))
        yield shown if before is None or is_close else f"\n{shown}"
        before = part


def _is_aside(part: Part | None) -> bool:
    return isinstance(part, (Note, Output))


def _heading(heading: Heading) -> str:
    last = heading.last_turn
    turns = f"turn {heading.turn}" if last is None else f"turns {heading.turn} to {last}"
    said = [f"{turns}, {heading.role}", one_line(heading.name), one_line(heading.at)]
    if heading.is_undone:
        said.append("undone")
    return ", ".join(text for text in said if text)


def _lines(lines: Iterable[str], indent: str = "") -> str:
    return "".join(f"{indent}{line}\n" if line else "\n" for line in lines)


def _split(text: str) -> list[str]:
    return sanitize(text).strip("\n").split("\n")


def _omitted(output: Output) -> list[str]:
    return [f"({count_text(output.omitted, 'more line')})"] if output.omitted else []


def _plain(part: Part) -> str:
    match part:
        case Heading():
            return f"=== {_heading(part)}\n"
        case Request(text=text) | Message(text=text) | Data(text=text):
            return _lines(_split(text))
        case Reasoning(text=text):
            return _lines(_split(text), _INDENT)
        case Note(text=text):
            return _lines([one_line(text)], _INDENT)
        case Output(lines=lines):
            return _lines([*map(sanitize, lines), *_omitted(part)], _INDENT * 2)
        case _:
            assert_never(part)


class _Pretty:
    """Shows parts in one look."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def show(self, part: Part) -> str:
        match part:
            case Heading():
                return self._styled(
                    [f"── {_heading(part)} ──" if self._look.unicode else f"-- {_heading(part)} --"], _BOLD
                )
            case Request(text=text):
                return _lines(_split(text))
            case Message(text=text) | Data(text=text):
                return self._markdown(text if isinstance(part, Message) else f"```json\n{text}\n```")
            case Reasoning(text=text):
                return self._styled(_split(text), _DIM)
            case Note(text=text):
                return self._styled([one_line(text)], _FAILED if part.is_failure else _DIM, _INDENT)
            case Output(lines=lines):
                shown = "".join(f"{_INDENT * 2}{self._output_line(line)}\n" for line in lines)
                return shown + self._styled(_omitted(part), _DIM, _INDENT * 2)
            case _:
                assert_never(part)

    def _output_line(self, line: str) -> str:
        """Return a line that a tool wrote, in its own colors, which are reset at its end."""
        shown = sanitize(line, keep_colors=self._look.color)
        return f"{shown}\x1b[0m" if "\x1b" in shown else shown

    def _styled(self, lines: Iterable[str], style: str, indent: str = "") -> str:
        drawn = style if self._look.color else ""
        return "".join(f"{indent}{styled(line, drawn)}\n" if line else "\n" for line in lines)

    def _markdown(self, text: str) -> str:
        from jp.render.markdown import render_markdown

        return render_markdown(text, self._look)

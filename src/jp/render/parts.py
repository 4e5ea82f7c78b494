"""What is shown of a stored conversation, whatever the form. Texts are raw: who prints them cleans them."""

from __future__ import annotations

from typing import Literal

import msgspec


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody speaks in turn `turn` (0-based). `name` is the author's or the model's, empty where it is not known.

    With a `last_turn` it stands for all turns from the one to the other.
    """

    turn: int
    last_turn: int | None = None
    role: Literal["user", "assistant"]
    name: str = ""
    at: str = ""
    is_undone: bool = False


class Request(msgspec.Struct, frozen=True):
    """What the user wrote."""

    text: str


class Message(msgspec.Struct, frozen=True):
    """What the model wrote: Markdown."""

    text: str


class Data(msgspec.Struct, frozen=True):
    """Structured output: JSON."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """The model's reasoning."""

    text: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A line about something that happened."""

    text: str
    is_failure: bool = False


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that a tool or a file brought; `left_out` more are not shown."""

    lines: tuple[str, ...]
    left_out: int = 0


Part = Heading | Request | Message | Data | Reasoning | Note | Output

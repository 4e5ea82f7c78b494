"""Queries that are templates: Jinja, sandboxed, with nothing but the values that the configuration gives."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.query.question import Part
from jp.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from jp.config.model import JsonObject

MOST_CHARS = 10 * 1024 * 1024
_SHOWN_CHARS = 60
_FILE = "<template>"


class TemplateError(UsageError):
    """A query is no template, or cannot be rendered."""


class _Fault(msgspec.Struct, frozen=True):
    """What is wrong with a template. `line` is where, None where nothing tells."""

    line: int | None
    reason: str
    is_missing: bool = False


async def render(text: str, values: JsonObject, parts: Sequence[Part] = ()) -> str:
    """`text` with its expressions replaced. A name that `values` lacks is an error, and so is every file.

    Raises:
        TemplateError: it cannot be rendered; the message says in which line of `text`, or of the file
            that this part of it is of.
    """
    from jp.process.apart import ApartError, rendered_apart

    found = _render_here((text, values)) if _is_placing(text) else None
    try:
        found = msgspec.convert(await rendered_apart(__name__, (text, values)), _Outcome) if found is None else found
    except ApartError as error:
        found = _Outcome(fault=_Fault(None, str(error)))
    if found.fault is None:
        return found.text
    raise _failed(found.fault, text, parts, hint=_missing(found.fault.reason, values) if found.fault.is_missing else "")


def _missing(reason: str, values: JsonObject) -> str:
    known = ", ".join(sorted(values)) or "none"
    undefined = re.match(r"'(\w+)' is undefined", reason)
    name = "NAME" if undefined is None else undefined[1]
    return f"`template.values` has: {known}; set one with `--cfg template.values.{name}=VALUE`"


class _Outcome(msgspec.Struct, frozen=True):
    text: str = ""
    fault: _Fault | None = None


def main() -> None:
    """Render apart: see `jp.process.apart.rendered_apart`."""
    from jp.process.apart import answer

    answer(lambda task: msgspec.to_builtins(_render_here(task)))


def _is_placing(text: str) -> bool:
    from jinja2 import TemplateSyntaxError

    from jp.process.apart import is_placing

    try:
        return is_placing(_environment(), text)
    except TemplateSyntaxError:
        return True  # and nothing is computed before that is found out again
    except RecursionError:
        return False


def _render_here(task: tuple[str, JsonObject]) -> _Outcome:
    import jinja2

    from jp.process.apart import reason_of

    try:
        return _Outcome(_rendered(_parsed(task[0]), task[1]))
    except jinja2.TemplateSyntaxError as error:
        fault = _Fault(error.lineno, error.message or "it cannot be read")
    except jinja2.UndefinedError as error:
        fault = _Fault(_line_of(error), str(error), is_missing=True)
    except Exception as error:  # noqa: BLE001 - an expression can raise whatever Python has
        fault = _Fault(_line_of(error), reason_of(error))
    return _Outcome(fault=fault)


def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    del environment.globals["lipsum"]  # chance
    return environment


def _parsed(text: str) -> Template:
    environment = _environment()
    code = environment.compile(text, filename=_FILE)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _rendered(template: Template, values: JsonObject) -> str:
    pieces: list[str] = []
    size = 0
    for piece in template.generate(values):
        size += len(piece)
        if size > MOST_CHARS:
            raise ValueError(f"it renders to more than {MOST_CHARS:,} characters")
        pieces.append(piece)
    return "".join(pieces)


def _line_of(error: Exception) -> int | None:
    """The line of the template that an error comes from; None where nothing tells."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == _FILE), None)


def _failed(fault: _Fault, text: str, parts: Sequence[Part], *, hint: str) -> TemplateError:
    line = fault.line
    lines = text.split("\n")
    part = next((part for part in reversed(parts) if part.line <= (line or 0)), Part(1, ""))
    at = f", line {line}" if line else ""
    place = f" in {part.file!r}, line {(line or 0) - part.line + 1}" if part.file else at
    where = f"{place} ({lines[line - 1].strip()[:_SHOWN_CHARS]!r})" if line and line <= len(lines) else ""
    return TemplateError(
        f"the template cannot be rendered{where}: {fault.reason}",
        hint=hint or "without --template the text is sent as it is; {% raw %} … {% endraw %} keeps a part of it",
    )

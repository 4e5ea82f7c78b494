"""Queries that are templates: Jinja, sandboxed, with nothing but the values that the configuration gives."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jp.cli.query.file_words import Part
from jp.config.model import JsonObject
from jp.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Template

MOST_CHARS = 10 * 1024 * 1024
_SHOWN_CHARS = 60
_FILE = "<template>"


class TemplateError(UsageError):
    """A query is no template, or cannot be rendered."""


def render(text: str, values: JsonObject, parts: Sequence[Part] = ()) -> str:
    """`text` with its expressions replaced. A name that `values` lacks is an error, and so is every file.

    Raises:
        TemplateError: it cannot be rendered; the message says in which line of `text`, or of the file
            that this part of it is of.
    """
    import jinja2

    try:
        return _rendered(_parsed(text), values)
    except TemplateError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise _failed(error.lineno, error.message or "it cannot be read", text, parts) from None
    except jinja2.UndefinedError as error:
        known = ", ".join(sorted(values)) or "none"
        missing = re.match(r"'(\w+)' is undefined", str(error))
        name = "NAME" if missing is None else missing[1]
        hint = f"`template.values` has: {known}; set one with `--cfg template.values.{name}=VALUE`"
        raise _failed(_line_of(error), str(error), text, parts, hint=hint) from None
    except Exception as error:  # noqa: BLE001 - an expression can raise whatever Python has
        raise _failed(_line_of(error), str(error) or type(error).__name__, text, parts) from None


def _parsed(text: str) -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    del environment.globals["lipsum"]  # chance
    code = environment.compile(text, filename=_FILE)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _rendered(template: Template, values: JsonObject) -> str:
    pieces: list[str] = []
    size = 0
    for piece in template.generate(values):
        size += len(piece)
        if size > MOST_CHARS:
            raise TemplateError(f"the template renders to more than {MOST_CHARS:,} characters")
        pieces.append(piece)
    return "".join(pieces)


def _line_of(error: Exception) -> int | None:
    """The line of the template that an error comes from; None where nothing tells."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == _FILE), None)


def _failed(line: int | None, reason: str, text: str, parts: Sequence[Part], *, hint: str = "") -> TemplateError:
    lines = text.split("\n")
    part = next((part for part in reversed(parts) if part.line <= (line or 0)), Part(1, ""))
    place = f" in {part.file!r}, line {(line or 0) - part.line + 1}" if part.file else f", line {line}"
    where = f"{place} ({lines[line - 1].strip()[:_SHOWN_CHARS]!r})" if line and line <= len(lines) else ""
    return TemplateError(
        f"the template cannot be rendered{where}: {reason}",
        hint=hint or "without --template the text is sent as it is; {% raw %} … {% endraw %} keeps a part of it",
    )

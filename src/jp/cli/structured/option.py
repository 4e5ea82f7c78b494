"""What `--schema` says: JSON Schema as text, its short form, or a file with either."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jp.cli.structured.check import Checker
from jp.conversation.entries import JsonObject
from jp.conversation.schema_dsl import parse_dsl
from jp.errors import ConfigurationError, UsageError, reason_of
from jp.reading import read_beginning

MAX_BYTES = 1024 * 1024
"""A larger file is no schema."""

_FORMS = "a schema is a JSON object, TOML in a file that ends in `.toml`, or the short form `name, age int`"


def read_schema(text: str) -> Checker:
    """The schema that `text` gives: `@FILE`, or where it begins with a brace JSON Schema, else the short form.

    Raises:
        ConfigurationError: the file cannot be read, or what it holds is no schema.
        UsageError: the text is no schema.
    """
    if not text.startswith("@"):
        return Checker(_parsed(text, suffix=""))
    path = Path(text[1:]).expanduser()
    content = _content_of(path)
    try:
        return Checker(_parsed(content, suffix=path.suffix.lower()))
    except UsageError as error:
        raise ConfigurationError(f"{str(path)!r}: {error.message}", hint=error.hint) from None


def _content_of(path: Path) -> str:
    try:
        data = read_beginning(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigurationError(f"{str(path)!r} has more than {MAX_BYTES:,} bytes", hint=_FORMS)
        return data.decode("utf-8-sig")
    except OSError as error:
        message = f"the schema {str(path)!r} cannot be read: {error.strerror or error}"
        raise ConfigurationError(message, hint="a path is relative to the current directory") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{str(path)!r} is not UTF-8: byte {error.start:,} does not fit", hint=_FORMS
        ) from None


def _parsed(text: str, *, suffix: str) -> JsonObject:
    if suffix == ".toml":
        return _toml(text)
    if text.lstrip().startswith("{") or suffix == ".json":
        return _json(text)
    return parse_dsl(text)


def _json(text: str) -> JsonObject:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(f"the schema is not a JSON object{_place_of_error(text)}", hint=_FORMS) from None


def _place_of_error(text: str) -> str:
    """Where `text` ceases to be JSON, empty where it is JSON after all."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        return f" at {where}: {error.msg}"
    except RecursionError:
        return ": it is nested too deeply"
    return ""


def _toml(text: str) -> JsonObject:
    import tomllib

    from jp.config.scan import load_toml

    try:
        return msgspec.to_builtins(load_toml(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"the schema is not TOML: {reason_of(error)}", hint=_FORMS) from None

from __future__ import annotations

from pathlib import Path

import pytest

from jp.app.schema_checker import MAX_BYTES, read_schema
from jp.conversation.entries import JsonObject
from jp.errors import ConfigurationError, ExitCode, JpError

SCHEMA: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize("text", ["name", 'name: "who"', '{"type": "object"}', ' \n{"type": "object"}'])
def test_a_schema_is_typed_as_fields_or_as_json(text: str) -> None:
    assert read_schema(text).schema["type"] == "object"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '\ufeff{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'),
        ("a.toml", 'type = "object"\nrequired = ["name"]\nproperties.name.type = "string"\n'),
        ("a.schema", "name\n"),
        ("a", '\n {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'),
    ],
)
def test_a_schema_is_read_from_a_file(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")

    assert read_schema(f"@{tmp_path / name}").schema == SCHEMA


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the schema is malformed at column 1: there is no field"),
        ("name strng", "the schema is malformed at column 6: there is no type 'strng'"),
        ('{"type": }', "the schema is not a JSON object at column 10: Expecting value"),
        ('{\n"type" "object"}', "the schema is not a JSON object at line 2, column 8: Expecting ':' delimiter"),
        ('{"minimum": NaN}', "the schema is not a JSON object"),
        ('{"const": "\ud800"}', "the schema is not a JSON object"),
        ('{"a":' * 100_000, "the schema is not a JSON object: it is nested too deeply"),
        ('{"type": "objec"}', "the schema is not valid at /type: "),
    ],
)
def test_what_is_no_schema_is_a_wrong_option(text: str, problem: str) -> None:
    with pytest.raises(JpError) as caught:
        read_schema(text)

    assert caught.value.message.startswith(problem)
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"[1]", "the schema is not a JSON object"),
        ("a.toml", b"a = ", "the schema is not TOML: "),
        ("a.txt", b"name\nage intt", "the schema is malformed at line 2, column 5: there is no type 'intt'"),
        ("a.json", b'{"type": "objec"}', "the schema is not valid at /type: "),
        ("a.json", b"{}\xff", "is not UTF-8: byte 2 does not fit"),
        ("a.json", b" " * (MAX_BYTES + 1), "has more than 1,048,576 bytes"),
        ("a.toml", b"name = 'string'", "the schema says nothing: 'name' is no keyword of JSON Schema"),
    ],
)
def test_a_file_that_holds_no_schema_is_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        read_schema(f"@{path}")

    assert problem in caught.value.message
    assert repr(str(path)) in caught.value.message


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_schema(f"@{tmp_path}/none.json")

    assert caught.value.message == f"the schema '{tmp_path}/none.json' cannot be read: No such file or directory"


def test_a_directory_is_no_schema(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_schema(f"@{tmp_path}")

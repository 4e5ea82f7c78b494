"""The short form of a schema: any text is a valid JSON Schema or an error that points into it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jp.conversation.entries import JsonObject
from jp.conversation.schemas import SchemaSyntaxError, parse_dsl

TOKENS = (
    *("name", "age", '"a b"', "str", "int", "float", "bool", "any", "null", "true", "-1.5", "7", "'x'", '"y"'),
    *("?", ":", ",", "\n", "|", "[", "]", "{", "}", " ", "\\\n", "\\", '"', "'", "<<E\n", "\nE\n", "ü", "\r\n"),
)
texts = st.text() | st.lists(st.sampled_from(TOKENS), max_size=30).map("".join)


def parsed(text: str) -> JsonObject | SchemaSyntaxError:
    try:
        return parse_dsl(text)
    except SchemaSyntaxError as error:
        return error


@given(texts)
def test_any_text_is_a_schema_or_an_error_that_points_into_it(text: str) -> None:
    result = parsed(text)

    if isinstance(result, SchemaSyntaxError):
        lines = text.split("\n")
        assert 1 <= result.line <= len(lines)
        assert 1 <= result.column <= len(lines[result.line - 1]) + 1
        assert result.hint
    else:
        Draft202012Validator.check_schema(result)
        assert result["type"] == "object"
        assert set(result.get("required", ())) <= set(result["properties"])


names = st.text(min_size=1, max_size=8)
simple = st.sampled_from(["str", "int", "float", "bool", "any"])


def written(schema_type: str, name: str, description: str, *, is_optional: bool) -> str:
    return f"{'?' if is_optional else ''}{quoted(name)} {schema_type}: {quoted(description)}"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


fields = st.dictionaries(names, st.tuples(simple, st.text(max_size=20), st.booleans()), min_size=1, max_size=5)


@given(fields, st.sampled_from([", ", "\n", ",\n  "]))
def test_what_is_written_is_read(wanted: dict[str, tuple[str, str, bool]], separator: str) -> None:
    text = separator.join(
        written(kind, name, description, is_optional=is_optional)
        for name, (kind, description, is_optional) in wanted.items()
    )

    schema = parse_dsl(text)

    properties: dict[str, JsonObject] = schema["properties"]
    assert list(properties) == list(wanted)
    assert [found["description"] for found in properties.values()] == [given[1] for given in wanted.values()]
    assert set(schema.get("required", ())) == {name for name, given in wanted.items() if not given[2]}

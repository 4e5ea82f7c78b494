from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.schemas import MAX_DEPTH, SchemaSyntaxError, parse_dsl

STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}


def field(text: str) -> JsonObject:
    """The schema of the only field."""
    (schema,) = parse_dsl(text)["properties"].values()
    return schema


def test_fields_are_separated_by_commas_or_lines_and_optional_ones_are_not_required() -> None:
    schema = {
        "type": "object",
        "properties": {"name": STRING, "age": INTEGER, "e-mail": STRING},
        "required": ["name", "e-mail"],
    }

    assert parse_dsl("name, ?age int, e-mail") == schema
    assert parse_dsl("\n  name\r\n\n ? age int,\n e-mail,\n") == schema
    assert parse_dsl("?a") == {"type": "object", "properties": {"a": STRING}}


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("a", STRING),
        ("a str", STRING),
        ("a string", STRING),
        ("a int", INTEGER),
        ("a integer", INTEGER),
        ("a float", {"type": "number"}),
        ("a number", {"type": "number"}),
        ("a bool", {"type": "boolean"}),
        ("a boolean", {"type": "boolean"}),
        ("a any", {}),
        ("a [int]", {"type": "array", "items": INTEGER}),
        ("a [ [ any ] ]", {"type": "array", "items": {"type": "array", "items": {}}}),
        ("a {b int, ?c}", {"type": "object", "properties": {"b": INTEGER, "c": STRING}, "required": ["b"]}),
        ("a {\n  b int\n  c: there\n}", {**parse_dsl("b int, c: there")}),
        ("a {}", {"type": "object"}),
        ("a [{b int}]", {"type": "array", "items": parse_dsl("b int")}),
    ],
)
def test_a_field_has_a_type(text: str, schema: JsonObject) -> None:
    assert field(text) == schema


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ('a "x"', {"const": "x"}),
        ("a 'it\\'s \\\"so\\\"\\n\\t\\\\'", {"const": 'it\'s "so"\n\t\\'}),
        ("a -1.5", {"const": -1.5}),
        ("a 2e3", {"const": 2000.0}),
        ("a 7", {"const": 7}),
        ("a true", {"const": True}),
        ("a null", {"type": "null"}),
        ('a "x"|"y" | 1|true|null|"x"', {"enum": ["x", "y", 1, True, None]}),
        ("a str|null", {"anyOf": [STRING, {"type": "null"}]}),
        ("a int|'auto'|null|'none'", {"anyOf": [INTEGER, {"type": "null"}, {"enum": ["auto", "none"]}]}),
        ("a int|integer", INTEGER),
        ("a str|any", {}),
        ("a [\n  int\n  | str\n]", {"type": "array", "items": {"anyOf": [INTEGER, STRING]}}),
        ("a int |\n str", {"anyOf": [INTEGER, STRING]}),
    ],
)
def test_constants_and_unions(text: str, schema: JsonObject) -> None:
    assert field(text) == schema


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("a: in a few words", "in a few words"),
        ("a :words } and all", "words } and all"),
        ('a: "one, two\nthree"', "one, two\nthree"),
        ("a: it is \\\n   long", "it is long"),
        ('a: "joined \\\nhere"', "joined here"),
        ("a: <<EOT\n  one, two\n    three:\n  EOT\n", "one, two\n  three:"),
        ("a: <<E\r\none\r\ntwo\r\nE", "one\ntwo"),
        ("a: <<E\nE", ""),
    ],
)
def test_a_field_has_a_description(text: str, description: str) -> None:
    assert field(text) == {**STRING, "description": description}


def test_what_follows_a_description_is_read() -> None:
    schema = parse_dsl("a {b: inside, c: the last}: of all, d: <<X\nlong\nX\ne int")

    assert list(schema["properties"]) == ["a", "d", "e"]
    assert schema["properties"]["a"]["description"] == "of all"
    assert schema["properties"]["a"]["properties"]["c"]["description"] == "the last"


def test_a_name_may_be_anything_that_is_quoted() -> None:
    assert list(parse_dsl("\"first name\" str, 'last, name', größe int, 2nd")["properties"]) == [
        "first name",
        "last, name",
        "größe",
        "2nd",
    ]


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", (1, 1), "there is no field"),
        (" ,\n, ", (2, 3), "there is no field"),
        ("name strng", (1, 6), "there is no type 'strng'"),
        ("a\nb int|xyz", (2, 7), "there is no type 'xyz'"),
        ("a, b, a", (1, 7), "there is a field 'a' already"),
        ("a, (b)", (1, 4), "there should be a field's name"),
        ("a ?", (1, 3), "there should be a type"),
        ("a int|", (1, 7), "there should be a type"),
        ("a int b", (1, 7), "there should be a comma or a new line before the next field"),
        ("a [int", (1, 3), "'[' is not closed"),
        ("a [int}", (1, 3), "'[' is not closed"),
        ("a {b int", (1, 3), "'{' is not closed"),
        ("a }", (1, 3), "'}' closes nothing"),
        ('a: "open', (1, 4), 'the quote " is not closed'),
        ("a 'x\\q'", (1, 5), "'\\\\q' is no escape"),
        ("a 007", (1, 3), "'007' is no number"),
        ("a 1e999", (1, 3), "'1e999' is no number"),
        ("a -", (1, 3), "'-' is no number"),
        ("a:", (1, 3), "there should be a description after the colon"),
        ("a: , b", (1, 4), "there should be a description after the colon"),
        (
            "a: <<EOT\nnever ends",
            (1, 4),
            "after `<<WORD`, the description begins on the next line and ends with a line that says `WORD`",
        ),
        ("a " + "[" * (MAX_DEPTH + 1), (1, MAX_DEPTH + 3), f"it is nested more than {MAX_DEPTH} deep"),
    ],
)
def test_an_error_points_at_its_column(text: str, place: tuple[int, int], problem: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_dsl(text)

    line, column = place
    where = f"column {column}" if line == 1 else f"line {line}, column {column}"
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.message == f"the schema is malformed at {where}: {problem}"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("strnig", "did you mean 'string'?"),
        ("Int", "did you mean 'int'?"),
        ("object", "an object is written as `{name type}`"),
        ("List", "an array is written as `[type]`"),
        ("xyz", "the types are: str, int, float, bool, any."),
        ("draft", 'A constant is quoted ("draft"), and so is a description with a comma.'),
    ],
)
def test_an_unknown_type_gets_a_hint(word: str, hint: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_dsl(f"a {word}")

    assert hint in caught.value.hint

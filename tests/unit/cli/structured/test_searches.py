from __future__ import annotations

from functools import partial
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.app.query.structured import InvalidAnswer, UncheckedAnswer, ValidAnswer, check_value
from jp.app.schema_checker import Checker
from jp.conversation.entries import JsonObject

ENDLESS = "^(a|aa)+$"
LONG = "a" * 60 + "b"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def checked(schema: JsonObject, value: Any, *, limit_secs: float = 2) -> ValidAnswer | InvalidAnswer | UncheckedAnswer:
    return anyio.run(partial(check_value, value, Checker(schema), limit_secs=limit_secs))


SEARCHES: dict[str, tuple[JsonObject, Any]] = {
    "pattern": ({"items": {"pattern": ENDLESS}}, ["a", LONG]),
    "of a draft": ({"$schema": DRAFT_7, "items": [{"pattern": "b"}, {"pattern": ENDLESS}]}, ["b", LONG]),
    "names": ({"propertyNames": {"pattern": ENDLESS}}, {LONG: 1}),
    "members": ({"patternProperties": {ENDLESS: {}}}, {LONG: 1}),
    "no others": ({"additionalProperties": False, "patternProperties": {"x": {}, ENDLESS: {}}}, {LONG: 1}),
    "not evaluated": ({"unevaluatedProperties": False, "allOf": [{"patternProperties": {ENDLESS: {}}}]}, {LONG: 1}),
    "referred to": ({"$ref": "#/other", "other": {"patternProperties": {ENDLESS: {}}}}, {LONG: 1}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_without_end_is_stopped_and_its_pattern_is_named(name: str) -> None:
    found = checked(*SEARCHES[name], limit_secs=0.02)

    assert isinstance(found, UncheckedAnswer)
    assert found.reason == f"the search for the pattern {ENDLESS!r} takes more than 0.02 s"


def test_a_search_that_nobody_waits_for_any_more_is_left() -> None:
    async def wait() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await check_value(LONG, Checker({"pattern": ENDLESS}), limit_secs=1)
        return scope.cancelled_caught

    assert anyio.run(wait)


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"x": 0.3, "xy": 0.2}, ()),
        ({"x": 0.35}, ("/x: 0.35 does not have multipleOf 0.1",)),
        ({"x.": 1, "é": 1}, ("the top: 'é' is not expected",)),
        ({"B": 1}, ()),
        ({"Bx": "text"}, ('/Bx: "text" is not of type number',)),
    ],
)
def test_patterns_say_which_names_are_expected(value: Any, problems: tuple[str, ...]) -> None:
    schema: JsonObject = {
        "additionalProperties": False,
        "patternProperties": {"^x": {"multipleOf": 0.1}, "(?i)^b": {"type": "number"}, "(?i)^b.*": {}},
        "properties": {"x.": {}},
    }

    assert checked(schema, value) == (InvalidAnswer(problems) if problems else ValidAnswer(value))


def test_a_member_that_is_called_like_a_keyword_is_no_keyword() -> None:
    schema: JsonObject = {"properties": {"patternProperties": {"type": "string"}}}

    assert checked(schema, {"patternProperties": "x", "type": 1}) == ValidAnswer({"patternProperties": "x", "type": 1})
    assert isinstance(checked(schema, {"patternProperties": 1}), InvalidAnswer)


NAMES = st.text("ab.|^$({}\\\n", max_size=4)


@given(
    names=st.lists(NAMES, unique=True),
    pattern=st.sampled_from(["a", "^a$", "[b.]+", "\\|", "^$", "(?s)^.b", "a|b", "a{1}", "{b}|{a"]),
)
def test_the_names_that_a_pattern_matches_are_those_that_the_library_finds(names: list[str], pattern: str) -> None:
    from jsonschema import Draft202012Validator

    schema: JsonObject = {"patternProperties": {pattern: {}}, "additionalProperties": False}
    value = dict.fromkeys(names, 1)
    is_valid: bool = cast("Any", Draft202012Validator(schema)).is_valid(value)

    assert (Checker(schema).misfits(value) == []) is is_valid

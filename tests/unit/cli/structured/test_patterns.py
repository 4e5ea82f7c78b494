from __future__ import annotations

import pytest

from jp.app.structured.misfit import searches, why_not
from jp.conversation.entries import JsonObject


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("^a+$", ""),
        ("[[a]", ""),
        (r"\p{L}", r"bad escape \p at position 0"),
        ("a{99999999999999999999}", "the repetition number is too large"),
        ("(" * 5000 + ")" * 5000, "it is nested too deeply"),
    ],
    ids=["good", "with a warning", "escape", "too large", "too deep"],
)
def test_a_pattern_that_python_does_not_take_is_explained(pattern: str, problem: str) -> None:
    assert why_not(pattern) == problem


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, False),
        ({"properties": {"pattern": {"type": "string"}, "format": {}}}, False),
        ({"format": "date"}, False),
        ({"pattern": "a"}, True),
        ({"properties": {"a": {"anyOf": [{}, {"pattern": "a"}]}}}, True),
        ({"patternProperties": {"a": {}}}, True),
        ({"$ref": "#/other", "other": {"format": "regex"}}, True),
    ],
)
def test_it_is_seen_whether_a_schema_searches(schema: JsonObject, *, expected: bool) -> None:
    assert searches(schema) is expected

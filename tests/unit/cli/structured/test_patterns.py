from __future__ import annotations

import pytest

from jp.app.schema_checker import why_not


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

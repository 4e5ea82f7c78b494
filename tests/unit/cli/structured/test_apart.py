from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from jp.app.structured.answer import Unchecked, misfits_apart
from jp.app.structured.check import Checker
from jp.conversation.entries import JsonObject

ENDLESS = "^(a+)+$"
LONG = "a" * 40 + "b"


def held(schema: JsonObject, value: Any, *, limit_secs: float = 2) -> list[str] | Unchecked:
    found = anyio.run(partial(misfits_apart, Checker(schema), value, limit_secs=limit_secs))
    return found if isinstance(found, Unchecked) else list(map(str, found))


def test_a_search_without_end_is_ended_and_says_what_was_searched_for() -> None:
    schema: JsonObject = {"properties": {"a": {"pattern": "b"}, "c": {"pattern": ENDLESS}}}

    found = held(schema, {"a": "b", "c": LONG}, limit_secs=0.02)

    assert isinstance(found, Unchecked)
    assert found.reason == f"to search for the pattern {ENDLESS!r} takes more than 0.02 s"


def test_a_search_that_ends_says_what_one_in_this_process_would_and_nothing_of_the_current_directory_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jsonschema.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    schema: JsonObject = {"additionalProperties": False, "patternProperties": {"^x": {"multipleOf": 0.1}}}
    value = {"x": 0.35, "xy": 0.3, "é": 10**25}

    assert held(schema, value) == list(map(str, Checker(schema).misfits(value)))


def test_patterns_that_cannot_be_searched_for_together_are_an_error_of_the_search() -> None:
    schema: JsonObject = {"additionalProperties": False, "patternProperties": {"a": {}, "(?i)b": {}}}

    assert held(schema, {"c": 1}) == Unchecked(reason="the search for the pattern 'a|(?i)b' failed")


def test_a_search_that_nobody_waits_for_any_more_is_ended() -> None:
    async def wait() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await misfits_apart(Checker({"pattern": ENDLESS}), LONG, limit_secs=1000)
        return scope.cancelled_caught

    assert anyio.run(wait)

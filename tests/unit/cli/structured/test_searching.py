from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import searcher
from forked import run_jp
from jp.app.structured.searching import Task
from jp.conversation.entries import JsonObject

DRAFT: JsonObject = {"$schema": "http://json-schema.org/draft-07/schema#"}
ENDLESS = "^(a+)+$"
LONG = "a" * 40 + "b"


@pytest.mark.parametrize(
    ("schema", "value", "patterns"),
    [
        ({"items": [{"pattern": "b"}, {"pattern": ENDLESS}]}, ["b", LONG], ["b", ENDLESS]),
        ({"patternProperties": {ENDLESS: {}}}, {LONG: 1}, [ENDLESS]),
        (
            {"additionalProperties": False, "patternProperties": {ENDLESS: {}, "x": {}}},
            {LONG: 1},
            [f"{ENDLESS}|x"],
        ),
    ],
    ids=["pattern", "names", "names that are not expected"],
)
def test_what_is_searched_for_is_announced_and_a_search_without_end_is_ended(
    schema: JsonObject, value: Any, patterns: list[str], tmp_path: Path
) -> None:
    task = msgspec.json.encode(Task(schema={**DRAFT, **schema}, value=value, limit_secs=0.02))

    searched = run_jp(cwd=tmp_path, stdin=task, script=Path(searcher.__file__))

    assert searched.code == -signal.SIGPROF
    assert [msgspec.json.decode(line) for line in searched.stdout.splitlines()] == patterns

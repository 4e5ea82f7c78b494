from __future__ import annotations

import msgspec
import pytest

from context.gold import Fact, availability, found_in, gold_of, places_of, shares_by_kind
from context.sessions import read_session
from jp.context.types import Transcript


def rows(*messages: dict[str, object]) -> bytes:
    return msgspec.json.Encoder().encode_lines(messages)


def call(name: str, arguments: object, identity: str = "c") -> dict[str, object]:
    return {"role": "assistant", "tool_calls": [{"id": identity, "name": name, "arguments": arguments}]}


def result(text: str, identity: str = "c") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": identity, "text": text}


SESSION = read_session(
    rows(
        {"role": "user", "text": "Please mend the parser of dates.\nSee #412. It fails for leap years only!"},
        {"role": "user", "text": "<reminder>this is not what the person said at all</reminder>"},
        call("Read", {"file_path": "src/dates.py"}, "r"),
        result("def parse(): # error: is not one here\n", "r"),
        call("bash", {"command": "pytest  -q\n tests"}, "t"),
        result("Process exited with code 2\nok\nerror: no such\tcolumn 'total'\nE  an error in the middle", "t"),
        {"role": "assistant", "text": "Commit 3f9c2ab broke it.", "reasoning": "see https://example.com/never-sent"},
    )
)
FACTS = gold_of(SESSION)


def test_each_class_of_facts_is_taken_from_where_it_stands() -> None:
    assert set(FACTS) == {
        Fact("requirement", "Please mend the parser of dates."),
        Fact("requirement", "It fails for leap years only!"),
        Fact("file", "src/dates.py"),
        Fact("command", "pytest -q tests", 2),
        Fact("error", "error: no such column 'total'"),
        Fact("identifier", "#412"),
        Fact("identifier", "3f9c2ab"),
    }


def test_a_session_has_all_of_its_facts_and_nothing_has_none() -> None:
    assert availability(FACTS, found_in(FACTS, places_of(SESSION))) == 1.0
    assert availability(FACTS, found_in(FACTS, places_of(()))) == 0.0
    assert availability((), frozenset()) == 1.0


def test_every_class_counts_the_same_however_many_facts_it_has() -> None:
    found = frozenset(fact for fact in FACTS if fact.kind != "identifier")

    assert shares_by_kind(FACTS, found) == {"file": 1, "command": 1, "error": 1, "identifier": 0, "requirement": 1}
    assert availability(FACTS, found) == pytest.approx(0.8)


def test_a_command_without_how_it_ended_is_not_there() -> None:
    command = Fact("command", "pytest -q tests", 2)
    said = "pytest -q tests; {}; 4 lines"

    for ending, is_there in (("exit 2", True), ("exit 20", False), ("exit 1", False), ("done", False)):
        context = read_session(rows({"role": "assistant", "text": said.format(ending)}))
        assert (command in found_in([command], places_of(context))) is is_there


def test_what_an_unknown_tool_or_a_broken_call_did_is_no_fact() -> None:
    session = read_session(
        rows(call("unheard", {"path": "a.py"}), result("x"), call("bash", "not json", "b"), result("y", "b"))
    )

    assert gold_of(session) == ()


def test_a_patch_names_its_file_in_its_text() -> None:
    session = read_session(
        rows(call("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n"}), result("done"))
    )

    assert gold_of(session) == (Fact("file", "src/a.py"),)


def test_a_recorded_session_is_repaired_before_anything_is_measured() -> None:
    session: Transcript = read_session(rows({"role": "user", "text": "Go on."}, call("bash", {"command": "make"})))

    assert [row.role for row in session] == ["user"]

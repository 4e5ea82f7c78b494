from __future__ import annotations

import msgspec
import pytest

from context.sessions import Session, read_session
from delivery import WAYS, Sent, line, resent, rows, sent_in, uri_of
from jp.compaction.large_items import Saved
from jp.context.types import Call, Facts, Message, Meta

FILE = "".join(f"line {number}\n" for number in range(100))
OUTPUT = "".join(f"{number} is fine\n" for number in range(4_000))


def call(identity: str, name: str, **arguments: object) -> dict[str, object]:
    return {"role": "assistant", "tool_calls": [{"id": identity, "name": name, "arguments": arguments}]}


def result(identity: str, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": identity, "text": text}


def session(*messages: dict[str, object]) -> Session:
    return Session("s", read_session(msgspec.json.Encoder().encode_lines([{"role": "user", "text": "Go."}, *messages])))


ANSWER: dict[str, object] = {"role": "assistant", "text": "Done."}
READ_TWICE = session(
    call("a", "Read", file_path="/w/a"),
    result("a", FILE),
    call("b", "Read", file_path="/w/a"),
    result("b", FILE),
    ANSWER,
)
CHANGED = session(
    call("a", "Read", file_path="/w/a"),
    result("a", FILE),
    call("b", "Read", file_path="/w/a"),
    result("b", FILE.replace("line 50\n", "line fifty\n")),
    ANSWER,
)
LARGE = session(call("a", "bash", command="make"), result("a", OUTPUT), ANSWER, ANSWER)


def saved(of: Session) -> dict[str, Saved]:
    return {ways.name: sent_in(of, ways).saved for ways in WAYS}


def test_each_request_sends_everything_before_it() -> None:
    assert resent([5, 10, 1, 20], [1, 3]) == 5 + 16
    assert resent([], []) == 0


def test_what_is_sent_is_the_person_the_calls_and_the_results_as_often_as_requests_follow() -> None:
    sent = sent_in(READ_TWICE, WAYS[0])

    arguments = len('{"file_path":"/w/a"}')
    assert sent.requests == 3
    assert sent.results == 2 * len(FILE) + len(FILE)
    assert sent.everything == sent.results + 3 * len("Go.") + 3 * arguments
    assert sent.saved == Saved()


def test_what_is_read_again_unchanged_is_saved_by_references_alone() -> None:
    found = saved(READ_TWICE)

    assert found["references"].references > 600
    assert found["references"] == found["all three"]
    assert {found[name] for name in ("as it was", "diffs", "bounds")} == {Saved()}


def test_what_is_read_again_changed_is_saved_by_diffs_alone() -> None:
    found = saved(CHANGED)

    assert found["diffs"].diffs > 400
    assert found["diffs"] == found["all three"]
    assert {found[name] for name in ("as it was", "references", "bounds")} == {Saved()}


def test_what_is_large_is_saved_by_bounds_alone_in_each_request_that_follows() -> None:
    found = saved(LARGE)

    assert len(OUTPUT) - 16 * 1024 <= found["bounds"].bounds // 2 < len(OUTPUT) - 15 * 1024
    assert found["bounds"] == found["all three"]
    assert {found[name] for name in ("as it was", "references", "diffs")} == {Saved()}


@pytest.mark.parametrize(
    ("name", "arguments", "path", "uri"),
    [
        ("Read", '{"file_path": "/w/a"}', "/w/a", "file:///w/a"),
        ("Read", '{"file_path": "/w/a", "offset": 3, "limit": 9}', "/w/a", 'file:///w/a#{"limit":9,"offset":3}'),
        ("Read", '{"file_path": "/w/a", "offset": 0}', "/w/a", "file:///w/a"),
        ("Read", "not json", "/w/a", "file:///w/a"),
        ("Read", "{}", "", ""),
        ("bash", '{"command": "cat /w/a"}', "", ""),
        ("nobody", "{}", "/w/a", ""),
    ],
)
def test_what_was_read_is_identified_by_its_path_and_its_part(name: str, arguments: str, path: str, uri: str) -> None:
    message = Message(role="tool", meta=Meta(facts=Facts(path=path)))

    assert uri_of(Call(id="c", name=name, arguments=arguments), message) == uri


def test_a_row_says_what_is_left_and_how_much_less_it_is() -> None:
    sent = Sent(everything=3 * 1024 * 1024, results=2 * 1024 * 1024, saved=Saved(bounds=1024 * 1024), requests=4)

    assert line("bounds", [sent, sent]).split() == ["bounds", "4.0", "1.05", "33.3", "50.0"]
    assert line("none", []).split() == ["none", "0.0", "0.00", "0.0", "0.0"]


def test_without_recorded_sessions_the_table_says_why_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JP_TEST_DATA", raising=False)

    assert list(rows(lambda _: None)) == ["skipped: JP_TEST_DATA does not name a folder with recorded sessions"]

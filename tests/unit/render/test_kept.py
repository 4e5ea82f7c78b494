from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import JsonObject, Unknown
from jp.render.transcript import config_change_text, unknown_entry_text

LONG: JsonObject = {
    "inherit": True,
    "extends": ["x" * 90, "y"],
    "assistant": {"name": "a\nb", "model": {"stop": [], "id": "anthropic/claude"}},
    "conversation": {"tools": {}, "title": "t" * 100_000},
}


def remainder(**content: object) -> Unknown:
    raw = msgspec.json.encode({"id": "1", "type": "original", "at": "", **content})
    return Unknown(raw=raw, id="1", type="original")


def test_a_short_change_is_shown_as_it_is() -> None:
    assert config_change_text({"a": {"b": 1}}, is_whole=False) == 'configuration {"a":{"b":1}}'


def test_a_long_change_is_some_values_the_model_first_and_a_count() -> None:
    text = config_change_text(LONG, is_whole=False)

    assert text.startswith('configuration assistant.model.id="anthropic/claude", inherit=true, extends=["xxx')
    assert text.endswith(", and 4 more values")
    assert len(text) < 200


def test_a_long_change_is_whole_where_that_is_asked_for() -> None:
    assert config_change_text(LONG, is_whole=True) == f"configuration {msgspec.json.encode(LONG).decode()}"


def test_one_value_that_is_long_is_shortened() -> None:
    text = config_change_text({"k" * 200: "v" * 200}, is_whole=False)

    assert "more" not in text
    assert len(text) < 130


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"event": {"type": "newer", "content": "x"}}, "an event of type 'newer'"),
        ({"of": "0", "fields": {"images": [], "odd": 1}}, "'images', 'odd'"),
        ({"of": "0", "fields": dict.fromkeys("abcde", 1)}, "'a', 'b', 'c', and 2 more fields"),
        (
            {"of": "0", "fields": {"delta": {"a": {"b": 1, "c": 2}}}},
            "the spelling of 2 values of the configuration",
        ),
        ({"of": "0", "fields": {"delta": 1}}, "'delta'"),
    ],
)
def test_what_the_original_wrote_is_named_and_whole_where_that_is_asked_for(content: JsonObject, what: str) -> None:
    said = f"kept from the original JP, without a place of its own here: {what}"
    held = content.get("event") or content["fields"]

    assert unknown_entry_text(remainder(**content), is_whole=False) == said
    assert unknown_entry_text(remainder(**content), is_whole=True) == f"{said}: {msgspec.json.encode(held).decode()}"


@pytest.mark.parametrize(
    "entry",
    [Unknown(raw=b'{"event":{}}', type="new"), remainder(event=1), remainder(), Unknown(raw=b"{", type="original")],
    ids=repr,
)
def test_what_is_not_known_is_said_to_be_so(entry: Unknown) -> None:
    said = f"an entry of type {entry.type!r}, which this version does not know"
    assert unknown_entry_text(entry, is_whole=True) == said

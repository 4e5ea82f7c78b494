from __future__ import annotations

import tomllib
from typing import Any

import pytest

from jp.config.assignment import read_partial
from jp.config.explain import as_toml, origins_at, value_at, value_text
from jp.config.layers import Layer, Origin, Resolved, resolve
from jp.errors import ConfigurationError


def resolved(raw: dict[str, Any], where: str = "/u/config.toml") -> Resolved:
    return resolve([Layer(origin=Origin(kind="user", where=where), change=read_partial(raw))])


RAW: dict[str, Any] = {
    "assistant": {"instructions": [{"title": "a", "items": ["x"]}], "model": {"parameters": {"other": {"seed": 1}}}},
    "conversation": {"attachments": ["file:a"], "tools": {"*": {"run": "ask"}}},
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("assistant.request.max_retries", 5),
        ("assistant.model.id", None),
        ("conversation.attachments", ["file:a"]),
        ("conversation.attachments.0", "file:a"),
        ("assistant.instructions.0.items", ["x"]),
        ("assistant.model.parameters.other.seed", 1),
        ("conversation.tools.*", {"run": "ask"}),
        ("conversation.tools.'*'.run", "ask"),
        ("user", {"name": None}),
    ],
)
def test_a_value_is_found_by_its_key(key: str, value: object) -> None:
    assert value_at(resolved(RAW).config, key) == value


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("assistant.modle", "unknown key 'assistant.modle'; the nearest known key is 'assistant.model'"),
        ("conversation.tools.other.run", "nothing is configured at 'conversation.tools.other'"),
        ("conversation.attachments.1", "nothing is configured at 'conversation.attachments.1'"),
        ("assistant.model.parameters.other.top.a", "nothing is configured at 'assistant.model.parameters.other.top'"),
        (
            "assistant.model.parameters.other.seed.a",
            "nothing is configured at 'assistant.model.parameters.other.seed.a'",
        ),
        ("", "'' is not a key"),
    ],
)
def test_a_key_without_a_value_is_an_error(key: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        value_at(resolved(RAW).config, key)

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("a b", "a b"), (5, "5"), (True, "true"), (["a"], '["a"]'), ({"a": None}, '{"a":null}')],
)
def test_a_value_is_printed_for_scripts(value: object, text: str) -> None:
    assert value_text(value) == text


FILE = "the user's file /u/config.toml"


@pytest.mark.parametrize(
    ("key", "origins"),
    [
        ("assistant.instructions", FILE),
        ("assistant.instructions.0", FILE),
        ("assistant.request.max_retries", "the default"),
        ("user", {}),
        ("conversation.tools.*", {"conversation.tools.*.run": FILE}),
        ("assistant", {"assistant.instructions": FILE, "assistant.model.parameters.other.seed": FILE}),
    ],
)
def test_a_table_has_the_origin_of_each_key_that_is_set_in_it(key: str, origins: object) -> None:
    assert origins_at(resolved(RAW), key) == origins


def test_the_configuration_is_shown_as_a_file() -> None:
    text = as_toml(resolved(RAW))

    data = tomllib.loads(text)
    assert data["assistant"]["instructions"] == [{"title": "a", "position": 0, "items": ["x"], "examples": []}]
    assert data["conversation"]["tools"] == {"*": {"run": "ask"}}
    assert "id" not in data["assistant"].get("model", {})
    assert data["assistant"]["request"]["max_retries"] == 5
    assert "#" not in text
    assert text.endswith("\n")
    assert not text.startswith("\n")


def test_every_value_can_be_shown_with_its_origin() -> None:
    lines = as_toml(resolved(RAW), with_origins=True).splitlines()

    assert 'attachments = ["file:a"]  # the user\'s file /u/config.toml' in lines
    assert "max_retries = 5  # the default" in lines
    assert "[[assistant.instructions]]  # the user's file /u/config.toml" in lines
    assert "seed = 1  # the user's file /u/config.toml" in lines


def test_an_origin_cannot_break_out_of_its_comment() -> None:
    text = as_toml(resolved({"user": {"name": "a"}}, where="x\nuser.name = 'b'\x1b[2J"), with_origins=True)

    assert tomllib.loads(text)["user"] == {"name": "a"}
    assert "\x1b" not in text


def test_control_sequences_in_a_value_are_escaped() -> None:
    assert "\x1b" not in as_toml(resolved({"user": {"name": "\x1b[2J"}, "assistant": {"system_prompt": "a\n\x1b[2J"}}))

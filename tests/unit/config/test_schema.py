from __future__ import annotations

import datetime as dt
import tomllib
from typing import Any

import msgspec
import pytest

from jp.config.assignment import node_at, read_partial
from jp.config.model import Section, UniqueTexts
from jp.config.schema import (
    APP,
    FILE,
    Free,
    Items,
    MergedText,
    Names,
    Node,
    Scalar,
    Table,
    example,
    expected,
    got,
    known_keys,
    nearest_key,
    parse_key,
)


class Sample(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table with what the configuration does not have yet."""

    words: UniqueTexts = ("a",)
    anything: Any = None
    number: float


def test_every_key_that_holds_a_value_is_known() -> None:
    keys = {".".join(path) for path, _ in known_keys(APP)}

    assert {
        "assistant.model.id",
        "assistant.model.parameters.other",
        "conversation.tools.*.run",
        "conversation.attachments",
        "providers.llm.aliases",
        "user.name",
    } <= keys
    assert keys.isdisjoint({"assistant", "conversation.tools", "inherit", "extends"})


def test_a_file_may_also_say_how_it_stands_to_others() -> None:
    assert {path for path, _ in known_keys(FILE)} - {path for path, _ in known_keys(APP)} == {
        ("inherit",),
        ("extends",),
    }


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("assistant", Table),
        ("assistant.system_prompt", MergedText),
        ("assistant.instructions", Items),
        ("assistant.instructions.0", Table),
        ("assistant.tool_choice", Scalar),
        ("assistant.model.parameters.other", Names),
        ("assistant.model.parameters.other.seed", Free),
        ("conversation.tools", Names),
        ("conversation.tools.fs_read", Table),
    ],
)
def test_a_key_accepts_what_its_annotation_says(key: str, kind: type[Node]) -> None:
    assert isinstance(node_at(parse_key(key)), kind)


def test_a_field_carries_its_default_and_whether_it_has_one() -> None:
    fields = Table(Sample).fields

    assert fields["words"].node == Items(element=Scalar(str), default=("a",), dedup=True)
    assert fields["anything"].node == Free()
    assert fields["number"].required
    assert fields["number"].default is msgspec.UNSET
    assert not fields["words"].required


def test_null_as_a_default_is_the_only_one_that_a_key_without_a_value_has() -> None:
    accepting_null = [
        field for _, field in known_keys(FILE) if isinstance(field.node, Scalar) and _accepts_null(field.node)
    ]

    assert accepting_null
    assert all(field.default is None for field in accepting_null)


def _accepts_null(node: Scalar) -> bool:
    try:
        msgspec.convert(None, node.annotation)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("assistant.modle", "assistant.model"),
        ("assistant.model.parameters.max_token", "assistant.model.parameters.max_tokens"),
        ("max_tokens", "assistant.model.parameters.max_tokens"),
        ("styles", "style"),
        ("conversation.tools.fs_read.ruin", "conversation.tools.fs_read.run"),
        ("assistant.zzz", "assistant.model"),
        ("providers.llm.anthropc.beta_headers", "providers.llm.anthropic.beta_headers"),
        ("providers.llm.openi.reasoning_summary", "providers.llm.openai.reasoning_summary"),
    ],
)
def test_an_unknown_key_has_a_nearest_one(key: str, nearest: str) -> None:
    path = parse_key(key)
    table = node_at(path[:-1])

    assert isinstance(table, Table)
    assert nearest_key(path, APP, table.fields) == nearest


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("conversation.start_local", "true or false"),
        ("assistant.request.max_retries", "a whole number of at least 0"),
        ("assistant.model.parameters.max_tokens", "a whole number of at least 1"),
        ("assistant.model.parameters.temperature", "a number"),
        ("assistant.request.connect_timeout_secs", "a number of at least 0"),
        ("assistant.request.cache", "one of 'off', 'short', 'long'"),
        (
            "assistant.model.parameters.reasoning",
            (
                "one of 'off', 'auto', 'none', 'xlow', 'low', 'medium', 'high', 'xhigh', 'max' "
                "or a whole number of at least 1"
            ),
        ),
        ("assistant.system_prompt", "a text"),
        ("user.name", "a text"),
        ("conversation.attachments", "a list"),
        ("conversation.tools", "a table"),
        ("assistant", "a table"),
        ("assistant.model.parameters.other.seed", "a value that JSON can hold"),
        ("providers.llm.anthropic.base_url", "an address with http:// or https://"),
        ("extends.0", "a text or a table"),
    ],
)
def test_what_a_key_accepts_is_said_in_words(key: str, words: str) -> None:
    assert expected(node_at(parse_key(key), FILE)) == words


@pytest.mark.parametrize(
    ("key", "toml"),
    [
        ("conversation.start_local", "true"),
        ("assistant.request.max_retries", "1"),
        ("assistant.model.parameters.temperature", "1.0"),
        ("assistant.model.parameters.reasoning", '"off"'),
        ("assistant.system_prompt", '"…"'),
        ("conversation.attachments", '["…"]'),
        ("conversation.tools", "{ NAME = { enable = true } }"),
        ("assistant.model.parameters.other.seed", '"…"'),
        ("providers.llm.anthropic.base_url", '"https://api.example.com"'),
    ],
)
def test_an_example_of_what_a_key_accepts_is_toml(key: str, toml: str) -> None:
    assert example(node_at(parse_key(key), FILE)) == toml


def test_the_example_of_every_key_is_accepted() -> None:
    for path, field in known_keys(FILE):
        names = ["NAME" if name == "*" else name for name in path]
        read_partial(tomllib.loads(f"{'.'.join(names)} = {example(field.node)}"), FILE)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "'x'"),
        ("x" * 100, f"'{'x' * 60}…'"),
        (True, "true"),
        (None, "null"),
        (3, "the number 3"),
        (0.5, "the number 0.5"),
        ([1], "a list"),
        ((1,), "a list"),
        ({}, "a table"),
        (dt.date(2020, 1, 1), "a date"),
    ],
)
def test_what_came_instead_is_said_in_words(value: object, words: str) -> None:
    assert got(value) == words

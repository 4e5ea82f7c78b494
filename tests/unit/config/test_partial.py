from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from jp.config.assignment import read_partial
from jp.config.layers import applied
from jp.config.schema import APP, FILE, InvalidValueError


def read(raw: dict[str, Any], below: object = None) -> object:
    """What `raw` comes to, over `below`."""
    return applied(read_partial(raw), below or {})


def test_plain_values_are_taken_as_they_are() -> None:
    raw = {
        "assistant": {"model": {"id": "a/b", "parameters": {"temperature": 1, "other": {"seed": 1, "list": [None]}}}},
        "conversation": {"attachments": ["file:a"], "tools": {"*": {"run": "ask"}}},
    }

    assert read(raw) == raw


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (["b"], ["a", "b"]),
        (("b",), ["a", "b"]),
        ({"value": ["b"]}, ["a", "b"]),
        ({"value": ["b"], "strategy": "append", "dedup": "inherit"}, ["a", "b"]),
        ({"value": ["b"], "strategy": "prepend"}, ["b", "a"]),
        ({"value": ["b"], "strategy": "replace"}, ["b"]),
        ({"value": ["a"], "dedup": False}, ["a", "a"]),
        ({"value": ["a"], "dedup": True}, ["a"]),
        ({"value": ["b"], "discard_when_merged": True}, ["a", "b"]),
        ({"0": "c"}, ["c"]),
        ({"0": None}, []),
        (None, []),
    ],
)
def test_a_list_has_a_long_form(form: object, expected: list[str]) -> None:
    assert read({"conversation": {"attachments": form}}, {"conversation": {"attachments": ["a"]}}) == {
        "conversation": {"attachments": expected}
    }


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("b", "b"),
        ({"value": "b"}, "b"),
        ({"value": "b", "strategy": "append"}, "a\n\nb"),
        ({"value": "b", "strategy": "prepend", "separator": "space"}, "b a"),
        ({"value": "b", "strategy": "append", "discard_when_merged": True}, "a\n\nb"),
    ],
)
def test_a_merged_text_has_a_long_form(form: object, expected: str) -> None:
    raw = {"assistant": {"system_prompt": form}}

    assert read(raw, {"assistant": {"system_prompt": "a"}}) == {"assistant": {"system_prompt": expected}}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"b": "2"}, {"a": "1", "b": "2"}),
        ({"value": {"b": "2"}, "strategy": "merge"}, {"a": "1", "b": "2"}),
        ({"value": {"b": "2"}, "strategy": "replace"}, {"b": "2"}),
        ({"value": "2", "strategy": "replace"}, {"a": "1", "value": "2", "strategy": "replace"}),
        ({"a": None}, {}),
        (None, {}),
    ],
)
def test_a_table_with_free_names_has_a_long_form(form: object, expected: dict[str, str]) -> None:
    raw = {"providers": {"llm": {"aliases": form}}}

    assert read(raw, {"providers": {"llm": {"aliases": {"a": "1"}}}}) == {"providers": {"llm": {"aliases": expected}}}


def test_a_long_form_is_only_taken_where_it_is_one() -> None:
    forms: list[dict[str, Any]] = [{"value": {}, "strategy": {}}, {"value": {"run": "ask"}, "strategy": {"run": "ask"}}]
    for tools in forms:
        assert read({"conversation": {"tools": tools}}) == {"conversation": {"tools": tools}}


def test_objects_of_free_parameters_are_merged_and_lists_replaced() -> None:
    below = {"assistant": {"model": {"parameters": {"other": {"a": {"x": 1}, "l": [1], "gone": 1}}}}}
    raw = {"assistant": {"model": {"parameters": {"other": {"a": {"y": 2}, "l": [2], "gone": None}}}}}

    assert read(raw, below) == {"assistant": {"model": {"parameters": {"other": {"a": {"x": 1, "y": 2}, "l": [2]}}}}}


def test_null_for_a_table_forgets_all_below_it() -> None:
    assert read({"assistant": None}, {"assistant": {"tool_choice": "none"}}) == {"assistant": {}}


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"assistant": 5}, "assistant expects a table, got the number 5"),
    ({"assistant": {"modle": 1}}, "unknown key 'assistant.modle'; the nearest known key is 'assistant.model'"),
    ({"user": {"name": dt.date(2020, 1, 1)}}, "user.name expects a text, got a date"),
    (
        {"assistant": {"request": {"max_retries": -1}}},
        "assistant.request.max_retries expects a whole number of at least 0, got the number -1",
    ),
    (
        {"assistant": {"request": {"max_retries": True}}},
        "assistant.request.max_retries expects a whole number of at least 0, got true",
    ),
    (
        {"assistant": {"request": {"max_retries": 2**63}}},
        f"assistant.request.max_retries expects a whole number of at least 0, got the number {2**63}",
    ),
    (
        {"assistant": {"model": {"parameters": {"temperature": float("nan")}}}},
        "assistant.model.parameters.temperature expects a number, got the number nan",
    ),
    (
        {"assistant": {"model": {"parameters": {"other": {"a": [float("inf")]}}}}},
        "assistant.model.parameters.other.a expects a value that JSON can hold, got a list",
    ),
    (
        {"assistant": {"model": {"parameters": {"other": {"a": [{"b": dt.date(2020, 1, 1)}]}}}}},
        "assistant.model.parameters.other.a expects a value that JSON can hold, got a list",
    ),
    ({"assistant": {"model": {"parameters": {"other": 1}}}}, "other expects a table, got the number 1"),
    ({"assistant": {"system_prompt": ["a"]}}, "assistant.system_prompt expects a text, got a list"),
    ({"assistant": {"system_prompt": {"value": 1}}}, "assistant.system_prompt expects a text, got a table"),
    (
        {"assistant": {"system_prompt": {"value": "a", "separator": "comma"}}},
        "system_prompt.separator expects one of 'none', 'space', 'line', 'paragraph', got 'comma'",
    ),
    (
        {"assistant": {"system_prompt": {"value": "a", "dedup": True}}},
        "'assistant.system_prompt.dedup' is not known here",
    ),
    ({"conversation": {"attachments": "file:a"}}, "conversation.attachments expects a list, got 'file:a'"),
    ({"conversation": {"attachments": {}}}, "conversation.attachments expects a list, got a table"),
    ({"conversation": {"attachments": {"x": "a"}}}, "conversation.attachments expects a list, got a table"),
    ({"conversation": {"attachments": {"value": "a"}}}, "conversation.attachments expects a list, got a table"),
    ({"conversation": {"attachments": [1]}}, "conversation.attachments.0 expects a text, got the number 1"),
    ({"conversation": {"attachments": [None]}}, "conversation.attachments.0 expects a text, got null"),
    ({"conversation": {"attachments": {"1": 2}}}, "conversation.attachments.1 expects a text, got the number 2"),
    (
        {"conversation": {"attachments": {"value": [], "strategy": "add"}}},
        "attachments.strategy expects one of 'append', 'prepend', 'replace', got 'add'",
    ),
    (
        {"conversation": {"attachments": {"value": [], "discard_when_merged": 1}}},
        "attachments.discard_when_merged expects one of true, false, got the number 1",
    ),
    (
        {"assistant": {"system_prompt": {"value": "a", "discard_when_merged": "yes"}}},
        "system_prompt.discard_when_merged expects one of true, false, got 'yes'",
    ),
    (
        {"conversation": {"attachments": {"value": [], "dedup": 1}}},
        "attachments.dedup expects one of true, false, 'inherit', got the number 1",
    ),
    (
        {"assistant": {"system_prompt_sections": [{"tag": "a"}]}},
        "assistant.system_prompt_sections.0 lacks 'content'",
    ),
    (
        {"assistant": {"system_prompt_sections": [{"content": None}]}},
        "assistant.system_prompt_sections.0 lacks 'content'",
    ),
    ({"assistant": {"instructions": [{"item": []}]}}, "unknown key 'assistant.instructions.0.item'"),
    ({"extends": ["a"]}, "'extends' has a meaning only in a file"),
]


@pytest.mark.parametrize(("raw", "message"), INVALID)
def test_what_a_key_does_not_accept_is_refused(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_partial(raw)

    assert message in caught.value.message


def test_an_unknown_key_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidValueError) as inside:
        read_partial({"user": {"nmae": 1}})
    with pytest.raises(InvalidValueError) as top:
        read_partial({"usr": 1})

    assert inside.value.hint == "known in 'user': name"
    assert top.value.hint.startswith("known at the top: config_load_paths, assistant, ")


def test_an_error_can_be_placed() -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_partial({"user": {"name": 1}})

    placed = caught.value.within("'x.toml', line 2")

    assert placed.message == "'x.toml', line 2: user.name expects a text, got the number 1"
    assert placed.path == ("user", "name")


def test_a_table_that_is_nested_without_end_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(2000):
        nested = {"a": nested}

    with pytest.raises(InvalidValueError, match="is nested too deeply"):
        read_partial({"assistant": {"model": {"parameters": {"other": nested}}}})


@pytest.mark.parametrize("inner", [[], {}])
def test_a_list_that_is_nested_without_end_is_refused(inner: object) -> None:
    nested = inner
    for _ in range(900):
        nested = [nested]

    with pytest.raises(InvalidValueError, match="a value that JSON can hold"):
        read_partial({"assistant": {"model": {"parameters": {"other": {"a": nested}}}}})


def test_whoever_does_not_want_errors_gets_what_is_valid_and_a_list_of_the_rest() -> None:
    refused: list[InvalidValueError] = []
    raw: dict[str, Any] = {
        "nonsense": 1,
        "assistant": {
            "model": 5,
            "tool_choice": 1,
            "system_prompt": {"value": 1},
            "system_prompt_sections": {"value": [{"tag": "a"}, {"content": "b"}], "strategy": "shuffle"},
            "instructions": {"value": [{"title": "a", "exmples": []}, 5], "discard_when_merged": 1},
        },
        "conversation": {
            "attachments": ["a", {"type": "cmd"}, "b"],
            "tools": {"x": {"run": "never", "enable": True}},
        },
        "providers": {"llm": {"aliases": {"a": 1, "b": "c"}}},
        "config_load_paths": {"0": 1, "1": "x"},
        "style": {"code": {"theme": {}}},
    }

    change = read_partial(raw, refuse=refused.append)

    assert applied(change, {"config_load_paths": ["a", "b"]}) == {
        "assistant": {
            "model": {},
            "instructions": [{"title": "a"}],
            "system_prompt_sections": [{"content": "b"}],
        },
        "conversation": {"attachments": ["a", "b"], "tools": {"x": {"enable": True}}},
        "providers": {"llm": {"aliases": {"b": "c"}}},
        "config_load_paths": ["a", "x"],
        "style": {"code": {}},
    }
    assert {".".join(error.path) for error in refused} == {
        "nonsense",
        "assistant.model",
        "assistant.tool_choice",
        "assistant.system_prompt",
        "assistant.system_prompt_sections.0",
        "assistant.system_prompt_sections.strategy",
        "assistant.instructions.0.exmples",
        "assistant.instructions.1",
        "assistant.instructions.discard_when_merged",
        "conversation.attachments.1",
        "conversation.tools.x.run",
        "providers.llm.aliases.a",
        "config_load_paths.0",
        "style.code.theme",
    }


def test_an_invalid_list_is_omitted_where_errors_are_not_wanted() -> None:
    refused: list[InvalidValueError] = []

    change = read_partial({"config_load_paths": 5}, refuse=refused.append)

    assert applied(change) == {}
    assert len(refused) == 1


def test_how_a_file_stands_to_others_is_read_from_files_alone() -> None:
    raw = {"inherit": False, "extends": ["a.toml", {"path": "b.toml", "strategy": "after"}]}

    assert applied(read_partial(raw, FILE)) == raw
    with pytest.raises(InvalidValueError, match=r"extends\.0 expects a text or a table, got a table"):
        read_partial({"extends": [{"paht": "b"}]}, FILE)
    with pytest.raises(InvalidValueError):
        read_partial(raw, APP)


def test_a_list_of_which_all_changed_elements_are_refused_is_not_changed() -> None:
    refused: list[InvalidValueError] = []

    change = read_partial({"conversation": {"attachments": {"0": {"no": "text"}}}}, refuse=refused.append)

    assert applied(change) == {"conversation": {}}
    assert [error.path for error in refused] == [("conversation", "attachments", "0")]

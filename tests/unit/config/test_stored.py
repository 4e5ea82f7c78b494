from __future__ import annotations

from typing import Any

import pytest

from jp.config.assignment import read_partial
from jp.config.layers import Layer, Origin, Resolved, resolve
from jp.config.sources import conversation_layers, delta, frozen


def resolved(*raws: dict[str, Any]) -> Resolved:
    return resolve([Layer(origin=Origin(kind="user"), change=read_partial(raw)) for raw in raws])


def test_a_base_holds_every_key_that_decides_requests_and_no_other() -> None:
    base = frozen(
        resolved({
            "assistant": {"model": {"id": "fast", "parameters": {"other": {"seed": 1}}}},
            "conversation": {"attachments": ["a"], "tools": {"x": {"run": "ask"}}},
            "providers": {"llm": {"aliases": {"fast": "a/b"}, "anthropic": {"base_url": "https://proxy.example"}}},
            "user": {"name": "Jean"},
        })
    )

    assert set(base) == {"assistant", "conversation"}
    assert base["assistant"]["model"] == {
        "id": "a/b",
        "parameters": {
            "max_tokens": None,
            "temperature": None,
            "top_p": None,
            "top_k": None,
            "stop_words": {"value": [], "strategy": "replace", "dedup": False},
            "reasoning": None,
            "other": {"value": {"seed": 1}, "strategy": "replace"},
        },
    }
    assert base["conversation"]["attachments"] == {"value": ["a"], "strategy": "replace", "dedup": True}
    assert base["conversation"]["tools"] == {"value": {"x": {"run": "ask"}}, "strategy": "replace"}


def test_what_a_conversation_was_created_with_wins_over_later_files() -> None:
    base = frozen(resolved({"conversation": {"attachments": ["a"]}}))
    later = {
        "assistant": {"tool_choice": "none", "model": {"parameters": {"temperature": 1}}},
        "conversation": {"attachments": ["b"], "tools": {"new": {"run": "ask"}}},
        "style": {"code": {"theme": "monokai"}},
    }

    config = resolve([*resolved(later).layers, *conversation_layers(base).layers]).config

    assert config.assistant.tool_choice == "auto"
    assert config.assistant.model.parameters.temperature is None
    assert config.conversation.attachments == ("a",)
    assert config.conversation.tools == {}
    assert config.style.code.theme == "monokai"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, {}),
        ({}, {"user": {"name": "a"}, "style": {"code": {"theme": "x"}}}, {}),
        ({}, {"assistant": {"model": {"id": "a/b"}}}, {"assistant": {"model": {"id": "a/b"}}}),
        (
            {"assistant": {"model": {"id": "a/b"}}},
            {"assistant": {"model": {"id": None}}},
            {"assistant": {"model": {"id": None}}},
        ),
        ({"assistant": {"tool_choice": "none"}}, {"assistant": {"tool_choice": "none"}}, {}),
        (
            {"conversation": {"attachments": ["a"]}},
            {"conversation": {"attachments": ["b", "a"]}},
            {"conversation": {"attachments": ["b"]}},
        ),
        (
            {"conversation": {"attachments": ["a", "b"]}},
            {"conversation": {"attachments": {"value": ["a"], "strategy": "replace"}}},
            {"conversation": {"attachments": {"value": ["a"], "strategy": "replace", "dedup": True}}},
        ),
        (
            {"conversation": {"attachments": ["a"]}},
            {"conversation": {"attachments": {"value": ["a"], "dedup": False}}},
            {"conversation": {"attachments": {"value": ["a", "a"], "strategy": "replace", "dedup": False}}},
        ),
        (
            {"conversation": {"tools": {"a": {"run": "ask"}, "b": {"run": "ask"}}}},
            {"conversation": {"tools": {"a": {"run": "skip"}, "b": None, "c": {"enable": True}}}},
            {"conversation": {"tools": {"b": None, "a": {"run": "skip"}, "c": {"enable": True}}}},
        ),
        (
            {},
            {"conversation": {"tools": {"value": {"run": "ask"}, "strategy": {"run": "ask"}}}},
            {"conversation": {"tools": {"value": {"run": "ask"}, "strategy": {"run": "ask"}}}},
        ),
    ],
)
def test_a_delta_says_only_what_changed(old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]) -> None:
    assert delta(resolved(old), resolved(old, new)) == expected


OTHER: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"seed": 1}, {"seed": True}, {"seed": True}),
    ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": None}}, {"a": {"y": None}}),
    ({"a": [1]}, {"a": [2]}, {"a": [2]}),
    ({"a": {"x": 1}}, {"a": 5}, {"a": 5}),
    ({"a": 5}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    (
        {},
        {"a": {"value": {"value": {"x": 1}, "strategy": "merge"}, "strategy": "merge"}},
        {"a": {"value": {"value": {"x": 1}, "strategy": "merge"}, "strategy": "replace"}},
    ),
    (
        {"strategy": "merge"},
        {"value": {"x": 1}},
        {"value": {"x": 1}},
    ),
    (
        {},
        {"value": {"value": {"x": 1}, "strategy": "merge"}, "strategy": "merge"},
        {"value": {"x": 1}, "strategy": "merge"},
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), OTHER)
def test_a_delta_of_free_parameters_reads_back(
    old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]
) -> None:
    def with_other(other: dict[str, Any]) -> dict[str, Any]:
        return {"assistant": {"model": {"parameters": {"other": other}}}}

    before, after = resolved(with_other(old)), resolved(with_other(old), with_other(new))

    difference = delta(before, after)

    if "value" not in expected:
        assert difference == with_other(expected)
    layers = conversation_layers(frozen(before), [("1", difference)]).layers
    assert resolve(layers).config == after.config


def test_a_parameter_that_looks_like_a_long_form_is_kept_as_it_is() -> None:
    looks = {"value": {"x": 1}, "strategy": "merge"}
    raw = {"a": {"value": looks, "strategy": "replace"}}
    real = resolved({"assistant": {"model": {"parameters": {"other": raw}}}})
    assert real.config.assistant.model.parameters.other == {"a": looks}

    base = frozen(real)

    assert resolve(conversation_layers(base).layers).config == real.config


def test_what_an_original_would_discard_is_discarded_by_the_next_delta() -> None:
    def parts(*names: str, **form: Any) -> dict[str, Any]:
        return {"conversation": {"attachments": {"value": list(names), **form} if form else list(names)}}

    base = parts("a", strategy="replace", discard_when_merged=True) | {
        "assistant": {"system_prompt": {"value": "x", "strategy": "replace", "discard_when_merged": True}}
    }
    change = {"assistant": {"system_prompt": {"value": "y", "strategy": "append"}}}
    stored = conversation_layers(base, [("e1", parts("b") | change)])
    before, after = (resolve(layers) for layers in (stored.layers[:1], stored.layers))

    assert stored.ignored == ()
    assert (before.config.conversation.attachments, before.config.assistant.system_prompt) == (("a",), "x")
    assert (after.config.conversation.attachments, after.config.assistant.system_prompt) == (("b",), "y")
    assert frozen(resolve(conversation_layers(frozen(before)).layers)) == frozen(before)
    assert delta(before, before) == {}
    assert delta(resolved(base), resolved(base, parts("a", "b"))) == {
        "conversation": {"attachments": {"value": ["a", "b"], "strategy": "replace", "dedup": True}}
    }


def test_deltas_hold_in_their_order_and_name_their_entry() -> None:
    base = frozen(resolved())
    deltas = [
        ("e1", {"assistant": {"tool_choice": "none"}}),
        ("e2", {"assistant": {"tool_choice": "required"}}),
    ]

    found = resolve(conversation_layers(base, deltas, foreign=True).layers)

    assert found.config.assistant.tool_choice == "required"
    assert found.origin(("assistant", "tool_choice")).text == "the conversation's configuration delta e2"
    assert found.origin(("assistant", "model", "id")).text == "the default"
    assert all(layer.foreign for layer in found.layers)
    assert not any(layer.foreign for layer in conversation_layers(base, deltas).layers)


def test_a_log_outlives_the_keys_of_one_version() -> None:
    stored = conversation_layers(
        {"assistant": {"gone": 1, "tool_choice": "none"}, "providers": {"llm": {"anthropic": {"base_url": "x"}}}},
        [("e1", {"conversation": {"tools": {"a": {"run": "never"}}}, "user": 5})],
    )

    assert resolve(stored.layers).config.assistant.tool_choice == "none"
    assert [error.path for error in stored.ignored] == [
        ("assistant", "gone"),
        ("conversation", "tools", "a", "run"),
    ]

from __future__ import annotations

from typing import Any

import pytest

from jp.cli.terminal.wording import worded
from jp.config.assignment import FragmentName, change_of, parse_cfg, read_partial
from jp.config.layers import (
    DEFAULT,
    AddItems,
    Contribution,
    Layer,
    LayerKind,
    ListChange,
    MapChange,
    Origin,
    Put,
    Unset,
    as_data,
    contributions,
    resolve,
)
from jp.config.model import AppConfig
from jp.config.schema import parse_key
from jp.errors import ConfigurationError

USER = Origin(kind="user", where="/u/config.toml")
WORKSPACE = Origin(kind="workspace", where="/w/.jp/config.toml")
OPTION = Origin(kind="cfg", where="…")


def layer(origin: Origin, raw: dict[str, Any]) -> Layer:
    return Layer(origin=origin, change=read_partial(raw))


def assigned(text: str, kind: LayerKind = "cfg") -> Layer:
    value = parse_cfg(text)
    assert not isinstance(value, FragmentName)
    return Layer(origin=Origin(kind=kind, where=text), change=change_of(value))


def test_without_layers_the_defaults_hold() -> None:
    resolved = resolve([])

    assert resolved.config == AppConfig()
    assert resolved.origins == {}
    assert resolved.origin(("user", "name")) == DEFAULT


def test_the_more_specific_layer_wins_and_is_the_origin() -> None:
    resolved = resolve([
        layer(USER, {"user": {"name": "a"}, "assistant": {"request": {"max_retries": 1}}}),
        layer(WORKSPACE, {"assistant": {"request": {"max_retries": 2}}}),
    ])

    assert resolved.config.assistant.request.max_retries == 2
    assert resolved.origins == {"user.name": USER, "assistant.request.max_retries": WORKSPACE}


def test_the_default_prompt_vanishes_once_a_layer_adds_to_it() -> None:
    resolved = resolve([assigned("assistant.system_prompt+=Be brief."), assigned("assistant.system_prompt+=Be kind.")])

    assert resolved.config.assistant.system_prompt == "Be brief.\n\nBe kind."
    assert resolve([]).config.assistant.system_prompt == "You are a helpful assistant."


def test_the_last_layer_that_adds_to_a_list_is_its_origin() -> None:
    resolved = resolve([
        layer(USER, {"conversation": {"attachments": ["a"]}}),
        layer(WORKSPACE, {"conversation": {"attachments": ["b", "a"]}}),
    ])

    assert resolved.config.conversation.attachments == ("a", "b")
    assert resolved.origin(parse_key("conversation.attachments.0")) == WORKSPACE


def test_what_is_unset_or_replaced_loses_its_origin() -> None:
    resolved = resolve([
        layer(USER, {"user": {"name": "a"}, "conversation": {"tools": {"a": {"run": "ask"}}, "start_local": True}}),
        assigned("user.name:=null"),
        assigned('conversation.tools:={"b": {"run": "skip"}}'),
    ])

    assert resolved.config.user.name is None
    assert set(resolved.config.conversation.tools) == {"b"}
    assert set(resolved.origins) == {"conversation.tools.b.run", "conversation.start_local"}


@pytest.mark.parametrize(
    ("layers", "origins"),
    [
        (["a=5", 'a:={"b": false}'], {"a.b": 1}),
        (["a=5", 'a:+={"b": false}'], {"a.b": 1}),
        (["a=5", "a:+={}"], {}),
        (["a=5", 'a:+={"b": null}'], {}),
        (['a:={"b": 1, "c": 2}', "a.b=3"], {"a.b": 1, "a.c": 0}),
        (['a:={"b": 1, "c": 2}', "a=5"], {"a": 1}),
        (['a:={"b": 1}', "a:+={}"], {"a.b": 0}),
    ],
)
def test_a_free_value_that_becomes_a_table_or_was_one_has_no_origin_of_before(
    layers: list[str], origins: dict[str, int]
) -> None:
    above = "assistant.model.parameters.other"
    made = [assigned(f"{above}.{text}") for text in layers]

    assert resolve(made).origins == {f"{above}.{key}": made[index].origin for key, index in origins.items()}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("user", "the user's file x"),
        ("environment", "the environment variable x"),
        ("conversation", "the conversation's x"),
        ("cfg", "--cfg x"),
        ("flag", "the option x"),
    ],
)
def test_an_origin_can_be_said(kind: LayerKind, text: str) -> None:
    assert worded(Origin(kind=kind, where="x").text) == text
    assert DEFAULT.text == "the default"


def test_an_element_that_does_not_exist_is_reported_with_the_layer_that_asks_for_it() -> None:
    layers = [
        layer(USER, {"conversation": {"attachments": ["a"]}}),
        assigned("conversation.attachments.1=b"),
        assigned("user.name=x"),
    ]

    with pytest.raises(ConfigurationError) as caught:
        resolve(layers)

    assert worded(caught.value.message) == (
        "--cfg conversation.attachments.1=b: conversation.attachments.1 does not exist: the list has 1 elements"
    )
    assert "`+=`" in caught.value.hint


def test_an_element_cannot_be_left_without_what_it_needs() -> None:
    layers = [
        layer(USER, {"assistant": {"system_prompt_sections": [{"content": "a"}]}}),
        assigned("assistant.system_prompt_sections.0.content:=null"),
    ]

    with pytest.raises(ConfigurationError) as caught:
        resolve(layers)

    assert worded(caught.value.message).startswith("--cfg assistant.system_prompt_sections.0.content:=null: ")
    assert "missing required field `content`" in caught.value.message


def test_every_layers_part_in_a_value_can_be_shown() -> None:
    layers = [
        layer(USER, {"conversation": {"tools": {"a": {"run": "ask"}}, "attachments": ["x"]}}),
        layer(WORKSPACE, {"user": {"name": "a"}}),
        assigned("conversation.tools:={}"),
        assigned("conversation.tools.a.run=skip"),
        assigned("conversation.tools.a:=null"),
    ]

    assert [said.change for said in contributions(layers, ("conversation", "tools", "a", "run"))] == [
        Put("ask"),
        Unset(),
        Put("skip"),
        Unset(),
    ]
    attachments = ListChange(steps=(AddItems(("x",)),), dedup_default=True)
    assert contributions(layers, ("conversation", "attachments")) == [Contribution(layers[0], attachments)]
    assert contributions(layers, ("user",)) == [Contribution(layers[1], MapChange({"name": Put("a")}))]
    assert [said.fresh for said in contributions(layers, ("conversation", "tools", "b"))] == [True]


def test_the_configuration_as_data_is_what_json_holds() -> None:
    data = as_data(AppConfig())

    assert data["assistant"]["instructions"] == []
    assert data["user"] == {"name": None}


def test_a_server_of_ones_own_stands_beside_the_known_providers() -> None:
    resolved = resolve([
        layer(USER, {"providers": {"llm": {"groq": {"base_url": "https://api.groq.com/openai/v1"}}}}),
        assigned("providers.llm.groq.tool_choice=false"),
    ])

    assert resolved.config.providers.llm.servers["groq"].tool_choice is False
    assert as_data(resolved.config)["providers"]["llm"]["groq"]["base_url"] == "https://api.groq.com/openai/v1"
    assert "servers" not in as_data(resolved.config)["providers"]["llm"]
    assert resolved.origins["providers.llm.groq.base_url"] == USER


def test_a_server_of_ones_own_can_be_taken_out_again() -> None:
    declared = layer(USER, {"providers": {"llm": {"mine": {"base_url": "http://127.0.0.1:1/v1"}}}})

    assert resolve([declared, assigned("providers.llm.mine:=null")]).config.providers.llm.servers == {}


def test_a_setting_that_no_server_has_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown key 'providers.llm.mine.base_ulr'.*base_url"):
        assigned("providers.llm.mine.base_ulr=http://127.0.0.1/v1")

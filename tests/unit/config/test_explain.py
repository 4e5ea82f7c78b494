from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from jp.config.assignment import FragmentName, change_of, parse_cfg, read_partial
from jp.config.explain import Explanation, explain
from jp.config.files import parse
from jp.config.layers import Layer, Origin, resolve
from jp.config.schema import KeyPath
from jp.errors import ConfigurationError

Said = tuple[str, Any, str]


def file(text: str, *, kind: str = "workspace") -> Layer:
    origin = Origin(kind="user" if kind == "user" else "workspace", where="/f")
    return Layer(origin=origin, change=read_partial(parse(text, Path("/f"))), source=text, foreign=kind != "user")


def cfg(text: str) -> Layer:
    value = parse_cfg(text)
    assert not isinstance(value, FragmentName)
    return Layer(origin=Origin(kind="cfg", where=text), change=change_of(value))


def trusted(_: Layer, __: KeyPath) -> bool:
    return False


def explained(key: str, *layers: Layer) -> Explanation:
    _, (found,) = explain(resolve(layers), key, trusted)
    return found


def said(explanation: Explanation) -> list[Said]:
    return [
        (one.action, None if one.value is msgspec.UNSET else one.value, one.effect) for one in explanation.statements
    ]


def test_the_last_word_on_a_single_value_wins() -> None:
    layers = [file('[user]\nname = "a"', kind="user"), file('[user]\n\nname = "b"'), cfg("user.name=c")]

    found = explained("user.name", *layers)

    assert found.value == "c"
    assert said(found) == [
        ("default", None, "replaced"),
        ("set", "a", "replaced"),
        ("set", "b", "replaced"),
        ("set", "c", "in effect"),
    ]
    assert [str(one.place) for one in found.statements] == ["None", "line 2, column 1", "line 3, column 1", "None"]
    assert not found.is_default
    assert not found.waits_for_trust


def test_where_nobody_says_anything_the_default_holds() -> None:
    found = explained("assistant.request.max_retries", cfg("user.name=a"))

    assert said(found) == [("default", 5, "in effect")]
    assert found.is_default


def test_a_value_that_is_taken_out_leaves_the_default() -> None:
    found = explained("assistant.request.max_retries", cfg("assistant.request.max_retries=1"), cfg("assistant:=null"))

    assert (found.value, said(found)) == (
        5,
        [("default", 5, "in effect"), ("set", 1, "replaced"), ("unset", None, "in effect")],
    )


def test_texts_are_added_to_one_another() -> None:
    layers = [
        cfg("assistant.system_prompt=a"),
        cfg("assistant.system_prompt+=b"),
        cfg('assistant.system_prompt:={"value": "c", "strategy": "prepend"}'),
    ]

    found = explained("assistant.system_prompt", *layers)

    assert found.value == "c\n\na\n\nb"
    assert said(found)[1:] == [("set", "a", "in effect"), ("append", "b", "in effect"), ("prepend", "c", "in effect")]
    assert said(found)[0][2] == "replaced"
    assert said(explained("assistant.system_prompt", *layers, cfg("assistant.system_prompt=d")))[1:] == [
        ("set", "a", "replaced"),
        ("append", "b", "replaced"),
        ("prepend", "c", "replaced"),
        ("set", "d", "in effect"),
    ]


def test_every_element_of_a_list_knows_where_it_comes_from() -> None:
    layers = [
        cfg("conversation.attachments=x"),
        file('[conversation]\nattachments = { value = ["a", "b"], strategy = "replace" }'),
        cfg('conversation.attachments:+=["b", "c"]'),
        cfg('conversation.attachments:+=["a"]'),
        cfg('conversation.attachments:={"value": ["p"], "strategy": "prepend"}'),
        cfg("conversation.attachments.1=A"),
        cfg("conversation.attachments.2:=null"),
    ]

    found = explained("conversation.attachments", *layers)

    assert found.value == ["p", "A", "c"]
    assert [(element.value, element.sources) for element in found.elements] == [("p", (5,)), ("A", (2, 6)), ("c", (3,))]
    assert said(found) == [
        ("default", (), "replaced"),
        ("replace", ["x"], "replaced"),
        ("replace", ["a", "b"], "in effect"),
        ("append", ["b", "c"], "in part"),
        ("append", ["a"], "no effect"),
        ("prepend", ["p"], "in effect"),
        ("change", {"1": "A"}, "in effect"),
        ("change", {"2": None}, "in effect"),
    ]
    assert found.rule.endswith("; a repeated element counts once")


def test_whether_repeated_elements_count_is_the_last_word_on_it() -> None:
    twice = cfg('conversation.attachments:={"value": ["a", "a"], "dedup": false}')

    found = explained("conversation.attachments", twice, cfg("conversation.attachments+=a"))
    again = explained("conversation.attachments", twice, cfg('conversation:={"attachments": ["a", "a"]}'))

    assert [element.sources for element in found.elements] == [(1,), (1,), (2,)]
    assert "counts once" not in found.rule
    assert [element.sources for element in again.elements] == [(2,)]


def test_a_list_that_is_taken_out_with_all_around_it_has_its_default() -> None:
    found = explained("editor.envs", cfg("editor.envs=A"), cfg("editor:=null"))

    assert [(element.value, element.sources) for element in found.elements][:1] == [("JP_EDITOR", (0,))]
    assert [effect for _, _, effect in said(found)] == ["in effect", "replaced", "in effect"]


def test_an_element_is_explained_by_its_list() -> None:
    value, (found,) = explain(
        resolve([cfg('assistant.instructions:=[{"title": "a"}]')]), "assistant.instructions.0.title", trusted
    )

    assert (value, found.key) == ("a", "assistant.instructions")
    with pytest.raises(ConfigurationError, match=r"nothing is configured at 'assistant\.instructions\.1'"):
        explain(resolve([cfg("user.name=a")]), "assistant.instructions.1", trusted)


def test_a_table_is_explained_key_by_key() -> None:
    layers = [
        cfg("conversation.tools.x.run=ask"),
        cfg("conversation.tools.y.run=skip"),
        cfg("conversation.tools.x:=null"),
    ]

    value, found = explain(resolve(layers), "conversation.tools", trusted)

    assert value == {"y": {"run": "skip"}}
    assert [(each.key, said(each)[1:]) for each in found] == [
        ("conversation.tools.y.run", [("set", "skip", "in effect")]),
        ("conversation.tools.x.run", [("set", "ask", "replaced"), ("unset", None, "in effect")]),
    ]


def test_what_was_taken_out_is_explained_and_what_never_was_is_not() -> None:
    layers = [cfg("conversation.tools.x.run=ask"), cfg("conversation.tools:={}")]

    value, (found,) = explain(resolve(layers), "conversation.tools.x.run", trusted)

    assert value is msgspec.UNSET
    assert said(found)[1:] == [("set", "ask", "replaced"), ("unset", None, "in effect")]
    with pytest.raises(ConfigurationError, match=r"nothing is configured at 'conversation\.tools\.z'"):
        explain(resolve(layers[:1]), "conversation.tools.z.run", trusted)
    with pytest.raises(ConfigurationError, match=r"the nearest known key is 'user\.name'"):
        explain(resolve(layers), "user.nmae", trusted)


def test_what_is_discarded_when_merged_has_no_effect_once_another_layer_speaks() -> None:
    def long(value: str, strategy: str) -> str:
        return f':={{"value": {value}, "strategy": "{strategy}", "discard_when_merged": true}}'

    key = "conversation.attachments"
    layers = [cfg(f'{key}:+=["a"]'), cfg(key + long('["b"]', "replace")), cfg(f'{key}:+=["c"]')]
    prompts = [
        cfg("assistant.system_prompt=a"),
        cfg("assistant.system_prompt" + long('"b"', "replace")),
        cfg("assistant.system_prompt+=c"),
    ]
    alone, found, prompt = (
        explained(key, *layers[:2]),
        explained(key, *layers),
        explained("assistant.system_prompt", *prompts),
    )

    assert (alone.value, [effect for *_, effect in said(alone)]) == (["b"], ["replaced", "replaced", "in effect"])
    assert found.value == [element.value for element in found.elements] == ["a", "c"]
    assert said(found)[1:] == [
        ("append", ["a"], "in effect"),
        ("replace", ["b"], "no effect"),
        ("append", ["c"], "in effect"),
    ]
    assert (prompt.value, said(prompt)[1:]) == (
        "a\n\nc",
        [("set", "a", "in effect"), ("set", "b", "no effect"), ("append", "c", "in effect")],
    )
    assert ["discard_when_merged" in each.rule for each in (alone, found, prompt)] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("providers.mcp.x.optional=false", False),
        ("providers.mcp.x.variables:=[]", ()),
    ],
)
def test_a_table_that_lacks_its_defaults_holds_one_that_is_set(text: str, value: object) -> None:
    key = re.split("[:=]", text)[0]
    *above, name = key.split(".")

    whole, found = explain(resolve([cfg(text)]), ".".join(above), trusted)

    assert cast("dict[str, object]", whole).get(name, value) == value
    assert [(each.key, each.value, said(each)[-1][2]) for each in found] == [(key, value, "in effect")]
    assert explained(key, cfg(text)) == found[0]


def test_what_nobody_says_in_a_table_that_is_there_has_its_default() -> None:
    layers = [cfg("providers.mcp.x.command=a"), cfg("conversation.tools.x.run=ask")]

    value, (found,) = explain(resolve(layers), "providers.mcp.x.optional", trusted)

    assert (value, found.value, said(found)) == (False, False, [("default", False, "in effect")])
    assert explain(resolve(layers), "conversation.tools.x.style", trusted) == ({}, ())
    assert explain(resolve(layers), "conversation.tools.x.style.hidden", trusted)[0] is None


def test_free_values_replace_tables_and_the_other_way_round() -> None:
    key = "assistant.model.parameters.other.a"
    layers = [cfg(f'{key}:={{"b": 1}}'), cfg(f"{key}=5")]

    assert said(explained(key, *layers)) == [
        ("default", None, "replaced"),
        ("merge", {"b": 1}, "replaced"),
        ("set", 5, "in effect"),
    ]
    _, found = explain(resolve([*layers, cfg(f'{key}:+={{"c": 2}}')]), key, trusted)
    assert [(each.key, said(each)[-1]) for each in found] == [
        (f"{key}.c", ("set", 2, "in effect")),
        (f"{key}.b", ("unset", None, "in effect")),
    ]


def test_what_nobody_has_accepted_is_not_applied() -> None:
    layers = [file("user.name = 'a'"), cfg("conversation.attachments=x"), file("conversation.attachments = ['b']")]

    _, found = explain(
        resolve(layers), "conversation.attachments", lambda layer, path: layer.foreign and path[0] != "user"
    )
    _, others = explain(resolve(layers), "user.name", lambda layer, path: layer.foreign and path[0] != "user")
    _, replaced = explain(resolve([*layers, cfg("user.name=c")]), "user.name", lambda layer, _: layer.foreign)

    assert [(one.effect, one.trusted) for one in found[0].statements] == [
        ("replaced", True),
        ("in effect", True),
        ("ignored until trusted", False),
    ]
    assert (found[0].waits_for_trust, others[0].waits_for_trust, replaced[0].waits_for_trust) == (True, False, True)
    assert replaced[0].statements[1].effect == "ignored until trusted"


def test_every_server_that_anybody_declares_is_explained() -> None:
    layers = [file('[providers.llm.mine]\nbase_url = "http://127.0.0.1:1/v1"', kind="user")]

    _, found = explain(resolve(layers), "providers.llm", trusted)

    (address,) = [one for one in found if one.key == "providers.llm.mine.base_url"]
    assert said(address) == [("default", None, "replaced"), ("set", "http://127.0.0.1:1/v1", "in effect")]
    assert not [one.key for one in found if "servers" in one.key]

from __future__ import annotations

from typing import Any

import pytest

from jp.config.assignment import Assignment, CfgValue, FragmentName, JsonPatch, assign, change_of, parse_cfg
from jp.config.layers import applied
from jp.config.schema import FILE, InvalidValueError
from jp.errors import ConfigurationError

ATTACHED: dict[str, Any] = {"conversation": {"attachments": ["a"]}}


def outcome(text: str, below: dict[str, Any] | None = None) -> object:
    """What an assignment makes of `below`."""
    value = parse_cfg(text)
    assert not isinstance(value, FragmentName)
    return applied(change_of(value), below or {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@dev", FragmentName(name="dev", forced=True)),
        ("@a=b.toml", FragmentName(name="a=b.toml", forced=True)),
        ("skill/web", FragmentName(name="skill/web")),
        ('{"user": {"name": "a"}}', JsonPatch({"user": {"name": "a"}})),
        ("user.name=a=b", Assignment(path=("user", "name"), operator="=", value="a=b")),
        ("user.name=", Assignment(path=("user", "name"), operator="=", value="")),
        ('user.name:="a"', Assignment(path=("user", "name"), operator="=", value="a")),
        ("user.name:=null", Assignment(path=("user", "name"), operator="=", value=None)),
        ("assistant.system_prompt=a\nb", Assignment(path=("assistant", "system_prompt"), operator="=", value="a\nb")),
        ("conversation.attachments+=a", Assignment(path=("conversation", "attachments"), operator="+=", value=["a"])),
        (
            'conversation.attachments:+=["a"]',
            Assignment(path=("conversation", "attachments"), operator="+=", value=["a"]),
        ),
        (
            'providers.llm.aliases."a=b"=c/d',
            Assignment(path=("providers", "llm", "aliases", "a=b"), operator="=", value="c/d"),
        ),
    ],
)
def test_the_form_of_a_value_decides_what_it_is(text: str, value: CfgValue) -> None:
    assert parse_cfg(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("conversation.start_local=true", True),
        ("conversation.start_local=0", False),
        ("assistant.request.max_retries=3", 3),
        ("assistant.model.parameters.temperature=1", 1.0),
        ("assistant.model.parameters.max_tokens=null", None),
        ("assistant.model.parameters.reasoning=high", "high"),
        ("assistant.model.parameters.reasoning=2048", 2048),
        ("assistant.request.cache=long", "long"),
        ("user.name=5", "5"),
        ("user.name=null", "null"),
        ("assistant.system_prompt=null", "null"),
        ("conversation.attachments=file:a, file:b", ["file:a", "file:b"]),
        ("conversation.attachments=", []),
        ("conversation.tools.*.run=ask", "ask"),
        ("assistant.model.parameters.other.seed=42", 42),
        ("assistant.model.parameters.other.ratio=0.5", 0.5),
        ("assistant.model.parameters.other.flag=true", True),
        ("assistant.model.parameters.other.word=high", "high"),
        ("assistant.model.parameters.other.word=[1]", "[1]"),
        ("assistant.model.parameters.other.deep.er=1", 1),
        ("assistant.instructions.0.items.1=a", "a"),
    ],
)
def test_text_is_read_as_the_key_wants_it(text: str, value: object) -> None:
    parsed = parse_cfg(text)

    assert isinstance(parsed, Assignment)
    assert parsed.value == value
    assert type(parsed.value) is type(value)


@pytest.mark.parametrize(
    ("text", "below", "expected"),
    [
        ("conversation.attachments=b", ATTACHED, ["b"]),
        ('conversation.attachments:=["b"]', ATTACHED, ["b"]),
        ('conversation.attachments:={"value": ["b"], "strategy": "prepend"}', ATTACHED, ["b", "a"]),
        ("conversation.attachments:=null", ATTACHED, []),
        ("conversation.attachments+=b,c", ATTACHED, ["a", "b", "c"]),
        ('conversation.attachments:+=["b"]', ATTACHED, ["a", "b"]),
        ('conversation.attachments:+="b"', ATTACHED, ["a", "b"]),
        ('conversation.attachments:+={"value": ["b"], "strategy": "prepend"}', ATTACHED, ["b", "a"]),
        ("conversation.attachments.0=b", ATTACHED, ["b"]),
        ("conversation.attachments.0:=null", ATTACHED, []),
    ],
)
def test_a_list_is_set_or_added_to(text: str, below: dict[str, Any], expected: list[str]) -> None:
    assert outcome(text, below) == {"conversation": {"attachments": expected}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('assistant.instructions:+={"title": "b"}', [{"title": "a", "items": ["x"]}, {"title": "b"}]),
        ("assistant.instructions.0.title=b", [{"title": "b", "items": ["x"]}]),
        ("assistant.instructions.0.title:=null", [{"items": ["x"]}]),
        ("assistant.instructions.0.items+=y", [{"title": "a", "items": ["x", "y"]}]),
        ("assistant.instructions.0.items.0=y", [{"title": "a", "items": ["y"]}]),
        ('assistant.instructions.0:={"title": "b"}', [{"title": "b"}]),
        ('assistant.instructions.0:+={"position": 1}', [{"title": "a", "items": ["x"], "position": 1}]),
    ],
)
def test_an_element_is_named_by_its_index(text: str, expected: list[dict[str, Any]]) -> None:
    below = {"assistant": {"instructions": [{"title": "a", "items": ["x"]}]}}

    assert outcome(text, below) == {"assistant": {"instructions": expected}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('conversation.tools:={"b": {"run": "ask"}}', {"b": {"run": "ask"}}),
        ('conversation.tools:+={"b": {"run": "ask"}}', {"a": {"enable": True}, "b": {"run": "ask"}}),
        ('conversation.tools.a:={"run": "ask"}', {"a": {"run": "ask"}}),
        ('conversation.tools.a:+={"run": "ask"}', {"a": {"enable": True, "run": "ask"}}),
        ("conversation.tools.a:=null", {}),
        ("conversation.tools.a.enable:=null", {"a": {}}),
        ("conversation.tools:=null", {}),
    ],
)
def test_a_table_is_set_or_merged(text: str, expected: dict[str, Any]) -> None:
    assert outcome(text, {"conversation": {"tools": {"a": {"enable": True}}}}) == {"conversation": {"tools": expected}}


def test_a_text_is_set_or_added_to() -> None:
    below = {"assistant": {"system_prompt": "a"}}

    assert outcome("assistant.system_prompt=b", below) == {"assistant": {"system_prompt": "b"}}
    assert outcome("assistant.system_prompt+=b", below) == {"assistant": {"system_prompt": "a\n\nb"}}
    assert outcome("assistant.system_prompt:=null", below) == {"assistant": {}}


def test_a_free_object_is_set_or_merged() -> None:
    below = {"assistant": {"model": {"parameters": {"other": {"a": {"x": 1}}}}}}
    key = "assistant.model.parameters.other.a"

    assert outcome(f'{key}:={{"y": 2}}', below) == {"assistant": {"model": {"parameters": {"other": {"a": {"y": 2}}}}}}
    assert outcome(f'{key}:+={{"y": 2}}', below) == {
        "assistant": {"model": {"parameters": {"other": {"a": {"x": 1, "y": 2}}}}}
    }
    assert outcome(f"{key}.x:=null", below) == {"assistant": {"model": {"parameters": {"other": {"a": {}}}}}}


def test_an_object_is_merged_at_the_root_key_by_key() -> None:
    text = '{"conversation": {"attachments": ["b"]}, "user": {"name": null}}'

    assert outcome(text, {**ATTACHED, "user": {"name": "x"}}) == {
        "conversation": {"attachments": ["a", "b"]},
        "user": {},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=x", "'' is not a key"),
        ("a..b=x", "'a..b' is not a key"),
        ("{", "is not given as JSON"),
        ('{"a": 1} x', "is not given as JSON"),
        ("user.name:=x", "user.name is not given as JSON"),
        (f"user.name:={'[' * 100_000}", "user.name is not given as JSON"),
        ("asistant.model.id=x", "unknown key 'asistant'; the nearest known key is 'assistant'"),
        ("assistant.modle.id=x", "unknown key 'assistant.modle'; the nearest known key is 'assistant.model'"),
        ("user.name.x=1", "unknown key 'user.name.x'; 'user.name' is a text"),
        (
            "conversation.attachments.x=1",
            "unknown key 'conversation.attachments.x'; 'conversation.attachments' is a list",
        ),
        ("assistant.system_prompt.x=1", "'assistant.system_prompt' is a text"),
        ("assistant.request.max_retries=x", "expects a whole number of at least 0, got 'x'"),
        ("assistant.request.max_retries=-1", "expects a whole number of at least 0, got '-1'"),
        ("assistant.model.parameters.temperature=nan", "expects a number, got the number nan"),
        ("assistant.model=x", "assistant.model expects a table, got 'x'"),
        ("conversation.tools=x", "conversation.tools expects a table, got 'x'"),
        ("assistant.instructions+=x", "assistant.instructions.0 expects a table, got 'x'"),
        ("user.name+=x", "nothing can be added to 'user.name', which is a text"),
        ("assistant.system_prompt:+=5", "nothing can be added to 'assistant.system_prompt'"),
        ("assistant.model.parameters.other.x+=1", "nothing can be added to 'assistant.model.parameters.other.x'"),
        ("conversation.tools:+=[]", "conversation.tools expects a table, got a list"),
        ("extends=a", "'extends' has a meaning only in a file"),
        ("conversation.attachments.1:=null.5", "is not given as JSON"),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_cfg(text)

    assert message in caught.value.message


def test_an_unknown_key_is_answered_with_what_is_known_at_its_level() -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_cfg("user.nmae=x")

    assert caught.value.hint == "known in 'user': name"


def test_a_table_is_asked_for_as_json() -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_cfg("assistant.model=x")

    assert caught.value.hint == "give it as JSON: `assistant.model:={…}`"


def test_an_assignment_to_a_file_may_name_what_it_extends() -> None:
    assert parse_cfg("extends=a.toml,b.toml", FILE) == Assignment(
        path=("extends",), operator="=", value=["a.toml", "b.toml"]
    )
    assert parse_cfg("inherit=false", FILE) == Assignment(path=("inherit",), operator="=", value=False)


def test_the_pieces_of_an_assignment_may_come_apart() -> None:
    assert assign(("conversation", "attachments"), ":+", '["a"]') == parse_cfg('conversation.attachments:+=["a"]')

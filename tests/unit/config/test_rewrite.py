from __future__ import annotations

import tomllib
from typing import Any

import pytest

from jp.config.toml import UnwritableError, rewritten, toml_key, toml_value

ORIGINAL = """\
# Mine.

[assistant.model]
id = "a/b"   # the good one

# Looks.
[style.code]
theme = 'x'
"""


def test_a_value_is_changed_in_place() -> None:
    new = {"assistant": {"model": {"id": "c/d"}}, "style": {"code": {"theme": "x"}}}

    assert rewritten(ORIGINAL, new) == ORIGINAL.replace("a/b", "c/d")


def test_the_same_data_leaves_the_text_alone() -> None:
    data = {"assistant": {"model": {"id": "a/b"}}, "style": {"code": {"theme": "x"}}}

    assert rewritten(ORIGINAL, data) == ORIGINAL


def test_a_new_key_goes_to_the_end_of_its_table_and_before_the_next_comment() -> None:
    new = {"assistant": {"model": {"id": "a/b", "n": 1}}, "style": {"code": {"theme": "x"}}}

    assert rewritten(ORIGINAL, new) == ORIGINAL.replace("# the good one\n", "# the good one\nn = 1\n")


def test_a_new_table_goes_to_the_end() -> None:
    new = {"assistant": {"model": {"id": "a/b"}}, "style": {"code": {"theme": "x"}}, "user": {"name": "me"}}

    assert rewritten(ORIGINAL, new) == ORIGINAL + '\n[user]\nname = "me"\n'


def test_a_key_of_the_root_goes_before_the_tables() -> None:
    new = {"assistant": {"model": {"id": "a/b"}}, "style": {"code": {"theme": "x"}}, "paths": ["p"]}

    assert rewritten(ORIGINAL, new) == 'paths = ["p"]\n\n' + ORIGINAL
    assert rewritten("a = 1\n# about b\n[b]\nc = 1\n", {"a": 1, "d": 2, "b": {"c": 1}}) == (
        "a = 1\nd = 2\n# about b\n[b]\nc = 1\n"
    )


def test_a_key_that_is_gone_takes_its_line_along() -> None:
    assert rewritten(ORIGINAL, {"assistant": {"model": {"id": "a/b"}}}) == ORIGINAL.replace(
        "[style.code]\ntheme = 'x'\n", ""
    )


def test_a_list_that_only_grew_keeps_its_comments() -> None:
    text = "l = [\n  'a', # first\n  'b',\n]\n"

    assert rewritten(text, {"l": ["a", "b", "c"]}) == "l = [\n  'a', # first\n  'b',\n  \"c\",\n]\n"
    assert rewritten(text, {"l": ["b"]}) == 'l = ["b"]\n'


def test_tables_in_a_list_are_written_one_by_one() -> None:
    text = rewritten("", {"a": {"l": [{"t": "x", "n": ["y"]}, {"t": "z\nz"}]}})

    assert text == '[[a.l]]\nt = "x"\nn = ["y"]\n\n[[a.l]]\nt = """z\nz"""\n'
    assert rewritten(text, {"a": {"l": [{"t": "x", "n": ["y"]}, {"t": "z\nz"}, {"t": "w"}]}}) == (
        text + '\n[[a.l]]\nt = "w"\n'
    )


def test_an_empty_file_gets_its_first_key() -> None:
    assert rewritten("", {"a": {"b": {"c": True}}}) == "[a.b]\nc = true\n"
    assert rewritten("", {"a": 0.5}) == "a = 0.5\n"
    assert rewritten("", {"a": {}}) == "a = {}\n"


def test_a_last_line_without_its_end_is_kept() -> None:
    assert rewritten("[a]\nb = 1", {"a": {"b": 1, "c": 2}}) == "[a]\nb = 1\nc = 2\n"
    assert rewritten("[a]\nb = 1", {"a": {"b": 1}, "d": {"e": 2}}) == "[a]\nb = 1\n\n[d]\ne = 2\n"


def test_the_files_line_ends_are_used() -> None:
    assert rewritten("[a]\r\nb = 1\r\n", {"a": {"b": 1, "c": 2}}) == "[a]\r\nb = 1\r\nc = 2\r\n"
    assert rewritten("[a]\r\nb = 1\r\n", {"a": {"b": 1}, "d": {"e": 2}}) == "[a]\r\nb = 1\r\n\r\n[d]\r\ne = 2\r\n"


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("a.b = 1\nc.d = 2\n", {"a": {"b": 1, "e": 3}, "c": {"d": 2}}, "a.b = 1\na.e = 3\nc.d = 2\n"),
        (
            "a.b = 1\nc.d = 2\n",
            {"a": {"b": 1, "e": {"f": 3}}, "c": {"d": 2}},
            "a.b = 1\na.e = {f = 3}\nc.d = 2\n",
        ),
        ("[x]\na = { b = 1 }\n", {"x": {"a": {"b": 1, "c": 2}}}, "[x]\na = { b = 1, c = 2}\n"),
        ("a = { b = 1 }\n", {"a": {"b": 1, "c": {"d": 2}}}, "a = { b = 1, c = {d = 2}}\n"),
        ("[x]\na.b = 1\n", {"x": {"a": {"b": 1, "c": 2}}}, "[x]\na.b = 1\na.c = 2\n"),
        ("[a]\nt = '''\n[b]\n'''\n", {"a": {"t": "[b]\n", "u": 1}}, "[a]\nt = '''\n[b]\n'''\nu = 1\n"),
        ("[a]\nl = [\n[1],\n]\n", {"a": {"l": [[1]], "u": 1}}, "[a]\nl = [\n[1],\n]\nu = 1\n"),
        ("[a.b]\nc = 1\n", {"a": {"b": {"c": 1}, "d": 2}}, "[a]\nd = 2\n\n[a.b]\nc = 1\n"),
        ("['odd name']\nb = 1\n", {"odd name": {"b": 1, "c": 2}}, "['odd name']\nb = 1\nc = 2\n"),
        ('["a\\"b"]\nc = 1\n', {'a"b': {"c": 1, "d": 2}}, None),
        ("[a]\nb = 1\n", {"a": {}}, "[a]\n"),
    ],
)
def test_a_form_that_says_something_else_gives_way(text: str, new: dict[str, Any], expected: str | None) -> None:
    result = rewritten(text, new)

    assert tomllib.loads(result) == new
    assert expected is None or result == expected


def test_two_changes_in_tables_out_of_order_are_both_made() -> None:
    text = '[[a.l]]\n\n[a]\np = "x"\nq = 1\n'

    assert rewritten(text, {"a": {"q": 1}}) == "[a]\nq = 1\n"
    assert rewritten("[a]\nb = 1\n", {"a": 2}) == "a = 2\n"


def test_a_file_can_be_changed_again_whatever_was_written_into_it() -> None:
    data = {"a": {"b": {"c": {"d": 1}, "e": 1}, "f": 1}, "g": {}}
    text = rewritten("", data)

    changed = rewritten(text, {"a": {"b": {"c": {}, "h": {"i": 1}}, "f": 1}, "g": {}})
    again = rewritten(changed, {"a": {"b": {"h": {"i": 1}}, "f": 1}, "g": {"j": 1}})

    assert text == "g = {}\n\n[a]\nf = 1\n\n[a.b]\ne = 1\n\n[a.b.c]\nd = 1\n"
    assert changed == "g = {}\n\n[a]\nf = 1\n\n[a.b]\n\n[a.b.c]\n\n[a.b.h]\ni = 1\n"
    assert again == changed.replace("g = {}", "g = {j = 1}").replace("[a.b.c]\n\n", "")


def test_tables_that_tomlkit_does_not_read_are_left_to_a_person() -> None:
    text = "[a.b.c]\n[a.b]\n[a]\nf = 1\n[a.b.h]\ni = 1\n"

    with pytest.raises(UnwritableError) as caught:
        rewritten(text, {"a": {"f": 1, "g": 2, "b": {"c": {}, "h": {"i": 1}}}})

    assert caught.value.hint == "edit it by hand"


def test_a_list_may_stand_where_something_else_did() -> None:
    assert rewritten("a = true\n", {"a": []}) == "a = []\n"
    assert rewritten('a = "b"\n', {"a": ["b"]}) == 'a = ["b"]\n'


@pytest.mark.parametrize("wrong", ["broken", "a = 3"])
def test_what_says_something_else_is_not_written(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def render(_: object) -> str:
        return wrong

    monkeypatch.setattr("tomlkit.toml_document.TOMLDocument.as_string", render)

    with pytest.raises(UnwritableError):
        rewritten("a = 1", {"a": 2})


VALUES: list[tuple[Any, str]] = [
    ("a", '"a"'),
    ('a"b', '"a\\"b"'),
    ("a\nb", '"""a\nb"""'),
    ("a\r\nb", '"a\\r\\nb"'),
    (True, "true"),
    (3, "3"),
    (1e16, "1e+16"),
    ([1, "a", []], '[1, "a", []]'),
    ((1,), "[1]"),
    ({"a b": 1, "c": {}}, '{ "a b" = 1, c = {} }'),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_values_are_written_in_toml(value: object, text: str) -> None:
    assert toml_value(value) == text


def test_keys_are_written_in_toml() -> None:
    assert toml_key(("a", "b.c", "*")) == 'a."b.c"."*"'

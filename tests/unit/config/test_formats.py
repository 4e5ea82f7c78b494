"""Configuration in JSON, JSON5 and YAML: the same settings as in TOML, with positions, and nothing that costs much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jp.config.files import Places, candidates, checked, load_group, require_one_format
from jp.config.layers import applied
from jp.config.positions import place_of
from jp.errors import ConfigurationError

TEXTS = {
    "c.json": '{"user": {"name": "Ada"}, "style": {"markdown": {"wrap_width": 80}}}',
    "c.json5": "{user: {name: 'Ada'}, /* columns */ style: {markdown: {wrap_width: 80,}}} // end",
    "c.yaml": "user:\n  name: Ada # who\nstyle:\n  markdown: {wrap_width: 80}\n",
    "c.yml": "user: {name: Ada}\nstyle: {markdown: {wrap_width: 80}}\n",
    "c.toml": '[user]\nname = "Ada"\n[style]\nmarkdown.wrap_width = 80\n',
    "c": '[user]\nname = "Ada"\n[style]\nmarkdown.wrap_width = 80\n',
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_ending_says_the_format(name: str) -> None:
    change = checked(TEXTS[name], Path(name)).change

    assert applied(change) == {"user": {"name": "Ada"}, "style": {"markdown": {"wrap_width": 80}}}


@pytest.mark.parametrize("name", ["c.yaml", "c.toml"])
def test_an_empty_file_says_nothing(name: str) -> None:
    assert applied(checked("", Path(name)).change) == {}


def test_words_of_yaml_are_those_that_the_original_reads() -> None:
    text = """\
template:
  values:
    words: [on, no, 2026-01-01, 010, 1:30, 0x1F, ~x]
    others: [true, False, 0.5, 1, -2, 1e3, .5]
    none: null
"""

    values = applied(checked(text, Path("c.yml")).change)["template"]["values"]

    assert values["words"] == ["on", "no", "2026-01-01", "010", "1:30", "0x1F", "~x"]
    assert values["others"] == [True, False, 0.5, 1, -2, 1000.0, 0.5]
    assert [type(value) for value in values["others"]] == [bool, bool, float, int, int, float, float]
    assert "none" not in values


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", '{"user": {\n"name" "x"}}', "line 2, column 8: "),
        ("c.json", '{"user": ', "line 1, column 10: "),
        ("c.json", "[1]", "line 1, column 1: it is no table of named values: '[1]'"),
        ("c.json", "[" * 100_000, "nested too deeply"),
        ("c.json5", "{user: }", "it is not JSON5: '{user: }'"),
        ("c.json5", "{user: ", "it is not JSON5"),
        ("c.json5", "[" * 500, "nested too deeply"),
        ("c.yaml", "user:\n  name: [\n", "line 3, column 1: "),
        ("c.yaml", "user: *nobody", "line 1, column 7: "),
        ("c.yaml", "user: !!python/object:os.system x", "line 1, column 7: could not determine a constructor"),
        ("c.yaml", "1: x", "a key must be a text, got 1"),
        ("c.yaml", "user: \x07", "it is not YAML"),
        ("c.yaml", "- 1", "it is no table of named values"),
        ("c.yaml", BOMB, "it holds more than 50,000 values"),
        ("c.yaml", "a: &a\n  b: *a\n", "nested too deeply"),
        ("c.yaml", "{a: " * 300 + "1" + "}" * 300, "nested too deeply"),
        ("c.yaml", "user:\n  name: 5\n", "line 2, column 9: user.name expects a text, got the number 5"),
        ("c.json", '{\n\t"user": {"name": 5}}', "line 2, column 19: user.name expects a text"),
        ("c.json5", "{ // 'x\nuser: {'name': 5}}", "line 2, column 16: user.name expects a text"),
        ("c.json5", "{user: {nmae: '//', b: 1, }}", "line 1, column 9: unknown key 'user.nmae'"),
        ("c.json5", "{user: {name: 5,\\\n}}", "it is not JSON5"),
        ("c.yaml", "extends: [1]", "line 1, column 11: "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked(text, Path(name))

    assert message in caught.value.message
    assert caught.value.message.startswith(f"'{name}'")
    assert caught.value.hint


def test_a_place_that_no_parser_finds_is_not_named() -> None:
    assert place_of("{user: {name: 5}, x: \\u0041}", ("user", "name")) is not None
    assert place_of("{user: {name: 'a\\\nb'}}", ("user", "nobody")) == place_of("{user: {name: 'a\\\nb'}}", ("user",))
    assert place_of("{a: [", ("a",)) is None


def places_with(tmp_path: Path, **texts: str) -> Places:
    """A workspace with these files, `.jp/` before their names; `__` is a dot."""
    (tmp_path / ".jp").mkdir()
    for name, text in texts.items():
        (tmp_path / ".jp" / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return Places(cwd=tmp_path, root=tmp_path)


def settings(places: Places) -> dict[str, Any]:
    candidate = next(iter(candidates(places)))
    require_one_format(candidate)
    group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
    assert group is not None
    assert all(layer.foreign for layer in group.layers)
    return {key: value for layer in group.layers for key, value in applied(layer.change).items()}


def test_a_place_may_have_its_file_in_any_format(tmp_path: Path) -> None:
    places = places_with(
        tmp_path, config__yaml="user: {name: Ada}\nextends: ['*.json5', more.yml]", a__json5="{style: {}}", more__yml=""
    )

    assert settings(places) == {"user": {"name": "Ada"}, "style": {}}


def test_two_files_in_one_place_are_an_error(tmp_path: Path) -> None:
    places = places_with(tmp_path, config__yaml="", config__json="{}")

    with pytest.raises(ConfigurationError, match=r"only one of '.*config\.json' and '.*config\.yaml' can count"):
        settings(places)

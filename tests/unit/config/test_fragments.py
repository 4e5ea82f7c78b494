from __future__ import annotations

from pathlib import Path

import pytest

from jp.config.assignment import FragmentName
from jp.config.files import Places, fragment_layers
from jp.config.layers import Layer
from jp.errors import ConfigurationError


def file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    cwd = tmp_path / "w" / "sub"
    cwd.mkdir(parents=True)
    return Places(cwd=cwd, user=tmp_path / "u", root=tmp_path / "w", user_workspace=tmp_path / "s")


def found(name: str, places: Places, *load_paths: str, forced: bool = False) -> list[Path]:
    return [Path(layer.origin.where) for layer in layers(name, places, *load_paths, forced=forced)]


def layers(name: str, places: Places, *load_paths: str, forced: bool = False) -> list[Layer]:
    return fragment_layers(FragmentName(name=name, forced=forced), places, load_paths)


@pytest.mark.parametrize("name", ["dev", "dev.toml", "./dev", "../sub/dev.toml"])
def test_a_file_relative_to_the_current_directory_wins(name: str, places: Places) -> None:
    here = file(places.cwd / "dev.toml")
    file(places.cwd.parent / ".jp" / "config" / "dev.toml")

    assert [path.resolve() for path in found(name, places)] == [here.resolve()]


def test_a_file_without_an_ending_is_only_taken_where_a_path_is_meant(places: Places, tmp_path: Path) -> None:
    bare = file(places.cwd / "dev")
    elsewhere = file(tmp_path / "w" / ".jp" / "config" / "dev.toml")

    assert found("dev", places) == [elsewhere]
    assert found("dev", places, forced=True) == [bare]


def test_a_path_that_is_meant_is_not_looked_for_elsewhere(places: Places, tmp_path: Path) -> None:
    file(tmp_path / "w" / ".jp" / "config" / "dev.toml")

    with pytest.raises(ConfigurationError):
        found("dev", places, forced=True)


def test_every_root_gives_its_first_match_from_the_least_specific_on(places: Places, tmp_path: Path) -> None:
    expected = [
        file(tmp_path / "u" / "config" / "personas" / "dev.toml"),
        file(tmp_path / "w" / ".jp" / "config" / "personas" / "dev.toml"),
        file(tmp_path / "s" / "config" / "dev.toml"),
    ]
    file(tmp_path / "w" / "other" / "dev.toml")
    file(tmp_path / "w" / ".jp" / "config" / "dev.toml")

    assert found("dev", places, ".jp/config/personas", "personas", "other") == expected


def test_fragments_are_found_without_any_setting(places: Places, tmp_path: Path) -> None:
    skill = file(tmp_path / "w" / ".jp" / "config" / "skill" / "web.toml")

    assert found("skill/web", places) == [skill]
    assert found("skill/web.toml", places) == [skill]


def test_a_file_that_several_roots_reach_counts_once(places: Places, tmp_path: Path) -> None:
    shared = file(tmp_path / "shared" / "dev.toml")

    assert found("dev", places, str(tmp_path / "shared")) == [shared]


def test_outside_a_workspace_the_users_directory_is_searched(tmp_path: Path) -> None:
    mine = file(tmp_path / "u" / "config" / "dev.toml")

    assert found("dev", Places(cwd=tmp_path, user=tmp_path / "u")) == [mine]


def test_a_name_that_nothing_has_is_answered_with_the_paths(places: Places, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        found("dve", places, "personas")

    assert caught.value.message == "no configuration is called 'dve'"
    searched = [
        tmp_path / "w" / "sub" / "dve.toml",
        tmp_path / "u" / "config" / "personas" / "dve.toml",
        tmp_path / "u" / "config" / "dve.toml",
        tmp_path / "w" / "personas" / "dve.toml",
        tmp_path / "w" / ".jp" / "config" / "dve.toml",
        tmp_path / "s" / "config" / "personas" / "dve.toml",
        tmp_path / "s" / "config" / "dve.toml",
    ]
    assert caught.value.hint == f"searched: {', '.join(map(str, searched))}"


def test_a_key_without_a_value_is_recognised(places: Places) -> None:
    with pytest.raises(ConfigurationError) as caught:
        found("assistant.model.id", places)

    assert caught.value.hint == "to set that key, write `assistant.model.id=VALUE`"


@pytest.mark.parametrize("name", ["", "a b", "x\n", "/", "//"])
def test_a_strange_name_is_not_found_either(name: str, places: Places) -> None:
    file(places.cwd.with_name("sub.toml"))

    with pytest.raises(ConfigurationError, match="no configuration is called") as caught:
        found(name, places)
    assert caught.value.hint.startswith("searched: ")


def test_an_ending_is_not_put_on_twice(places: Places) -> None:
    file(places.cwd / "dev.toml.toml")

    with pytest.raises(ConfigurationError):
        found("dev.toml", places)


def test_what_lies_in_the_workspace_may_be_a_strangers(places: Places, tmp_path: Path) -> None:
    file(tmp_path / "w" / ".jp" / "config" / "theirs.toml")
    file(tmp_path / "u" / "config" / "mine.toml")
    outside = file(tmp_path / "outside.toml")
    (tmp_path / "w" / ".jp" / "config" / "link.toml").symlink_to(outside)

    assert layers("theirs", places)[0].foreign
    assert layers("link", places)[0].foreign
    assert not layers("mine", places)[0].foreign
    assert not layers(str(outside), places)[0].foreign
    assert not layers(str(outside), Places(cwd=places.cwd))[0].foreign


def test_the_users_directory_is_the_users_even_inside_a_workspace(tmp_path: Path) -> None:
    file(tmp_path / ".config" / "jp" / "config" / "mine.toml")

    assert not layers("mine", Places(cwd=tmp_path, user=tmp_path / ".config" / "jp", root=tmp_path))[0].foreign


def test_a_fragment_brings_what_it_extends(places: Places, tmp_path: Path) -> None:
    file(tmp_path / "w" / ".jp" / "config" / "dev.toml", 'extends = ["skill/*.toml"]\nuser.name = "dev"')
    file(tmp_path / "w" / ".jp" / "config" / "skill" / "a.toml")

    brought = layers("dev", places)

    assert [Path(layer.origin.where).stem for layer in brought] == ["a", "dev"]
    assert all(layer.origin.kind == "cfg" and layer.foreign for layer in brought)


def test_a_directory_that_is_named_is_no_fragment(places: Places) -> None:
    with pytest.raises(ConfigurationError, match="no configuration is called '/'"):
        found("/", places, forced=True)

from __future__ import annotations

from pathlib import Path

import pytest

from jp.config.files import Places, candidates


def paths(of: Places) -> list[tuple[str, str]]:
    return [(candidate.kind, str(candidate.path)) for candidate in candidates(of)]


def test_files_are_looked_for_from_the_least_specific_place_on() -> None:
    found = Places(cwd=Path("/w/a/b"), user=Path("/u"), root=Path("/w"), user_workspace=Path("/s"))

    assert paths(found) == [
        ("user", "/u/config.toml"),
        ("workspace", "/w/.jp/config.toml"),
        ("directory", "/w/.jp.toml"),
        ("directory", "/w/a/.jp.toml"),
        ("directory", "/w/a/b/.jp.toml"),
        ("user-workspace", "/s/config.toml"),
    ]


def test_outside_a_workspace_only_the_users_file_counts() -> None:
    assert paths(Places(cwd=Path("/w/a"), user=Path("/u"))) == [("user", "/u/config.toml")]
    assert paths(Places(cwd=Path("/w/a"))) == []


def test_from_elsewhere_only_the_roots_directory_file_counts() -> None:
    assert paths(Places(cwd=Path("/elsewhere"), root=Path("/w"))) == [
        ("workspace", "/w/.jp/config.toml"),
        ("directory", "/w/.jp.toml"),
    ]


def test_a_current_directory_that_was_reached_by_a_link_lies_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = (tmp_path / "real").resolve()

    found = paths(Places(cwd=tmp_path / "link" / "sub", root=tmp_path / "real"))

    assert found[1:] == [("directory", str(real / ".jp.toml")), ("directory", str(real / "sub" / ".jp.toml"))]


@pytest.mark.parametrize("kind", ["workspace", "directory"])
def test_what_comes_with_a_workspace_may_be_a_strangers(kind: str) -> None:
    by_kind = {candidate.kind: candidate for candidate in candidates(Places(cwd=Path("/w"), root=Path("/w")))}

    assert by_kind[kind].foreign


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_found_by_the_id_of_a_workspace_may_be_meant_for_another_one(*, is_known: bool) -> None:
    places = Places(cwd=Path("/w"), user=Path("/u"), root=Path("/w"), user_workspace=Path("/s"), is_id_known=is_known)
    foreign = {candidate.kind: candidate.foreign for candidate in candidates(places)}

    assert foreign == {"user": False, "workspace": True, "directory": True, "user-workspace": not is_known}

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jp.config.entries import FileRuleConfig
from jp.tool.files.territory import FileAccessError, Territory, Use
from plain_names import PlainNames


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a directory that is not in it."""
    inside = tmp_path / "root"
    for directory in ("src", ".jp/conversations/jp-c1", ".jp/blobs", ".git/hooks"):
        (inside / directory).mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (inside / "way-out").symlink_to("../shared")
    (inside / "way-to-git").symlink_to(".git")
    return inside


def refusal(root: Path, path: str, use: Use, *rules: FileRuleConfig, private: tuple[str, ...] = ()) -> str | None:
    territory = Territory(root, rules, PlainNames(private=private))
    try:
        territory.place(path.format(root=root, shared=root.parent / "shared"), use)
    except FileAccessError as error:
        return error.message
    return None


@pytest.mark.parametrize(
    "path", ["src/a", "new/deep/a", "{root}/src/a", ".jp/config.toml", ".git/config", ".gitignore"]
)
def test_what_is_in_the_workspace_may_be_read(root: Path, path: str) -> None:
    assert refusal(root, path, "read") is None


@pytest.mark.parametrize("use", ["read", "write", "walk"])
@pytest.mark.parametrize("path", ["../shared/a", "..", "/etc/passwd", "{shared}/a", "way-out/a", "../root-two/a"])
def test_what_is_outside_may_not_be_reached(root: Path, path: str, use: Use) -> None:
    done = "changed" if use == "write" else "read"

    assert (refusal(root, path, use) or "").endswith(f"is outside of {str(root)!r}, where files may be {done}")


@pytest.mark.parametrize(
    "path",
    [".jp/config.toml", ".git/hooks/pre-commit", ".GIT/config", "sub/.git/config", "sub/.git", "way-to-git/config"],
)
def test_nothing_that_git_or_jp_keeps_is_changed(root: Path, path: str) -> None:
    assert "which no tool changes" in (refusal(root, path, "write") or "")
    assert "which no tool changes" in (refusal(root, path, "write", FileRuleConfig(path="/", write=True)) or "")


@pytest.mark.parametrize(
    "path", [".jp/conversations/jp-c1/events.jsonl", ".jp/blobs/ab", ".JP/Conversations", "x/.jp/blobs/a"]
)
@pytest.mark.parametrize("use", ["read", "walk"])
def test_what_conversations_hold_is_not_read(root: Path, path: str, use: Use) -> None:
    assert "belongs to jp's conversations" in (refusal(root, path, use) or "")


def test_what_jp_keeps_for_the_user_is_not_reached_wherever_it_lies(root: Path) -> None:
    private = (str(root / "home" / "data"),)

    assert "which no tool reaches" in (refusal(root, "home/data/keys.json", "read", private=private) or "")
    assert refusal(root, "home/database", "read", private=private) is None


def test_with_a_rule_what_none_allows_is_denied(root: Path) -> None:
    rule = FileRuleConfig(path="src", read=True)

    assert refusal(root, "src/a", "read", rule) is None
    assert refusal(root, "src", "read", rule) is None
    assert refusal(root, "src/a", "write", rule) == (
        "'src/a' must not be changed: the configuration does not let this tool do it"
    )
    assert refusal(root, "docs/a", "read", rule) == (
        "'docs/a' must not be read: the configuration does not let this tool do it"
    )
    assert refusal(root, "srca", "read", rule) is not None


def test_of_several_rules_the_last_that_fits_decides(root: Path) -> None:
    rules = (
        FileRuleConfig(path=".", read=True, write=True),
        FileRuleConfig(path="src", read=True),
        FileRuleConfig(path="src/generated.py", read=True, write=True),
    )

    assert refusal(root, "docs/a", "write", *rules) is None
    assert refusal(root, "src/a.py", "write", *rules) is not None
    assert refusal(root, "src/generated.py", "write", *rules) is None


def test_a_rule_may_reach_outside(root: Path) -> None:
    shared = root.parent / "shared"
    rules = (FileRuleConfig(path=".", read=True), FileRuleConfig(path=str(shared), read=True))
    territory = Territory(root, rules, PlainNames())

    place = territory.place("way-out/a", "read")

    assert place.path == place.shown == os.path.realpath(shared / "a")
    assert (place.base, place.names) == (os.path.realpath(shared), ("a",))
    assert refusal(root, "../other", "read", *rules) is not None


def test_a_rule_for_one_file_outside_reaches_that_file_only(root: Path) -> None:
    file = root.parent / "shared" / "a"
    territory = Territory(root, (FileRuleConfig(path=str(file), read=True),), PlainNames())

    place = territory.place(str(file), "read")

    assert (place.base, place.names) == (os.path.realpath(file.parent), ("a",))
    assert refusal(root, "{shared}/b", "read", FileRuleConfig(path=str(file), read=True)) is not None


def test_a_walk_may_begin_above_what_may_be_read(root: Path) -> None:
    rule = FileRuleConfig(path="src", read=True)

    assert refusal(root, ".", "walk", rule) is None
    assert refusal(root, "..", "walk", rule) is not None


def test_a_link_itself_is_inside_wherever_it_leads(root: Path) -> None:
    place = Territory(root, (), PlainNames()).entry("way-out", "write")

    assert place.shown == "way-out"


@pytest.mark.parametrize("path", ["", ".", "..", "src/..", "/"])
def test_a_directory_of_any_spelling_is_no_entry(root: Path, path: str) -> None:
    with pytest.raises(FileAccessError, match="is a directory"):
        Territory(root, (), PlainNames()).entry(path, "write")


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_what_is_no_path_is_refused(root: Path, path: str) -> None:
    territory = Territory(root, (), PlainNames())

    for reach in (territory.place, territory.entry):
        with pytest.raises(FileAccessError, match="is not a path"):
            reach(path, "read")

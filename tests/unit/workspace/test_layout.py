from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS

from disk_faults import error, failing_disk
from jp.cli.terminal.wording import worded
from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace import layout
from jp.workspace.layout import (
    WorkspaceNotFoundError,
    conversation_id_of,
    create_id,
    directory_name,
    explicit_root,
    find_root,
    path_digest,
    silo_directory,
    user_cache_directory,
    user_config_directory,
    user_data_directory,
    workspace_id,
)

Find = Callable[[Mapping[str, str]], Path | None]

HOME = {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("find", "environment", "expected"),
    [
        (user_config_directory, {"JP_GLOBAL_CONFIG_DIR": "/x", "XDG_CONFIG_HOME": "/xdg", **HOME}, "/x"),
        (user_data_directory, {"JP_USER_DATA_DIR": "/data/mine", "XDG_DATA_HOME": "/xdg", **HOME}, "/data/mine"),
        (user_cache_directory, {"JP_USER_DATA_DIR": "/data/mine", "XDG_CACHE_HOME": "/xdg"}, "/data/mine/cache"),
    ],
)
def test_a_users_directory_is_the_one_that_the_environment_names(
    find: Find, environment: dict[str, str], expected: str
) -> None:
    assert find(environment) == Path(expected)


@pytest.mark.parametrize(
    ("find", "variable"), [(user_config_directory, "JP_GLOBAL_CONFIG_DIR"), (user_data_directory, "JP_USER_DATA_DIR")]
)
def test_a_relative_directory_is_taken_from_the_current_one(find: Find, variable: str) -> None:
    assert find({variable: "mine"}) == Path.cwd() / "mine"


@pytest.mark.parametrize("chosen", [None, "", "relative", "/xdg"])
@pytest.mark.parametrize(
    ("find", "variable", "below_home"),
    [
        (user_config_directory, "XDG_CONFIG_HOME", ".config/jp"),
        (user_data_directory, "XDG_DATA_HOME", ".local/share/jp"),
        (user_cache_directory, "XDG_CACHE_HOME", ".cache/jp"),
    ],
)
def test_otherwise_it_is_the_one_that_platformdirs_names(
    find: Find, variable: str, below_home: str, chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = HOME if chosen is None else {**HOME, variable: chosen}
    monkeypatch.delenv(variable, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    monkeypatch.setattr(layout.sys, "platform", "linux")
    found = find(environment)
    monkeypatch.setattr(layout.sys, "platform", "freebsd14")

    assert found == Path("/xdg/jp" if chosen == "/xdg" else f"/home/me/{below_home}")
    assert found == find(environment)  # which platformdirs answers


def test_a_mac_has_its_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout.sys, "platform", "darwin")
    monkeypatch.setattr(platformdirs, "PlatformDirs", MacOS)
    monkeypatch.setenv("HOME", "/h")
    for kind in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)

    assert user_config_directory({"HOME": "/h"}) == Path("/h/Library/Application Support/jp")
    assert user_data_directory({"HOME": "/h"}) == Path("/h/Library/Application Support/jp")
    assert user_cache_directory({"HOME": "/h"}) == Path("/h/Library/Caches/jp")


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"XDG_CONFIG_HOME": "relative"}])
def test_without_a_home_there_is_no_place_for_settings(environment: dict[str, str]) -> None:
    assert user_config_directory(environment) is None


def test_without_a_home_in_the_environment_the_system_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/system")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    assert user_data_directory({}) == Path("/home/system/.local/share/jp")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: str) -> str:
        return path

    monkeypatch.setattr("os.path.expanduser", unknown)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    with pytest.raises(StorageError) as caught:
        user_data_directory({})
    assert "JP_USER_DATA_DIR" in caught.value.hint


def test_the_nearest_workspace_at_or_above_a_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "outer/.jp").mkdir(parents=True)
    (tmp_path / "outer/inner/.jp").mkdir(parents=True)
    (tmp_path / "outer/inner/deep/deeper").mkdir(parents=True)
    (tmp_path / "outer/other").mkdir()

    assert find_root(tmp_path / "outer/inner/deep/deeper") == tmp_path / "outer/inner"
    assert find_root(tmp_path / "outer/inner") == tmp_path / "outer/inner"
    assert find_root(tmp_path / "outer/other") == tmp_path / "outer"
    assert find_root(tmp_path) is None


def test_a_file_that_bears_the_markers_name_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / ".jp").write_text("", encoding="utf-8")

    assert find_root(tmp_path) is None


def test_an_explicit_root_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "work/.jp").mkdir(parents=True)
    (tmp_path / "work/below").mkdir()

    assert explicit_root(tmp_path / "work") == tmp_path / "work"
    with pytest.raises(WorkspaceNotFoundError, match="below") as caught:
        explicit_root(tmp_path / "work/below")
    assert "jp init" in worded(caught.value.hint)


@pytest.mark.parametrize(
    ("title", "name"), [("Fix the Lexer!", "17800836875-fix-the-lexer"), ("", "17800836875"), (None, "17800836875")]
)
def test_a_conversations_directory_is_named_after_id_and_title(title: str | None, name: str) -> None:
    conversation_id = ConversationId.at(17800836875)

    assert directory_name(conversation_id, title) == name
    assert conversation_id_of(name) == conversation_id


@pytest.mark.parametrize(
    "name", [".17800836875.new", ".removed-17800836875-x", "notes", "178x", "-1", "", ".archive", "1" * 19]
)
def test_other_names_are_no_conversations(name: str) -> None:
    assert conversation_id_of(name) is None


def test_a_path_has_one_digest_however_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")

    assert path_digest(tmp_path / "link") == path_digest(tmp_path / "a") == path_digest(tmp_path / "a/../a")
    assert path_digest(tmp_path / "a") != path_digest(tmp_path)


def test_a_workspace_is_known_by_its_id_wherever_it_moves(tmp_path: Path) -> None:
    (tmp_path / "a/.jp").mkdir(parents=True)
    silo = silo_directory(tmp_path / "a/.jp", tmp_path / "user", create=True)
    (tmp_path / "a").rename(tmp_path / "b")

    assert silo_directory(tmp_path / "b/.jp", tmp_path / "user", create=False) == silo
    assert silo_directory(tmp_path / "b/.jp", tmp_path / "user", create=True) == silo
    assert silo.parent == tmp_path / "user/workspaces"


def test_looking_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "a/.jp").mkdir(parents=True)

    silo_directory(tmp_path / "a/.jp", tmp_path / "user", create=False)

    assert list((tmp_path / "a/.jp").iterdir()) == []
    assert not (tmp_path / "user").exists()


def test_a_workspace_that_cannot_be_given_an_id_is_known_by_its_path_and_remains_so(tmp_path: Path) -> None:
    marker = tmp_path / "a/.jp"
    marker.mkdir(parents=True)
    with failing_disk(marker, at=1, fault=error(errno.EROFS)):
        silo = silo_directory(marker, tmp_path / "user", create=True)

    assert silo.name.startswith("path-")
    silo.mkdir(parents=True)
    assert silo_directory(marker, tmp_path / "user", create=True) == silo
    assert silo_directory(marker, tmp_path / "user", create=False) == silo
    assert list(marker.iterdir()) == []


@pytest.mark.parametrize("at", [1, 2, 3], ids=["open", "write", "link"])
def test_an_id_that_cannot_be_written_whole_is_not_there(tmp_path: Path, at: int) -> None:
    with failing_disk(tmp_path, at=at, fault=error(errno.ENOSPC)):
        assert create_id(tmp_path) is None

    assert list(tmp_path.iterdir()) == []


def test_an_id_that_another_process_wrote_first_is_the_id(tmp_path: Path) -> None:
    first = create_id(tmp_path)

    assert first is not None
    assert create_id(tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == [".id"]


def test_the_originals_id_is_read(tmp_path: Path) -> None:
    (tmp_path / ".id").write_text("DO NOT EDIT THIS FILE! IT IS AUTO-GENERATED BY JP.\notvo8", encoding="utf-8")

    assert silo_directory(tmp_path, tmp_path / "user", create=True).name == "otvo8"


@pytest.mark.parametrize("text", ["", "\n", "line\n../../etc", "line\nABCDEF", "<<<<<<< HEAD\nabcdef\n>>>>>>> x"])
def test_a_malformed_id_is_an_error_that_says_what_deleting_it_means(tmp_path: Path, text: str) -> None:
    (tmp_path / ".id").write_text(text, encoding="utf-8")

    with pytest.raises(StorageError, match="id") as caught:
        silo_directory(tmp_path, tmp_path / "user", create=False)
    assert "delete" in caught.value.hint


def test_an_id_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x\nabcdef\n", encoding="utf-8")
    (tmp_path / ".id").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StorageError, match="cannot read"):
        silo_directory(tmp_path, tmp_path / "user", create=False)


def test_a_workspace_may_have_an_id(tmp_path: Path) -> None:
    marker = tmp_path / ".jp"
    marker.mkdir()

    assert workspace_id(tmp_path) == ""
    assert workspace_id(None) == ""

    created = create_id(marker)
    assert workspace_id(tmp_path) == created

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from jp.context.search import IndexedPassage
from jp.conversation.entries import AnyEntry, TurnStart
from jp.workspace import search_index as module
from jp.workspace.search_index import Found, NoFullTextSearchError, forget, opened_index, search_index


def passage(text: str) -> IndexedPassage:
    return IndexedPassage(
        sha256="0" * 64, entry="e", turn=0, tool="", about="user", offset=0, size=len(text), text=text
    )


def log(*words: str) -> tuple[AnyEntry, ...]:
    return tuple(TurnStart(id=word) for word in words)


def search(path: Path | None, place: Path, *words: str, query: str = "lynx otter") -> list[str]:
    """The texts that are found where the log at `place` holds these."""

    def passages(since: int) -> Iterable[IndexedPassage]:
        return map(passage, words[since:])

    def found(index: module.SearchIndex) -> list[Found]:
        return index.search(query, None, 10)

    results = search_index(path, os.fspath(place), log(*words), passages=passages, search=found)
    return [one.text for one in results]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "history" / "index.sqlite3"


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    return one, other


def test_one_index_has_many_conversations_and_forgets_those_that_are_gone(
    path: Path, places: tuple[Path, Path]
) -> None:
    one, other = places
    search(path, one, "a lynx")
    both = search(path, other, "an otter")
    with opened_index(path) as index:
        only = [found.text for found in index.search("lynx otter", [os.fspath(one)], 10)]
        skipped = index.search("lynx otter", None, 10, skip=["e"])
    one.rmdir()
    left = search(path, other, "an otter", "more")

    assert sorted(both) == ["a lynx", "an otter"]
    assert (only, skipped, left) == (["a lynx"], [], ["an otter"])


def test_what_has_all_words_comes_first_then_in_log_order(path: Path, places: tuple[Path, Path]) -> None:
    words = ("an otter", "a lynx and much else that is said", "a lynx", "a lynx", "a lynx beside an otter", "lynxes")

    found = search(path, places[0], *words)

    assert found[0] == "a lynx beside an otter"
    assert found[1:] == ["an otter", "a lynx", "a lynx", "a lynx and much else that is said", "lynxes"]


def test_a_word_that_was_forgotten_is_not_in_the_bytes_of_the_file(path: Path, places: tuple[Path, Path]) -> None:
    search(path, places[0], "a capybara", "a lynx")
    search(path, places[1], "an otter")
    before = path.read_bytes()
    forget(path, places[0])

    assert b"capybara" in before
    assert b"capybara" not in path.read_bytes()
    assert search(path, places[1], "an otter") == ["an otter"]


def test_a_damaged_index_is_deleted_where_something_has_to_be_forgotten(path: Path, places: tuple[Path, Path]) -> None:
    search(path, places[0], "a lynx")
    path.write_bytes(b"no database")
    forget(path, places[0])

    assert not path.exists()


def test_an_index_of_another_version_is_made_again(path: Path, places: tuple[Path, Path]) -> None:
    search(path, places[0], "a lynx")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")

    assert search(path, places[0], "an otter") == ["an otter"]
    with opened_index(path) as index:
        assert [found.text for found in index.rows(os.fspath(places[0]))] == ["an otter"]


@pytest.mark.parametrize("table", ["words", "passage", "conversation"])
def test_an_index_without_a_table_is_made_again(table: str, path: Path, places: tuple[Path, Path]) -> None:
    search(path, places[0], "a lynx")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {table}")

    assert search(path, places[0], "a lynx") == ["a lynx"]
    with opened_index(path) as index:
        assert len(index.rows(os.fspath(places[0]))) == 1


def test_where_no_index_can_be_kept_it_is_in_memory(path: Path, places: tuple[Path, Path]) -> None:
    path.parent.parent.write_text("a file where a directory has to be", encoding="utf-8")

    assert search(path, places[0], "a lynx") == ["a lynx"]
    assert search(None, places[0], "a lynx") == ["a lynx"]


def test_a_link_in_its_place_is_not_followed(path: Path, places: tuple[Path, Path], tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")

    assert search(path, places[0], "a lynx") == ["a lynx"]
    assert not (tmp_path / "elsewhere").exists()


def test_a_writer_that_was_killed_leaves_what_was_there(path: Path, places: tuple[Path, Path]) -> None:
    search(path, places[0], "a lynx")
    child = os.fork()
    if child == 0:
        with opened_index(path) as index:
            index.update(os.fspath(places[0]), log("a lynx", "an otter"), killed)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 9
    with opened_index(path) as index:
        assert [found.text for found in index.rows(os.fspath(places[0]))] == ["a lynx"]
    assert len(search(path, places[0], "a lynx", "an otter")) == 2


def killed(since: int) -> Iterable[IndexedPassage]:
    """Give something to write, and then end the process."""
    del since
    for number in range(200):
        yield passage(f"an otter {number} " * 200)
    os._exit(9)


def test_a_build_without_fts5_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCHEMA", "BEGIN; CREATE VIRTUAL TABLE words USING fts5_that_is_missing (text)")

    with pytest.raises(NoFullTextSearchError), opened_index(None):
        pass

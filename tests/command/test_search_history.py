"""`search_history`: the model finds what its view hides, in an index that holds no secret and can always be lost."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from forked import run_jp
from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from running import home_beside
from stage import entries_of, logs, make_workspace

SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
"""
KEY = "sk-" + "a1B2c3D4" * 5
BIG = "".join(f"{number} is fine\n" for number in range(400)) + f"the quokka failed with token={KEY}\n"
SCENARIO = """
[[reply]]
when = {{ contains = "Read" }}
times = 1
calls = [{{ name = "fs_read_file", arguments = {{ path = "big.log" }} }}]

[[reply]]
when = {{ contains = "once more" }}
times = 1
calls = [{{ name = "search_history", arguments = {{ query = "who said quokka?" }} }}]

[[reply]]
when = {{ contains = "Search" }}
times = 1
calls = [{{ name = "search_history", arguments = {{ query = "who said quokka?" }} }}]

[[reply]]
when = {{ contains = "Recall" }}
times = 1
calls = [{{ name = "recall", arguments = {{ handle = "{handle}", offset = {offset} }} }}]

[[reply]]
text = "Done."
"""


def result_of(log: Path) -> str:
    """The newest result of a tool in a log."""
    results = [entry for entry in entries_of(log) if isinstance(entry, ToolCallResponse)]
    return "\n".join(block.text or "" for block in results[-1].content if isinstance(block, TextBlock))


def searches(root: Path) -> int:
    """How often the model has searched."""
    entries = entries_of(logs(root)[0])
    return sum(isinstance(entry, ToolCallRequest) and entry.name == "search_history" for entry in entries)


def index_of(root: Path) -> Path:
    """Where the index lies."""
    (found,) = home_beside(root).rglob("history/index.sqlite3")
    return found


def rows(root: Path) -> int:
    """How many passages the index has."""
    with closing(sqlite3.connect(index_of(root))) as connection:
        (count,) = connection.execute("SELECT count(*) FROM passage").fetchone()
    return int(count)


def identity(root: Path) -> str:
    """The digits of the oldest conversation's id."""
    return logs(root)[0].parent.name.partition("-")[0]


def ask(root: Path, *words: str) -> str:
    result = run_jp("query", *words, cwd=root)
    assert result.code == 0, result.stderr
    return result.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a conversation in which a file was read whose content is hidden now."""
    root = make_workspace(tmp_path / "work", SCENARIO.format(handle="0", offset=0), settings=SETTINGS)
    (root / "big.log").write_text(BIG, encoding="utf-8")
    ask(root, "--new", "--approve", "fs_read_file", "Read it.")
    compacted = run_jp("conversation", "compact", "--keep", "0", "--tools=strip-responses", cwd=root)
    assert compacted.code == 0, compacted.stderr
    return root


def test_what_is_hidden_is_found_and_recalled_by_its_handle(root: Path) -> None:
    ask(root, "Search for it.")
    found = result_of(logs(root)[0])
    handle, _, rest = found.partition("; recall ")[2].partition(" offset ")
    scenario = SCENARIO.format(handle=handle, offset=rest.partition(" ")[0])
    (root / ".jp" / "scenarios" / "test.toml").write_text(scenario, encoding="utf-8")
    ask(root, "Recall it.")

    assert found.startswith("[turn 0; fs_read_file big.log; recall ")
    assert "the quokka failed with token=[redacted:" in found
    assert f"the quokka failed with token={KEY}" in result_of(logs(root)[0])


def test_the_index_is_private_and_holds_no_secret(root: Path) -> None:
    ask(root, "Search for it.")
    index = index_of(root)

    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    assert stat.S_IMODE(index.parent.stat().st_mode) == 0o700
    assert KEY.encode() not in index.read_bytes()
    assert KEY[:20].lower().encode() not in index.read_bytes().lower()
    assert b"quokka" in index.read_bytes()


def test_deleting_a_conversation_deletes_its_text_from_the_index(root: Path) -> None:
    ask(root, "Search for it.")
    before = rows(root)
    ask(root, "--new", "Search for the wombat.")
    both = rows(root)

    assert run_jp("conversation", "rm", "--yes", f"jp-c{identity(root)}", cwd=root).code == 0

    assert 0 < before < both
    assert rows(root) == both - before
    assert b"quokka failed" not in index_of(root).read_bytes()


def test_a_conversation_whose_directory_is_gone_leaves_the_index_with_the_next_search(root: Path) -> None:
    ask(root, "Search for it.")
    shutil.rmtree(logs(root)[0].parent)
    ask(root, "--new", "Search for the wombat.")

    assert b"quokka failed" not in index_of(root).read_bytes()
    assert rows(root) > 0


def test_a_conversation_that_is_not_kept_is_not_indexed(root: Path) -> None:
    ask(root, "--no-persist", "Search for it.")

    assert list(home_beside(root).rglob("index.sqlite3")) == []


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_index_is_made_again(damage: bytes, root: Path) -> None:
    ask(root, "Search for it.")
    index_of(root).write_bytes(damage)
    ask(root, "Search once more.")

    assert searches(root) == 2
    assert "the quokka failed" in result_of(logs(root)[0])
    assert rows(root) > 0


def test_an_index_that_another_process_writes_does_not_stop_a_search(root: Path) -> None:
    ask(root, "Search for it.")
    with closing(sqlite3.connect(index_of(root), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ask(root, "Search once more.")

    assert searches(root) == 2
    assert "the quokka failed" in result_of(logs(root)[0])


def test_what_was_undone_is_not_found_and_what_was_restored_is(root: Path) -> None:
    for _ in range(3):
        ask(root, "Search for it.")
        found = result_of(logs(root)[0])
        assert run_jp("conversation", "undo", cwd=root).code == 0
        assert "the quokka failed" in found
    for _ in range(2):
        assert run_jp("conversation", "undo", cwd=root).code == 0
    ask(root, "Search for it.")
    undone = result_of(logs(root)[0])

    assert undone.startswith("Nothing in this conversation")
    assert b"quokka failed" not in index_of(root).read_bytes()


def test_a_log_that_was_changed_elsewhere_is_indexed_again(root: Path) -> None:
    ask(root, "Search for it.")
    log = logs(root)[0]
    log.write_bytes(log.read_bytes().replace(b"Read it.", b"A quokka writes."))
    ask(root, "Search once more.")

    assert "A quokka writes." in result_of(log)
    with closing(sqlite3.connect(index_of(root))) as connection:
        texts = connection.execute("SELECT text FROM words").fetchall()
    assert ("A quokka writes.",) in texts
    assert ("Read it.",) not in texts

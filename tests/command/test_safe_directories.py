"""Workspaces of other users, and links where jp keeps its own: refused, in words, by every command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import privileges
from forked import run_jp
from running import Result, home_beside
from stage import logs, make_workspace

STRANGER = 54321
COMMANDS = (
    ("query", "--new", "hello"),
    ("query", "--dry-run", "hello"),
    ("query", "--no-persist", "--new", "hello"),
    ("conversation", "ls"),
    ("conversation", "show", "last"),
    ("conversation", "context", "last"),
    ("conversation", "compact", "last"),
    ("config", "show"),
    ("config", "explain", "assistant.model.id"),
    ("config", "set", "style.code.theme=x"),
    ("tool", "ls"),
    ("tool", "run", "fs_list_files"),
    ("model", "ls"),
    ("attachment", "ls"),
    ("workspace", "show"),
    ("workspace", "trust", "--yes"),
    ("init",),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@pytest.fixture
def planted(root: Path) -> Path:
    """A workspace whose `.jp` a stranger has made, in a directory where everybody may write."""
    as_root()
    root.chmod(0o1777)
    os.chown(root / ".jp", STRANGER, STRANGER)
    (root / "mine").mkdir()
    return root


def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to somebody else")


def refused(done: Result, root: Path) -> bool:
    return (
        done.code == 3
        and done.stdout == ""
        and f"error: '{root / '.jp'}' belongs to the user with the id {STRANGER}, so jp neither" in done.stderr
        and f"hint: if you trust that, run `jp workspace trust {root}`" in done.stderr
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_another_user_planted_above_is_refused_by_every_command(planted: Path, command: tuple[str, ...]) -> None:
    where = planted if command == ("init",) else planted / "mine"
    home_beside(where)
    before = sorted(planted.rglob("*"))

    done = run_jp(*command, cwd=where, env={"JP_USER_DATA_DIR": str(home_beside(planted) / "data")})

    assert refused(done, planted), done
    assert sorted(planted.rglob("*")) == before


@pytest.mark.parametrize("owned", [".", ".jp"])
def test_whoever_owns_the_root_or_its_jp_counts_also_where_it_is_named(root: Path, tmp_path: Path, owned: str) -> None:
    as_root()
    os.chown(root / owned, STRANGER, STRANGER)
    (tmp_path / "elsewhere").mkdir()

    for done in (
        run_jp("query", "--new", "hello", cwd=root),
        run_jp("-w", str(root), "conversation", "ls", cwd=tmp_path / "elsewhere"),
        run_jp("query", "--workspace", "../work", "hello", cwd=tmp_path / "elsewhere"),
    ):
        assert refused(done, root), done


def test_the_command_of_the_hint_accepts_it_until_its_owner_changes(planted: Path) -> None:
    env = {"JP_USER_DATA_DIR": str(home_beside(planted) / "data")}
    alone = run_jp("workspace", "trust", str(planted), cwd=planted / "mine", env=env)
    assert (alone.code, "nobody can be asked here" in alone.stderr) == (3, True), alone

    accepted = run_jp("workspace", "trust", "--yes", str(planted), cwd=planted / "mine", env=env)
    assert accepted.code == 0, accepted

    done = run_jp("query", "--new", "hello", cwd=planted / "mine", env=env)
    assert (done.code, done.stdout) == (0, "You said: hello\n"), done
    os.chown(planted / ".jp", STRANGER + 1, -1)
    again = run_jp("query", "--new", "hello", cwd=planted / "mine", env=env)
    assert (again.code, f"the id {STRANGER + 1}," in again.stderr) == (3, True), again


def test_what_a_workspace_says_cannot_accept_its_owner(planted: Path) -> None:
    (planted / ".jp" / "config.toml").write_text('[workspace]\nsafe_directories = ["*"]\n', encoding="utf-8")
    (planted / ".jp" / "trust").mkdir()

    assert refused(run_jp("query", "hello", cwd=planted), planted)


def test_below_a_strangers_workspace_one_of_ones_own_can_be_made_and_used(planted: Path) -> None:
    made = run_jp("init", "--model", "script/test", cwd=planted / "mine")
    listed = run_jp("conversation", "ls", cwd=planted / "mine")

    assert (made.code, listed.code) == (0, 0), (made, listed)


def test_who_makes_a_workspace_in_somebody_elses_directory_has_accepted_it(tmp_path: Path) -> None:
    as_root()
    (tmp_path / "work").mkdir()
    os.chown(tmp_path / "work", STRANGER, STRANGER)

    made = run_jp("init", "--model", "script/test", cwd=tmp_path / "work")
    listed = run_jp("conversation", "ls", cwd=tmp_path / "work")

    assert (made.code, listed.code) == (0, 0), (made, listed)


@pytest.mark.parametrize(("caller", "code"), [(str(STRANGER), 0), ("1", 3), ("", 3), ("-5", 3), ("٣", 3)])
def test_under_sudo_the_files_of_who_ran_it_are_ones_own(root: Path, caller: str, code: int) -> None:
    as_root()
    os.chown(root, STRANGER, STRANGER)
    os.chown(root / ".jp", STRANGER, STRANGER)

    assert run_jp("conversation", "ls", cwd=root, env={"SUDO_UID": caller}).code == code


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users reach, unlike pytest's own."""
    with TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        yield Path(scratch)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no users in this sense")
def test_a_user_without_privileges_is_refused_what_root_or_another_one_made(public: Path) -> None:
    as_root()
    root = make_workspace(public / "work")
    own = home_beside(root)
    own.mkdir(exist_ok=True)
    for path in (own, *own.rglob("*")):
        os.chown(path, privileges.NOBODY, privileges.NOBODY)
    nobody = {"SUDO_UID": "0", "JP_USER_DATA_DIR": str(own / "data")}

    done = run_jp("query", "--new", "hello", cwd=root, env=nobody, script=privileges.as_nobody())

    assert (done.code, "belongs to the user 'root', so jp" in done.stderr) == (3, True), done
    for path in (root, *root.rglob("*")):
        os.chown(path, privileges.NOBODY, privileges.NOBODY)
    asked = run_jp("query", "--new", "hello", cwd=root, env=nobody, script=privileges.as_nobody())
    assert (asked.code, asked.stdout) == (0, "You said: hello\n"), asked


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_jp_that_is_a_link_is_refused(root: Path, tmp_path: Path, target: str) -> None:
    (root / ".jp").rename(tmp_path / "there")
    (root / ".jp").symlink_to(tmp_path / target)

    done = run_jp("query", "--new", "hello", cwd=root)

    assert (done.code, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: '{root / '.jp'}' is a link, and jp follows none here\nhint: move the dir")
    assert not (tmp_path / "there" / "conversations").exists()


@pytest.mark.parametrize("linked", ["conversations", "conversations/one", "conversations/one/events.jsonl"])
def test_conversations_behind_a_link_are_neither_read_nor_written(root: Path, tmp_path: Path, linked: str) -> None:
    run_jp("query", "--new", "hello", cwd=root)
    (log,) = logs(root)
    conversation = f"jp-c{log.parent.name.partition('-')[0]}"
    place = root / ".jp" / linked.replace("one", log.parent.name)
    away = tmp_path / "away"
    place.rename(away)
    place.symlink_to(away)
    kept = {path: path.read_bytes() for path in [away, *away.rglob("*")] if path.is_file()}

    done = run_jp("query", "--id", conversation, "again", cwd=root)
    shown = run_jp("conversation", "print", conversation, cwd=root)

    assert (done.code, shown.code, done.stdout, shown.stdout) == (1, 1, "", ""), (done, shown)
    assert all("link" in result.stderr and str(place) in result.stderr for result in (done, shown)), (done, shown)
    assert {path: path.read_bytes() for path in [away, *away.rglob("*")] if path.is_file()} == kept


def test_a_new_conversation_is_not_made_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (root / ".jp" / "conversations").symlink_to(tmp_path / "away")

    done = run_jp("query", "--new", "hello", cwd=root)

    assert (done.code, done.stdout, list((tmp_path / "away").iterdir())) == (1, "", []), done
    assert "link" in done.stderr


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_is_attached_is_not_kept_behind_a_link(root: Path, tmp_path: Path, depth: int) -> None:
    (root / "a.txt").write_text("line\n" * 20_000, encoding="utf-8")
    assert run_jp("query", "--new", "--attach", "a.txt", "hello", cwd=root).code == 0
    (blob,) = [path for path in (root / ".jp" / "blobs").rglob("*") if path.is_file()]
    place = [root / ".jp" / "blobs", blob.parent.parent, blob.parent][depth]
    away = tmp_path / "away"
    place.rename(away)
    place.symlink_to(away)
    kept = sorted(away.rglob("*"))

    shown = run_jp("conversation", "print", "last", cwd=root)
    asked = run_jp("query", "--id", "last", "again", cwd=root)
    done = run_jp("query", "--new", "--attach", "a.txt", "hello", cwd=root)

    assert (asked.code, done.code) == (1, 1), (shown, asked, done)
    assert all("link" in result.stderr for result in (asked, done)), (asked, done)
    assert sorted(away.rglob("*")) == kept

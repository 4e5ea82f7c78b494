"""What a cloned repository may do before its user has looked at it, and what its user need not be asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest, ToolCallResponse
from running import Result, home_beside
from stage import copied, entries_of, logs, make_workspace

READ = "conversation.tools.fs_read_file"
UNATTENDED = f'[{READ}]\nenable = true\nrun = "unattended"\n'
TYPED = ("-c", f"{READ}.enable=true", "-c", f"{READ}.run=unattended")
READING = """
[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
text = "done"
"""


def last_entries(root: Path, kind: type[Any]) -> list[Any]:
    return [entry for entry in entries_of(logs(root)[-1]) if isinstance(entry, kind)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work", READING)
    (root / "a.txt").write_text("content", encoding="utf-8")
    prepare(["query", "one"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """A workspace with a conversation."""
    return copied(prepared, tmp_path / "clone")


def let_declare(root: Path, attachments: list[str] | None = None, *, tool: bool = False) -> None:
    """Have the conversation say what its user has never seen, as one that a stranger has written."""
    base = logs(root)[0].parent / "base_config.json"
    config = json.loads(base.read_bytes())
    if attachments is not None:
        config["conversation"]["attachments"]["value"] = attachments
    if tool:
        config["conversation"]["tools"]["value"] = {"fs_read_file": {"enable": True, "run": "unattended"}}
    base.write_text(json.dumps(config), encoding="utf-8")


def test_what_a_users_file_lets_a_conversation_keep_is_not_asked_about_again(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING)
    (tmp_path / "a.txt").write_text("content", encoding="utf-8")
    own = home_beside(tmp_path) / "config" / "config.toml"
    own.parent.mkdir()
    own.write_text(UNATTENDED, encoding="utf-8")

    created = run_jp("query", "read it", cwd=tmp_path)
    own.unlink()
    continued = run_jp("query", "--id", "last", "read it again", cwd=tmp_path)
    forked = run_jp("query", "--fork", "--id", "last", "read it again", cwd=tmp_path)

    assert [created.code, continued.code, forked.code] == [0, 0, 0]
    assert [response.is_error for response in last_entries(tmp_path, ToolCallResponse)] == [False] * 3
    assert "ignored" not in continued.stderr + forked.stderr


def test_a_conversation_keeps_the_trust_that_it_was_created_with(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings=UNATTENDED)
    prepare(["workspace", "trust", "--yes"], ["query", "one"], cwd=tmp_path)
    make_workspace_again(tmp_path)
    run_jp("workspace", "trust", "--yes", cwd=tmp_path)

    assert run_jp("query", "--id", "last", "two", cwd=tmp_path).code == 0


def make_workspace_again(root: Path) -> None:
    (root / ".jp" / "config.toml").write_text('[assistant.model]\nid = "script/test"\n', encoding="utf-8")


def test_what_a_strangers_conversation_declares_is_accepted_for_it_alone(root: Path) -> None:
    let_declare(root, tool=True)

    untrusted = run_jp("query", "--id", "last", "read it", cwd=root)
    of_files = run_jp("workspace", "trust", "--yes", cwd=root)
    still = run_jp("query", "--id", "last", "read it", cwd=root)
    trusted = run_jp("workspace", "trust", "--yes", "--id", "last", cwd=root)
    asked = run_jp("query", "--id", "last", "read it", cwd=root)
    (root / ".jp.toml").write_text(UNATTENDED, encoding="utf-8")
    elsewhere = run_jp("query", "--new", "read it", cwd=root)

    assert (untrusted.code, still.code) == (8, 8)
    assert f"ignored until trusted: {READ}.run = 'unattended'" in untrusted.stderr
    assert "`jp workspace trust --id jp-c" in untrusted.stderr
    assert of_files.stdout == "this workspace declares nothing that needs trust\n"
    assert f"{READ}.run = 'unattended' (the conversation's base configuration)" in trusted.stdout
    assert asked.code == 0
    assert elsewhere.code == 8
    assert "`jp workspace trust`" in elsewhere.stderr


def test_changing_attachments_accepts_nothing_of_a_stranger(root: Path) -> None:
    let_declare(root, ["cmd:rm%20-rf%20x", "file:a.txt"], tool=True)

    removed = run_jp("attachment", "rm", "--id", "last", "a.txt", cwd=root)
    added = run_jp("attachment", "add", "--id", "last", "a.txt", *TYPED[:2], cwd=root)
    asked = run_jp("query", "--id", "last", "read it", cwd=root)
    printed = run_jp("attachment", "print", "--id", "last", cwd=root)

    assert (removed.stdout, added.stdout) == ("cmd:rm%20-rf%20x\n", "cmd:rm%20-rf%20x\nfile:a.txt\n")
    check_failure(asked, 3, f"ignored until trusted: {READ}.run = 'unattended'", "attachments = 'cmd:rm%20-rf%20x'")
    check_failure(printed, 3, "conversation.attachments = 'cmd:rm%20-rf%20x'")


def test_init_trusts_nothing_that_was_there(tmp_path: Path) -> None:
    (tmp_path / ".jp.toml").write_text('[providers.llm.anthropic]\nbase_url = "http://127.0.0.1:9"\n', encoding="utf-8")

    run_jp("init", "--yes", "--model", "anthropic/x", cwd=tmp_path)
    asked = run_jp("query", "hi", cwd=tmp_path, env={"ANTHROPIC_API_KEY": "sk-test-0123456789"})
    shown = run_jp("workspace", "show", cwd=tmp_path)

    check_failure(asked, 3, "base_url = 'http://127.0.0.1:9'")
    assert "not given yet: `jp workspace trust`" in shown.stdout


def test_trust_in_one_directory_does_not_end_it_in_another(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings=UNATTENDED)
    below = tmp_path / "below"
    below.mkdir()
    (below / ".jp.toml").write_text('[editor]\ncmd = "vi"\n', encoding="utf-8")
    home = home_beside(tmp_path)
    mine = {"HOME": str(home), "JP_USER_DATA_DIR": str(home / "data")}

    def in_directory(where: Path, *arguments: str) -> Result:
        return run_jp(*arguments, cwd=where, env=mine)

    in_directory(tmp_path, "workspace", "trust", "--yes")
    before = in_directory(below, "query", "hi")
    in_directory(below, "workspace", "trust", "--yes")

    assert "ignored until trusted: editor.cmd = 'vi'" in before.stderr
    assert in_directory(below, "query", "hi").stderr == ""
    assert in_directory(tmp_path, "query", "hi").stderr == ""


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/hostname",
        "file:%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/hostname",
        "link",
        "~/.bashrc",
    ],
)
def test_what_a_repository_attaches_stays_inside_it(root: Path, uri: str) -> None:
    let_declare(root, [uri])
    (root / "link").symlink_to("/etc/hostname")
    (home_beside(root) / ".bashrc").touch()

    continued = run_jp("query", "--id", "last", "two", cwd=root)
    printed = run_jp("attachment", "print", "--id", "last", cwd=root)

    check_failure(continued, 10, "leads outside of")
    check_failure(printed, 10, "leads outside of")
    assert len(last_entries(root, ChatRequest)) == 1


def test_a_repositorys_glob_leaves_links_out(root: Path) -> None:
    let_declare(root, ["**/*"])
    (root / "link").symlink_to("/etc/hostname")

    result = run_jp("query", "--id", "last", "two", cwd=root)

    assert result.code == 0
    assert "skipped 'link': a link to a target outside" in result.stderr
    assert [resource.name for resource in last_entries(root, ChatRequest)[-1].resources] == ["a.txt"]


def test_what_a_user_adds_may_lie_anywhere(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    outside = tmp_path / "notes.md"
    outside.write_text("notes", encoding="utf-8")
    run_jp("query", "one", cwd=root)

    run_jp("attachment", "add", "../notes.md", cwd=root)
    printed = run_jp("attachment", "print", cwd=root)
    asked = run_jp("query", "--id", ".", "two", cwd=root)

    assert "notes" in printed.stdout
    assert asked.code == 0
    assert [resource.text for resource in last_entries(root, ChatRequest)[-1].resources] == ["notes"]


def test_what_is_forgotten_with_a_conversation_is_not_accepted_any_more(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING)
    run_jp("query", *TYPED, "one", cwd=tmp_path)
    decisions = home_beside(tmp_path) / "data" / "trust"
    assert len(list(decisions.iterdir())) == 1

    run_jp("conversation", "rm", "--yes", "last", cwd=tmp_path)

    assert list(decisions.iterdir()) == []


def test_a_change_to_a_trusted_file_asks_again(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings=UNATTENDED)
    trusted = run_jp("workspace", "trust", "--yes", "-F", "json", cwd=tmp_path)
    (tmp_path / ".jp.toml").write_text('[editor]\ncmd = "touch ran"\n', encoding="utf-8")

    asked = run_jp("query", "hi", cwd=tmp_path)

    assert [value["key"] for value in json.loads(trusted.stdout)["trusted"]] == [f"{READ}.run"]
    assert "ignored until trusted: editor.cmd = 'touch ran'" in asked.stderr
    assert READ not in asked.stderr


def test_trust_needs_a_person_or_yes(tmp_path: Path) -> None:
    make_workspace(tmp_path, READING, settings=UNATTENDED)

    check_failure(run_jp("workspace", "trust", cwd=tmp_path), 3, "add --yes", f"{READ}.run = 'unattended'")
    check_failure(run_jp("workspace", "trust", "--yes", "-!", cwd=tmp_path), 2, "--no-persist")
    assert f"ignored until trusted: {READ}.run = 'unattended'" in run_jp("query", "hi", cwd=tmp_path).stderr

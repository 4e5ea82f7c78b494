"""`jp init`: what it finds, what it takes, and what it says is next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from loopback import JSON, Loopback, Reply
from running import home_beside
from terminal import jp_at_terminal

KEY = {"ANTHROPIC_API_KEY": "sk-ant-0123456789-secret"}
UNSET = (
    "no model is set yet: `jp config set assistant.model.id=anthropic/claude-sonnet-5-5`\n"
    "its key: `jp keys set anthropic`\n"
    "`jp model ls` lists others\n"
)


def keep_key(cwd: Path, mode: int) -> None:
    """Store the key as `jp keys set` does."""
    file = home_beside(cwd) / "data" / "keys.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"anthropic": KEY["ANTHROPIC_API_KEY"]}), encoding="utf-8")
    file.chmod(mode)


def test_without_a_terminal_and_without_yes_nothing_is_looked_for(tmp_path: Path) -> None:
    done = run_jp("init", cwd=tmp_path, env=KEY)
    again = run_jp("init", cwd=tmp_path, env=KEY)

    assert done == (0, f"created the workspace at {tmp_path}\n{UNSET}", "")
    assert again == (0, f"kept the workspace at {tmp_path}\n{UNSET}", "")
    assert not (tmp_path / ".jp" / "config.toml").exists()


@pytest.mark.parametrize("stored", [True, False])
def test_with_yes_the_only_model_that_can_be_used_is_taken(tmp_path: Path, *, stored: bool) -> None:
    if stored:
        keep_key(tmp_path, 0o600)

    done = run_jp("init", "--yes", "--format", "json", cwd=tmp_path, env={} if stored else KEY)

    model = "anthropic/claude-sonnet-5-5"
    because = "its key is stored" if stored else "ANTHROPIC_API_KEY is set"
    assert json.loads(done.stdout) == {
        "schema": 1,
        "root": str(tmp_path),
        "model": model,
        "created": True,
        "detected": [{"model": model, "because": because}],
    }
    assert run_jp("config", "get", "assistant.model.id", cwd=tmp_path).stdout == f"{model}\n"
    assert "sk-ant" not in done.stdout + done.stderr


def test_the_model_of_a_workspace_that_is_kept_is_said(tmp_path: Path) -> None:
    run_jp("init", "--model", "script/a", cwd=tmp_path)

    kept = run_jp("init", "--format", "json", cwd=tmp_path)

    assert json.loads(kept.stdout) == {
        "schema": 1,
        "root": str(tmp_path),
        "model": "script/a",
        "created": False,
        "detected": [],
    }


def test_a_model_of_the_users_own_file_holds_in_a_new_workspace(tmp_path: Path) -> None:
    run_jp("config", "set", "--in", "user", "assistant.model.id=script/mine", cwd=tmp_path)

    made = run_jp("init", cwd=tmp_path)

    said = f'created the workspace at {tmp_path}\nmodel: script/mine\nask it something: `jp query "hello"`\n'
    assert made == (0, said, "")
    assert not (tmp_path / ".jp" / "config.toml").exists()


def test_a_model_that_is_named_holds_at_once_and_so_does_what_is_set_later(tmp_path: Path) -> None:
    run_jp("config", "set", "--in", "user", "assistant.model.id=ollama/mine", cwd=tmp_path)

    made = run_jp("init", "--model", "script/other", cwd=tmp_path)
    scenario = tmp_path / ".jp" / "scenarios" / "other.toml"
    scenario.parent.mkdir()
    scenario.write_text('[[reply]]\ntext = "It is I."\n', encoding="utf-8")
    run_jp("config", "set", "conversation.tools.run_command.run=unattended", cwd=tmp_path)
    asked = run_jp("query", "--new", "hello", cwd=tmp_path)

    assert made.code == 0, made.stderr
    assert asked == (0, "It is I.\n", "")


def test_what_is_set_where_nobody_has_trusted_the_files_is_said_to_be_ignored(tmp_path: Path) -> None:
    run_jp("init", cwd=tmp_path)
    config = tmp_path / ".jp" / "config.toml"
    config.write_text('[conversation.tools.fs_read_file]\nrun = "unattended"\n', encoding="utf-8")

    done = run_jp("config", "set", "conversation.tools.run_command.run=unattended", cwd=tmp_path)

    assert done.code == 0
    assert "ignored until trusted: conversation.tools.fs_read_file.run" in done.stderr
    assert "conversation.tools.run_command.run = 'unattended'" in done.stderr


def test_a_link_in_a_workspace_is_not_written_through(tmp_path: Path) -> None:
    run_jp("init", cwd=tmp_path)
    run_jp("config", "set", "--in", "user", "user.name=Ada", cwd=tmp_path)
    own = home_beside(tmp_path) / "config" / "config.toml"
    before = own.read_bytes()
    for link, words in (
        (tmp_path / ".jp" / "config.toml", ()),
        (tmp_path / ".jp.toml", ("--in", "cwd")),
    ):
        link.symlink_to(own)

        done = run_jp("config", "set", *words, "conversation.tools.run_command.run=unattended", cwd=tmp_path)

        assert done.code != 0
        assert "is a link, and is not written through" in done.stderr
        assert own.read_bytes() == before
        link.unlink()


def test_with_yes_and_nothing_found_no_model_is_set(tmp_path: Path) -> None:
    assert run_jp("init", "--yes", cwd=tmp_path) == (0, f"created the workspace at {tmp_path}\n{UNSET}", "")


def test_what_is_missing_for_the_model_is_said(tmp_path: Path) -> None:
    def of(model: str, **env: str) -> str:
        return run_jp("init", "--model", model, cwd=tmp_path, env=env).stdout

    key = "its key: `jp keys set anthropic`, or export ANTHROPIC_API_KEY=…\n"
    assert key in of("anthropic/claude-haiku-4-5")
    assert key not in of("anthropic/claude-haiku-4-5", **KEY)
    assert key not in of("script/demo")


def test_a_workspace_around_the_new_one_is_said(tmp_path: Path) -> None:
    root = tmp_path / "work"
    run_jp("init", "--yes", "--model", "script/a", str(root), cwd=tmp_path)

    inner = run_jp("init", "--model", "script/b", "inner", cwd=root)
    again = run_jp("init", "--model", "script/b", "inner", cwd=root)

    assert inner.stdout.startswith(f"created the workspace at {root}/inner\nmodel: script/b\n")
    assert inner.stderr == f"note: the workspace at '{root}' lies around this one; in here, this one is used\n"
    assert again.stderr == ""


def test_a_key_file_that_cannot_be_used_does_not_stand_in_the_way(tmp_path: Path) -> None:
    keep_key(tmp_path, 0o644)

    assert run_jp("init", "--yes", cwd=tmp_path) == (0, f"created the workspace at {tmp_path}\n{UNSET}", "")


def test_a_server_of_the_users_own_has_models_and_an_alias_is_one(tmp_path: Path) -> None:
    settings = home_beside(tmp_path) / "config" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(
        '[providers.llm.mine]\nbase_url = "http://box/v1"\napi_key_env = "BOX_KEY"\n'
        '[providers.llm.aliases]\nsmart = "mine/large"\n',
        encoding="utf-8",
    )

    plain = run_jp("init", "--model", "mine/large", "a", cwd=tmp_path)
    keyed = run_jp("init", "--model", "smart", "b", cwd=tmp_path, env={"BOX_KEY": "k"})

    key = "its key: `jp keys set mine`, or export BOX_KEY=…\n"
    ask = 'ask it something: `jp query "hello"`\n'
    assert plain == (0, f"created the workspace at {tmp_path}/a\nmodel: mine/large\n{key}{ask}", "")
    assert keyed == (0, f"created the workspace at {tmp_path}/b\nmodel: smart\n{ask}", "")
    check_failure(run_jp("init", "--model", "mien/x", "c", cwd=tmp_path), 3, "did you mean 'mine'?")
    assert not (tmp_path / "c").exists()


def test_a_server_on_this_machine_is_found_with_its_model(tmp_path: Path) -> None:
    listed = Reply(body=b'{"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}]}', headers=JSON)
    with Loopback(otherwise=listed) as server:
        environment = {"OLLAMA_HOST": server.url}
        # It has a third of a second, which a busy machine may not have.
        tries = (run_jp("init", "--yes", str(number), cwd=tmp_path, env=environment) for number in range(20))
        done = next(done for done in tries if "no model" not in done.stdout)

    assert done.stdout.splitlines()[1:] == ["model: ollama/qwen3:8b", 'ask it something: `jp query "hello"`']


def test_a_model_that_was_found_may_be_named_by_its_number(tmp_path: Path) -> None:
    with jp_at_terminal("init", cwd=tmp_path, env={**KEY, "OPENAI_API_KEY": "sk-test-key"}) as terminal:
        terminal.question(
            r"^  1  anthropic/.*: ANTHROPIC_API_KEY is\s+set\n  2  openai/.*: OPENAI_API_KEY is\s+set\nModel: \[.*\]$"
        )
        terminal.type("3\n")
        terminal.question(r"^'3' is neither a model nor an alias\n(.|\n)*\nModel: \[.*\]$")
        terminal.type("2\n")
        assert terminal.finish() == 0

    assert "\nmodel: openai/" in terminal.screen.text

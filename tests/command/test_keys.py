"""`jp keys`: where keys are kept, in which order they count, and that none is ever shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from loopback import JSON, Loopback, Reply
from running import Result, home_beside
from stage import make_workspace
from terminal import CTRL_C, CTRL_D, jp_at_terminal

KEY = "sk-ant-0123456789-stored"
OTHER = "sk-ant-0123456789-others"
MODEL = ("--new", "--model", "anthropic/claude-haiku-4-5", "-c", "assistant.request.max_retries=0")


def store(cwd: Path, key: str = KEY, **env: str) -> Result:
    return run_jp("keys", "set", "anthropic", "--stdin", cwd=cwd, stdin=f"{key}\n", env=env)


def file_of(cwd: Path) -> Path:
    return home_beside(cwd) / "data" / "keys.json"


def keep(cwd: Path, text: str = json.dumps({"anthropic": KEY})) -> Path:
    """Write the file as if jp had."""
    file = file_of(cwd)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def ring_of(cwd: Path) -> dict[str, str]:
    """An environment with a working keyring."""
    return {"PYTHON_KEYRING_BACKEND": "ring_backend.FileRing", "RING_FILE": str(home_beside(cwd) / "ring")}


def key_sent(cwd: Path, **env: str) -> str:
    """The key that a query sends."""
    with Loopback(Reply(status=401)) as server:
        base_url = f"providers.llm.anthropic.base_url={server.url}"
        run_jp("query", *MODEL, "-c", base_url, "-vv", "hi", cwd=cwd, env=env)
        return server.requests[0].headers["x-api-key"]


def line_of(listed: Result, provider: str) -> str:
    """What is listed for a provider."""
    assert (listed.code, listed.stderr) == (0, "")
    return next(line.removeprefix(provider).strip() for line in listed.stdout.splitlines() if line.startswith(provider))


def test_a_key_is_kept_in_a_file_for_the_user_alone(tmp_path: Path) -> None:
    before = run_jp("keys", "ls", cwd=tmp_path)
    stored = store(tmp_path)
    file = file_of(tmp_path)
    listed = run_jp("keys", "ls", cwd=tmp_path)
    data = json.loads(run_jp("keys", "ls", "-F", "json", cwd=tmp_path).stdout)

    assert line_of(before, "anthropic") == "none: store one with `jp keys set anthropic`"
    assert line_of(before, "ollama") == "none, and it needs none"
    assert stored == (0, f"the key for anthropic is stored in {str(file)!r}\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text(encoding="utf-8")) == {"anthropic": KEY}
    assert line_of(listed, "anthropic") == f"file {file}  …ored"
    assert data["schema"] == 1
    assert data["keys"][0] == {"provider": "anthropic", "source": "file", "where": str(file), "ending": "…ored"}
    assert key_sent(tmp_path) == KEY


def test_the_environment_goes_before_the_keyring_and_that_before_the_file(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    keep(tmp_path)
    in_ring = store(tmp_path, **ring)

    assert in_ring == (0, "the key for anthropic is stored in the keyring\n", "")
    assert json.loads(file_of(tmp_path).read_text(encoding="utf-8")) == {"anthropic": ""}
    assert line_of(run_jp("keys", "ls", cwd=tmp_path, env=ring), "anthropic") == "keyring  …ored"
    keep(tmp_path, json.dumps({"anthropic": OTHER}))
    assert key_sent(tmp_path, **ring) == KEY
    assert key_sent(tmp_path) == OTHER
    assert key_sent(tmp_path, **ring, ANTHROPIC_API_KEY="sk-env") == "sk-env"
    configured = {"JP_CFG_PROVIDERS_LLM_ANTHROPIC_API_KEY_ENV": "MINE", "ANTHROPIC_API_KEY": "sk-env"}
    assert key_sent(tmp_path, **configured, MINE="sk-mine") == "sk-mine"
    assert key_sent(tmp_path, **configured) == "sk-env"
    shadowed = store(tmp_path, ANTHROPIC_API_KEY="sk-env")
    assert shadowed.stderr == "note: ANTHROPIC_API_KEY is set in the environment, and goes before the stored key\n"
    listed = run_jp("keys", "ls", cwd=tmp_path, env={"ANTHROPIC_API_KEY": "sk-env"})
    assert line_of(listed, "anthropic") == "environment ANTHROPIC_API_KEY"


def test_a_key_is_deleted_wherever_it_is_stored(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    Path(ring["RING_FILE"]).write_text(json.dumps({"jp/anthropic": KEY}), encoding="utf-8")
    keep(tmp_path)

    deleted = run_jp("keys", "rm", "anthropic", cwd=tmp_path, env=ring)
    again = run_jp("keys", "rm", "anthropic", cwd=tmp_path, env=ring)
    elsewhere = run_jp("keys", "rm", "anthropic", cwd=tmp_path, env={"ANTHROPIC_API_KEY": KEY})

    assert deleted == (0, f"deleted the key for anthropic from the keyring and {str(file_of(tmp_path))!r}\n", "")
    check_failure(again, 1, "no key is stored for 'anthropic'")
    check_failure(elsewhere, 1, "unset ANTHROPIC_API_KEY")


def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    keep(tmp_path).chmod(0o640)

    for arguments in (["keys", "ls"], ["keys", "rm", "anthropic"], ["query", *MODEL, "hi"]):
        check_failure(run_jp(*arguments, cwd=tmp_path), 3, "other users may read", f"chmod 600 {file_of(tmp_path)}")
    check_failure(store(tmp_path, OTHER), 3, "other users may read")
    assert OTHER not in file_of(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize("content", ["[]", '{"anthropic": 1}', '{"anthropic": "sk-secret-0123456789'])
def test_a_file_that_holds_something_else_is_not_shown(content: str, tmp_path: Path) -> None:
    keep(tmp_path, content)

    done = run_jp("-vv", "keys", "ls", cwd=tmp_path)

    assert done.code == 3
    assert "is not a valid key file" in done.stderr
    assert "sk-secret" not in done.stderr


def test_a_keyring_that_does_not_answer_is_said_only_where_nothing_else_helps(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    Path(ring["RING_FILE"]).mkdir()

    check_failure(
        run_jp("query", *MODEL, "hi", cwd=tmp_path, env=ring), 4, "cannot read the keyring", "keyring.backends.null"
    )
    assert store(tmp_path, **ring).stdout == f"the key for anthropic is stored in {str(file_of(tmp_path))!r}\n"
    assert key_sent(tmp_path, **ring) == KEY
    assert run_jp("keys", "rm", "anthropic", cwd=tmp_path, env=ring).code == 4


def test_what_a_provider_does_not_accept_is_repaired_where_it_is_kept(tmp_path: Path) -> None:
    keep(tmp_path)
    error = {"type": "error", "error": {"type": "authentication_error", "message": f"invalid key {KEY}"}}
    reply = Reply(status=401, body=json.dumps(error).encode(), headers=JSON)

    with Loopback(reply, reply) as server:
        base_url = f"providers.llm.anthropic.base_url={server.url}"
        stored = run_jp("query", *MODEL, "-c", base_url, "-vv", "hi", cwd=tmp_path)
        exported = run_jp("query", *MODEL, "-c", base_url, "hi", cwd=tmp_path, env={"ANTHROPIC_API_KEY": OTHER})

    assert (stored.code, exported.code) == (4, 4)
    assert f"hint: replace the key in {str(file_of(tmp_path))!r}: `jp keys set anthropic`\n" in stored.stderr
    hint = "check the key in ANTHROPIC_API_KEY, or unset it and store one with `jp keys set anthropic`"
    assert f"hint: {hint}\n" in exported.stderr
    assert KEY not in stored.stdout + stored.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [
        (["set", "anthropic"], KEY, 2, "jp keys set anthropic --stdin"),
        (["set", "anthropic", "--stdin"], " \n", 2, "no key was given"),
        (["set", "anthropic", "--stdin"], "sk-secret\nsk-secret", 3, "characters that are not valid in a key"),
        (["set", "script", "--stdin"], KEY, 2, "'script' needs no key"),
        (["set", "nobody", "--stdin"], KEY, 3, "there is no provider 'nobody'"),
        (["set", "anthropic", "--stdin", "--no-persist"], KEY, 2, "--no-persist"),
        (["set", "anthropic", "sk-secret"], None, 2, "unexpected extra argument"),
        (["rm", "script"], None, 2, "'script' needs no key"),
        (["rm", "anthropic", "-!"], None, 2, "--no-persist"),
    ],
)
def test_what_cannot_be_stored_is_refused(
    arguments: list[str], stdin: str | None, code: int, words: str, *, tmp_path: Path
) -> None:
    done = run_jp("keys", *arguments, cwd=tmp_path, stdin=stdin)

    assert (done.code, done.stdout) == (code, "")
    assert words in done.stderr
    assert "sk-s" not in done.stderr.replace("(sk-secret)", "")
    assert not file_of(tmp_path).exists()


def test_a_stranger_cannot_name_the_variable_whose_end_is_shown(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[providers.llm.anthropic]\napi_key_env = "AWS_SECRET_ACCESS_KEY"')

    listed = run_jp("keys", "ls", cwd=tmp_path, env={"AWS_SECRET_ACCESS_KEY": "0123456789012345678901234567890123"})

    assert line_of(listed, "anthropic") == "none: store one with `jp keys set anthropic`"


def test_a_key_is_asked_for_without_being_shown(tmp_path: Path) -> None:
    with jp_at_terminal("keys", "set", "anthropic", cwd=tmp_path) as terminal:
        terminal.question(r"^Key for anthropic \(it is not shown\):$")
        terminal.type(f"{KEY}\n")
        assert terminal.finish() == 0

    assert KEY not in terminal.shown
    assert json.loads(file_of(tmp_path).read_text(encoding="utf-8")) == {"anthropic": KEY}


@pytest.mark.parametrize(("keys", "code"), [(CTRL_C, 130), (CTRL_D, 2), ("\n", 2)])
def test_who_types_no_key_changes_nothing(keys: str, code: int, tmp_path: Path) -> None:
    with jp_at_terminal("keys", "set", "anthropic", cwd=tmp_path) as terminal:
        terminal.question(r"shown\):$")
        terminal.type(keys)
        assert terminal.finish() == code

    assert not file_of(tmp_path).exists()

"""Bad input of every kind: an exit code, one line that says what failed, one that mends it, and nothing written."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import running
from failures import check_failure, json_error
from forked import run_jp
from jp.conversation.entries import ChatRequest
from privileges import bound_by_permissions
from running import JP, Result, home_beside, isolated_environment
from stage import ECHO, entries_of, logs, make_workspace

ANTHROPIC = ("--model", "anthropic/claude-haiku-4-5")
BASE_URL = "providers.llm.anthropic.base_url"
ALIASES = "providers.llm.aliases"


def run_raw(
    *arguments: bytes | str, cwd: Path, stdin: bytes = b"", environment: Mapping[str, bytes | str] | None = None
) -> Result:
    """Run jp with bytes that no text can hold, in an environment that may hold them, too."""
    known: dict[str, bytes | str] = {**isolated_environment(home_beside(cwd)), **(environment or {})}
    done = subprocess.run(
        [*map(os.fsencode, JP), *map(os.fsencode, arguments)],
        cwd=cwd,
        env={os.fsencode(name): os.fsencode(value) for name, value in known.items()},
        input=stdin,
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (["--model", "a", "-c", f"{ALIASES}.a=b", "-c", f"{ALIASES}.b=a"], {}, 3, "a → b → a"),
        (["--model", ""], {}, 3, "'' is neither a model nor an alias"),
        (["--model", "opnai/gpt-5"], {}, 3, "did you mean 'openai'"),
        ([*ANTHROPIC], {"ANTHROPIC_API_KEY": " "}, 4, "'ANTHROPIC_API_KEY' is not set"),
        ([*ANTHROPIC], {"ANTHROPIC_API_KEY": "sk-a\nX-Evil: 1"}, 3, "characters that no key has"),
        ([*ANTHROPIC, "-c", f"{BASE_URL}=http://localhost:65536"], {}, 3, "expects an address"),
        ([*ANTHROPIC, "-c", f"{BASE_URL}=file:///etc/passwd"], {}, 3, "such as"),
        (["-c", "/"], {}, 3, "no configuration is called '/'"),
        (["-c", "assistant.request.max_retries=many"], {}, 3, "max_retries = 1"),
        (["-c", "assistant.model=x"], {}, 3, "assistant.model:={…}"),
        (["-p", "temperature=hot"], {}, 3, "temperature = 1.0"),
        (["-p", "=1"], {}, 3, "is not a key"),
        (["--reasoning", "-5"], {}, 3, "'-5'"),
        ([], {"JP_CFG_ASSISTANT_REQUEST_MAX_RETRIES": "many"}, 3, "JP_CFG_ASSISTANT_REQUEST_MAX_RETRIES"),
        ([], {"JP_CFG_NOTHING": "1"}, 3, "JP_CFG_NOTHING means no known key"),
        (["--approve", "fs_raed_file"], {}, 2, "unknown tool 'fs_raed_file'"),
        (["--workspace", ""], {}, 2, "--workspace is empty"),
        (["--workspace", "/nonexistent"], {}, 2, "'/nonexistent' is not the root of a workspace"),
        (["--wait", "-1"], {}, 2, "--wait cannot be '-1'"),
        (["--deadline"], {}, 2, "--deadline needs a value"),
        (["--new=1"], {}, 2, "--new takes no value"),
        (["--approve-all", "--deny-all"], {}, 2, "exclude each other"),
        (["--id", ""], {}, 2, "an empty text names no conversation"),
    ],
)
def test_what_cannot_be_asked_has_a_code_a_reason_and_a_hint(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], *, code: int, said: str
) -> None:
    make_workspace(tmp_path)

    result = run_jp("query", "hi", *arguments, cwd=tmp_path, env=environment)

    check_failure(result, code)
    assert said.lower() in result.stderr.lower()
    assert logs(tmp_path) == []


def test_an_error_is_json_where_json_is_wanted_and_quiet_hides_no_error(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    quiet = run_jp("query", "-q", "-a", "nothing.txt", "hi", cwd=tmp_path)
    attachment = run_jp("query", "-a", "nothing.txt", "hi", "-F", "json", cwd=tmp_path)
    huge = run_jp("query", "-F", "json", "-c", "x" * 100_000, "hi", cwd=tmp_path)

    check_failure(quiet, 10, "'nothing.txt'")
    assert json_error(attachment)["kind"] == "attachment"
    assert json_error(attachment)["exit_code"] == 10
    assert json_error(huge)["kind"] == "configuration"
    assert len(huge.stderr) < 10_000


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # The name of a socket is short; it is bound by way of the directory.
    with socket.socket(socket.AF_UNIX) as bound:
        before = Path.cwd()
        os.chdir(path.parent)
        try:
            bound.bind(path.name)
        finally:
            os.chdir(before)


def make_binary(path: Path) -> None:
    path.write_bytes(b"a\0b")


def make_latin(path: Path) -> None:
    path.write_bytes("café".encode("latin-1"))


def make_nothing(path: Path) -> None:
    """There is nothing."""


@pytest.mark.parametrize(
    ("make", "uri", "said"),
    [
        (make_pipe, "it", "'it' is a pipe"),
        (make_socket, "it", "'it' is a socket"),
        (make_binary, "it", "'it' is binary"),
        (make_latin, "it", "'it' is not UTF-8"),
        (Path.mkdir, "it", "'it' holds no file"),
        (make_nothing, "/dev/zero", "'/dev/zero' is a device"),
        (make_nothing, "*.nothing", "'*.nothing' matches no file"),
        (make_nothing, "x" * 300, "File name too long"),
        (make_nothing, "", "'' is not an attachment"),
    ],
)
def test_what_cannot_be_attached_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], uri: str, said: str
) -> None:
    make_workspace(tmp_path)
    make(tmp_path / "it")

    check_failure(run_jp("query", "hi", "-a", uri, cwd=tmp_path), 10, said)
    assert logs(tmp_path) == []


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    script = bound_by_permissions()
    make_workspace(tmp_path)
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "secret.txt").chmod(0)

    alone = run_jp("query", "hi", "-a", "secret.txt", cwd=tmp_path, script=script)
    (tmp_path / "other.txt").write_text("other", encoding="utf-8")
    among_others = run_jp("query", "hi", "-a", "*.txt", cwd=tmp_path, script=script)
    (tmp_path / ".jp" / "config.toml").chmod(0)
    config = run_jp("query", "hi", cwd=tmp_path, script=script)

    check_failure(alone, 10, "cannot read 'secret.txt': Permission denied")
    assert among_others.code == 0
    assert "left out 'secret.txt': Permission denied" in among_others.stderr
    check_failure(config, 3, "config.toml' cannot be read: Permission denied")


def test_a_configuration_that_is_a_directory_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / ".jp.toml").mkdir()

    check_failure(run_jp("query", "hi", cwd=tmp_path), 3, ".jp.toml' cannot be read: Is a directory")


@pytest.mark.parametrize("text", ["[assistant\n", '[assistant]\nmodl = "x"\n', "[assistant]\nmodel = 3\n"])
@pytest.mark.parametrize("layer", ["user", "directory", "fragment"])
def test_a_malformed_file_is_named_with_its_line_in_every_layer(tmp_path: Path, layer: str, text: str) -> None:
    make_workspace(tmp_path)
    user = home_beside(tmp_path) / "config" / "config.toml"
    file = {"user": user, "directory": tmp_path / ".jp.toml", "fragment": tmp_path / ".jp" / "config" / "x.toml"}[layer]
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")

    result = run_jp("query", "hi", *(["-c", "x"] if layer == "fragment" else []), cwd=tmp_path)

    check_failure(result, 3, f"{str(file)!r}, line ")


def garbage(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'{"type":"chat_request"', b'{"type:"chat_request"'))


def conflict(log: Path) -> None:
    head, *lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join((head, b"<<<<<<< ours\n", *lines, b"=======\n", *lines, b">>>>>>> theirs\n")))


def newer(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"format":1', b'"format":2'))


def emptied(log: Path) -> None:
    log.write_bytes(b"")


def cut_header(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:30])


def directory(log: Path) -> None:
    log.unlink()
    log.mkdir()


def gone(log: Path) -> None:
    log.unlink()


def link(log: Path) -> None:
    log.rename(log.with_name("elsewhere"))
    log.symlink_to("elsewhere")


def base(log: Path) -> None:
    (log.parent / "base_config.json").write_bytes(b'{"assistant": ')


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (garbage, "line 3: not JSON"),
        (conflict, "resolve the conflict in git"),
        (newer, "Upgrade jp."),
        (emptied, "holds no entry"),
        (cut_header, "holds no entry"),
        (directory, "Is a directory"),
        (gone, "has no 'events.jsonl'"),
        (link, "It is a link"),
        (base, "base_config.json' is not what it should be"),
    ],
)
def test_a_damaged_conversation_is_left_as_it_is(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    make_workspace(tmp_path)
    run_jp("query", "one", cwd=tmp_path)
    log = next((tmp_path / ".jp" / "conversations").iterdir()) / "events.jsonl"
    damage(log)
    before = log.read_bytes() if log.is_file() else None

    asked = run_jp("query", "--id", "last", "two", cwd=tmp_path)
    listed = run_jp("conversation", "ls", cwd=tmp_path)

    check_failure(asked, 1, said)
    assert (log.read_bytes() if log.is_file() else None) == before
    assert (listed.code, listed.stderr) == (0, "")


def test_damaged_metadata_costs_the_title_only(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "--title", "Mine", "one", cwd=tmp_path)
    (logs(tmp_path)[0].parent / "metadata.json").write_bytes(b'{"title": 3}')

    listed = run_jp("conversation", "ls", cwd=tmp_path)
    asked = run_jp("query", "--id", "last", "two", cwd=tmp_path)

    assert listed.code == 0
    assert "metadata.json" in listed.stderr
    assert (asked.code, asked.stdout) == (0, "You said: two\n")


def test_a_lost_blob_is_named_and_the_conversation_stays_as_it_is(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    file = tmp_path / "a.txt"
    file.write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "one", "-a", "a.txt", cwd=tmp_path)
    blob = next(path for path in (tmp_path / ".jp" / "blobs").rglob("*") if path.is_file())
    whole, before = blob.read_bytes(), logs(tmp_path)[0].read_bytes()

    blob.unlink()
    missing = run_jp("query", "--id", "last", "two", cwd=tmp_path)
    blob.write_bytes(b"LINE\n" * 2000)
    damaged = run_jp("query", "--id", "last", "two", cwd=tmp_path)
    unchanged = logs(tmp_path)[0].read_bytes()
    attached_again = run_jp("query", "--new", "three", "-a", "a.txt", cwd=tmp_path)

    check_failure(missing, 1, "is missing", "Restore the file")
    check_failure(damaged, 1, "is damaged")
    assert unchanged == before
    assert attached_again.code == 0
    assert blob.read_bytes() == whole


def test_text_in_a_strange_encoding_is_refused_or_read_never_a_defect(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "café.txt").write_text("content", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    check_failure(run_raw("query", b"caf\xe9", cwd=tmp_path), 2, "b'caf\\xe9'")
    check_failure(run_raw("-c", b"user.name=caf\xe9", "query", "hi", cwd=tmp_path), 2, "is not UTF-8")
    check_failure(
        run_raw("query", "hi", cwd=tmp_path, environment={"JP_CFG_USER_NAME": b"caf\xe9"}), 3, "JP_CFG_USER_NAME"
    )
    piped = run_raw("query", "--no-persist", cwd=tmp_path, stdin=b"caf\xe9 \xed\xa0\x80")
    in_ascii = run_raw("query", "grüße \U0001f600", "-a", "café.txt", cwd=tmp_path, environment=ascii_only)

    assert piped.code == 0
    assert "not UTF-8" in piped.stderr
    assert (in_ascii.code, in_ascii.stdout) == (0, "You said: grüße \U0001f600\n")
    assert [resource.name for resource in request_of(tmp_path).resources] == ["café.txt"]


def request_of(root: Path) -> ChatRequest:
    return next(entry for log in logs(root) for entry in entries_of(log) if isinstance(entry, ChatRequest))


def test_a_workspace_whose_path_is_not_utf_8_works(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    try:
        root.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    make_workspace(root)
    (root / "a.txt").write_text("content", encoding="utf-8")

    asked = run_raw("query", "hi", "-a", "a.txt", cwd=root)
    listed = run_raw("conversation", "ls", "-F", "json", cwd=root)

    assert (asked.code, asked.stderr) == (0, "")
    assert "caf\N{REPLACEMENT CHARACTER}" in listed.stdout


def test_a_query_of_nothing_is_none_and_one_that_looks_like_an_option_needs_dashes(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    check_failure(run_jp("query", "  \n", cwd=tmp_path), 2, "there is no query")
    check_failure(run_jp("query", "-z", cwd=tmp_path), 2, "has no option '-z'")
    assert run_jp("query", "-q", "--", "-x", "--new", cwd=tmp_path).stdout == "You said: -x --new\n"


def test_the_last_of_repeated_options_counts_and_they_may_follow_the_words(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    result = run_jp(
        "query", "hi", "-m", "nobody/x", "-n", "there", "-m", "script/test", "-n", "-F", "text", cwd=tmp_path
    )

    assert result == (0, "You said: hi there\n", "")


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">&- 2>&-", ">&-", "2>&-"])
def test_a_query_without_standard_streams_keeps_its_answer(tmp_path: Path, redirection: str) -> None:
    make_workspace(tmp_path)
    program = ("/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *JP)

    result = running.run_jp("query", "hi", cwd=tmp_path, program=program)

    assert result.code == (1 if ">&- " in f"{redirection.replace('2>&-', '')} " else 0)
    assert [type(entry).__name__ for entry in entries_of(logs(tmp_path)[0])][-2:] == ["ChatResponse", "CycleEnd"]


def test_a_deadline_that_is_over_at_once_writes_nothing(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    result = run_jp("query", "--deadline", "1ms", "hi", cwd=tmp_path)

    assert (result.code, result.stdout) == (124, "")
    assert logs(tmp_path) == []


def test_outside_a_workspace_without_a_home_it_is_said_where_data_would_go(tmp_path: Path) -> None:
    (tmp_path / "echo.toml").write_text(ECHO, encoding="utf-8")
    file = tmp_path / "file"
    file.touch()

    result = run_jp("query", "-m", "script/echo.toml", "hi", cwd=tmp_path, env={"JP_USER_DATA_DIR": str(file)})

    check_failure(result, 1, f"{str(file / 'conversations')!r}")
    assert "JP_USER_DATA_DIR" in result.stderr or "move it away" in result.stderr


def test_a_workspace_that_is_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / ".jp").touch()

    check_failure(run_jp("init", "--yes", cwd=tmp_path), 1, "move it away")
    check_failure(run_jp("conversation", "ls", "-w", ".", cwd=tmp_path), 2, "not the root of a workspace")


def test_the_inner_of_two_workspaces_is_used(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    make_workspace(tmp_path / "inner", '[[reply]]\ntext = "inner"\n')
    (tmp_path / "inner" / "deep").mkdir()
    (tmp_path / "link").symlink_to("inner")

    assert run_jp("query", "hi", cwd=tmp_path / "inner" / "deep").stdout == "inner\n"
    assert run_jp("query", "hi", "-w", "..", cwd=tmp_path / "inner").stdout == "You said: hi\n"
    assert run_jp("query", "hi", cwd=tmp_path / "link").stdout == "inner\n"
    assert len(logs(tmp_path)) == 1
    assert len(logs(tmp_path / "inner")) == 2


def test_a_directory_that_was_removed_is_said(tmp_path: Path) -> None:
    where = tmp_path / "gone"
    where.mkdir()
    program = ("/bin/sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *JP)

    check_failure(running.run_jp("query", "hi", cwd=where, program=program), 2, "does not exist any more")

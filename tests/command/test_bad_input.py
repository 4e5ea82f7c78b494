"""Bad input of every kind: an exit code, one line that says what failed, one that mends it, and nothing written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import running
from doubles import kinds
from failures import check_failure, json_error
from forked import run_jp
from jp.conversation.entries import ChatRequest
from privileges import bound_by_permissions
from running import JP, home_beside
from stage import ECHO, copied, entries_of, logs, make_workspace, only_log

ANTHROPIC = ("--model", "anthropic/claude-haiku-4-5")
BASE_URL = "providers.llm.anthropic.base_url"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one conversation, called `Mine`."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    assert run_jp("query", "--title", "Mine", "one", cwd=root).code == 0
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (["--model", "opnai/gpt-5"], {}, 3, "did you mean 'openai'"),
        ([*ANTHROPIC], {"ANTHROPIC_API_KEY": "sk-a\nX-Evil: 1"}, 3, "characters that are not valid in a key"),
        ([*ANTHROPIC, "-c", f"{BASE_URL}=http://localhost:65536"], {}, 3, "expects an address"),
        ([*ANTHROPIC, "-c", f"{BASE_URL}=file:///etc/passwd"], {}, 3, "such as"),
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


def make_binary(path: Path) -> None:
    path.write_bytes(b"a\0b")


def make_nothing(path: Path) -> None:
    """There is nothing."""


@pytest.mark.parametrize(
    ("make", "uri", "said"),
    [
        (make_pipe, "it", "'it' is a pipe"),
        (make_binary, "it", "'it' is binary"),
        (make_nothing, "/dev/zero", "'/dev/zero' is a device"),
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
    assert "skipped 'secret.txt': Permission denied" in among_others.stderr
    check_failure(config, 3, "config.toml' cannot be read: Permission denied")


def test_a_configuration_that_is_a_directory_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / ".jp.toml").mkdir()

    check_failure(run_jp("query", "hi", cwd=tmp_path), 3, ".jp.toml' cannot be read: Is a directory")


def test_what_was_said_is_printed_whatever_the_settings_are(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "hi", cwd=tmp_path)
    commands = [("print", "last"), ("show", "last"), ("usage", "last"), ("ls", "--format", "json")]
    before = [run_jp("conversation", *command, cwd=tmp_path).stdout for command in commands]
    (tmp_path / ".jp.toml").write_text("[interupt]\n", encoding="utf-8")

    *read, listed = [run_jp("conversation", *command, cwd=tmp_path) for command in commands]

    assert [(result.code, result.stdout) for result in (*read, listed)] == [(0, said) for said in before]
    assert listed.stderr == ""  # it reads no settings
    for result in read:
        assert result.stderr.startswith("note: printed without your settings: ")
        assert "unknown key 'interupt'" in result.stderr


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        ("user", "[assistant\n"),
        ("directory", '[assistant]\nmodl = "x"\n'),
        ("fragment", "[assistant]\nmodel = 3\n"),
    ],
)
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


DAMAGES = {
    garbage: "line 3: not JSON",
    conflict: "` keeps the turns of both",
    newer: "upgrade jp",
    emptied: "holds no entry",
    cut_header: "holds no entry",
    directory: "Is a directory",
    gone: "has no 'events.jsonl'",
    link: "it is a link",
    base: "base_config.json' is not what it should be",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGES.items())
def test_a_damaged_conversation_is_left_as_it_is(root: Path, damage: Callable[[Path], None], said: str) -> None:
    (log,) = logs(root)
    damage(log)
    before = log.read_bytes() if log.is_file() else None

    asked = run_jp("query", "--id", "last", "two", cwd=root)

    check_failure(asked, 1, said)
    assert (log.read_bytes() if log.is_file() else None) == before


def test_damaged_conversations_are_listed_in_silence(root: Path) -> None:
    (log,) = logs(root)
    for number, damage in enumerate(DAMAGES):
        copy = log.parent.with_name(f"{10_000_000_000 + number}-copy")
        shutil.copytree(log.parent, copy)
        damage(copy / log.name)

    listed = run_jp("conversation", "ls", cwd=root)

    assert (listed.code, listed.stderr) == (0, "")


def test_damaged_metadata_costs_the_title_only(root: Path) -> None:
    (logs(root)[0].parent / "metadata.json").write_bytes(b'{"title": 3}')

    listed = run_jp("conversation", "ls", cwd=root)
    asked = run_jp("query", "--id", "last", "two", cwd=root)

    assert listed.code == 0
    assert "metadata.json" in listed.stderr
    assert (asked.code, asked.stdout) == (0, "You said: two\n")


def test_text_in_a_strange_encoding_is_refused_or_read_never_a_defect(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "café.txt").write_text("content", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    bad = os.fsdecode(b"caf\xe9")

    check_failure(run_jp("query", bad, cwd=tmp_path), 2, "b'caf\\xe9'")
    check_failure(run_jp("-c", f"user.name={bad}", "query", "hi", cwd=tmp_path), 2, "is not UTF-8")
    check_failure(run_jp("query", "hi", cwd=tmp_path, env={"JP_CFG_USER_NAME": bad}), 3, "JP_CFG_USER_NAME")
    piped = run_jp("query", "--no-persist", cwd=tmp_path, stdin=b"caf\xe9 \xed\xa0\x80")
    in_ascii = running.run_jp("query", "grüße \U0001f600", "-a", "café.txt", cwd=tmp_path, env=ascii_only)

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

    asked = run_jp("query", "hi", "-a", "a.txt", cwd=root)
    listed = run_jp("conversation", "ls", "-F", "json", cwd=root)

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


CLOSING = """
import os, sys

for number in map(int, sys.argv.pop(1)):
    os.close(number)
    setattr(sys, ("stdin", "stdout", "stderr")[number], None)

from jp.__main__ import main
main()
"""


@pytest.mark.parametrize("closed", ["12", "1", "2"])
def test_a_query_without_some_standard_streams_keeps_its_answer(tmp_path: Path, closed: str) -> None:
    make_workspace(tmp_path)
    script = home_beside(tmp_path) / "closing.py"
    script.write_text(CLOSING, encoding="utf-8")

    result = run_jp(closed, "query", "hi", cwd=tmp_path, script=script)

    assert result.code == (1 if "1" in closed else 0)
    assert kinds(only_log(tmp_path))[-2:] == ["chat_response", "cycle_end"]


def test_a_query_without_any_standard_stream_keeps_its_answer(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    program = ("/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *JP)

    assert running.run_jp("query", "hi", cwd=tmp_path, program=program).code == 1
    assert kinds(only_log(tmp_path))[-2:] == ["chat_response", "cycle_end"]


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


MINE = "conversation.compaction.profiles.mine.reasoning=strip"


def test_a_directory_that_was_removed_is_said(tmp_path: Path) -> None:
    where = tmp_path / "gone"
    where.mkdir()
    script = home_beside(where) / "removing.py"
    script.write_text("import os\nos.rmdir(os.getcwd())\nfrom jp.__main__ import main\nmain()\n", encoding="utf-8")

    check_failure(run_jp("query", "hi", cwd=where, script=script), 2, "does not exist any more")


@pytest.mark.parametrize(
    ("words", "spelling"),
    [
        (("query", "--new", "--tmp", "1h", "x"), "--tmp=1h"),
        (("query", "--compact", "heavy", "x"), "--compact=heavy"),
        (("query", "--cfg", MINE, "x", "--compact", "mine"), "--compact=mine"),
        (("query", "--fork", "0", "x"), "--fork=0"),
        (("conversation", "fork", "--compact", "light"), "--compact=light"),
        (("conversation", "compact", "--reset", "2"), "--reset=2"),
        (("conversation", "compact", "--tools", "omit"), "--tools=omit"),
        (("conversation", "compact", "-t", "omit"), "--tools=omit"),
    ],
)
def test_a_word_that_reads_as_the_value_of_the_option_before_is_refused(
    words: tuple[str, ...], spelling: str, root: Path
) -> None:
    before = only_log(root)

    result = run_jp(*words, cwd=root)

    assert (result.code, result.stdout) == (2, ""), result
    assert f"hint: write `{spelling}`" in result.stderr
    assert only_log(root) == before


def test_words_after_two_dashes_are_words(root: Path) -> None:
    result = run_jp("query", "--new", "--tmp", "--", "1h", "x", cwd=root)

    assert result.code == 0, result
    requests = [entry for log in logs(root) for entry in entries_of(log) if isinstance(entry, ChatRequest)]
    assert {request.content for request in requests} == {"one", "1h x"}


WITHOUT_LOCKS = """
import errno, fcntl, os

def flock(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

fcntl.flock = flock

from jp.__main__ import main

main()
"""


def test_a_file_system_without_locks_is_refused_with_the_way_on(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "without_locks.py"
    script.write_text(WITHOUT_LOCKS, encoding="utf-8")

    result = run_jp("query", "--id", "last", "two", cwd=root, script=script)

    assert result.code == 1
    assert "error: cannot lock '" in result.stderr
    assert "/locks/" in result.stderr
    assert "hint: its file system has no locks (NFS without lockd): let JP_USER_DATA_DIR name" in result.stderr
    assert [entry.content for entry in only_log(root) if isinstance(entry, ChatRequest)] == ["one"]

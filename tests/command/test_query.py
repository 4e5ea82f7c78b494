from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from doubles import kinds, messages
from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest, ConfigDelta, RequestContext
from stage import ECHO, copied, entries_of, logs, make_workspace, only_log

TURN = ["turn_start", "chat_request", "request_context", "chat_response", "cycle_end"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    prepare(["query", "one"], cwd=root)
    return root


@pytest.fixture
def begun(prepared: Path, tmp_path: Path) -> Path:
    """A workspace with a conversation of one turn, which is active."""
    return copied(prepared, tmp_path / "work")


def requests(root: Path) -> list[ChatRequest]:
    return [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]


def test_an_answer_is_all_that_stdout_holds(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    assert run_jp("query", "hello", "there", cwd=tmp_path) == (0, "You said: hello there\n", "")
    assert kinds(only_log(tmp_path)) == TURN


def test_a_script_starts_a_new_conversation_each_time(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    run_jp("query", "one", cwd=tmp_path, env={"JP_SESSION": ""})
    run_jp("query", "two", cwd=tmp_path, env={"JP_SESSION": ""})

    assert len(logs(tmp_path)) == 2


def test_a_script_with_a_session_goes_on_with_its_conversation(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    for session, words in (("a", "one"), ("b", "two"), ("a", "three")):
        run_jp("query", words, cwd=tmp_path, env={"JP_SESSION": session})

    assert [messages(entries_of(log)) for log in logs(tmp_path)] == [
        ["You said: one", "You said: three"],
        ["You said: two"],
    ]


def test_a_conversation_is_continued_by_name(begun: Path) -> None:
    run_jp("query", "--id", ".", "two", cwd=begun)
    run_jp("query", "--id", "last", "three", cwd=begun)

    assert messages(only_log(begun)) == ["You said: one", "You said: two", "You said: three"]


def test_an_attached_file_is_a_snapshot_at_its_turn(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    file = tmp_path / "a.txt"
    file.write_text("first", encoding="utf-8")
    run_jp("query", "--attach", "a.txt", "one", cwd=tmp_path)
    file.write_text("second", encoding="utf-8")

    run_jp("query", "--id", ".", "two", cwd=tmp_path)
    run_jp("query", "--id", ".", "--attach", "a.txt", "three", cwd=tmp_path)

    assert [[resource.text for resource in request.resources] for request in requests(tmp_path)] == [
        ["first"],
        [],
        ["second"],
    ]
    assert [request.attachments for request in requests(tmp_path)] == [("file:a.txt",), (), ("file:a.txt",)]


def test_what_is_attached_again_unchanged_is_marked(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "a.txt").write_text("x" * 1000, encoding="utf-8")
    run_jp("query", "--attach", "a.txt", "one", cwd=tmp_path)
    run_jp("query", "--id", ".", "--attach", "a.txt", "two", cwd=tmp_path)

    first, second = requests(tmp_path)
    assert first.resources[0].duplicate_of is None
    assert second.resources[0].duplicate_of == first.id


def test_what_is_piped_in_follows_what_is_typed(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    result = run_jp("query", "explain", cwd=tmp_path, stdin="some\ndiff\n")

    assert result.stdout == "You said: explain\n\nsome\ndiff\n"


def test_an_empty_pipe_is_neither_an_error_nor_a_query(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    assert run_jp("query", "hi", cwd=tmp_path, stdin="").code == 0
    result = run_jp("query", cwd=tmp_path, stdin="")
    assert result == (
        2,
        "",
        'error: there is no query\nhint: type one, as in `jp query "why does this fail?"`, or pipe it in\n',
    )
    assert len(logs(tmp_path)) == 1


def test_stdin_is_left_alone_on_request(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    assert run_jp("query", "--no-stdin", "hi", cwd=tmp_path, stdin="data").stdout == "You said: hi\n"


def test_options_for_the_model_stick_to_the_conversation(begun: Path) -> None:
    run_jp("query", "--id", ".", "--system", "Be brief.", "-p", "temperature=0.5", "-r", "low", "two", cwd=begun)
    run_jp("query", "--id", ".", "three", cwd=begun)

    entries = only_log(begun)
    assert [entry.delta for entry in entries if isinstance(entry, ConfigDelta)] == [
        {
            "assistant": {
                "system_prompt": "Be brief.",
                "model": {"parameters": {"temperature": 0.5, "reasoning": "low"}},
            }
        }
    ]
    contexts = [entry for entry in entries if isinstance(entry, RequestContext)]
    assert [context.system[0].text for context in contexts] == ["You are a helpful assistant.", "Be brief."]
    assert contexts[1].parameters == {"temperature": 0.5, "reasoning": "low"}


def test_a_conversation_keeps_what_it_was_created_with(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "--cfg", "assistant.system_prompt=Old.", "one", cwd=tmp_path)
    (tmp_path / ".jp" / "config.toml").write_text(
        '[assistant]\nsystem_prompt = "New."\n[assistant.model]\nid = "script/test"\n', encoding="utf-8"
    )

    run_jp("query", "--id", ".", "two", cwd=tmp_path)

    contexts = [entry for entry in only_log(tmp_path) if isinstance(entry, RequestContext)]
    assert [context.system[0].text for context in contexts] == ["Old."]


def test_json_is_the_entries_as_they_are_recorded(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("x" * 5000, encoding="utf-8")

    result = run_jp("query", "--format", "json", "--attach", "big.txt", "hi", cwd=tmp_path)

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.code, result.stderr) == (0, "")
    assert [line["type"] for line in lines] == ["header", *TURN]
    assert {line["schema"] for line in lines} == {1}
    (log,) = logs(tmp_path)
    assert log.parent.name.startswith(lines[0]["conversation"].removeprefix("jp-c"))
    assert lines[2]["resources"][0]["text"] == "x" * 5000
    assert requests(tmp_path)[0].resources[0].size == 5000
    assert requests(tmp_path)[0].resources[0].text is None


def test_json_begins_with_the_header_and_what_was_written_before_the_turn(begun: Path) -> None:
    result = run_jp("query", "-F", "json", "--id", "last", "--system", "Be brief.", "again", cwd=begun)

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["header", "config_delta", *TURN]
    assert lines[1]["delta"] == {"assistant": {"system_prompt": "Be brief."}}


def test_a_dry_run_sends_and_writes_nothing(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "a.txt").write_text("content", encoding="utf-8")

    text = run_jp("query", "--dry-run", "--attach", "a.txt", "hi", cwd=tmp_path)
    value = run_jp("query", "--dry-run", "--attach", "a.txt", "hi", "-F", "json", cwd=tmp_path)

    assert text.code == 0
    assert "a.txt (7 bytes)" in text.stdout
    assert json.loads(value.stdout)["estimate"]["total"] > 0
    assert "content" in json.dumps(json.loads(value.stdout)["request"]["body"])
    assert logs(tmp_path) == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data").exists()


def test_a_dry_run_shows_the_request_that_is_then_sent(begun: Path) -> None:
    before = logs(begun)[0].read_bytes()

    shown = json.loads(run_jp("query", "--dry-run", "--id", ".", "-F", "json", "two", cwd=begun).stdout)

    assert logs(begun)[0].read_bytes() == before
    said = json.dumps(shown["request"]["body"])
    assert said.index("one") < said.index("You said: one") < said.index("two")


def test_without_persistence_nothing_is_written(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    result = run_jp("--no-persist", "query", "hi", cwd=tmp_path)

    assert result == (0, "You said: hi\n", "")
    assert logs(tmp_path) == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data").exists()


def test_outside_any_workspace_the_users_own_is_used(tmp_path: Path) -> None:
    scenario = tmp_path / "echo.toml"
    scenario.write_text(ECHO, encoding="utf-8")

    result = run_jp("query", "--model", "script/echo.toml", "hi", cwd=tmp_path)

    home = tmp_path.parent / f".home-of-{tmp_path.name}"
    assert result.stdout == "You said: hi\n"
    assert len(list((home / "data" / "conversations").glob("*/events.jsonl"))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["echo.toml"]


def test_a_local_conversation_stays_out_of_the_workspace(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    run_jp("query", "--new", "--local", "hi", cwd=tmp_path)

    assert logs(tmp_path) == []
    assert "hi" in run_jp("conversation", "print", "last", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--model", "nobody/x", "hi"], 3, "there is no provider 'nobody'"),
        (["--model", "anthropic/claude-sonnet-5", "hi"], 4, "ANTHROPIC_API_KEY"),
        (["--attach", "missing.txt", "hi"], 10, "missing.txt"),
        (["--id", "jp-c1", "hi"], 2, "jp-c1"),
        (["--new", "--id", ".", "hi"], 2, "exclude each other"),
        (["--param", "temperature", "hi"], 2, "--param cannot be 'temperature'"),
        (["--param", "temprature=1", "hi"], 3, "temperature"),
        (["--reasoning", "some", "hi"], 3, "some"),
        (["--deadline", "soon", "hi"], 2, "--deadline cannot be 'soon'"),
        (["--cfg", "assistant.modl.id=x", "hi"], 3, "assistant.model"),
        (["--nonsense", "hi"], 2, "--nonsense"),
    ],
)
def test_what_cannot_be_asked_is_said_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    make_workspace(tmp_path)

    result = run_jp("query", *arguments, cwd=tmp_path)

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert logs(tmp_path) == []


def test_without_a_model_it_says_how_to_set_one(tmp_path: Path) -> None:
    result = run_jp("query", "hi", cwd=tmp_path)

    assert result.code == 3
    assert result.stderr.startswith("error: no model is set\nhint: store a key: `jp keys set anthropic`")


def test_large_input_needs_consent(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("x" * 600_000, encoding="utf-8")

    refused = run_jp("query", "--attach", "big.txt", "hi", cwd=tmp_path)
    sent = run_jp("query", "--attach", "big.txt", "--yes", "hi", cwd=tmp_path)

    assert refused.code == 2
    assert "600,002 bytes, about 150,000 tokens" in refused.stderr
    assert "--yes" in refused.stderr
    assert sent.code == 0


def test_a_huge_file_is_an_error(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(50 * 1024 * 1024)

    result = run_jp("query", "--attach", "huge.bin", "--yes", "hi", cwd=tmp_path)

    assert result.code == 10
    assert "huge.bin" in result.stderr


def test_a_directory_of_ten_thousand_files_is_refused(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    many = tmp_path / "many"
    many.mkdir()
    (many / "0.txt").touch()
    for number in range(1, 10_000):
        os.link(many / "0.txt", f"{many}/{number}.txt")

    result = run_jp("query", "--attach", "many", "--yes", "hi", cwd=tmp_path)

    assert result.code == 10
    assert "'many' matches more than 2,000 files" in result.stderr
    part = re.search(r"such as '(many/[0-9][*])'; `attachments.max_files` is the limit", result.stderr)
    assert part is not None
    narrow = run_jp("query", "--attach", part[1], "--cfg", "attachments.max_files=1200", "--yes", "hi", cwd=tmp_path)
    assert narrow.code == 0
    typed = run_jp("query", "--attach", part[1], "--cfg", "attachments.max_files=1000", "--yes", "hi", cwd=tmp_path)
    assert f"{part[1]!r} matches more than 1,000 files" in typed.stderr


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "loop").symlink_to("loop")

    result = run_jp("query", "--attach", "loop", "hi", cwd=tmp_path)

    assert result.code == 10
    assert "loop" in result.stderr


def test_a_malformed_configuration_names_file_and_line(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings="[assistant\n")

    result = run_jp("query", "hi", cwd=tmp_path)

    assert result.code == 3
    assert "config.toml" in result.stderr
    assert "line 3" in result.stderr


def test_what_an_untrusted_workspace_loosens_is_ignored_until_it_is_trusted(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation.tools.fs_read_file]\nenable = true\nrun = "unattended"\n')

    before = run_jp("query", "hi", cwd=tmp_path)
    trusted = run_jp("workspace", "trust", "--yes", cwd=tmp_path)
    asked = run_jp("query", "hi", cwd=tmp_path)

    assert before.code == 0
    assert "ignored until trusted: conversation.tools.fs_read_file.run = 'unattended'" in before.stderr
    assert "`jp workspace trust`" in before.stderr
    assert trusted.code == 0
    assert (asked.code, asked.stderr) == (0, "")
    assert run_jp("query", "--id", ".", "again", cwd=tmp_path).code == 0


TOOLS = """
[[reply]]
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]
times = 1

[[reply]]
text = "done"
"""


def test_a_tool_reads_a_file(tmp_path: Path) -> None:
    make_workspace(tmp_path, TOOLS, settings='[conversation.tools.fs_read_file]\nenable = true\nrun = "unattended"\n')
    (tmp_path / "a.txt").write_text("content", encoding="utf-8")
    run_jp("workspace", "trust", "--yes", cwd=tmp_path)

    result = run_jp("query", "read it", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "done\n")
    assert "fs_read_file" in result.stderr
    assert kinds(only_log(tmp_path))[3:] == [
        "tool_call_request",
        "cycle_end",
        "tool_call_response",
        "chat_response",
        "cycle_end",
    ]


def test_a_tool_that_would_ask_is_denied_where_nobody_can_be_asked(tmp_path: Path) -> None:
    make_workspace(tmp_path, TOOLS, settings="[conversation.tools.fs_read_file]\nenable = true\n")
    (tmp_path / "a.txt").write_text("content", encoding="utf-8")

    denied = run_jp("query", "read it", cwd=tmp_path)
    approved = run_jp("query", "--approve", "fs_read_file", "read it", cwd=tmp_path)

    assert (denied.code, denied.stdout) == (8, "done\n")
    assert "denied, so not run: fs_read_file" in denied.stderr
    assert approved.code == 0


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ('stop = "refused"\ntext = "no"', 13),
        ('text = ""', 13),
        ('text = " \\n"', 13),
        ('text = "cut"\nstop = "length"\n[[reply]]\nwhen = { begun = true }\ntext = "more"\nstop = "length"', 14),
        ('error = { kind = "quota", message = "no credit" }', 6),
    ],
    ids=["refused", "empty", "blank", "length", "quota"],
)
def test_every_ending_has_its_exit_code(tmp_path: Path, reply: str, code: int) -> None:
    make_workspace(tmp_path, f"[[reply]]\n{reply}\n")

    result = run_jp("query", "hi", cwd=tmp_path)

    assert result.code == code
    assert result.stderr.startswith("error: ") or "\nerror: " in result.stderr


def test_an_unwritable_workspace_is_a_clear_error(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    make_workspace(tmp_path)
    (tmp_path / ".jp").chmod(0o555)

    result = run_jp("query", "hi", cwd=tmp_path)

    assert result.code == 1
    assert ".jp" in result.stderr

"""The commands around a query: what they print, in text and in JSON, what they change, and what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest, ConfigDelta
from running import Result, home_beside
from stage import copied, entries_of, logs, make_workspace, only_log

ID = re.compile(r"jp-c[0-9]+")


def result_of(*arguments: str, cwd: Path) -> dict[str, Any]:
    """The JSON object that a command prints."""
    result = run_jp(*arguments, "--format", "json", cwd=cwd)
    assert (result.code, result.stderr) == (0, ""), result
    value: dict[str, Any] = json.loads(result.stdout)
    assert value.pop("schema") == 1
    return value


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two conversations, for commands that change nothing; the second one is active."""
    root = make_workspace(tmp_path_factory.mktemp("untouched") / "work")
    (root / "a.txt").write_text("A\n", encoding="utf-8")
    first = ("query", "--title", "The first", "one", "-a", "a.txt")
    prepare(first, ("query", "--new", "--title", "The second", "two"), cwd=root)
    return root


@pytest.fixture
def root(untouched: Path, tmp_path: Path) -> Path:
    """A copy, for those that change something."""
    return copied(untouched, tmp_path / "work")


def ids(root: Path) -> tuple[str, str]:
    """The ids of the two conversations."""
    first, second = (f"jp-c{log.parent.name.partition('-')[0]}" for log in logs(root))
    return first, second


def test_where_there_are_no_conversations_this_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    listed = run_jp("conversation", "ls", cwd=tmp_path)

    assert listed == (0, "", "note: there are no conversations here yet\n")
    assert result_of("conversation", "ls", cwd=tmp_path) == {"conversations": []}


def test_conversations_are_listed_the_newest_at_the_prompt(untouched: Path) -> None:
    first, second = ids(untouched)

    listed = run_jp("conversation", "ls", cwd=untouched)
    newest = run_jp("conversation", "ls", "--limit", "1", cwd=untouched)
    found = result_of("conversation", "ls", cwd=untouched)["conversations"]

    lines = listed.stdout.splitlines()
    assert [re.sub(r"\d+ (s|min) ", "N s ", re.sub(" {2,}", "  ", line)) for line in lines] == [
        "  id  used  title",
        f"  {first}  N s  The first",
        f"*  {second}  N s  The second",
    ]
    assert len({line.index(text) for line, text in zip(lines, ("title", "The", "The"), strict=True)}) == 1
    assert (first in newest.stdout, second in newest.stdout) == (False, True)
    assert [(one["id"], one["title"], one["active"], one["local"]) for one in found] == [
        (first, "The first", False, False),
        (second, "The second", True, False),
    ]
    assert [Path(one["path"]) for one in found] == [log.parent for log in logs(untouched)]


def test_a_conversation_is_shown_used_printed_and_found(root: Path) -> None:
    first, second = ids(root)

    shown = result_of("conversation", "show", "the first", cwd=root)
    lines = run_jp("conversation", "show", cwd=root).stdout.splitlines()
    used = run_jp("conversation", "use", cwd=root)
    back = result_of("conversation", "use", "prev", cwd=root)
    path = run_jp("conversation", "path", first, "--log", cwd=root)
    printed = run_jp("conversation", "print", first, cwd=root)

    assert (shown["id"], shown["turns"], shown["entries"], shown["model"]) == (first, 1, 6, "script/test")
    assert shown["attachments"] == ["file:a.txt"]
    assert [line for line in lines if line.startswith(("id ", "title ", "turns "))] == [
        f"id             {second}",
        "title          The second",
        "turns          1",
    ]
    assert used == (0, f"{first}  The first\n", "")
    assert back == {"id": second, "title": "The second"}
    assert path.stdout == f"{logs(root)[0]}\n"
    assert [line for line in printed.stdout.splitlines() if line in {"one", "You said: one"}] == [
        "one",
        "You said: one",
    ]
    assert "attached" in printed.stdout


PRICED = """
{"type":"turn_start","id":"a","at":"2026-01-01T00:00:00Z"}
{"type":"chat_request","id":"b","at":"2026-01-01T00:00:00Z","content":"hi"}
{"type":"request_context","id":"c","at":"2026-01-01T00:00:00Z","provider":"anthropic","model":"MODEL","renderer":1}
{"type":"chat_response","id":"d","at":"2026-01-01T00:00:00Z","message":"hello"}
{"type":"cycle_end","id":"e","at":"2026-01-01T00:00:00Z","attempt":1,"finish":"stop","usage":{"input":1000,"output":1000}}
{"type":"compaction","id":"f","at":"2026-01-01T00:00:00Z","from_turn":0,"to_turn":0,"reasoning":"strip"}
{"type":"turn_start","id":"g","at":"2026-01-01T00:00:00Z"}
{"type":"revert","id":"h","at":"2026-01-01T00:00:00Z","entries":["f","g"]}
"""


def rows_of(root: Path, identity: str) -> dict[str, str]:
    shown = run_jp("conversation", "show", identity, cwd=root)
    assert (shown.code, shown.stderr) == (0, "")
    return {line[:15].strip(): line[15:] for line in shown.stdout.splitlines()}


@pytest.mark.parametrize(("model", "cost"), [("claude-haiku-4-5", "$0.0060"), ("claude-unheard-of", "unknown")])
def test_what_a_conversation_cost_is_shown_where_the_price_is_known(model: str, cost: str, root: Path) -> None:
    first, _ = ids(root)
    address = "https://me:secret@example.com/a"
    run_jp("conversation", "edit", first, "--pin", cwd=root)
    (log, _) = logs(root)
    header = log.read_text(encoding="utf-8").splitlines()[0]
    log.write_text(header + PRICED.replace("MODEL", model), encoding="utf-8")
    config = log.with_name("base_config.json")
    config.write_text(json.dumps({"conversation": {"attachments": [address, "file:a\x1b[2J"]}}), encoding="utf-8")

    rows = rows_of(root, first)
    facts = result_of("conversation", "show", first, cwd=root)

    assert (rows["cost"], rows["tokens in"], rows["tokens out"]) == (cost, "1,000", "1,000")
    assert (rows["turns"], rows["compactions"]) == ("2, 1 of them undone", "0")
    assert "secret" not in rows["attachments"] + str(facts)
    assert "\x1b" not in rows["attachments"]
    assert (facts["turns"], facts["turns_undone"]) == (2, 1)
    assert facts["cost_usd"] == (None if cost == "unknown" else 0.006)


def test_a_fork_of_one_turn_names_it(root: Path) -> None:
    first, _ = ids(root)
    fork = run_jp("conversation", "fork", first, cwd=root).stdout.strip()

    assert rows_of(root, fork)["parent"] == f"{first}, turn 0"


def test_what_is_pinned_is_not_said_to_expire(root: Path) -> None:
    first, _ = ids(root)
    run_jp("conversation", "edit", first, "--pin", "--expires", "2h", cwd=root)

    assert "expires" not in run_jp("conversation", "ls", cwd=root).stdout


def test_a_printed_conversation_is_its_log_with_content_inline(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    prepare(("query", "one", "-a", "big.txt"), ("query", "--id", ".", "two"), cwd=tmp_path)

    everything = run_jp("conversation", "print", "-F", "json", cwd=tmp_path)
    last = run_jp("conversation", "print", "--last", "1", "-F", "json", cwd=tmp_path)
    first = run_jp("conversation", "print", "--turn", "0", cwd=tmp_path)

    lines = [json.loads(line) for line in everything.stdout.splitlines()]
    assert [line["id"] for line in lines] == [entry.id for entry in only_log(tmp_path)]
    assert lines[2]["resources"][0]["text"] == "line\n" * 2000
    assert [json.loads(line)["type"] for line in last.stdout.splitlines()][:2] == ["turn_start", "chat_request"]
    assert ("You said: one" in first.stdout, "You said: two" in first.stdout) == (True, False)


@pytest.mark.parametrize("turns", ["x", "1", "0..-2"])
def test_turns_are_named_alike_wherever_they_are_chosen(turns: str, untouched: Path) -> None:
    printed = run_jp("conversation", "print", "--turn", turns, cwd=untouched)
    forked = run_jp("conversation", "fork", "--turn", turns, cwd=untouched)

    assert printed.code == 2
    assert printed == forked


def test_removing_names_what_is_gone_and_needs_consent(root: Path) -> None:
    first, second = ids(root)

    unasked = run_jp("conversation", "rm", second, cwd=root)
    half_wrong = run_jp("conversation", "rm", "--yes", second, "nobody", cwd=root)
    kept = len(logs(root))
    removed = run_jp("conversation", "rm", "--yes", ".", second, cwd=root)
    again = run_jp("conversation", "rm", "--yes", second, cwd=root)
    last = result_of("conversation", "rm", "--yes", first, cwd=root)

    check_failure(unasked, 2, f"deleting {second} (The second) needs consent", "--yes")
    check_failure(half_wrong, 2, "'nobody'")
    assert kept == 2
    assert removed == (0, f"deleted {second} (The second)\n", "")
    check_failure(again, 2, second)
    assert last == {"deleted": [first]}
    assert logs(root) == []


def test_a_directory_that_is_no_conversation_is_not_removed(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    photos = tmp_path / ".jp" / "conversations" / "2019-holiday"
    photos.mkdir(parents=True)
    (photos / "beach.png").touch()

    check_failure(run_jp("conversation", "rm", "--yes", "2019", cwd=tmp_path), 1, "holds nothing of a conversation")
    assert (photos / "beach.png").exists()


def test_attachments_are_declared_resolved_at_the_next_turn_and_taken_out(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    run_jp("query", "one", "-a", "a.txt", cwd=tmp_path)

    added = run_jp("attachment", "add", "b.txt", "!*.lock", cwd=tmp_path)
    same = result_of("attachment", "add", "b.txt", cwd=tmp_path)
    run_jp("query", "--id", ".", "two", cwd=tmp_path)
    removed = run_jp("attachment", "rm", "b.txt", "!*.lock", cwd=tmp_path)
    run_jp("query", "--id", ".", "three", cwd=tmp_path)

    assert added == (0, "file:a.txt\nfile:b.txt\n!file:**/*.lock\n", "")
    assert same["attachments"] == ["file:a.txt", "file:b.txt", "!file:**/*.lock"]
    assert removed.stdout == "file:a.txt\n"
    entries = only_log(tmp_path)
    requests = [entry for entry in entries if isinstance(entry, ChatRequest)]
    assert [[resource.name for resource in request.resources] for request in requests] == [["a.txt"], ["b.txt"], []]
    deltas = [entry.delta["conversation"]["attachments"] for entry in entries if isinstance(entry, ConfigDelta)]
    assert deltas[0] == ["file:b.txt", "!file:**/*.lock"]
    assert (len(deltas), deltas[1]["value"]) == (2, ["file:a.txt"])


def test_attachments_are_printed_as_they_are_now(root: Path) -> None:
    (root / "a.txt").write_text("now\n", encoding="utf-8")

    printed = run_jp("attachment", "print", "--id", ids(root)[0], cwd=root)
    named = result_of("attachment", "print", "a.txt", cwd=root)["resources"]

    assert printed == (0, "── a.txt (4 bytes, text/plain)\nnow\n", "")
    assert [(item["name"], item["text"]) for item in named] == [("a.txt", "now\n")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["attachment", "rm", "b.txt", "a.txt"], 2, "'b.txt' is not attached"),
        (["attachment", "add", ""], 10, "'' is not an attachment"),
        (["attachment", "add", "a.txt", "--id", "nobody"], 2, "'nobody'"),
        (["attachment", "print", "nothing.txt"], 10, "'nothing.txt'"),
        (["conversation", "print", "--turn", "1"], 2, "they are 0 to 0"),
        (["conversation", "print", "--turn", "x"], 2, "--turn cannot be 'x'"),
        (["conversation", "use", "nobody"], 2, "'nobody'"),
        (["conversation", "show", "the"], 2, "2 conversations match 'the'"),
        (["config", "get", "assistant.modl"], 3, "'assistant.model'"),
        (["config", "set", "assistant.modl.id=x"], 3, "'assistant.model"),
        (["config", "set", "user.name=x", "style=1"], 3, "style"),
        (["config", "set", "extends=missing.toml"], 3, "which does not exist"),
        (["init", "--yes", "--model", "nobody/x"], 3, "'nobody'"),
        (["init", "--yes", "a.txt"], 1, "a.txt"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    untouched: Path, arguments: list[str], code: int, said: str
) -> None:
    before = contents(untouched)

    check_failure(run_jp(*arguments, cwd=untouched), code, said)
    assert contents(untouched) == before


def contents(root: Path) -> Mapping[Path, bytes]:
    """Every file below a workspace and its user's home, locks aside."""
    places = (root, home_beside(root))
    files = (path for place in places for path in place.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "arguments",
    [
        ["attachment", "add", "b.txt"],
        ["attachment", "rm", "a.txt"],
        ["conversation", "use", "prev"],
        ["conversation", "rm", "--yes", "last"],
        ["config", "set", "user.name=Ada"],
        ["workspace", "trust", "--yes"],
        ["init", "--yes"],
    ],
    ids=" ".join,
)
def test_a_command_that_only_writes_refuses_not_to(untouched: Path, arguments: list[str]) -> None:
    before = contents(untouched)

    check_failure(run_jp("--no-persist", *arguments, cwd=untouched), 2, "--no-persist leaves nothing for `jp ")
    assert contents(untouched) == before


def test_settings_are_shown_with_where_they_come_from_and_set_in_place(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    config = tmp_path / ".jp" / "config.toml"
    config.write_text(f"# mine\n{config.read_text(encoding='utf-8')}", encoding="utf-8")

    done = run_jp("config", "set", "user.name=Ada", cwd=tmp_path)
    run_jp("config", "set", "--in", "user", "user.name=Grace", "assistant.request.max_retries=2", cwd=tmp_path)
    run_jp("config", "set", "--in", "cwd", "conversation.attachments+=a.txt", cwd=tmp_path)
    again = run_jp("config", "set", "user.name=Ada", cwd=tmp_path)
    shown = run_jp("config", "show", "--origins", cwd=tmp_path)
    got = result_of("config", "get", "user.name", cwd=tmp_path)

    assert (done, again) == ((0, f"{config}\n", ""), (0, f"{config}\n", ""))
    assert config.read_text(encoding="utf-8").startswith("# mine\n")
    user = home_beside(tmp_path) / "config" / "config.toml"
    assert f"max_retries = 2  # the user's file {user}\n" in shown.stdout
    assert f'attachments = ["a.txt"]  # the directory\'s file {tmp_path / ".jp.toml"}\n' in shown.stdout
    assert got == {"key": "user.name", "value": "Ada", "origin": f"the workspace's file {config}", "ignored": []}
    assert run_jp("config", "get", "user.name", cwd=tmp_path).stdout == "Ada\n"
    assert run_jp("config", "get", "conversation.attachments", cwd=tmp_path).stdout == '["a.txt"]\n'
    assert run_jp("config", "get", "assistant.model.parameters.top_p", cwd=tmp_path) == (0, "", "")


def test_a_table_is_given_with_the_origins_of_what_is_set_in_it(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    config = f"the workspace's file {tmp_path / '.jp' / 'config.toml'}"

    table = result_of("config", "get", "assistant", "--cfg", "assistant.tool_choice=none", cwd=tmp_path)
    unset = result_of("config", "get", "style", cwd=tmp_path)

    assert table["value"]["model"]["id"] == "script/test"
    assert table["origins"] == {
        "assistant.model.id": config,
        "assistant.tool_choice": "--cfg assistant.tool_choice=none",
    }
    assert "origin" not in table
    assert unset["origins"] == {}


def test_the_files_of_a_configuration_are_listed(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    files = result_of("config", "path", cwd=tmp_path)["files"]

    assert [(file["kind"], file["exists"]) for file in files] == [
        ("user", False),
        ("workspace", True),
        ("directory", False),
        ("user-workspace", False),
    ]


def test_what_a_conversation_keeps_is_shown_with_it(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "one", "--system", "Be brief.", "-p", "temperature=0.5", cwd=tmp_path)

    of_it = result_of("config", "get", "assistant.system_prompt", "--id", "last", cwd=tmp_path)
    of_new_ones = result_of("config", "get", "assistant.system_prompt", cwd=tmp_path)

    assert of_it["value"] == "Be brief."
    assert of_it["origin"].startswith("the conversation's")
    assert of_new_ones["value"] == "You are a helpful assistant."


def test_init_makes_a_workspace_once(tmp_path: Path) -> None:
    root = tmp_path / "new"

    made = run_jp("init", "--yes", "--model", "script/x", "new", cwd=tmp_path)
    before = contents(root)
    kept = run_jp("init", "--yes", cwd=root)
    unchanged = contents(root) == before
    changed = result_of("init", "--yes", "--model", "script/y", str(root), cwd=tmp_path)
    committed = run_jp("init", "--yes", "--commit-conversations", cwd=root)

    assert made.stdout.startswith(f"created the workspace at {root}\nmodel: script/x\n")
    assert kept.stdout.startswith(f"kept the workspace at {root}\n")
    assert unchanged
    assert changed == {"root": str(root), "model": "script/y", "created": False, "detected": []}
    assert (root / ".jp" / "config.toml").read_text(encoding="utf-8") == '[assistant.model]\nid = "script/y"\n'
    assert ".gitignore' keeps conversations out of git" in committed.stderr


def test_a_workspace_says_what_it_is(untouched: Path) -> None:
    inside = run_jp("workspace", "show", cwd=untouched)
    outside = result_of("workspace", "show", cwd=untouched.parent)

    assert inside.stdout == (
        f"root           {untouched}\n"
        f"user data      {home_beside(untouched) / 'data'}\n"
        "conversations  2\n"
        "trust          nothing here needs it\n"
    )
    assert (outside["root"], outside["trusted"], outside["needs_trust"]) == (None, True, [])


@pytest.mark.parametrize(
    "arguments", [["workspace", "trust", "--yes"], ["config", "set", "--in", "cwd", "user.name=x"]]
)
def test_what_needs_a_workspace_says_so_outside_any(tmp_path: Path, arguments: list[str]) -> None:
    check_failure(run_jp(*arguments, cwd=tmp_path), 2, "there is no workspace here")


def test_titles_cannot_steer_what_lists_them(root: Path) -> None:
    (logs(root)[1].parent / "metadata.json").write_text(
        json.dumps({"title": "red\x1b[31m\x1b]0;owned\x07\nsecond"}), encoding="utf-8"
    )

    said: list[Result] = [
        run_jp("conversation", *arguments, cwd=root)
        for arguments in (["ls"], ["show", "last"], ["use", "last"], ["rm", "--yes", "last"])
    ]

    assert [result.code for result in said] == [0, 0, 0, 0]
    assert ["\x1b" in result.stdout for result in said] == [False] * 4
    assert ["red second" in result.stdout for result in said] == [True] * 4


def test_many_conversations_are_found_by_the_start_of_their_ids(root: Path) -> None:
    log = logs(root)[0]
    for number in range(30):
        copy = log.parent.with_name(f"{10_000_000_000 + number}-copy")
        copy.mkdir()
        (copy / "events.jsonl").write_bytes(log.read_bytes())

    several = run_jp("conversation", "show", "jp-c1000000000", cwd=root)
    one = run_jp("conversation", "use", "10000000029", cwd=root)

    check_failure(several, 2, "10 conversations match 'jp-c1000000000'")
    assert ID.findall(one.stdout) == ["jp-c10000000029"]
    assert [entry.id for entry in entries_of(log)] == [entry.id for entry in entries_of(logs(root)[0])]

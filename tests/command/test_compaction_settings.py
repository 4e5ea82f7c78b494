"""What a compaction would do by its settings: bounds, profiles and the hints of tools, as the commands show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest, Compaction, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import ResourceBlock
from stage import copied, entries_of, logs, make_workspace

SCENARIO = """
[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.md" } }]

[[reply]]
when = { tool = "fs_read_file" }
text = "There are many."

[[reply]]
text = "Noted."
"""
SETTINGS = """
[conversation.tools.fs_read_file]
enable = true

[conversation.compaction]
default_profile = "mine"

[conversation.compaction.profiles.mine]
tool_calls = { policy = "strip", request = true, response = false }

[conversation.compaction.profiles.light]
reasoning = "strip"
resources = "superseded"
"""
BOUND = "a bound is the number of a turn (0 is the first), -3 (three turns before the last one), 5h (five hours ago)"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work", SCENARIO, settings=SETTINGS)
    (root / "a.md").write_text("a bolt, a nut and a washer\n" * 300, encoding="utf-8")
    prepare(["query", "--approve-all", "--new", "read a.md"], ["query", "--id", "last", "thanks"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def said(root: Path, *words: str) -> str:
    done = run_jp(*words, cwd=root)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout


def value(root: Path, *words: str) -> Any:
    return json.loads(said(root, *words, "--format", "json"))


@pytest.mark.parametrize("option", ["--from", "--to"])
def test_a_word_that_is_no_bound_is_refused_with_the_forms_that_a_bound_has(root: Path, option: str) -> None:
    before = logs(root)[0].read_bytes()

    for words in ((option, "nonsense"), (f"{option}=nonsense",), (option, "nonsense", "last")):
        done = run_jp("conversation", "compact", *words, cwd=root)

        assert (done.code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {option} cannot be 'nonsense'\nhint: {BOUND}"), done.stderr
    assert logs(root)[0].read_bytes() == before


@pytest.mark.parametrize("option", ["--budget", "--keep", "--keep-first", "--turn", "--from", "--to"])
def test_a_value_without_a_meaning_is_refused_where_there_is_no_conversation(tmp_path: Path, option: str) -> None:
    done = run_jp("conversation", "compact", f"{option}=nonsense", cwd=tmp_path)

    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {option} cannot be 'nonsense'\nhint: "), done.stderr


def test_a_bare_bound_stands_before_a_target_that_can_be_no_bound(root: Path) -> None:
    identity = logs(root)[0].parent.name.split("-")[0]
    for target in (".", "jp-c" + identity.removeprefix("jp-c"), "@none"):
        done = run_jp("conversation", "compact", "--dry-run", "--from", target, cwd=root)
        assert "cannot be" not in done.stderr, done


@pytest.mark.parametrize(
    ("table", "halves"),
    [
        ({"policy": "strip", "request": True, "response": False}, (True, False)),
        ({"policy": "strip", "request": False, "response": True}, (False, True)),
        ({"policy": "strip"}, (True, True)),
        ({"policy": "digest", "response": False}, (True, False)),
    ],
)
def test_a_profile_may_name_the_halves_of_tool_calls_in_a_table(
    root: Path, table: dict[str, Any], halves: tuple[bool, bool]
) -> None:
    profile = f"conversation.compaction.profiles.halved:={json.dumps({'tool_calls': table})}"
    bulky = "conversation.tools.fs_read_file.compaction.request=strip"
    listed = value(root, "--cfg", profile, "conversation", "compact", "--list-profiles")["profiles"]
    (policies,) = [each["policies"]["tool_calls"] for each in listed if each["name"] == "halved"]

    assert (policies["policy"], policies["request"], policies["response"]) == (table["policy"], *halves)
    code = run_jp(
        *("--cfg", profile, "--cfg", bulky),
        *("conversation", "compact", "--profile", "halved", "--keep", "0", "last"),
        cwd=root,
    ).code
    assert code == (0 if halves[1] else 12)
    for overlay in overlays(root):
        assert overlay.tool_calls is not None
        assert (overlay.tool_calls.request, overlay.tool_calls.response) == halves


def test_profiles_are_listed_with_what_they_do_and_where_they_come_from(root: Path) -> None:
    text = said(root, "conversation", "compact", "--list-profiles")
    data = value(root, "conversation", "compact", "--list-profiles")

    assert [line.split()[0] for line in text.splitlines()] == ["PROFILE", "default", "heavy", "light", "mine"]
    assert "reasoning + tools digested + superseded resources" in text
    assert data["default_profile"] == "mine"
    listed = {each["name"]: each for each in data["profiles"]}
    own = "the conversation's base configuration"
    assert {name: each["source"] for name, each in listed.items()} == {
        "default": "built in",
        "heavy": "built in",
        "light": own,
        "mine": own,
    }
    assert listed["mine"]["policies"] == {"tool_calls": {"policy": "strip", "request": True, "response": False}}
    assert listed["heavy"]["policies"] == {"summary": {"policy": "summarize"}}


def test_listing_profiles_takes_nothing_that_compacts(root: Path) -> None:
    done = run_jp("conversation", "compact", "--list-profiles", "--keep", "0", cwd=root)

    assert done.code == 2
    assert "--list-profiles takes no profile, policy or range" in done.stderr


def test_config_get_shows_the_profiles_and_hints_that_are_built_in(root: Path) -> None:
    profiles = value(root, "config", "get", "conversation.compaction.profiles")["value"]

    assert sorted(profiles) == ["default", "heavy", "light", "mine"]
    assert profiles["default"]["tool_calls"] == "digest"
    assert said(root, "config", "get", "conversation.compaction.profiles.heavy.summary.policy") == "summarize\n"
    assert said(root, "config", "get", "conversation.compaction.profiles.light.resources") == "superseded\n"
    for tool in ("fs_read_file", "fs_grep_files"):
        hints = value(root, "config", "get", f"conversation.tools.{tool}.compaction")["value"]
        assert hints == {"request": "keep", "response": "strip"}
    keep = ("--cfg", "conversation.tools.fs_read_file.compaction.response=keep")
    assert said(root, *keep, "config", "get", "conversation.tools.fs_read_file.compaction.response") == "keep\n"
    assert said(root, *keep, "config", "get", "conversation.tools.fs_read_file.compaction.request") == "keep\n"


def test_tool_show_tells_the_hints_of_a_tool_and_which_of_them_are_built_in(root: Path) -> None:
    text = said(root, "tool", "show", "fs_read_file")
    tool = value(root, "tool", "show", "fs_read_file")["tool"]
    own = ("--cfg", "conversation.tools.fs_read_file.compaction.response=keep")

    assert "compaction    arguments kept, results digested or stripped  (built in)" in text
    assert tool["compaction"] == {"request": "keep", "response": "strip"}
    changed = said(root, *own, "tool", "show", "fs_read_file")
    assert "compaction    arguments kept, results kept  (" in changed
    assert "--cfg" in changed
    assert value(root, *own, "tool", "show", "fs_read_file")["tool"]["compaction"]["response"] == "keep"


def overlays(root: Path) -> list[Compaction]:
    return [entry for entry in entries_of(logs(root)[0]) if isinstance(entry, Compaction)]


def test_a_file_has_the_same_type_whether_it_is_attached_or_read_and_the_second_refers_to_the_first(
    root: Path,
) -> None:
    done = run_jp("query", "--new", "--approve-all", "--attach", "a.md", "read", cwd=root)
    assert done.code == 0, done.stderr

    entries = entries_of(logs(root)[-1])
    (attached,) = [resource for entry in entries if isinstance(entry, ChatRequest) for resource in entry.resources]
    (block,) = [block for entry in entries if isinstance(entry, ToolCallResponse) for block in entry.content]
    assert isinstance(block, ResourceBlock)
    assert (block.resource.uri, block.resource.mime_type) == (attached.uri, "text/markdown")
    assert attached.mime_type == block.resource.mime_type
    assert block.resource.duplicate_of is not None


TWICE = """
[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.md" } }]

[[reply]]
text = "Read."
"""
ENABLED = """
[conversation.tools.fs_read_file]
enable = true
"""


SHORT = (
    *("--cfg", "providers.llm.mine.kind=openai-compatible"),
    *("--cfg", "providers.llm.mine.base_url=http://127.0.0.1:9/v1"),
    *("--cfg", "providers.llm.mine.call_ids=short"),
)


@pytest.mark.parametrize("way", ["read again", "attached"])
def test_a_reference_names_a_call_by_the_id_that_the_server_is_sent(tmp_path: Path, way: str) -> None:
    root = make_workspace(tmp_path / "work", TWICE, settings=ENABLED)
    (root / "a.md").write_text("a bolt, a nut and a washer\n" * 300, encoding="utf-8")
    again = ("--attach", "a.md", "look") if way == "attached" else ("read it again",)
    for words in (("--new", "read a.md"), ("--id", "last", *again)):
        done = run_jp("query", "--approve-all", *words, cwd=root)
        assert done.code == 0, done.stderr

    shown = run_jp(*SHORT, "query", "--id", "last", "-m", "mine/m", "--dry-run", "-F", "json", "And?", cwd=root)

    messages = json.loads(shown.stdout)["request"]["body"]["messages"]
    first, *_ = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert (len(first), first.isalnum()) == (9, True)
    text = json.dumps(messages)
    assert f"is identical to the result of tool call `{first}` in turn 0" in text
    (given, *_) = [entry.call_id for entry in entries_of(logs(root)[0]) if isinstance(entry, ToolCallRequest)]
    assert given not in text


def test_dot_segments_of_an_address_are_no_part_of_what_is_attached(root: Path) -> None:
    for written in ("http://127.0.0.1:9/a/../c", "http://127.0.0.1:9/x/%2e%2e/c"):
        run_jp("attachment", "add", "--id", "last", written, cwd=root)

    listed = run_jp("attachment", "ls", "--id", "last", "--format", "json", cwd=root)
    assert listed.stdout.count("http://127.0.0.1:9/c") >= 1, listed
    assert "%2e" not in listed.stdout
    assert ".." not in listed.stdout


AUTO = """
[providers.llm.script.models.test]
context_window = 12000
max_output = 2000
[conversation.compaction]
keep_last = 1
[conversation.compaction.auto]
enabled = true
min_turns = 1
[conversation.deduplication]
enabled = false
[conversation.tools.fs_read_file]
enable = true
"""


@pytest.mark.parametrize("setting", ["", "min_turns = 9", "unknown"])
def test_nothing_is_compacted_in_few_turns_or_for_a_window_that_nobody_knows(tmp_path: Path, setting: str) -> None:
    settings = AUTO.replace("min_turns = 1", setting) if setting.startswith("min") else AUTO
    settings = settings.replace("context_window = 12000\n", "") if setting == "unknown" else settings
    root = make_workspace(tmp_path / "work", SCENARIO, settings=settings)
    (root / "a.md").write_text("a bolt, a nut and a washer\n" * 350, encoding="utf-8")
    asking = ("query", "--approve-all")
    prepare((*asking, "--new", "read it"), *((*asking, "--id", "last", "read it again"),) * 2, cwd=root)

    done = run_jp(*asking, "--id", "last", "-v", "and now?", cwd=root)

    assert done.code == 0, done.stderr
    assert bool(overlays(root)) == (not setting)
    assert ("nobody knows the window of 'script/test'" in done.stderr) == (setting == "unknown")

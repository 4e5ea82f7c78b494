"""Turns of other conversations as attachments: `jp:` URIs on the command line and in configuration files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failures import check_failure
from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest
from stage import copied, entries_of, logs, make_workspace

TOOLS = """
[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
text = "You said: {{user}}"
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two conversations: the first one has two turns and the title `The parser`."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    first = ("query", "--title", "The parser", "one")
    prepare(first, ("query", "--id", "last", "two"), ("query", "--new", "other"), cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def id_of(log: Path) -> str:
    return f"jp-c{log.parent.name.partition('-')[0]}"


def requests_of(log: Path) -> list[ChatRequest]:
    return [entry for entry in entries_of(log) if isinstance(entry, ChatRequest)]


def test_an_answer_of_another_conversation_is_attached(root: Path) -> None:
    conversation = id_of(logs(root)[0])

    result = run_jp("query", "--new", "-a", conversation, "-a", f"{conversation}?u,a:0", "see", cwd=root)

    assert result == (0, "You said: see\n", "")
    (request,) = requests_of(logs(root)[2])
    assert request.attachments == (f"jp:{conversation}", f"jp:{conversation}?select=a,u:0")
    assert [(resource.title, resource.text) for resource in request.resources] == [
        (
            "The parser",
            (
                f"# The parser\n\nTurns of the conversation {conversation}.\n\n"
                "## Turn 1\n\n### Assistant\n\nYou said: two\n"
            ),
        ),
        (
            "The parser",
            (
                f"# The parser\n\nTurns of the conversation {conversation}.\n\n"
                "## Turn 0\n\n### User\n\none\n\n### Assistant\n\nYou said: one\n"
            ),
        ),
    ]


def test_a_conversation_attaches_its_own_earlier_turns_only(root: Path) -> None:
    conversation = id_of(logs(root)[0])

    asked = run_jp("query", "--id", conversation, "-a", f"{conversation}?u:..", "three", cwd=root)
    refused = run_jp("query", "--id", conversation, "-a", f"{conversation}?u:3", "four", cwd=root)

    assert asked.code == 0
    text = requests_of(logs(root)[0])[-1].resources[0].text or ""
    assert "one" in text
    assert "two" in text
    assert "three" not in text
    check_failure(refused, 10, f"the conversation '{conversation}' has no turns '3'", "its turns are 0 to 2")
    assert len(requests_of(logs(root)[0])) == 3


def test_a_conversation_is_attached_listed_printed_and_detached(root: Path) -> None:
    conversation = id_of(logs(root)[0])
    uri = f"jp:{conversation}?select=u:.."

    added = run_jp("attachment", "add", f"jp://{conversation}?select=user:0..", cwd=root)
    pending = run_jp("attachment", "ls", cwd=root)
    printed = run_jp("attachment", "print", cwd=root)
    run_jp("query", "--id", ".", "see", cwd=root)
    sent = run_jp("attachment", "ls", cwd=root)
    removed = run_jp("attachment", "rm", uri, cwd=root)

    assert added.stdout == f"{uri}\n"
    assert pending.stdout == f"pending   {uri}\n"
    assert printed.stdout.splitlines()[0] == f"── {conversation} u:.. (109 bytes, text/markdown)"
    assert sent.stdout == f"sent      turn 1, 109 B, 27 tokens  {uri}\n"
    assert removed.stdout == ""
    assert [resource.uri for request in requests_of(logs(root)[1]) for resource in request.resources] == [uri]


def test_a_dry_run_shows_what_would_be_attached(root: Path) -> None:
    conversation = id_of(logs(root)[0])

    result = run_jp("query", "--new", "--dry-run", "-a", conversation, "see", cwd=root)

    assert f"attached   {conversation} a:-1 (98 bytes)" in result.stdout
    assert len(logs(root)) == 2


def test_a_file_may_declare_a_conversation_without_trust(root: Path) -> None:
    conversation = id_of(logs(root)[0])
    (root / ".jp.toml").write_text(f'[conversation]\nattachments = ["{conversation}"]\n', encoding="utf-8")

    result = run_jp("query", "--new", "see", cwd=root)

    assert result.code == 0, result
    assert requests_of(logs(root)[2])[0].attachments == (f"jp:{conversation}",)


def test_what_tools_brought_is_read_from_where_it_is_stored(tmp_path: Path) -> None:
    make_workspace(tmp_path, TOOLS, settings="[conversation.tools.fs_read_file]\nenable = true\n")
    (tmp_path / "a.txt").write_text("line of text\n" * 1000, encoding="utf-8")
    run_jp("query", "--approve-all", "read it", cwd=tmp_path)
    conversation = id_of(logs(tmp_path)[0])

    shown = run_jp("attachment", "print", f"{conversation}?t:0", cwd=tmp_path)
    raw = run_jp("--format", "json", "attachment", "print", f"{conversation}?select=t:0&raw", cwd=tmp_path)

    assert shown.code == 0, shown
    assert "### Call of `fs_read_file`" in shown.stdout
    assert shown.stdout.count("line of text") >= 100
    lines = json.loads(raw.stdout)["resources"][0]["text"].splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["tool_call_request", "tool_call_response"]
    assert "line of text" in lines[1]


def test_what_cannot_be_attached_is_refused_before_anything_is_written(root: Path) -> None:
    conversation = id_of(logs(root)[0])

    unknown = run_jp("query", "-a", "jp:jp-c99", "x", cwd=root)
    empty = run_jp("query", "-a", f"{conversation}?r:..", "x", cwd=root)
    malformed = run_jp("query", "-a", f"{conversation}?nonsense", "x", cwd=root)
    ambiguous = run_jp("query", "-a", "jp:1", "x", cwd=root)

    check_failure(unknown, 10, "'jp:jp-c99': there is no conversation 'jp-c99' here", "`jp conversation ls`")
    check_failure(empty, 10, "selects nothing: of reasoning there is nothing in turns 0 to 1")
    check_failure(malformed, 10, "selects 'nonsense', which no turn has")
    check_failure(ambiguous, 10, "'jp:1' is the beginning of 2 conversations: jp-c1", "give the whole id")
    assert len(logs(root)) == 2


def test_a_conversation_is_attached_by_what_it_is_to_the_user_and_declared_by_its_id(root: Path) -> None:
    first, other = map(id_of, logs(root))
    prepare(
        ("conversation", "label", "add", "area=the parser", "--id", first),
        ("conversation", "use", first),
        ("conversation", "use", "other"),
        cwd=root,
    )

    attached = ["jp:prev?select=user:0", "jp:.", "jp://@area=the%20parser?select=*:..&raw", "!jp:@nothing=x"]
    added = run_jp("attachment", "add", *attached[:3], "--id", ".", cwd=root)
    refused = run_jp("attachment", "add", attached[3], "--id", ".", cwd=root)
    # The one that goes on was used last by now, and does not attach itself.
    running = run_jp("query", "--id", other, "-a", "jp:last", "go on", cwd=root)

    assert added.stdout == f"jp:{first}?select=u:0\njp:{other}\njp:{first}?select=*:..&raw\n"
    check_failure(refused, 10, "'jp:@nothing=x': no conversation matches '@nothing=x'")
    assert (running.code, running.stderr) == (0, "")
    assert requests_of(logs(root)[1])[-1].attachments[-1] == f"jp:{first}"


def test_a_label_of_several_conversations_attaches_none(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    prepare(*(("query", "--new", "--label", "area", question) for question in ("one", "two")), cwd=tmp_path)

    several = run_jp("query", "--new", "-a", "jp:@area", "three", cwd=tmp_path)

    check_failure(several, 10, "'jp:@area': 2 conversations match '@area': jp-c")
    assert len(logs(tmp_path)) == 2

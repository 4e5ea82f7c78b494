"""Results of tools as they are delivered: cut, referred to, as a diff; read again, and recalled."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from forked import run_jp
from jp.conversation.entries import RequestContext, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from stage import make_workspace, only_log

SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
"""
SCENARIO = """
[[reply]]
when = {{ contains = "Read" }}
times = 1
calls = [
  {{ name = "fs_read_file", arguments = {{ path = "notes.md" }} }},
  {{ name = "fs_read_file", arguments = {{ path = "big.log" }} }},
]

[[reply]]
when = {{ contains = "Refresh" }}
times = 1
calls = [
  {{ name = "refresh_resource", arguments = {{ uri = "{uri}" }} }},
  {{ name = "refresh_resource", arguments = {{ uri = "file:///etc/hosts" }} }},
  {{ name = "recall", arguments = {{ handle = "{handle}", offset = 29999, lines = 2 }} }},
  {{ name = "recall", arguments = {{ handle = "0123abcd" }} }},
]

[[reply]]
text = "Done."
"""
NOTES = "".join(f"note {number}\n" for number in range(100))
BIG = "".join(f"{number} is fine\n" for number in range(5_000))


ASKING = """
[[reply]]
when = {{ contains = "Refresh" }}
calls = [
  {{ name = "refresh_resource", arguments = {{ uri = "{outside}" }} }},
  {{ name = "refresh_resource", arguments = {{ uri = "cmd://cat?arg=here.txt" }} }},
]

[[reply]]
text = "Done."
"""


def results_of(work: Path) -> list[ToolCallResponse]:
    """The results in the order of their calls."""
    entries = only_log(work)
    responses = {entry.request: entry for entry in entries if isinstance(entry, ToolCallResponse)}
    return [responses[entry.id] for entry in entries if isinstance(entry, ToolCallRequest)]


def words_of(response: ToolCallResponse) -> str:
    return "".join(block.text or "" for block in response.content if isinstance(block, TextBlock))


def resource_of(response: ToolCallResponse) -> Resource:
    (block,) = response.content
    assert isinstance(block, ResourceBlock)
    return block.resource


def shown_results(work: Path) -> list[str]:
    """What the next request would show of each result, in order."""
    result = run_jp("query", "--id", "last", "--dry-run", "--format", "json", "More", cwd=work)
    messages = json.loads(result.stdout)["request"]["body"]["messages"]
    items = [item for message in messages for item in message["content"] if item["type"] == "tool_result"]
    return ["\n".join(piece["text"] for piece in item["content"]) for item in items]


def test_what_tools_return_is_cut_and_referred_to_and_can_be_read_again_and_recalled(tmp_path: Path) -> None:
    uri = f"file://{tmp_path.resolve()}/notes.md"
    handle = hashlib.sha256(BIG.encode()).hexdigest()[:8]
    make_workspace(tmp_path, SCENARIO.format(uri=uri, handle=handle), settings=SETTINGS)
    (tmp_path / "notes.md").write_text(NOTES, encoding="utf-8")
    (tmp_path / "big.log").write_text(BIG, encoding="utf-8")

    first = run_jp("query", "--new", "--attach", "notes.md", "--approve", "fs_read_file", "Read", cwd=tmp_path)
    (tmp_path / "notes.md").write_text(NOTES.replace("note 7\n", "note seven\n"), encoding="utf-8")
    second = run_jp("query", "--id", "last", "Refresh", cwd=tmp_path)

    assert (first.code, second.code) == (0, 0), (first, second)
    assert "notes.md, 100 lines, 790 B, unchanged since turn 0" in first.stderr
    assert f"big.log, 5,000 lines, 62.4 KiB, cut to 15.9 KiB: recall {handle}" in first.stderr
    assert "notes.md, 100 lines, 794 B, changed since turn 0, a diff of 3" in second.stderr

    assert len([entry for entry in only_log(tmp_path) if isinstance(entry, RequestContext)]) == 1
    notes, big, changed, refused, page, unknown = results_of(tmp_path)
    assert resource_of(notes).duplicate_of
    assert resource_of(big).sha256 == hashlib.sha256(BIG.encode()).hexdigest()
    assert resource_of(changed).formatted_against
    assert "'file:///etc/hosts' is not attached to this conversation. These are:" in words_of(refused)
    note = f"[bytes 29999 to 30025 of {len(BIG)} of {handle}; go on with offset 30025]"
    assert words_of(page) == f"2393 is fine\n2394 is fine\n{note}"
    assert words_of(unknown).startswith("nothing in this conversation has the handle '0123abcd'. A handle is in [[cut:")

    reference, cut, diff, *_ = shown_results(tmp_path)
    assert reference.startswith(f"The content of {uri} is identical to the attachment at turn 0 (checksum: sha256:")
    assert cut.startswith("0 is fine\n1 is fine\n")
    assert f":{handle}:+" in cut
    assert cut.endswith("\n4999 is fine\n")
    assert "-note 7\n+note seven\n" in diff


def test_what_was_typed_is_read_again_wherever_it_lies_and_what_runs_a_command_asks_as_long_as_it_is_declared(
    tmp_path: Path,
) -> None:
    outside, work = tmp_path / "outside.txt", tmp_path / "work"
    uri = f"file://{tmp_path.resolve()}/outside.txt"
    make_workspace(work, ASKING.format(outside=uri))
    outside.write_text("before", encoding="utf-8")
    (work / "here.txt").write_text("first", encoding="utf-8")
    attach = ("--attach", "../outside.txt", "--attach", "cmd:cat here.txt")
    again = ("query", "--id", "last", "Refresh")

    denied = run_jp("query", "--new", *attach, "Refresh", cwd=work)
    outside.write_text("after", encoding="utf-8")
    approved = run_jp(*again, "--approve", "refresh_resource", cwd=work)
    assert run_jp("attachment", "rm", "--id", "last", "cmd:cat here.txt", cwd=work).code == 0
    undeclared = run_jp(*again, "--approve-all", cwd=work)

    assert (denied.code, approved.code, undeclared.code) == (8, 0, 0), (denied, approved, undeclared)
    assert "denied, so not run: refresh_resource" in denied.stderr
    first, asked, second, ran, third, gone = results_of(work)
    assert [resource_of(each).text for each in (first, second, third)] == ["before", "after", "after"]
    assert asked.is_error
    assert "first" in (resource_of(ran).text or "")
    assert words_of(gone).startswith("'cmd://cat?arg=here.txt' is not declared as an attachment any more")

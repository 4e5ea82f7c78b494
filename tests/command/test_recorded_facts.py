"""What tools record while they run, from the log to what stands for their results."""

from __future__ import annotations

from pathlib import Path

from forked import run_jp
from jp.conversation.entries import Facts, ToolCallResponse
from loopback import HTML, Loopback, Reply
from stage import make_workspace, only_log

SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
[conversation.tools.web_fetch]
enable = true
[conversation.tools.web_fetch.access]
local_network = true
"""
PAGE = (
    b"<html><title>All about bolts</title><main>" + b"<p>A bolt holds a nut and a washer.</p>" * 60 + b"</main></html>"
)


def test_a_stripped_page_is_told_by_its_address_title_and_status_and_lines_with_how_many_there_are(
    tmp_path: Path,
) -> None:
    with Loopback(Reply(headers=HTML, body=PAGE)) as server:
        root = make_workspace(tmp_path / "work", _scenario(server.url), settings=SETTINGS)
        run_jp("workspace", "trust", "--yes", cwd=root)
        (root / "a.txt").write_text("a bolt, a nut and a washer\n" * 300, encoding="utf-8")
        asked = run_jp("query", "--approve-all", "look", cwd=root)
    compacted = run_jp("conversation", "compact", "--turn", "0", "--tools", "last", cwd=root)
    printed = run_jp("conversation", "print", "--compacted", "last", cwd=root)

    assert (asked.code, compacted.code) == (0, 0)
    recorded = [entry.facts for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    assert len(recorded) == 2
    assert Facts(kind="web", url=f"{server.url}/bolts", title="All about bolts", status=200) in recorded
    assert Facts(kind="read", path="a.txt", lines="10-90", total_lines=300) in recorded
    assert f"[compacted] web_fetch: success; {server.url}/bolts; All about bolts; HTTP 200; " in printed.stdout
    assert "[compacted] fs_read_file: success; a.txt; lines 10-90 of 300; 81 lines, " in printed.stdout


def _scenario(url: str) -> str:
    return f"""
[[reply]]
when = {{ contains = "look" }}
calls = [
  {{ name = "web_fetch", arguments = {{ url = "{url}/bolts" }} }},
  {{ name = "fs_read_file", arguments = {{ path = "a.txt", start_line = 10, end_line = 90 }} }},
]

[[reply]]
text = "Noted."
"""

"""What tools record while they run, from the log to what stands for their results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msgspec.structs import replace

from forked import run_jp
from jp.conversation.entries import Compaction, Facts, ToolCallResponse
from loopback import HTML, Loopback, Reply
from mcp_connections import SERVER
from running import home_beside
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
    compacted = run_jp("conversation", "compact", "--turn", "0", "--tools=digest", "last", cwd=root)
    printed = run_jp("conversation", "print", "--compacted", "last", cwd=root)

    assert (asked.code, compacted.code) == (0, 0)
    recorded = [entry.facts for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    assert len(recorded) == 2
    page = Facts(kind="web", url=f"{server.url}/bolts", title="All about bolts", status=200)
    assert page in [replace(facts, evidence=None) for facts in recorded if facts is not None]
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


FAILING_TOOL = """
[conversation.tools.check]
enable = true
source = "local"
command = { program = "cat", args = ["report.txt"] }
"""

REPORT = (
    "collecting\n"
    + "a passing line\n" * 90
    + "src/a.py:7: error: no rule for 'bolts'\n"
    + "more\n" * 90
    + "Exit code: 2\n"
)


CHECKING = """
[[reply]]
when = { contains = "check" }
calls = [{ name = "check", arguments = {} }]

[[reply]]
text = "Noted."
"""


def checked(tmp_path: Path) -> Path:
    """A workspace with a conversation in which a tool reported errors."""
    root = make_workspace(tmp_path / "work", CHECKING, settings=FAILING_TOOL)
    run_jp("workspace", "trust", "--yes", cwd=root)
    (root / "report.txt").write_text(REPORT, encoding="utf-8")
    asked = run_jp("query", "--approve-all", "check it", cwd=root)
    assert asked.code == 0, asked.stderr
    return root


def test_what_any_tool_prints_leaves_its_errors_and_exit_code_in_a_digest_and_only_its_handle_when_stripped(
    tmp_path: Path,
) -> None:
    root = checked(tmp_path)

    shown: dict[str, str] = {}
    for mode in ("digest", "strip"):
        compacted = run_jp("conversation", "compact", "--turn", "0", f"--tools={mode}", "last", cwd=root)
        assert compacted.code == 0, compacted.stderr
        shown[mode] = run_jp("conversation", "print", "--compacted", "last", cwd=root).stdout
        run_jp("conversation", "compact", "--reset", "last", cwd=root)

    (facts,) = [entry.facts for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    assert facts is not None
    assert facts.evidence is not None
    assert "src/a.py:7: error: no rule for 'bolts'" in facts.evidence
    assert "[compacted] check: success; " in shown["digest"]
    assert "src/a.py:7: error: no rule for 'bolts'" in shown["digest"]
    assert "no rule for" not in shown["strip"]
    assert "recall " in shown["strip"]


def test_results_that_were_recorded_without_evidence_get_it_when_they_are_compacted(tmp_path: Path) -> None:
    root = checked(tmp_path)
    (log,) = (root / ".jp" / "conversations").glob("*/events.jsonl")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.pop("facts", None)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    assert run_jp("conversation", "compact", "--turn", "0", "last", cwd=root).code == 0

    (overlay,) = [entry for entry in only_log(root) if isinstance(entry, Compaction)]
    (facts,) = overlay.facts.values()
    assert facts.exit_code == 2
    before = run_jp("conversation", "print", "--compacted", "last", cwd=root).stdout
    assert "exit 2" in before
    assert "src/a.py:7: error: no rule for 'bolts'" in before
    forked = run_jp("conversation", "fork", "last", cwd=root)
    assert forked.code == 0
    assert "src/a.py:7: error" in run_jp("conversation", "print", "--compacted", "last", cwd=root).stdout


NOTES = f"""
[providers.mcp.notes]
command = "{sys.executable}"
arguments = ["-S", "-I", "{SERVER}"]
[conversation.tools.notes]
source = "mcp.notes.*"
enable = true
"""


def test_what_a_tool_of_an_mcp_server_says_is_recorded_with_its_errors_and_paths_and_without_secrets(
    tmp_path: Path,
) -> None:
    key = "sk-ant-api03-Th1sM4yN0tLeak"
    words = f"M src/deep/bolts.py\nerror: no rule for bolts, with {key}\n" + "nothing to see here\n" * 60
    calls = f'calls = [{{ name = "notes_echo", arguments = {{ text = {json.dumps(words)} }} }}]'
    scenario = f'[[reply]]\nwhen = {{ contains = "look" }}\n{calls}\n\n[[reply]]\ntext = "Noted."\n'
    root = make_workspace(tmp_path / "work", scenario)
    own = home_beside(root) / "config" / "config.toml"
    own.parent.mkdir(exist_ok=True)
    own.write_text(NOTES, encoding="utf-8")

    asked = run_jp("query", "--approve-all", "look", cwd=root)

    assert asked.code == 0, asked.stderr
    (response,) = [entry for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    assert response.facts is not None
    assert response.facts.evidence is not None
    said = "\n".join(response.facts.evidence)
    assert "error: no rule for bolts" in said
    assert "src/deep/bolts.py" in said
    assert key not in said
    assert len(said) <= 400
    assert run_jp("conversation", "compact", "--turn", "0", "last", cwd=root).code == 0
    shown = run_jp("conversation", "print", "--compacted", "last", cwd=root).stdout
    assert "error: no rule for bolts" in shown.partition("[compacted] notes_echo: success")[2]

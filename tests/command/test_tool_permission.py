"""What tools may do where nobody can be asked: rules, results that are kept back, calls that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

from failures import check_failure
from forked import run_jp
from running import home_beside
from stage import make_workspace

CALLING = """
[[reply]]
when = { tool = "fs_read_file" }
text = "Done."

[[reply]]
calls = [CALLS]
"""
RULES = """
[conversation.tools.fs_read_file]
enable = true
rules = [
  { arguments = { path = "src/keys/**" }, run = "skip" },
  { arguments = { path = "src/**" }, run = "unattended" },
]
"""


def stage(root: Path, settings: str, *calls: str) -> None:
    """A workspace whose model makes these calls; the user's own configuration has the settings."""
    listed = ", ".join(f'{{ name = "fs_read_file", arguments = {arguments} }}' for arguments in calls)
    make_workspace(root, CALLING.replace("CALLS", listed))
    (root / "src").mkdir()
    (root / "src" / "a.txt").write_text("one\n", encoding="utf-8")
    (root / "b.txt").write_text("two\n", encoding="utf-8")
    config = home_beside(root) / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(settings, encoding="utf-8")


def said(stderr: str) -> list[str]:
    """The lines on stderr without the times that calls took, those of a call's end sorted."""
    lines = [line.rpartition(", ")[0] if line.endswith(" ms") else line for line in stderr.splitlines() if line]
    return [line for line in lines if not line.startswith("←")] + sorted(line for line in lines if line.startswith("←"))


def test_rules_let_some_paths_through_however_they_are_spelled(tmp_path: Path) -> None:
    paths = ("src/a.txt", "src/../b.txt", "./src/keys/k")
    stage(tmp_path, RULES, *(f'{{ path = "{path}" }}' for path in paths))

    result = run_jp("query", "hi", cwd=tmp_path)

    assert (result.code, result.stdout) == (8, "Done.\n")
    assert said(result.stderr) == [
        '→ fs_read_file(path="src/a.txt")',
        '→ fs_read_file(path="src/../b.txt")',
        '→ fs_read_file(path="./src/keys/k")',
        "error: denied, so not run: fs_read_file",
        "hint: `--approve NAME` lets a tool run",
        (
            "← fs_read_file failed: This call did not run: 'fs_read_file' needs the user's approval, and nobody can be "
            "asked here. Do not repeat it; go on without it, or say what it is needed for."
        ),
        (
            "← fs_read_file failed: This call did not run: the configuration says that calls of 'fs_read_file' are "
            "skipped. Do not repeat it; go on without it, or say what it is needed for."
        ),
        "← fs_read_file: src/a.txt, 1 line, 4 B",
    ]


def test_a_rule_that_can_never_match_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    stage(tmp_path, RULES.replace("{ path =", "{ pth ="), '{ path = "b.txt" }')

    check_failure(
        run_jp("query", "hi", cwd=tmp_path),
        3,
        "error: 'conversation.tools.fs_read_file.rules' asks for an argument 'pth', which the tool does not have\n"
        "hint: it has 'path', 'start_line', 'end_line'\n",
    )


def test_a_result_that_is_kept_back_is_told_and_one_that_needs_a_person_ends_with_its_exit_code(tmp_path: Path) -> None:
    settings = '[conversation.tools.fs_read_file]\nenable = true\nrun = "unattended"\nresult = "ask"\n'
    stage(tmp_path, settings, '{ path = "b.txt" }')

    kept = run_jp("query", "hi", cwd=tmp_path)
    given = run_jp("query", "--new", "--approve", "fs_read_file", "hi", cwd=tmp_path)
    skipped = run_jp("query", "--new", "--cfg", "conversation.tools.fs_read_file.result=skip", "hi", cwd=tmp_path)

    assert (kept.code, given.code, skipped.code) == (8, 0, 0)
    assert "error: without an answer that it needs of a person: fs_read_file" in kept.stderr
    assert "← fs_read_file: b.txt, 1 line, 4 B" in given.stderr
    assert not any("two" in result.stdout + result.stderr for result in (kept, skipped))


def test_calls_that_do_not_fit_are_answered_with_what_is_wrong_and_cost_nothing_else(tmp_path: Path) -> None:
    settings = '[conversation.tools.fs_read_file]\nenable = true\nrun = "unattended"\n'
    stage(tmp_path, settings, '{ pth = "b.txt" }', '{ path = "b.txt", start_line = "1" }')

    result = run_jp("query", "hi", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "Done.\n")
    assert said(result.stderr)[2:] == [
        (
            "← fs_read_file failed: The arguments do not fit, so nothing ran: 'path' is missing; 'pth' is not known; "
            "did you mean 'path'?"
        ),
        "← fs_read_file: b.txt lines 1-1, 1 line, 4 B",
    ]


def test_a_denied_tool_is_an_error_also_where_nothing_else_is_said(tmp_path: Path) -> None:
    stage(tmp_path, RULES, '{ path = "b.txt" }')

    quiet = run_jp("query", "--quiet", "hi", cwd=tmp_path)
    as_json = run_jp("query", "--quiet", "--new", "--format", "json", "hi", cwd=tmp_path)

    hint = "`--approve NAME` lets a tool run"
    assert quiet == (8, "Done.\n", f"error: denied, so not run: fs_read_file\nhint: {hint}\n")
    assert as_json.code == 8
    assert json.loads(as_json.stderr) == {
        "schema": 1,
        "error": {"kind": "tool_denied", "message": "denied, so not run: fs_read_file", "hint": hint, "exit_code": 8},
    }


def test_a_deadline_is_an_error_also_where_nothing_else_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path, '[[reply]]\ntext = "Late."\nwait_ms = 60000\n')

    quiet = run_jp("query", "--quiet", "--deadline", "300ms", "hi", cwd=tmp_path)
    as_json = run_jp("query", "--quiet", "--format", "json", "--deadline", "300ms", "--new", "hi", cwd=tmp_path)

    hint = "allow it more time with `--deadline`"
    assert (quiet.code, quiet.stderr) == (124, f"error: the deadline passed\nhint: {hint}\n")
    assert as_json.code == 124
    assert json.loads(as_json.stderr.splitlines()[-1])["error"] == {
        "kind": "deadline",
        "message": "the deadline passed",
        "hint": hint,
        "exit_code": 124,
    }

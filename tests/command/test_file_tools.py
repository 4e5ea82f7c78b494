"""File tools through whole queries: what runs, what is asked, what the log holds, and what never happens."""

from __future__ import annotations

from pathlib import Path

from forked import run_jp
from jp.conversation.entries import Facts, ToolCallResponse
from jp.conversation.resource import TextBlock
from stage import make_workspace, only_log

SETTINGS = """
[conversation.tools.fs_modify_file]
enable = true
[conversation.tools.fs_create_file]
enable = true
[conversation.tools.fs_grep_files]
enable = true
"""

SCENARIO = """
[[reply]]
calls = [
  { name = "fs_grep_files", arguments = { pattern = "o[ne]+" } },
  { name = "fs_modify_file", arguments = { path = "a.txt", patterns = [{ old = "two", new = "zwei" }] } },
  { name = "fs_create_file", arguments = { path = "b.txt", content = "mine" } },
  { name = "fs_create_file", arguments = { path = ".git/hooks/pre-commit", content = "mine" } },
]
times = 1

[[reply]]
text = "done"
"""


def workspace(root: Path) -> Path:
    work = make_workspace(root / "work", SCENARIO, settings=SETTINGS)
    (work / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (work / "b.txt").write_text("theirs", encoding="utf-8")
    (work / ".git" / "hooks").mkdir(parents=True)
    return work


def results(work: Path) -> list[tuple[bool, str, Facts | None]]:
    """What the calls gave, as the log has it."""
    found = [entry for entry in only_log(work) if isinstance(entry, ToolCallResponse)]
    texts = [[block.text or "" for block in entry.content if isinstance(block, TextBlock)] for entry in found]
    return [(entry.is_error, "\n".join(text), entry.facts) for entry, text in zip(found, texts, strict=True)]


def test_what_was_approved_is_done_but_what_needs_a_person_is_not(tmp_path: Path) -> None:
    work = workspace(tmp_path)

    result = run_jp("query", "--approve-all", "translate", cwd=work)

    assert (work / "a.txt").read_text(encoding="utf-8") == "one\nzwei\n"
    assert (work / "b.txt").read_text(encoding="utf-8") == "theirs"
    assert list((work / ".git" / "hooks").iterdir()) == []
    assert (result.code, result.stdout) == (8, "done\n")
    done = {(is_error, text.split("\n")[0]): facts for is_error, text, facts in results(work)}
    refused = (
        "'b.txt' exists (6 bytes). Overwrite it? That needs the user's consent, and nobody can be asked here, so "
        "nothing was done."
    )
    kept = "'.git/hooks/pre-commit' lies in '.git', which no tool changes"
    assert done == {
        (False, "a.txt:1:one"): Facts(kind="search", matches=1),
        (False, "Changed 'a.txt':"): Facts(kind="patch", path="a.txt", lines="2-2"),
        (True, refused): Facts(kind="write", path="b.txt", first_error=refused),
        (True, kept): Facts(kind="write", path=".git/hooks/pre-commit", first_error=kept),
    }


def test_without_approval_nothing_is_done(tmp_path: Path) -> None:
    work = workspace(tmp_path)

    result = run_jp("query", "translate", cwd=work)

    assert (work / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert (work / "b.txt").read_text(encoding="utf-8") == "theirs"
    assert (result.code, result.stdout) == (8, "done\n")
    assert all(is_error for is_error, _, _ in results(work))


def test_an_answer_in_the_configuration_overwrites(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    answer = "conversation.tools.fs_create_file.questions.overwrite_file.answer:=true"

    run_jp("query", "--cfg", answer, "--approve-all", "translate", cwd=work)

    assert (work / "b.txt").read_text(encoding="utf-8") == "mine"

"""The hook of `workspace-example`, installed as its users install it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from forked import search_path
from jp.conversation.entries import ChatRequest
from running import TIMEOUT_SECS, home_beside, isolated_environment
from stage import entries_of, make_workspace

HOOK = Path(__file__).parents[2] / "workspace-example/hooks/prepare-commit-msg"
IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
SCENARIO = '''
[[reply]]
when = { contains = "commit message" }
text = """
This says it:

```text
Add a line to {{user}}

It was missing.
```
"""
'''
EDITOR = """
cp "$1" '{seen}'
grep -q '^[^#]' "$1" || echo typed > "$1"
! grep -q '^From a template' "$1" || echo "with more" >> "$1"
"""
NOTHING_YET = "\n# Please enter the commit message\n"
ASKED = "Write a commit message for this change, in one fenced code block"


class Repository:
    """A repository whose commits are made as at a terminal, with an editor that notes what it is shown."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.root = root
        home = home_beside(root)
        editor = home / "editor.sh"
        editor.write_text(EDITOR.format(seen=home / "edited"), encoding="utf-8")
        self.env = {
            **isolated_environment(home),
            **IDENTITY,
            "GIT_EDITOR": f"sh {editor}",
            "PATH": search_path(),
            **(env or {}),
        }
        self.edited = home / "edited"

    def git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run git to its end."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_SECS,
            check=False,
        )
        assert done.returncode == 0, done
        return done

    def change(self) -> None:
        """Stage one more line."""
        with (self.root / "a.txt").open("a", encoding="utf-8") as file:
            file.write("a line\n")
        self.git("add", "a.txt")

    def message(self) -> str:
        """The message of the newest commit."""
        return self.git("log", "-1", "--format=%B").stdout.strip()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work tree with one commit."""
    root = tmp_path_factory.mktemp("begun") / "work"
    root.mkdir()
    repository = Repository(root)
    repository.git("init", "-q", "-b", "main", "--template=", ".")
    repository.change()
    repository.git("commit", "-qm", "first")
    return root


def new_repository(
    begun: Path, root: Path, *, env: Mapping[str, str] | None = None, hook: str | None = None
) -> Repository:
    """A copy of the repository, the hook in a directory that `core.hooksPath` names."""
    shutil.copytree(begun, root)
    hooks = home_beside(root) / "hooks"
    hooks.mkdir()
    installed = hooks / HOOK.name
    installed.write_text(hook or HOOK.read_text(encoding="utf-8"), encoding="utf-8")
    installed.chmod(0o755)
    with (root / ".git/config").open("a", encoding="utf-8") as config:
        config.write(f'[core]\n\thooksPath = "{hooks}"\n')
    return Repository(root, env=env)


def another_jp(directory: Path, script: str) -> dict[str, str]:
    """PATH with a `jp` that is this shell script. It notes that it was asked."""
    directory.mkdir()
    program = directory / "jp"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{directory}/asked"\n{script}\n', encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


def hooked(file: Path, *source: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """The hook as git starts it, in a group of its own; `source` is where a message comes from."""
    return subprocess.Popen(
        [str(HOOK), str(file), *source],
        cwd=file.parent,
        env={**isolated_environment(home_beside(file.parent)), **IDENTITY, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )


def test_commits_in_two_work_trees_at_once_both_have_what_jp_suggests(begun: Path, tmp_path: Path) -> None:
    first = new_repository(begun, tmp_path / "first")
    first.git("worktree", "add", "-q", str(tmp_path / "second"))
    second = Repository(tmp_path / "second", env=first.env | {"GIT_EDITOR": "true"})
    for name in ("first", "second"):
        make_workspace(tmp_path / name, SCENARIO, settings='[conversation]\nattachments = ["file:nowhere.txt"]\n')
        (tmp_path / name / ".jp/.gitignore").write_text("*\n", encoding="utf-8")
    first.change()
    second.change()

    commits = [
        subprocess.Popen(["git", "commit"], cwd=repository.root, env=repository.env, stdin=subprocess.DEVNULL)
        for repository in (first, second)
    ]

    assert [commit.wait(TIMEOUT_SECS) for commit in commits] == [0, 0]
    for repository in (first, second):
        subject, _, body = repository.message().partition("\n")
        assert subject.startswith(f"Add a line to {ASKED}")
        assert body.endswith("It was missing.")
    edited = first.edited.read_text(encoding="utf-8")
    assert "It was missing.\n\n# Please enter the commit message" in edited
    assert first.git("status", "--short").stdout == ""
    assert list((tmp_path / "first/.git").rglob("*.jp-*")) == []
    data = home_beside(tmp_path / "first") / "data"
    logs = list(data.glob("**/conversations/*/events.jsonl"))
    requests = [entry.content for log in logs for entry in entries_of(log) if isinstance(entry, ChatRequest)]
    assert ["+a line" in request for request in requests] == [True, True]
    assert all('"expires_at"' in (log.parent / "metadata.json").read_text(encoding="utf-8") for log in logs)
    assert not list(data.glob("**/env-JP_SESSION-*.json"))


def test_a_message_that_is_there_is_left_alone(begun: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin"
    repository = new_repository(begun, tmp_path / "work", env=another_jp(program, "echo suggested"))
    template = tmp_path / "template"
    template.write_text("From a template\n", encoding="utf-8")
    repository.git("switch", "-qc", "topic")
    (repository.root / "b.txt").write_text("another file\n", encoding="utf-8")
    repository.git("add", "b.txt")
    repository.git("commit", "-qm", "aside")
    repository.git("switch", "-q", "main")

    for command in (
        ["commit", "-qm", "typed"],
        ["revert", "--edit", "HEAD"],
        ["commit", "-qF", str(template)],
        ["commit", "-qt", str(template)],
        ["commit", "-q", "--amend"],
        ["commit", "-q", "--allow-empty"],
        ["merge", "-q", "--squash", "topic"],
        ["commit", "-q"],
        ["merge", "-q", "--no-ff", "topic"],
    ):
        if command[:2] != ["commit", "-q"] and command[0] == "commit":
            repository.change()
        repository.git(*command)
        assert "suggested" not in repository.message(), command

    assert not (program / "asked").exists()
    repository.change()
    repository.git("commit", "-v")
    assert repository.message() == "suggested"
    assert "suggested\n\n# Please enter" in repository.edited.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("# Only comments\n", ("template",)),
        ("Written by another hook\n\n# Please enter\n", ()),
        ("\n# Please enter\n# ------------------------ >8 ------------------------\n+written\n", ("merge",)),
    ],
)
def test_a_source_and_a_text_are_enough_each(text: str, source: tuple[str, ...], begun: Path, tmp_path: Path) -> None:
    work = new_repository(begun, tmp_path / "work")
    work.change()
    file = work.root / "message"
    file.write_text(text, encoding="utf-8")

    process = hooked(file, *source, env=another_jp(tmp_path / "bin", "echo suggested"))

    assert process.communicate(timeout=TIMEOUT_SECS) == ("", "")
    assert (process.returncode, file.read_text(encoding="utf-8")) == (0, text)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        *((f"echo half; echo 'error: no {code}' >&2; exit {code}", f"error: no {code}\n") for code in (1, 14)),
        ("echo half; kill -KILL $$", ""),
        ("echo half; echo error: late >&2; exit 124", "error: late\n"),
        ("exit 0", ""),
    ],
)
def test_whatever_becomes_of_jp_the_commit_goes_on_without_a_message(
    script: str, said: str, begun: Path, tmp_path: Path
) -> None:
    env = another_jp(tmp_path / "bin", script)
    repository = new_repository(begun, tmp_path / "work", env=env)
    repository.change()

    done = repository.git("commit", "-q")

    assert repository.message() == "typed"
    assert "half" not in repository.edited.read_text(encoding="utf-8")
    assert done.stdout == ""
    # How the shell names a signal is its own business.
    assert done.stderr == said or "KILL" in script
    assert list((tmp_path / "work/.git").glob("*.jp-*")) == []


def test_without_jp_the_commit_goes_on(begun: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "sh", "sed", "cat", "mv", "rm", "cp", "grep"):
        (programs / name).symlink_to(shutil.which(name) or name)
    repository = new_repository(begun, tmp_path / "work", env={"PATH": str(programs)})
    repository.change()

    done = repository.git("commit", "-q")

    assert (repository.message(), done.stdout) == ("typed", "")
    assert done.stderr == "prepare-commit-msg: jp is not on PATH, so it suggests no message\n"


def test_a_model_of_unknown_price_is_asked_without_a_limit(begun: Path, tmp_path: Path) -> None:
    limited = 'case "$*" in *--max-cost*) echo "error: unknown price" >&2; exit 3 ;; esac; echo suggested'
    repository = new_repository(begun, tmp_path / "work", env=another_jp(tmp_path / "bin", limited))
    repository.change()

    done = repository.git("commit", "-q")

    assert (repository.message(), done.stderr) == ("suggested", "")
    asked = (tmp_path / "bin/asked").read_text(encoding="utf-8").splitlines()
    assert ["--max-cost 0.05" in arguments for arguments in asked] == [True, False]


def test_a_large_change_is_told_by_its_files(begun: Path, tmp_path: Path) -> None:
    repository = new_repository(begun, tmp_path / "work", env=another_jp(tmp_path / "bin", "cat"))
    (repository.root / "large.txt").write_text("a line of text\n" * 20_000, encoding="utf-8")
    repository.git("add", "large.txt")

    repository.git("commit", "-q")

    assert "large.txt | 20000 ++" in repository.message()
    assert "a line of text" not in repository.message()


def test_a_deadline_ends_a_model_that_says_nothing(begun: Path, tmp_path: Path) -> None:
    hook = HOOK.read_text(encoding="utf-8").replace("deadline=20s", "deadline=50ms")
    repository = new_repository(begun, tmp_path / "work", hook=hook)
    make_workspace(repository.root, '[[reply]]\ntext = "late"\nwait_ms = 600000\n')
    repository.change()

    done = repository.git("commit", "-q")

    assert repository.message() == "typed"
    assert done.stderr == "error: the deadline passed\nhint: allow it more time with `--deadline`\n"


def test_a_hook_that_is_terminated_leaves_the_message_as_it_was(begun: Path, tmp_path: Path) -> None:
    work = new_repository(begun, tmp_path / "work").root
    (work / "a.txt").write_text("another\n", encoding="utf-8")
    subprocess.run(["git", "add", "a.txt"], cwd=work, check=True, timeout=TIMEOUT_SECS)
    started = tmp_path / "started"
    os.mkfifo(started)
    (work / "message").write_text(NOTHING_YET, encoding="utf-8")
    process = hooked(work / "message", env=another_jp(tmp_path / "bin", f"echo x > {started}; exec sleep 600"))
    assert started.read_text(encoding="utf-8") == "x\n"

    os.killpg(process.pid, signal.SIGTERM)

    assert process.communicate(timeout=TIMEOUT_SECS)[0] == ""
    assert process.returncode == 0
    assert (work / "message").read_text(encoding="utf-8") == NOTHING_YET
    assert sorted(path.name for path in work.iterdir()) == [".git", "a.txt", "message"]

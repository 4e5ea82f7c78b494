"""`jp hook`, with the hooks that it installs run by git."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from forked import run_jp, search_path
from jp.cli.hook import HOOKS, HookName, HookSettings, script_of
from jp.conversation.entries import ChatRequest
from running import TIMEOUT_SECS, home_beside, isolated_environment
from stage import entries_of, make_workspace

HOOK = script_of(HookSettings(name="prepare-commit-msg")).decode()
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

    def git(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
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
        assert done.returncode == code, done
        return done

    def change(self) -> None:
        """Stage one more line."""
        with (self.root / "a.txt").open("a", encoding="utf-8") as file:
            file.write("a line\n")
        self.git("add", "a.txt")

    def jp(self, *arguments: str, code: int = 0) -> str:
        """Run jp in the work tree, and return its output, or its errors if it is to fail."""
        done = run_jp(*arguments, cwd=self.root)
        assert done.code == code, done
        return done.stderr if code else done.stdout

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
    installed = hooks / "prepare-commit-msg"
    installed.write_text(hook or HOOK, encoding="utf-8")
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
    installed = home_beside(file.parent) / "hooks/prepare-commit-msg"
    return subprocess.Popen(
        [str(installed), str(file), *source],
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
    hook = script_of(HookSettings(name="prepare-commit-msg", timeout="50ms")).decode()
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


def plain_repository(begun: Path, root: Path, script: str = "", *, git: str = "") -> Repository:
    """A copy of the repository, with a jp that is this shell script once hooks are installed."""
    shutil.copytree(begun, root)
    with (root / ".git/config").open("a", encoding="utf-8") as config:
        config.write(git)
    repository = Repository(root, env=another_jp(root.parent / "bin", script) if script else {})
    repository.env["GIT_EDITOR"] = f"cp $1 '{repository.edited}'; true"
    return repository


def write_hook(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def asked(root: Path) -> list[str]:
    """Return the arguments of each call of the other jp."""
    file = root.parent / "bin/asked"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_an_installed_hook_suggests_a_message_by_the_saved_prompt(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")
    make_workspace(repository.root, SCENARIO.replace("commit message", "in rhyme"))
    repository.jp("prompt", "add", "rhyme", "Write it in rhyme.")
    repository.jp("hook", "install", "prepare-commit-msg", "--prompt", "rhyme")
    repository.change()

    done = repository.git("commit", "-q")

    assert done.stderr == ""
    assert repository.message().startswith("Add a line to Write it in rhyme.")
    assert "Answer with the commit message in one fenced code block." in repository.message()
    assert "diff --git" in repository.message()


def test_the_hook_that_was_there_is_kept_runs_first_and_can_stop_git(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", "echo bad")
    hooks = repository.root / ".git/hooks"
    write_hook(hooks / "commit-msg", 'echo "first $0 $1" >&2; ! grep -q stop "$1" || exit 7')
    original = (hooks / "commit-msg").read_bytes()

    repository.jp("hook", "install", "commit-msg")
    repository.jp("hook", "install", "commit-msg")
    repository.change()
    stopped = repository.git("commit", "-qm", "stop", code=1)
    assert asked(repository.root) == []
    done = repository.git("commit", "-qm", "fine")

    assert stopped.stderr.startswith("first .git/hooks/commit-msg.before-jp .git/COMMIT_EDITMSG")
    assert done.stderr == "first .git/hooks/commit-msg.before-jp .git/COMMIT_EDITMSG\ncommit-msg: bad\n"
    assert repository.jp("hook", "rm", "commit-msg") == f"restored {hooks / 'commit-msg'}\n"
    assert (hooks / "commit-msg").read_bytes() == original
    assert [path.name for path in hooks.iterdir()] == ["commit-msg"]


def test_a_hook_that_is_not_executable_is_kept_and_not_run(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", "echo OK")
    hooks = repository.root / ".git/hooks"
    write_hook(hooks / "post-commit", "echo never >&2")
    (hooks / "post-commit").chmod(0o644)

    repository.jp("hook", "install", "post-commit")
    repository.change()

    assert repository.git("commit", "-qm", "a change").stderr == ""
    assert len(asked(repository.root)) == 1
    repository.jp("hook", "rm", "post-commit")
    assert (hooks / "post-commit").stat().st_mode & 0o777 == 0o644


def test_hooks_go_where_core_hookspath_says_and_a_worktree_shares_them(begun: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "shared hooks"
    repository = plain_repository(begun, tmp_path / "work", "echo bad", git=f'[core]\n\thooksPath = "{elsewhere}"\n')
    plain = plain_repository(begun, tmp_path / "plain")
    plain.git("worktree", "add", "-q", str(tmp_path / "tree"))

    done = run_jp("hook", "install", "commit-msg", cwd=repository.root)
    in_tree = run_jp("hook", "install", "commit-msg", cwd=tmp_path / "tree")
    repository.change()

    assert done.stdout == f"{elsewhere / 'commit-msg'}\n"
    assert "every repository that uses this directory" in done.stderr
    assert repository.git("commit", "-qm", "a change").stderr == "commit-msg: bad\n"
    assert (in_tree.stdout, in_tree.stderr) == (f"{tmp_path / 'plain/.git/hooks/commit-msg'}\n", "")


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("script", ["echo half; echo error: late >&2; exit 124", "kill -KILL $$"])
def test_no_hook_blocks_git_when_jp_fails(name: HookName, script: str, begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", script)
    repository.git("init", "-q", "--bare", str(tmp_path / "remote"))
    repository.jp("hook", "install", name)
    repository.change()

    arguments = [] if name == "prepare-commit-msg" else ["-m", "typed"]
    repository.env["GIT_EDITOR"] = "sh -c 'echo typed > \"$1\"' editor"
    done = repository.git("commit", "-q", *arguments)
    pushed = repository.git("push", "-q", str(tmp_path / "remote"), "main")

    assert repository.message() == "typed"
    assert len(asked(repository.root)) == 1
    assert "half" not in done.stderr + pushed.stderr
    assert ("error: late\n" in done.stderr + pushed.stderr) == ("late" in script)
    assert not list((repository.root / ".git").glob("jp-*"))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo typo", "commit-msg: typo\ncommit-msg: stopped, because it was installed with --strict"),
        ("echo error: no key >&2; exit 4", "error: no key\ncommit-msg: stopped"),
    ],
)
def test_strict_stops_a_commit_and_no_verify_makes_it(script: str, said: str, begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", script)
    repository.jp("hook", "install", "commit-msg", "--strict")
    repository.change()

    assert repository.git("commit", "-qm", "typed", code=1).stderr.startswith(said)
    repository.git("commit", "-q", "--no-verify", "-m", "typed")
    assert repository.message() == "typed"


def test_strict_lets_a_commit_pass_to_which_nothing_is_objected(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", "echo OK")
    repository.jp("hook", "install", "commit-msg", "--strict", "--timeout", "3s")
    repository.change()

    assert repository.git("commit", "-qm", "typed").stderr == ""
    (words,) = asked(repository.root)
    assert "--deadline 3s" in words


def test_a_review_by_a_saved_prompt_asks_the_model_with_the_message_and_the_change(begun: Path, tmp_path: Path) -> None:
    scenario = """
[[reply]]
when = { contains = "a fine message" }
text = "OK"

[[reply]]
text = "Not in rhyme: {{user}}"
"""
    repository = plain_repository(begun, tmp_path / "work")
    make_workspace(repository.root, scenario)
    repository.jp("prompt", "add", "rhyme", "Is it in rhyme?")
    repository.jp("hook", "install", "commit-msg", "--prompt", "rhyme", "--strict")
    repository.change()

    stopped = repository.git("commit", "-qm", "a message", code=1).stderr
    fine = repository.git("commit", "-qm", "a fine message")

    assert stopped.startswith("commit-msg: Not in rhyme: Is it in rhyme?")
    assert "answer with the one word OK.\n\na message\n\ndiff --git a/a.txt" in stopped
    assert (fine.stdout, fine.stderr) == ("", "")


@pytest.mark.parametrize("name", ["prepare-commit-msg", "post-commit"])
def test_strict_is_refused_where_git_cannot_skip_the_hook(name: str, begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")

    assert f"{name} cannot be strict" in repository.jp("hook", "install", name, "--strict", code=2)
    assert not (repository.root / ".git/hooks").exists()


def test_a_push_is_reviewed_commit_by_commit_since_the_remote(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", 'cat >&2; printf "a \\033[31mdefect\\302\\233x"')
    repository.git("init", "-q", "--bare", str(tmp_path / "remote"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote"))
    repository.git("push", "-q", "origin", "main")
    write_hook(repository.root / ".git/hooks/pre-push", 'echo "before $1"; cat')
    repository.jp("hook", "install", "pre-push")
    for message in ("second", "third"):
        repository.change()
        repository.git("commit", "-qm", message)

    pushed = repository.git("push", "-q", "origin", "main")
    repository.git("push", "-q", "origin", "main:topic")
    repository.git("push", "-q", "origin", ":topic")

    assert [line.strip() for line in pushed.stderr.splitlines() if line.startswith("    ")] == ["second", "third"]
    assert pushed.stderr.endswith("pre-push: a [31mdefectx\n")
    assert pushed.stdout.startswith("before origin\nrefs/heads/main ")
    assert len(asked(repository.root)) == 1, "a branch without new commits and one that is deleted need no review"


def test_merges_and_rebases_are_not_reviewed(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work", "echo OK")
    repository.git("switch", "-qc", "topic")
    (repository.root / "b.txt").write_text("another file\n", encoding="utf-8")
    repository.git("add", "b.txt")
    repository.git("commit", "-qm", "on topic")
    repository.git("switch", "-q", "main")
    repository.change()
    repository.git("commit", "-qm", "on main")
    for name in ("commit-msg", "post-commit"):
        repository.jp("hook", "install", name)

    repository.git("merge", "-q", "--no-ff", "--no-edit", "topic")
    repository.git("reset", "-q", "--hard", "HEAD^")
    repository.git("rebase", "-q", "topic")

    assert asked(repository.root) == []


def test_an_edited_hook_is_neither_replaced_nor_removed_by_accident(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")
    hook = repository.root / ".git/hooks/commit-msg"
    repository.jp("hook", "install", "commit-msg")
    with hook.open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    edited = hook.read_bytes()

    assert "was edited" in repository.jp("hook", "install", "commit-msg", code=2)
    assert "was edited" in repository.jp("hook", "rm", "commit-msg", code=2)
    assert hook.read_bytes() == edited
    repository.jp("hook", "install", "commit-msg", "--replace")
    assert hook.read_bytes() == script_of(HookSettings(name="commit-msg"))
    assert not list(hook.parent.glob("*.before-jp"))


def test_two_other_hooks_are_too_many_and_both_stay(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")
    hooks = repository.root / ".git/hooks"
    write_hook(hooks / "commit-msg", "true")
    repository.jp("hook", "install", "commit-msg")
    write_hook(hooks / "commit-msg", "false")

    assert "jp keeps one hook" in repository.jp("hook", "install", "commit-msg", code=2)
    assert "is not jp's" in repository.jp("hook", "rm", "commit-msg", code=2)
    assert (hooks / "commit-msg").read_text(encoding="utf-8") == "#!/bin/sh\nfalse\n"
    assert (hooks / "commit-msg.before-jp").read_text(encoding="utf-8") == "#!/bin/sh\ntrue\n"


def test_hooks_are_listed_with_the_command_that_installs_them(begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")
    hooks = repository.root / ".git/hooks"
    write_hook(hooks / "pre-push", "true")
    repository.jp("hook", "install", "commit-msg", "--strict", "--timeout", "1m")

    listed = json.loads(repository.jp("hook", "ls", "--format", "json"))["hooks"]

    assert [(hook["name"], hook["state"], hook["command"]) for hook in listed] == [
        ("prepare-commit-msg", "none", ""),
        ("commit-msg", "installed", "jp hook install commit-msg --timeout 1m --strict"),
        ("pre-push", "other", ""),
        ("post-commit", "none", ""),
    ]
    assert "jp hook install commit-msg --timeout 1m --strict" in repository.jp("hook", "ls")


@pytest.mark.parametrize("name", HOOKS)
def test_a_dry_run_shows_the_script_and_writes_nothing(name: str, begun: Path, tmp_path: Path) -> None:
    repository = plain_repository(begun, tmp_path / "work")

    shown = repository.jp("hook", "install", name, "--dry-run")
    as_json = json.loads(repository.jp("hook", "install", name, "--dry-run", "--format", "json"))

    assert not (repository.root / ".git/hooks").exists()
    assert (as_json["script"], as_json["dry_run"]) == (shown, True)
    repository.jp("hook", "install", name)
    assert (repository.root / ".git/hooks" / name).read_text(encoding="utf-8") == shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install", "pre-commit"], "'pre-commit' is not one of"),
        (["install", "pre-push", "--timeout", "soon"], "--timeout cannot be 'soon'"),
        (["install", "pre-push", "--prompt", "none"], "there is no prompt 'none'"),
        (["install", "pre-push", "--no-persist"], "--no-persist"),
        (["rm", "pre-push"], "there is no hook 'pre-push'"),
    ],
)
def test_what_cannot_be_installed_or_removed_is_said(
    arguments: list[str], said: str, begun: Path, tmp_path: Path
) -> None:
    repository = plain_repository(begun, tmp_path / "work")

    assert said in repository.jp("hook", *arguments, code=2)


def test_outside_a_repository_there_are_no_hooks(tmp_path: Path) -> None:
    done = run_jp("hook", "ls", cwd=tmp_path)

    assert (done.code, done.stdout) == (2, "")
    assert "is not in a git repository" in done.stderr

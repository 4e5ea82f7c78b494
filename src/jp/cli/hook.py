"""`jp hook`: git hooks that ask a model, shell scripts in the hooks directory of a repository, which call `jp query`.

A hook that is there already is kept beside jp's as NAME.before-jp, and jp's runs it first. The second line of each
script tells how it was installed, the third has a checksum of the rest, so that an edited script is not lost.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import typer

from jp.app.options import current_directory
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import JpError, StorageError, UsageError

HookName = Literal["prepare-commit-msg", "commit-msg", "pre-push", "post-commit"]
HOOKS: tuple[HookName, ...] = get_args(HookName)

DEFAULT_TIMEOUT = "20s"
_BEFORE = ".before-jp"
_INSTALLED_BY = b"# installed by: "
_CHECKSUM = b"# checksum: "
_GIT_TIMEOUT_SECS = 10.0
_EXECUTABLE = 0o755
_STRICT: tuple[HookName, ...] = ("commit-msg", "pre-push")
"""Those that `--no-verify` skips."""


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a hook.

    Args:
        name: the event of git.
        prompt: the name of a saved prompt instead of jp's own instruction; empty for none.
        timeout: the longest that the hook waits for an answer, such as `20s`.
        strict: whether a failure, or an objection of the model, stops git.
    """

    name: HookName
    prompt: str = ""
    timeout: str = DEFAULT_TIMEOUT
    strict: bool = False

    @property
    def command(self) -> str:
        """Return the command that installs this hook."""
        words = ["jp", "hook", "install", self.name]
        words += ["--prompt", self.prompt] if self.prompt else []
        words += ["--timeout", self.timeout] if self.timeout != DEFAULT_TIMEOUT else []
        return shlex.join([*words, *(["--strict"] if self.strict else [])])


class GitHook(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a hook.

    Args:
        name: the event of git.
        path: where the file is, or would be.
        state: `none` if there is no file, `other` if it is not jp's, `edited` if it is jp's and was changed.
        command: the command that installed it; empty if it is not jp's.
        before: the hook that it runs first; empty if there is none.
    """

    name: HookName
    path: str
    state: Literal["none", "other", "installed", "edited"]
    command: str = ""
    before: str = ""


def script_of(settings: HookSettings) -> bytes:
    """Return the script of a hook."""
    part = "suggest" if settings.name == "prepare-commit-msg" else "review"
    values = {
        "hook": settings.name,
        "prompt": settings.prompt,
        "deadline": settings.timeout,
        "strict": "1" if settings.strict else "",
    }
    variables = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    parts = (Path(__file__).with_name(f"hook-{name}.sh").read_text(encoding="utf-8") for name in ("start", part))
    body = f"# `jp hook rm {settings.name}` removes it.\n\n{variables}{''.join(parts)}".encode()
    checksum = hashlib.sha256(body).hexdigest().encode()
    return b"#!/bin/sh\n%s%s\n%s%s\n%s" % (_INSTALLED_BY, settings.command.encode(), _CHECKSUM, checksum, body)


def hooks_directory() -> tuple[Path, bool]:
    """Return where git looks for the hooks of this repository, and whether other repositories may share the directory.

    Raises:
        JpError: there is no repository, or git cannot be run.
    """
    import subprocess

    here = current_directory()
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--git-path", "hooks", "--git-common-dir"],  # noqa: S607 - git is where the user's PATH has it
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_GIT_TIMEOUT_SECS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JpError(f"cannot run git: {error}", hint="install git") from None
    if done.returncode:
        raise UsageError(f"{str(here)!r} is not in a git repository", hint="cd to a repository, or run `git init`")
    hooks, _, common = os.fsdecode(done.stdout.removesuffix(b"\n")).partition("\n")
    return here / hooks, (here / hooks).resolve() != (here / common / "hooks").resolve()


def list_hooks() -> list[GitHook]:
    """Return the hooks of this repository that jp has scripts for, installed or not."""
    directory, _ = hooks_directory()
    return [_hook_at(directory, name) for name in HOOKS]


def install_hook(options: GlobalOptions, settings: HookSettings, *, replace: bool, dry_run: bool) -> GitHook:
    """Install a hook, and keep the one that is there; return what was found before.

    Args:
        options: the workspace whose prompts are known.
        settings: those of the hook.
        replace: replace jp's script although it was edited.
        dry_run: only check that it could be installed.

    Raises:
        UsageError: a setting is invalid, the script was edited, or a kept hook is in the way.
        StorageError: the file cannot be written.
    """
    from jp.app.values import parse_duration

    parse_duration(settings.timeout, option="--timeout")
    if settings.strict and settings.name not in _STRICT:
        raise UsageError(f"{settings.name} cannot be strict", hint=f"use --strict with {' or '.join(_STRICT)}")
    if settings.prompt:
        from jp.app.options import open_workspace
        from jp.app.prompts import find_prompt

        find_prompt(open_workspace(options), settings.prompt)
    directory, is_shared = hooks_directory()
    found = _hook_at(directory, settings.name)
    if found.state == "edited" and not replace:
        raise UsageError(f"{found.path!r} was edited", hint="keep a copy, then use --replace")
    if found.state == "other" and found.before:
        raise UsageError(
            f"both {found.path!r} and {found.before!r} exist, and jp keeps one hook",
            hint=f"merge them into {found.path!r} and delete the other one",
        )
    if is_shared:
        options.notice(f"`core.hooksPath` is {directory}: the hook runs in every repository that uses this directory")
    if not dry_run:
        _write(found, script_of(settings))
    return found


def _write(found: GitHook, script: bytes) -> None:
    from jp.workspace.files import failure, temporary_beside

    path = Path(found.path)
    temporary = temporary_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(script)
        temporary.chmod(_EXECUTABLE)
        if found.state == "other":
            # A link and a rename leave no moment without a hook.
            os.link(path, _before(path), follow_symlinks=False)
        temporary.replace(path)
    except OSError as error:
        raise failure("write", path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_hook(name: HookName, *, force: bool) -> GitHook:
    """Remove jp's hook and restore the one before it; return what was found.

    Raises:
        UsageError: there is no hook of jp, or it was edited and `force` is not given.
        StorageError: the file cannot be removed.
    """
    from jp.workspace.files import failure

    found = _hook_at(hooks_directory()[0], name)
    if found.state == "none":
        raise UsageError(f"there is no hook {name!r}", hint="`jp hook ls` lists the hooks of this repository")
    if found.state == "other":
        raise UsageError(f"{found.path!r} is not jp's", hint="delete the file to remove it")
    if found.state == "edited" and not force:
        raise UsageError(f"{found.path!r} was edited", hint="keep a copy, then use --force")
    try:
        if found.before:
            Path(found.before).replace(found.path)
        else:
            Path(found.path).unlink()
    except OSError as error:
        raise failure("remove", Path(found.path), error) from error
    return found


def _before(path: Path) -> Path:
    return path.with_name(f"{path.name}{_BEFORE}")


def _hook_at(directory: Path, name: HookName) -> GitHook:
    """Return the hook of a name.

    Raises:
        StorageError: the file cannot be read.
    """
    path = directory / name
    before = str(_before(path)) if os.path.lexists(_before(path)) else ""
    found = GitHook(name=name, path=str(path), state="none", before=before)
    if not os.path.lexists(path):
        return found
    if path.is_dir():
        raise StorageError(f"{str(path)!r} is a directory, where git looks for a hook", hint="move it away")
    try:
        content = path.read_bytes()
    except OSError as error:
        if path.exists():
            raise JpError(f"cannot read {str(path)!r}: {error.strerror}", hint="check its permissions") from error
        content = b""  # a link that leads nowhere
    lines = content.split(b"\n", 3)
    if len(lines) <= len((_INSTALLED_BY, _CHECKSUM)) + 1 or not lines[1].startswith(_INSTALLED_BY):
        return msgspec.structs.replace(found, state="other")
    is_whole = lines[2] == _CHECKSUM + hashlib.sha256(lines[3]).hexdigest().encode()
    command = lines[1].removeprefix(_INSTALLED_BY).decode("utf-8", "replace")
    return msgspec.structs.replace(found, state="installed" if is_whole else "edited", command=command)


_Name = Annotated[
    HookName,
    typer.Argument(help="prepare-commit-msg, commit-msg, pre-push or post-commit", metavar="NAME"),
]


def install(
    options: GlobalOptions,
    *,
    name: _Name,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="NAME", help="A saved prompt instead of jp's instruction")
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Go on without an answer after this time")
    ] = DEFAULT_TIMEOUT,
    strict: Annotated[
        bool, typer.Option("--strict", help="With commit-msg and pre-push: stop git if jp fails or the model objects")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a hook of jp that was edited")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the script; change nothing")] = False,
) -> None:
    """Install a git hook in this repository, where `core.hooksPath` says, for all its worktrees.

    prepare-commit-msg suggests a message where none is given. commit-msg checks the message against the change,
    post-commit reviews the commit, pre-push the commits that are pushed; they print the model's objections.

    The hook sends the change to the model of `assistant.model.id`. Unless --strict is given it never blocks git. A
    hook that exists is kept, and runs first. Reviews with --prompt print nothing where the answer is `OK`.

    Examples:
        jp hook install prepare-commit-msg
        jp hook install commit-msg --strict --timeout 1m
        jp hook install pre-push --prompt review
        jp hook install post-commit --dry-run
    """
    from jp.cli.output import print_result

    settings = HookSettings(name=name, prompt=prompt or "", timeout=timeout, strict=strict)
    if not dry_run:
        require_persistence(options, "jp hook install")
    found = install_hook(options, settings, replace=replace, dry_run=dry_run)
    before = f"{found.path}.before-jp" if found.state == "other" else found.before
    value = {"name": name, "path": found.path, "before": before, "command": settings.command, "dry_run": dry_run}
    if before:
        options.notice(f"the hook that exists {'would run' if dry_run else 'runs'} first: {before}")
    if dry_run:
        options.notice(f"this would be written to {found.path}")
        script = script_of(settings).decode()
        print_result(options, text=script, value={**value, "script": script})
        return
    print_result(options, text=found.path, value=value, paths={found.path: Path(found.path).absolute()})


def ls(options: GlobalOptions) -> None:
    """List the git hooks that jp can install in this repository, and whether they are installed.

    Examples:
        jp hook ls
        jp hook ls --format json
    """
    from jp.cli.output import print_result
    from jp.render.tables import Table

    words = {"none": "not installed", "other": "not jp's", "edited": "edited"}
    hooks = list_hooks()
    rows = [(hook.name, words.get(hook.state, hook.state), hook.command or hook.path) for hook in hooks]
    table = Table(head=("hook", "state", "command or path"), rows=rows, keys=frozenset({0}))
    print_result(options, text=[table], value={"hooks": hooks})


def remove(
    options: GlobalOptions,
    *,
    name: _Name,
    force: Annotated[bool, typer.Option("--force", help="Also if the script was edited")] = False,
) -> None:
    """Remove a git hook that jp has installed, and restore the hook that was there before.

    Examples:
        jp hook rm prepare-commit-msg
    """
    from jp.cli.output import print_result

    require_persistence(options, "jp hook rm")
    found = remove_hook(name, force=force)
    text = f"restored {found.path}" if found.before else f"removed {found.path}"
    print_result(options, text=text, value={"name": name, "path": found.path, "restored": bool(found.before)})

"""`jp hook`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.app.hooks import DEFAULT_TIMEOUT, HookName
from jp.cli.options import GlobalOptions, require_persistence

_Name = Annotated[
    HookName,
    typer.Argument(help="prepare-commit-msg, commit-msg, pre-push or post-commit.", metavar="NAME"),
]


def install(
    options: GlobalOptions,
    *,
    name: _Name,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="NAME", help="A saved prompt instead of jp's instruction.")
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Go on without an answer after this time.")
    ] = DEFAULT_TIMEOUT,
    strict: Annotated[
        bool, typer.Option("--strict", help="With commit-msg and pre-push: stop git if jp fails or the model objects.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a hook of jp that was edited.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the script; change nothing.")] = False,
) -> None:
    """Install a git hook in this repository, where `core.hooksPath` says, for all its worktrees.

    prepare-commit-msg suggests a message where none is given. commit-msg checks the message against the change,
    post-commit reviews the commit, pre-push the commits that are pushed; they print what the model objects to.

    The hook sends the change to the model of `assistant.model.id`. Unless --strict is given it never blocks git. A
    hook that exists is kept, and runs first. Reviews with --prompt print nothing where the answer is `OK`.

    Examples:
        jp hook install prepare-commit-msg
        jp hook install commit-msg --strict --timeout 1m
        jp hook install pre-push --prompt review
        jp hook install post-commit --dry-run
    """
    from jp.app.hooks import HookSettings, install_hook, script_of
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
    print_result(options, text=found.path, value=value)


def ls(options: GlobalOptions) -> None:
    """List the git hooks that jp can install in this repository, and which of them are installed.

    Examples:
        jp hook ls
        jp hook ls --format json
    """
    from jp.app.hooks import list_hooks
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
    force: Annotated[bool, typer.Option("--force", help="Also if the script was edited.")] = False,
) -> None:
    """Remove a git hook that jp has installed, and restore the hook that was there before.

    Examples:
        jp hook rm prepare-commit-msg
    """
    from jp.app.hooks import remove_hook
    from jp.cli.output import print_result

    require_persistence(options, "jp hook rm")
    found = remove_hook(name, force=force)
    text = f"restored {found.path}" if found.before else f"removed {found.path}"
    print_result(options, text=text, value={"name": name, "path": found.path, "restored": bool(found.before)})

"""`jp workspace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.terminal.wording import worded
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jp.app.options import AnyWorkspace
    from jp.config.layers import Ignored, Layer
    from jp.workspace.listing import ConversationInfo


def show(options: GlobalOptions) -> None:
    """Show the workspace in use, its directories, and whether its files are trusted.

    Examples:
        jp workspace show
    """
    from jp.app.options import open_workspace
    from jp.app.prompts import declared_texts
    from jp.app.settings import accepted_of, as_value, read_sources
    from jp.cli.output import print_result
    from jp.render.tables import Facts

    workspace = open_workspace(options)
    sources = read_sources(options, workspace)
    texts, accepted = declared_texts(workspace), accepted_of(workspace)
    values = (*sources.needing_trust(), *texts)
    trusted = not sources.resolve().ignored and all(text.marks <= accepted for text in texts)
    count = len(workspace.conversations())
    rows = [
        ("root", str(workspace.root or "none: this is your own workspace")),
        ("user data", str(workspace.user_data)),
        ("conversations", str(count)),
        ("trust", _trust_text(values, trusted=trusted)),
    ]
    value = {
        "root": None if workspace.root is None else str(workspace.root),
        "user_data": str(workspace.user_data),
        "conversations": count,
        "trusted": trusted,
        "needs_trust": [as_value(item) for item in values],
    }
    print_result(options, text=[Facts(title="workspace", rows=rows, widths=(15,))], value=value)


def trust(
    options: GlobalOptions,
    *,
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", show_default=False, help="Root of a workspace, also of another user")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
    target: Annotated[
        str | None, typer.Option("-i", "--id", metavar="TARGET", help="Include what this conversation declares")
    ] = None,
) -> ExitCode | None:
    """Accept what the files of this workspace declare: tools that run without asking, servers, keys, prompts.

    A cloned repository can contain such files. Values that make your own settings stricter apply at once; values that
    loosen them are ignored until you accept them. This command shows exactly these values and asks. A later change has
    to be accepted again. With --id it accepts the values of one conversation that came with the repository.

    A workspace that belongs to another user is used only after its PATH has been accepted here.

    Examples:
        jp workspace trust
        jp workspace trust --yes
        jp workspace trust --id jp-c17800836875
        jp workspace trust /srv/shared/project
    """
    from msgspec.structs import replace

    from jp.app.options import open_workspace
    from jp.app.prompts import declared_texts
    from jp.app.settings import accept, accept_id, as_value, read_sources
    from jp.cli.output import print_result
    from jp.errors import UsageError
    from jp.render.sanitize import escape_line

    require_persistence(options, "jp workspace trust")
    if path is not None:
        root = _accepted_root(path, yes=yes)
        if root is None:
            options.notice("nothing was trusted")
            return ExitCode.FAILURE
        options = replace(options, workspace=str(root))
    workspace = open_workspace(options)
    if workspace.root is None and target is None:
        raise UsageError("there is no workspace here, so nothing to trust", hint="`jp init` makes one")
    info, layers = _conversation(options, target, workspace)
    values = (*read_sources(options, workspace).needing_trust(layers), *declared_texts(workspace))
    shown = "\n".join(escape_line(worded(item.text)) for item in values)
    if values and not yes and not _confirm("This workspace declares what is shown above. Trust it?", shown):
        options.notice("nothing was trusted")
        return ExitCode.FAILURE
    accept(values, options, workspace, info)
    accept_id(options, workspace)
    text = f"trusted:\n{shown}" if values else "this workspace declares nothing that needs trust"
    print_result(options, text=text, value={"trusted": [as_value(item) for item in values]})
    return None


def doctor(
    options: GlobalOptions,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair logs: save cut lines beside them, give open calls a result")
    ] = False,
) -> ExitCode | None:
    """Check settings, model, key, servers, sandbox, and every conversation with its blobs.

    Nothing is sent, and no server is started. The exit code is 1 if something has to be corrected.

    Examples:
        jp workspace doctor
        jp workspace doctor --repair
        jp workspace doctor --format json
    """
    from jp.app.maintenance import examine
    from jp.cli.output import print_result
    from jp.render.sanitize import escape_line

    require_persistence(options, "jp workspace doctor")
    found = examine(options, repair=repair)
    lines = [
        (f"{finding.severity:<8} {finding.subject}: {worded(finding.text)}", worded(finding.hint)) for finding in found
    ]
    text = "\n".join(
        escape_line(line) for told, hint in lines for line in (told, *([f"         hint: {hint}"] if hint else []))
    )
    value = [
        {
            "subject": finding.subject,
            "severity": finding.severity,
            "text": worded(finding.text),
            "hint": worded(finding.hint),
        }
        for finding in found
    ]
    print_result(options, text=text, value={"findings": value})
    return ExitCode.FAILURE if any(finding.severity == "error" for finding in found) else None


def gc(
    options: GlobalOptions, *, apply: Annotated[bool, typer.Option("--apply", help="Delete what is listed")] = False
) -> None:
    """List the files that no conversation needs, and conversations that have expired; delete them with --apply.

    A file stays if any conversation names it, also one that only another branch, tag, stash or worktree of git has, if
    it was used within 14 days, or if one conversation cannot be read.

    Examples:
        jp workspace gc
        jp workspace gc --apply
    """
    from jp.app.maintenance import collect_garbage
    from jp.attachment.base import format_size
    from jp.cli.output import print_result
    from jp.render.tables import count_text

    require_persistence(options, "jp workspace gc")
    found = collect_garbage(options, apply=apply)
    conversations, files = len(found.expired), len(found.files)
    counts = f"{count_text(conversations, 'expired conversation')} and {count_text(files, 'file')}"
    things = f"{counts} ({format_size(found.size)})"
    text = f"deleted {things}" if apply else f"{things} can be deleted: `jp workspace gc --apply`"
    if not (conversations or files):
        text = "there is nothing to delete"
    value = {
        "expired": list(found.expired),
        "files": [{"path": str(file.path), "size": file.size} for file in found.files],
        "bytes": found.size,
        "deleted": apply,
    }
    print_result(options, text=text, value=value)


def _conversation(
    options: GlobalOptions, target: str | None, workspace: AnyWorkspace
) -> tuple[ConversationInfo | None, Sequence[Layer]]:
    """Return the requested conversation, if any, and its layers."""
    from jp.app.options import open_session
    from jp.app.settings import layers_of
    from jp.app.targets import choose

    if target is None:
        return None, ()
    info = choose(options, target, workspace, open_session(workspace))
    return info, layers_of(workspace, info, workspace.read(info).entries)


def _accepted_root(path: str, *, yes: bool) -> Path | None:
    """Return the root of the workspace at `path`, whose owners are accepted; None if the person declines."""
    from pathlib import Path

    from jp.app.options import current_directory
    from jp.render.sanitize import escape_line
    from jp.workspace.layout import explicit_root, user_data_directory
    from jp.workspace.trust import accept_owners, foreign_owners, names_of

    root = explicit_root(current_directory() / Path(path).expanduser())
    if strangers := foreign_owners(root):
        belongs = f"{str(root)!r} belongs to {names_of(strangers)}"
        if not yes and not _confirm("Use its settings and conversations?", escape_line(belongs)):
            return None
        accept_owners(root, user_data_directory())
    return root


def _confirm(question: str, shown: str) -> bool:
    from functools import partial

    from jp.cli.terminal.approval import run_question
    from jp.errors import ConfigurationError
    from jp.render.approval import Sheet
    from jp.render.prompts import About, ask_yes_no

    about = About(sheets=(Sheet(text=shown),))
    answer = run_question(partial(ask_yes_no, question, default=False, about=about))
    if answer is None:
        raise ConfigurationError(
            f"trust needs a person, and nobody can be asked here: {'; '.join(shown.splitlines())}",
            hint="add --yes once you have read it",
        )
    return answer


def _trust_text(values: Sequence[Ignored], *, trusted: bool) -> str:
    if not values:
        return "nothing here needs it"
    listed = "".join(f"\n               {worded(item.text)}" for item in values)
    return f"{'given' if trusted else 'not given yet: `jp workspace trust`'}{listed}"

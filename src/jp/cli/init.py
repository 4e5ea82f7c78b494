"""`jp init`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence

_DEFAULT_MODEL = "anthropic/claude-sonnet-5-5"


def init(
    options: GlobalOptions,
    *,
    path: Annotated[str, typer.Argument(help="Where the workspace's root is to be.", metavar="PATH")] = ".",
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="ID", help="The model to use, as provider/name.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    commit_conversations: Annotated[
        bool, typer.Option("--commit-conversations", help="Do not keep conversations out of git.")
    ] = False,
) -> None:
    """Make a directory a workspace: conversations, attachments and tools belong to it from then on.

    It writes .jp/config.toml with the model, and .jp/.gitignore, which keeps conversations out of git. On a terminal
    it asks for the model. A workspace that exists already is left as it is, but for what is missing.

    Examples:
        jp init
        jp init --model anthropic/claude-sonnet-5-5 ~/code/api
        jp init --yes --model script/demo
    """
    from jp.cli.output import notice, print_result
    from jp.cli.places import current_directory
    from jp.config.edit import set_in_file
    from jp.config.places import FILE_NAME
    from jp.provider.registry import parse_model_id
    from jp.workspace.layout import MARKER
    from jp.workspace.workspace import create_workspace, keeps_out_of_git

    require_persistence(options, "jp init")
    root = (current_directory() / Path(path).expanduser()).resolve()
    if model is not None:
        parse_model_id(model, {})
    config = root / MARKER / FILE_NAME
    existed = config.exists()
    if model is None and not yes and not existed:
        model = _ask_for_model()
    create_workspace(root, commit_conversations=commit_conversations)
    if commit_conversations and keeps_out_of_git(root):
        notice(
            options, f"{str(root / MARKER / '.gitignore')!r} keeps conversations out of git: take its last lines out"
        )
    if model is not None:
        set_in_file(config, [f"assistant.model.id={model}"])
    lines = [f"{'kept' if existed else 'created'} the workspace at {root}"]
    lines += _next_steps(config, model)
    print_result(options, text="\n".join(lines), value={"root": str(root), "model": model, "created": not existed})


def _next_steps(config: Path, model: str | None) -> list[str]:
    if model:
        return [f"model: {model}", 'ask it something: `jp query "hello"`']
    if config.exists():
        return [f"its settings are in {config}"]
    return [f"no model is set yet: `jp config set assistant.model.id={_DEFAULT_MODEL}`"]


def _ask_for_model() -> str | None:
    """What the person at the terminal wants; None where nobody can be asked."""
    from jp.errors import ConfigurationError
    from jp.provider.registry import parse_model_id
    from jp.render.prompt import ask_line

    suggested = _DEFAULT_MODEL if os.environ.get("ANTHROPIC_API_KEY") else ""
    known = (
        "A key for Anthropic is in your environment."
        if suggested
        else f"Write provider/name, such as {_DEFAULT_MODEL}."
    )
    said = f"Which model is to answer? {known}"
    question = "Model:" if suggested else "Model (Enter to set one later):"
    while True:
        answer = ask_line(f"{said}\n{question}", default=suggested)
        if answer is None or not answer.strip():
            return None
        try:
            parse_model_id(answer.strip(), {})
        except ConfigurationError as error:
            said = f"{error.message}\n{error.hint}"
        else:
            return answer.strip()

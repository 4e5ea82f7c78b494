"""`jp init`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.terminal.wording import worded
from jp.remedies import phrase

if TYPE_CHECKING:
    from jp.config.model import LlmConfig
    from jp.provider.discovery import Proposal


def init(
    options: GlobalOptions,
    *,
    path: Annotated[str, typer.Argument(help="Root of the new workspace", metavar="PATH")] = ".",
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="ID", help="The model to use, as provider/name or an alias")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; use the model that is found if it is the only one")
    ] = False,
    commit_conversations: Annotated[
        bool, typer.Option("--commit-conversations", help="Do not keep conversations out of git")
    ] = False,
) -> None:
    """Create a workspace in a directory, for its conversations, attachments and tools.

    It writes .jp/config.toml with the model, and .jp/.gitignore, which keeps conversations out of git. In an existing
    workspace it only adds the missing files.

    Without --model it looks for API keys, in the environment and stored by `jp keys`, and for model servers on this
    machine, for a third of a second at most. On a terminal it asks for the model. With --yes it takes the only one
    that it found, or none. Without a terminal it looks for models only if --yes is given. A server that your own
    configuration declares under `providers.llm.NAME` has the models `NAME/…`.

    Examples:
        jp init
        jp init --model anthropic/claude-sonnet-5-5 ~/code/api
        jp init --model ollama/qwen3.5:9b
        jp init --yes
    """
    from jp.app.options import current_directory
    from jp.cli.output import print_result
    from jp.config.files import FILE_NAME
    from jp.provider.registry import parse_model_id
    from jp.workspace.layout import MARKER

    require_persistence(options, "jp init")
    root = (current_directory() / Path(path).expanduser()).resolve()
    if model is not None:
        parse_model_id(model, _settings(options, root))
    config = root / MARKER / FILE_NAME
    _check_own(root)
    existed = (root / MARKER).is_dir()
    found: tuple[Proposal, ...] = ()
    if model is None and not config.exists():
        model, found = _choose_model(options, root, yes=yes)
    _create(options, root, commit_conversations=commit_conversations)
    if model is not None:
        _set_model(options, root, config, model)
    missing = [] if model is None else _missing_key(model, _settings(options, root))
    standing = model or _standing_model(options, root)
    steps = _next_steps(config, missing, model or (None if config.exists() else standing), found)
    lines = [f"{'kept' if existed else 'created'} the workspace at {root}", *steps]
    detected = [{"model": proposal.model, "because": proposal.because} for proposal in found]
    print_result(
        options,
        text="\n".join(lines),
        value={"root": str(root), "model": standing, "created": not existed, "detected": detected},
    )


def _set_model(options: GlobalOptions, root: Path, config: Path, model: str) -> None:
    """Write the model, which its user need not trust; a configuration that came with the directory is not trusted."""
    from msgspec.structs import replace

    from jp.app.options import open_workspace
    from jp.cli.config.set import is_trusted, refuse_link, trust_values
    from jp.config.edit import set_in_file

    refuse_link(config)
    here = replace(options, workspace=str(root))
    workspace = open_workspace(here)
    was_trusted = is_trusted(here, workspace)
    set_in_file(config, [f"assistant.model.id={model}"])
    if was_trusted:
        trust_values(here, workspace)


def _settings(options: GlobalOptions, root: Path) -> LlmConfig:
    """Return the providers and aliases in effect at `root`, or where its workspace will be: at least the user's own."""
    from msgspec.structs import replace

    from jp.app.settings import own_config, trusted_config
    from jp.workspace.layout import MARKER
    from jp.workspace.trust import UnsafeWorkspaceError

    if (root / MARKER).is_dir():
        return trusted_config(replace(options, workspace=str(root))).providers.llm
    try:
        return trusted_config(options).providers.llm
    except UnsafeWorkspaceError:  # a file that another user planted must not prevent a new workspace
        return own_config(options).providers.llm


def _create(options: GlobalOptions, root: Path, *, commit_conversations: bool) -> None:
    """Make `root` a workspace, also where another user owns that directory: this user has chosen it."""
    from jp.workspace.layout import MARKER, user_data_directory
    from jp.workspace.trust import accept_owners
    from jp.workspace.workspace import create_workspace, keeps_out_of_git

    existed = (root / MARKER).is_dir()
    create_workspace(root, commit_conversations=commit_conversations)
    if not existed:
        accept_owners(root, user_data_directory())
        _mention_other(options, root)
    if commit_conversations and keeps_out_of_git(root):
        ignored = str(root / MARKER / ".gitignore")
        options.notice(f"{ignored!r} keeps conversations out of git: take its last lines out")


def _check_own(root: Path) -> None:
    """Refuse to write into a workspace that another user has made at `root`."""
    from jp.workspace.layout import MARKER, user_data_directory
    from jp.workspace.trust import require_own

    if os.path.lexists(root / MARKER):
        require_own(root, user_data_directory())


def _standing_model(options: GlobalOptions, root: Path) -> str | None:
    """Return the model in effect in the workspace at `root`; None if none is set, or the settings are invalid."""
    from msgspec.structs import replace

    from jp.app.options import open_workspace
    from jp.app.settings import read_sources
    from jp.errors import ConfigurationError

    try:
        there = open_workspace(replace(options, workspace=str(root)))
        return read_sources(options, there).resolve().config.assistant.model.id
    except ConfigurationError:
        return None


def _mention_other(options: GlobalOptions, root: Path) -> None:
    """Say that there is a workspace around this one: it is no longer used from here."""
    from jp.workspace.layout import find_root

    around = find_root(root.parent)
    if around is not None:
        options.notice(f"the workspace at {str(around)!r} lies around this one; in here, this one is used")


def _next_steps(config: Path, missing: list[str], model: str | None, found: tuple[Proposal, ...]) -> list[str]:
    from jp.provider.registry import vendors

    if model:
        return [f"model: {model}", *missing, 'ask it something: `jp query "hello"`']
    if config.exists():
        return [f"its settings are in {config}"]
    if found:
        return [
            "no model is set yet; this one could be used:"
            if len(found) == 1
            else "several models could be used, so none is set yet:",
            *(f"  `jp config set assistant.model.id={proposal.model}` ({proposal.because})" for proposal in found),
        ]
    example = next(vendor.proposed for vendor in vendors() if vendor.proposed)
    provider = example.partition("/")[0]
    return [
        f"no model is set yet: `jp config set assistant.model.id={example}`",
        f"its key: `jp keys set {provider}`",
        "`jp model ls` lists others",
    ]


def _missing_key(model: str, settings: LlmConfig) -> list[str]:
    """Return the remaining steps for the model's key."""
    from jp.app.models import has_stored_key
    from jp.provider.registry import key_variables, parse_model_id, vendor_in

    provider = parse_model_id(model, settings).provider
    variables = key_variables(settings, provider)
    if not vendor_in(settings, provider).needs_key or any(os.environ.get(name, "").strip() for name in variables):
        return []
    if has_stored_key(provider):
        return []
    return [f"its key: `jp keys set {provider}`, or export {variables[0]}=…"]


def _choose_model(options: GlobalOptions, root: Path, *, yes: bool) -> tuple[str | None, tuple[Proposal, ...]]:
    """Return the model that the person chooses, with `yes` the only one that was found; and all that were found."""
    from functools import partial

    from jp.app.models import has_stored_key
    from jp.cli.terminal.approval import run_question
    from jp.provider.discovery import proposals
    from jp.render.tty import can_ask

    if not yes and not can_ask():
        return None, ()
    settings = _settings(options, root)
    found = proposals(settings, os.environ, has_stored_key=has_stored_key)
    if yes:
        return (found[0].model if len(found) == 1 else None), found
    return run_question(partial(ask_for_model, found, settings)), found


async def ask_for_model(found: Sequence[Proposal], settings: LlmConfig) -> str | None:
    """Return the model that the person enters, by its name or its number; None if it is not a model."""
    from jp.errors import ConfigurationError
    from jp.provider.registry import parse_model_id, vendors
    from jp.render.prompts import ask_line
    from jp.render.sanitize import escape_line

    example = next(vendor.proposed for vendor in vendors() if vendor.proposed)
    suggested = found[0].model if found else ""
    numbered = {str(number): proposal for number, proposal in enumerate(found, 1)}
    known = [
        f"  {number}  {escape_line(proposal.model)}: {escape_line(proposal.because)}"
        for number, proposal in numbered.items()
    ]
    advice = "\n".join(["Found:", *known]) if found else f"Write provider/name, such as {example}."
    said = f"Which model is to answer? {advice}"
    question = "Model:" if suggested else "Model (Enter to set one later):"
    while True:
        answer = await ask_line(f"{said}\n{question}", default=suggested)
        if answer is None or not answer.strip():
            return None
        chosen = numbered[answer.strip()].model if answer.strip() in numbered else answer.strip()
        try:
            parse_model_id(chosen, settings)
        except ConfigurationError as error:
            said = worded(phrase(error.message, "\n", error.hint))
        else:
            return chosen

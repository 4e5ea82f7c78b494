"""`jp completion`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jp.cli.options import GlobalOptions

_INSTALL = {
    "bash": 'add to ~/.bashrc: eval "$(jp completion bash)"',
    "zsh": 'add to ~/.zshrc, after compinit: eval "$(jp completion zsh)"',
    "fish": "run: jp completion fish > ~/.config/fish/completions/jp.fish",
}


def completion(
    options: GlobalOptions,
    *,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="bash, zsh or fish", metavar="SHELL")],
) -> None:
    """Print the script with which a shell completes jp's command line.

    It completes commands, options and their values: conversations with their titles, labels, models and aliases,
    tools, profiles, prompts, settings, and files to attach. Completing writes nothing and runs no program.

    To install it:

        bash   add to ~/.bashrc:                  eval "$(jp completion bash)"
        zsh    add to ~/.zshrc, after compinit:   eval "$(jp completion zsh)"
        fish   jp completion fish > ~/.config/fish/completions/jp.fish

    Examples:
        eval "$(jp completion bash)"
        jp completion zsh > ~/.zfunc/_jp
    """
    import os

    from jp.cli.output import print_result

    if os.isatty(1):
        options.notice(f"to install this, {_INSTALL[shell]}")
    script = Path(__file__).with_name(f"jp.{shell}").read_text(encoding="utf-8")
    print_result(options, text=script, value={"shell": shell, "script": script})

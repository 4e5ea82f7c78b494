"""Parameters that the commands of `jp tool` share."""

from __future__ import annotations

from typing import Annotated

import typer

OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get.")
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]

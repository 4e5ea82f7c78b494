"""The list of commands in `docs/commands.md` is written from the command line itself; run this file to update it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jp.cli.command_line.commands import ROOT, walk
from jp.cli.command_line.help import OPTIONS, Page, Rows
from jp.cli.command_line.loading import LoadedCommand

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
HEAD = """# Commands

Every command with its options, as `jp COMMAND --help` prints it.
Options before or after any command:

{options}

[Exit codes](exit-codes.md) are the same for all of them.
"""


def reference() -> str:
    """Return the page as the commands are now."""
    head = HEAD.format(options="\n".join(rows(OPTIONS)))
    pages = ((path, LoadedCommand(command, ("jp", *path)).page()) for path, command in walk(ROOT))
    return "\n".join([head, *("\n".join(section(" ".join(path), page)) for path, page in pages)])


def section(name: str, page: Page) -> Iterator[str]:
    """Yield the lines about one command."""
    yield f"## `jp {name}`\n"
    yield f"```\n{page.usage}\n```\n"
    for paragraph in page.text.split("\n\n"):
        if paragraph.startswith("Examples:"):
            examples = "\n".join(line.removeprefix("    ") for line in paragraph.splitlines()[1:])
            yield f"```sh\n{examples}\n```\n"
        elif paragraph.strip():
            yield f"{prose(' '.join(paragraph.split()))}\n"
    for title, found in page.sections:
        if found:
            yield f"{title}:\n"
            yield "\n".join(rows(found)) + "\n"


def rows(found: Rows) -> Iterator[str]:
    for name, meaning in found:
        yield f"- `{name}`: {prose(meaning)}" if meaning else f"- `{name}`"


def prose(text: str) -> str:
    """Return text with its markup escaped, except in backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]|])", r"\\\1", part) for part in parts)


def test_the_page_lists_every_command_as_its_help_does() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")

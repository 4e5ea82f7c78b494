"""Write a man page for each command, from its help: `make man`, and whenever a wheel is built.

docutils writes the troff, of a document that is made here of nodes: no text of the help needs to be escaped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from docutils import nodes
from docutils.core import publish_from_doctree  # pyright: ignore[reportUnknownVariableType] - its types are partial
from docutils.utils import new_document
from docutils.writers import manpage
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parents[1]
INSTALLED = "share/man/man1"

if TYPE_CHECKING:
    from jp.cli.command_line.commands import Command, Group
    from jp.cli.command_line.help import Page

    _Hook = BuildHookInterface[Any]
else:
    _Hook = BuildHookInterface


class ManPages(_Hook):
    """Adds the man pages to a wheel; one that leads to the sources, as in development, has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages into a directory that lasts as long as the build."""
        if version == "editable":
            return
        sys.path.insert(0, str(ROOT / "src"))
        self._directory = TemporaryDirectory()
        for path in write(Path(self._directory.name)):
            build_data["shared_data"][str(path)] = f"{INSTALLED}/{path.name}"


def write(directory: Path) -> list[Path]:
    """Write all pages into `directory`; return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name, text in pages():
        paths.append(directory / f"{name}.1")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the troff of each page: `jp`, `jp-query`, `jp-conversation`, `jp-conversation-ls`, etc."""
    from jp.cli.command_line.commands import ROOT as COMMANDS

    yield from _below(COMMANDS, (COMMANDS.name,))


def _below(node: Command | Group, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    from jp.cli.command_line.commands import Group
    from jp.cli.command_line.help import group_page, root_page
    from jp.cli.command_line.loading import LoadedCommand

    name = "-".join(path)
    if not isinstance(node, Group):
        yield name, _troff(path, node.summary, LoadedCommand(node, path).page(), ("jp",))
        return
    page = root_page(node) if len(path) == 1 else group_page(node, path)
    children = tuple(f"{name}-{child.name}" for child in node.commands)
    yield name, _troff(path, node.summary.rstrip("."), page, children if len(path) == 1 else ("jp", *children))
    for child in node.commands:
        yield from _below(child, (*path, child.name))


def _troff(path: tuple[str, ...], summary: str, page: Page, related: Iterable[str]) -> str:
    from jp import __version__

    name = "-".join(path)
    document = new_document(name)
    document += nodes.title("", name)
    document += nodes.subtitle("", f"{summary[:1].lower()}{summary[1:]}")
    document += nodes.docinfo("", nodes.version("", f"jp {__version__}"), *_fields(manual_section="1"))
    document += _section("Synopsis", [nodes.literal_block("", page.usage)])
    examples = [block for block in _blocks(page.text) if block.startswith("Examples:")]
    document += _section("Description", [_node(block) for block in _blocks(page.text) if block not in examples])
    for title, rows in page.sections:
        document += _section(title, [_list(rows)] if rows else [])
    for block in examples:
        document += _section("Examples", [nodes.literal_block("", _dedented(block.partition("\n")[2]))])
    document += _section("Notes", [_node(block) for block in _blocks(page.footer)])
    document += _section("See also", [nodes.paragraph("", ", ".join(f"{other}(1)" for other in related))])
    publish = cast("Callable[..., str]", publish_from_doctree)
    return publish(document, writer=manpage.Writer(), settings_overrides={"output_encoding": "unicode"})


def _fields(**values: str) -> Iterator[nodes.field]:
    for name, value in values.items():
        yield nodes.field("", nodes.field_name("", name), nodes.field_body("", nodes.paragraph("", value)))


def _section(title: str, content: list[Any]) -> Any:
    return nodes.section("", nodes.title("", title), *content) if content else []


def _list(rows: Iterable[tuple[str, str]]) -> nodes.definition_list:
    items = (
        nodes.definition_list_item(
            "", nodes.term("", "", nodes.strong("", name)), nodes.definition("", nodes.paragraph("", meaning))
        )
        for name, meaning in rows
    )
    return nodes.definition_list("", *items)


def _blocks(text: str) -> list[str]:
    return [block for block in text.strip("\n").split("\n\n") if block.strip()]


def _node(block: str) -> nodes.Element:
    if "\n " in block or block.startswith(" "):
        return nodes.literal_block("", _dedented(block))
    return nodes.paragraph("", " ".join(block.split()))


def _dedented(block: str) -> str:
    from textwrap import dedent

    return dedent(block)


if __name__ == "__main__":
    write(ROOT / "build/man")

"""The list of keys in `docs/configuration.md` is written from the model; run this file to update it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from jp.config import entries, model
from jp.config.model import AppConfig, Extension
from jp.config.schema import FILE, Field, Items, KeyPath, Names, Node, Table, expected, key_text, known_keys
from jp.config.toml import toml_value

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
BEGIN = "<!-- keys: written by tests/unit/config/test_documentation.py -->\n"
END = "<!-- end of keys -->\n"


@cache
def meanings() -> dict[tuple[str, str], str]:
    """The text under each field of the model, by class and field."""
    trees = [ast.parse(inspect.getsource(module)) for module in (model, entries)]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return {(node.name, name): text for node in classes for name, text in _texts(node)}


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as meaning)):
                yield name, inspect.cleandoc(meaning)
            case _:
                pass


def meaning(table: Table, name: str) -> str:
    """What the model says of a field, which a class above may have declared."""
    owners = [owner.__name__ for owner in table.struct.__mro__ if (owner.__name__, name) in meanings()]
    return meanings()[owners[0], name] if owners else ""


def sections(table: Table, path: KeyPath) -> Iterator[str]:
    """The lines of a table's section, and those of the tables below it."""
    if path:
        yield f"### `{key_text(path)}`\n"
        yield "\n".join(sentences(inspect.cleandoc(table.struct.__doc__ or ""))) + "\n"
    keys = [line for name, field in table.fields.items() for line in key_lines(table, path, name, field)]
    if keys:
        yield "\n".join(keys) + "\n"
    for name, field in table.fields.items():
        below = table_below(field.node)
        if below is not None:
            place = "" if isinstance(field.node, Table) else "*" if isinstance(field.node, Names) else "N"
            yield from sections(below, (*path, name, place) if place else (*path, name))
    if table.others is not None and isinstance(table.others.value, Table):
        yield from sections(table.others.value, (*path, "*"))


def table_below(node: Node) -> Table | None:
    match node:
        case Table():
            return node
        case Names(value=Table() as below) | Items(element=Table() as below):
            return below
        case _:
            return None


def key_lines(table: Table, path: KeyPath, name: str, field: Field) -> Iterator[str]:
    if isinstance(field.node, Table) or (isinstance(field.node, Names) and table_below(field.node)):
        return
    yield f"- `{key_text((*path, name))}`: {kind(field.node)}, {default(field)}."
    yield from (f"  {sentence}" for sentence in sentences(meaning(table, name)))


def kind(node: Node) -> str:
    match node:
        case Items(element=Table()):
            return "a list of tables"
        case Items(element=element):
            return f"a list, each element {expected(element)}"
        case Names(value=value):
            return f"a table with names of your own, each {expected(value)}"
        case _:
            return expected(node)


def default(field: Field) -> str:
    match field.default:
        case _ if field.required:
            return "required"
        case None:
            return "no default"
        case msgspec.UnsetType():
            return "empty by default"
        case [] | {}:
            return "empty by default"
        case value:
            return f"by default `{toml_value(value)}`"


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) +(?=[A-Z`])", " ".join(text.split()))


def written(page: str) -> str:
    """The page with its list of keys written anew."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + "\n" + "\n".join(sections(FILE, ())) + "\n" + END + after


def test_the_page_lists_every_key_as_the_model_has_it() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == written(page), f"write it anew: python {Path(__file__).name}"


def test_a_key_that_the_page_lacks_is_noticed() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert written(page.replace("- `user.name`", "- `user.nmae`")) == page


def table_of(path: KeyPath) -> Table:
    """Return the table that declares a key."""
    table: Table = FILE
    for name in path[:-1]:
        node = table.node(name)
        below = None if node is None else table_below(node)
        table = table if below is None else below
    return table


def test_every_key_has_a_meaning() -> None:
    paths = [path for path, _ in known_keys(FILE)]

    assert paths
    assert [key_text(path) for path in paths if not meaning(table_of(path), path[-1]).endswith(".")] == []


def test_what_the_page_promises_of_extensions_is_in_the_model() -> None:
    assert [field.name for field in msgspec.structs.fields(Extension)] == ["path", "strategy"]
    assert "inherit" not in AppConfig.__struct_fields__


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

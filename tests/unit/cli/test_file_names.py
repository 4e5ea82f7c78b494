from __future__ import annotations

import os
from pathlib import Path
from unicodedata import normalize

import anyio
import pytest

from jp.attachment.base import Declaration, ResolveContext
from jp.attachment.files.handler import FileHandler
from jp.cli.file_names import AttachmentNames
from jp.conversation.resource import ResourceBlock
from jp.conversation.uri import file_uri
from jp.tool.base import ToolInvocation
from jp.tool.files.read_file import ReadFile

COMPOSED, DECOMPOSED = "\u00fc b.txt", normalize("NFD", "\u00fc b.txt")


def read(root: Path, path: str) -> tuple[str, str]:
    """The URI and the text that the tool gives."""
    output = anyio.run(ReadFile(AttachmentNames()).run, ToolInvocation(arguments={"path": path}, root=root))
    (block,) = output.content
    assert isinstance(block, ResourceBlock), block
    return block.resource.uri, block.resource.text or ""


def attach(root: Path, name: str) -> tuple[str, str]:
    """The URI and the text of an attachment."""
    handler = FileHandler()
    context = ResolveContext(root=root, cwd=root)
    written = file_uri(str(root / name))
    declaration = Declaration(uri=handler.canonical(written, context), written=written)
    (resource,) = anyio.run(handler.resolve, declaration, context).resources
    return resource.uri, resource.text or ""


@pytest.mark.parametrize("name", ["plain.txt", "with space #1%.txt", COMPOSED, DECOMPOSED, os.fsdecode(b"caf\xe9")])
def test_a_file_that_is_read_has_the_uri_of_the_file_that_is_attached(tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / name).write_text("x", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    (tmp_path / "link").symlink_to(name)

    assert read(tmp_path, name) == read(tmp_path, "link") == attach(tmp_path, name)


@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED])
def test_a_name_is_found_in_either_unicode_form(tmp_path: Path, asked: str) -> None:
    (tmp_path / DECOMPOSED).write_text("x", encoding="utf-8")

    uri, text = read(tmp_path, asked)

    assert text == "x"
    assert uri.endswith("/%C3%BC%20b.txt")


def test_two_names_that_differ_in_unicode_form_only_have_two_uris(tmp_path: Path) -> None:
    (tmp_path / COMPOSED).write_text("composed", encoding="utf-8")
    (tmp_path / DECOMPOSED).write_text("decomposed", encoding="utf-8")
    if (tmp_path / COMPOSED).samefile(tmp_path / DECOMPOSED):
        pytest.skip("this file system takes both forms for one name")

    (one, text), (other, other_text) = read(tmp_path, COMPOSED), read(tmp_path, DECOMPOSED)

    assert (text, other_text) == ("composed", "decomposed")
    assert one != other
    assert one == attach(tmp_path, COMPOSED)[0]
    assert other == attach(tmp_path, DECOMPOSED)[0]

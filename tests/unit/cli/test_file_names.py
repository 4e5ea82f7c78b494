from __future__ import annotations

import os
from pathlib import Path
from unicodedata import normalize

import anyio
import pytest

from file_calls import call, failure, text
from jp.app.toolset import AttachmentNames
from jp.attachment.base import Declaration, ResolveContext
from jp.attachment.files import FileHandler
from jp.conversation.resource import ResourceBlock, file_uri
from jp.tool.base import ToolInvocation
from jp.tool.files.read_tools import ListFiles, ReadFile

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


def listed(root: Path, *prefixes: str) -> list[str]:
    """The paths that the tool lists."""
    return text(call(ListFiles(AttachmentNames()), root, prefixes=list(prefixes))).split("\n")


def test_what_is_listed_is_what_would_be_attached(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    files = {
        ".gitignore": "*.log\n!kept.log\n/build/\n",
        ".ignore": "secret*\n",
        "sub/.gitignore": "*.tmp\n",
        **dict.fromkeys(
            ["a.py", "a.log", "kept.log", "build/b.py", "secret.txt", "sub/c.tmp", "sub/d.py", "x.tmp"], ""
        ),
        **dict.fromkeys([".hidden", ".jp/config.toml", ".git/config", "sub/.git/config"], ""),
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    handler = FileHandler()
    context = ResolveContext(root=root, cwd=root)
    declaration = Declaration(uri=handler.canonical("file:.", context), written=".")

    attached = [resource.name for resource in anyio.run(handler.resolve, declaration, context).resources]

    assert listed(root) == attached == ["a.py", "kept.log", "sub/d.py", "x.tmp"]
    assert listed(root, "build", "sub/.g") == ["build/b.py", "sub/.gitignore"]


@pytest.mark.parametrize("variable", ["JP_USER_DATA_DIR", "JP_GLOBAL_CONFIG_DIR"])
def test_what_jp_keeps_for_the_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "keys.json").touch()
    monkeypatch.setenv(variable, str(tmp_path / "own"))

    said = failure(call(ReadFile(AttachmentNames()), tmp_path, path="own/keys.json"))

    assert said == "'own/keys.json' is what jp keeps for itself, which no tool reaches"
    assert listed(tmp_path) == ["No files found."]


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "JP_USER_DATA_DIR", "JP_GLOBAL_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.path.expanduser", str)  # the system knows no home either

    assert list(AttachmentNames().private()) == []

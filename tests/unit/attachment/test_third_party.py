from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from jp.attachment import registry
from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.registry import load_handler, third_party_schemes
from jp.conversation.resource import Resource


class EchoHandler:
    """What another package might provide."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        if uri == "echo:malformed":
            raise AttachmentError("malformed")
        if uri == "echo:defect":
            raise KeyError(uri)
        return uri.lower()

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        if declaration.uri == "echo:malformed":
            raise AttachmentError("malformed")
        if declaration.uri == "echo:defect":
            raise KeyError(declaration.uri)
        return Resolution(resources=(Resource(uri=declaration.uri, text=declaration.uri),))


NOT_A_HANDLER = object()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of installed packages, one of which has a scheme."""
    directory = tmp_path / "site"
    package = directory / "echo-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[jp.attachments]\nEcho = {__name__}:EchoHandler\n[other]\nx = y\n"
    (package / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(directory), str(tmp_path / "missing")])
    return directory


def forbid_looking(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def fail(**_: object) -> None:
        pytest.fail("the metadata of packages was read")

    monkeypatch.setattr("importlib.metadata.entry_points", fail)
    return monkeypatch.undo


def test_schemes_are_found_by_entry_point(site: Path) -> None:
    assert third_party_schemes(None) == {"echo": f"{__name__}:EchoHandler"}


def test_what_was_found_is_remembered(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache" / "jp"
    found = third_party_schemes(cache)

    forbid_looking(monkeypatch)

    assert third_party_schemes(cache) == found
    assert [path.name for path in cache.iterdir()] == ["attachment-schemes.json"]


def test_an_installation_is_noticed(site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert set(third_party_schemes(cache)) == {"echo"}

    package = site / "more-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[jp.attachments]\nmore = more:Handler\n", encoding="utf-8")

    assert set(third_party_schemes(cache)) == {"echo", "more"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"directories": 1, "schemes": {}}'])
def test_a_damaged_cache_is_made_anew(content: bytes, site: Path, tmp_path: Path) -> None:
    (tmp_path / "attachment-schemes.json").write_bytes(content)

    assert set(third_party_schemes(tmp_path)) == {"echo"}
    assert b"EchoHandler" in (tmp_path / "attachment-schemes.json").read_bytes()


def test_a_cache_that_cannot_be_written_is_done_without(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert set(third_party_schemes(tmp_path / "file")) == {"echo"}


def test_of_two_packages_with_one_scheme_the_same_always_wins(site: Path) -> None:
    package = site / "again-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: again\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[jp.attachments]\necho = aaa:Handler\n", encoding="utf-8")

    assert third_party_schemes(None) == {"echo": "aaa:Handler"}


def test_a_handler_is_imported_and_made(context: ResolveContext) -> None:
    handler = load_handler("echo", f"{__name__} : EchoHandler [extra]")

    resolution = anyio.run(handler.resolve, Declaration(uri="echo:x", written="echo:x"), context)

    assert handler.canonical("ECHO:X", context) == "echo:x"
    assert resolution.resources[0].text == "echo:x"


@pytest.mark.parametrize("value", ["no.such.module:Handler", f"{__name__}:Missing", "sys:exit_code", "json:loads"])
def test_a_package_that_does_not_load_is_named(value: str) -> None:
    with pytest.raises(AttachmentError, match="'x' comes from") as raised:
        load_handler("x", value)

    assert value in raised.value.message
    assert "uninstall" in raised.value.hint


def test_the_package_of_a_defect_is_named(site: Path) -> None:
    with pytest.raises(AttachmentError, match=r"NOT_A_HANDLER', which is not a handler"):
        load_handler("echo", f"{__name__}:NOT_A_HANDLER")

    entry = f"[jp.attachments]\nEcho = {__name__}:NOT_A_HANDLER\n"
    (site / "echo-1.0.dist-info" / "entry_points.txt").write_text(entry, encoding="utf-8")

    with pytest.raises(AttachmentError, match=r"NOT_A_HANDLER' of the package 'echo', which is not a handler"):
        load_handler("echo", f"{__name__}:NOT_A_HANDLER")


def test_what_is_no_handler_is_refused() -> None:
    with pytest.raises(AttachmentError, match="is not a handler"):
        load_handler("x", f"{__name__}:NOT_A_HANDLER")


def test_a_defect_of_a_handler_is_an_error_that_names_it(context: ResolveContext) -> None:
    handler = load_handler("echo", f"{__name__}:EchoHandler")

    with pytest.raises(
        AttachmentError, match=r"^'echo:defect': the attachment scheme 'echo', .*EchoHandler', failed: K"
    ):
        handler.canonical("echo:defect", context)
    with pytest.raises(AttachmentError, match=r"^'!x': the attachment scheme 'echo', .*EchoHandler', failed: KeyError"):
        anyio.run(handler.resolve, Declaration(uri="echo:defect", written="!x"), context)


def test_the_errors_of_a_handler_are_its_own(context: ResolveContext) -> None:
    handler = load_handler("echo", f"{__name__}:EchoHandler")

    with pytest.raises(AttachmentError, match=r"^malformed$"):
        handler.canonical("echo:malformed", context)
    with pytest.raises(AttachmentError, match=r"^malformed$"):
        anyio.run(handler.resolve, Declaration(uri="echo:malformed", written="x"), context)


def test_the_group_is_the_documented_one() -> None:
    assert registry.GROUP == "jp.attachments"

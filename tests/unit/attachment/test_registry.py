from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from jp.attachment import registry as third_party
from jp.attachment.base import AttachmentError, Declaration, ResolveContext
from jp.attachment.files import FileHandler
from jp.attachment.registry import BUILT_IN, AttachmentRegistry


def provide(monkeypatch: pytest.MonkeyPatch, schemes: Mapping[str, str]) -> list[Path | None]:
    """Let other packages provide `schemes`; the result holds the cache directory of each look at them."""
    looks: list[Path | None] = []

    def look(cache_directory: Path | None) -> Mapping[str, str]:
        looks.append(cache_directory)
        return schemes

    monkeypatch.setattr(third_party, "third_party_schemes", look)
    return looks


def test_a_file_needs_no_look_at_other_packages(
    root: Path, context: ResolveContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a:b").touch()
    looks = provide(monkeypatch, {})
    registry = AttachmentRegistry()

    for text in ("x", "file:x", "*.py", "!x", "a:b"):
        registry.declare(text, context, confined=True)

    assert isinstance(registry.handler("FILE:x"), FileHandler)
    assert looks == []


def test_an_unknown_scheme_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = provide(monkeypatch, {"notion": "x:y"})
    registry = AttachmentRegistry(cache_directory=Path("/cache"))

    with pytest.raises(AttachmentError, match="'ftp', which is not known") as raised:
        registry.handler("ftp://x")
    with pytest.raises(AttachmentError, match="'ftps', which is not known"):
        registry.handler("ftps://x")

    assert raised.value.hint == f"known schemes: {', '.join(sorted({*BUILT_IN, 'notion'}))}"
    assert looks == [Path("/cache")]


def test_another_packages_scheme_is_loaded_once(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    provide(monkeypatch, {"echo": "test_registry_handlers:Handler"})
    made: list[object] = []

    class Handler(FileHandler):
        def __init__(self) -> None:
            made.append(self)

        def canonical(self, uri: str, context: ResolveContext) -> str:
            return uri

    module = type(sys)("test_registry_handlers")
    vars(module)["Handler"] = Handler
    monkeypatch.setitem(sys.modules, "test_registry_handlers", module)
    registry = AttachmentRegistry()

    declarations = [registry.declare(text, context, confined=False) for text in ("echo:x", "!echo+y://z")]

    assert [declaration.text for declaration in declarations] == ["echo:x", "!echo+y://z"]
    assert len(made) == 1


def test_a_declaration_keeps_how_it_was_written(context: ResolveContext) -> None:
    declared = AttachmentRegistry().declare("!./src/../x", context, confined=False)

    assert declared == Declaration(uri="file:x", written="!./src/../x", exclude=True, confined=False)
    assert declared.text == "!file:x"


@pytest.mark.parametrize("text", ["x", "!x", "*.py", "!src/*", "/etc/hosts", "~/x", "a b#c", "file:x?exclude"])
def test_what_was_declared_is_declared_to_the_same(text: str, root: Path) -> None:
    registry = AttachmentRegistry()
    context = ResolveContext(root=root, cwd=root / "sub")
    first = registry.declare(text, context, confined=False)

    for confined in (True, False):
        assert registry.declare(first.text, context, confined=confined).text == first.text


def test_a_relative_root_is_where_the_process_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    context = ResolveContext(root=Path(), cwd=Path("sub"))

    assert AttachmentRegistry().declare("x", context, confined=False).text == "file:sub/x"
    assert AttachmentRegistry().declare("x", context, confined=True).text == "file:x"


def test_the_handler_of_files_is_imported_on_use(root: Path) -> None:
    code = (
        "import sys; from jp.attachment.registry import AttachmentRegistry; r = AttachmentRegistry();"
        "heavy = {'jp.attachment.files', 'pathspec', 'importlib.metadata', 'anyio', 'difflib', 'tempfile'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "r.handler('file:x'); assert 'jp.attachment.files' in sys.modules;"
        "assert not (heavy - {'jp.attachment.files', 'anyio'}) & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True)

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jp.attachment.base import AttachmentError, ResolveContext
from jp.attachment.file_paths import CanonicalNames, Names, declared_uri, locate, parts_below, real_path

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


def canonical(uri: str, context: ResolveContext) -> str:
    names = Names()
    return declared_uri(locate(uri, context, names), context, names)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:src/main.rs", "file:src/main.rs"),
        ("file:src/./x/../main.rs", "file:src/main.rs"),
        ("file:src//main.rs/", "file:src/main.rs"),
        ("file:%73rc/main%2Ers", "file:src/main.rs"),
        ("file:a b", "file:a%20b"),
        ("file:%c3%bc", "file:%C3%BC"),
        ("file:u\u0308", "file:%C3%BC"),
        ("file:caf%e9", "file:caf%E9"),
        ("file:.", "file:."),
        ("file:src/..", "file:."),
        ("file:src/**/*.rs", "file:src/**/*.rs"),
        ("file:**", "file:**"),
        ("file:./~", "file:./~"),
        ("file:./~/x", "file:./~/x"),
        ("file:x/~", "file:x/~"),
        ("file:~x", "file:~x"),
        ("file:///etc/../etc/hosts", "file:///etc/hosts"),
        ("file:/", "file:///"),
        ("file:/../..", "file:///"),
        ("file:///*", "file:///*"),
    ],
)
def test_a_declaration_has_one_form(uri: str, expected: str, context: ResolveContext) -> None:
    assert canonical(uri, context) == expected
    assert canonical(expected, context) == expected


def test_what_lies_in_the_root_is_relative_however_it_is_reached(root: Path, context: ResolveContext) -> None:
    (root / "src").mkdir()
    other = root.parent / "other"
    other.symlink_to(root)

    assert canonical(f"file://{root}/src/x", context) == "file:src/x"
    assert canonical(f"file://{other}/src/x", context) == "file:src/x"
    assert canonical(f"file://localhost{root}", context) == "file:."
    assert canonical(f"file:../{root.name}/src/x", context) == "file:src/x"


def test_what_lies_elsewhere_is_absolute(root: Path, context: ResolveContext) -> None:
    assert canonical("file:../x", context) == f"file://{root.parent}/x"


def test_where_no_root_stays_everything_is_absolute(root: Path) -> None:
    (root / "src").mkdir()
    context = ResolveContext(root=root, cwd=root, anchored=False)

    assert canonical("file:src/*.py", context) == f"file://{root}/src/*.py"
    assert canonical("file:.", context) == f"file://{root}"
    assert canonical("file:~", ResolveContext(root=root, cwd=root, anchored=False)) == f"file://{Path.home()}"
    assert canonical(f"file://{root}/src/x", context) == f"file://{root}/src/x"


def test_a_root_behind_a_link_is_the_same_root(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)

    assert canonical(f"file://{root}/x", ResolveContext(root=link, cwd=link)) == "file:x"


def test_above_a_link_lies_the_directory_of_its_target(root: Path, context: ResolveContext) -> None:
    (root / "deep" / "er").mkdir(parents=True)
    (root / "link").symlink_to(root / "deep" / "er")

    assert canonical("file:link/../x", context) == "file:deep/x"
    assert canonical("file:link/x", context) == "file:link/x"


def test_home_is_spelled_out(root: Path, context: ResolveContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root / "home"))

    assert canonical("file:~/x", context) == "file:home/x"
    assert canonical("file:~", context) == "file:home"


def test_two_unicode_forms_of_one_file_agree(root: Path, context: ResolveContext) -> None:
    (root / DECOMPOSED).touch()

    assert canonical(f"file:{DECOMPOSED}", context) == canonical(f"file:{COMPOSED}", context) == "file:caf%C3%A9"


def test_two_files_that_differ_in_form_alone_disagree(root: Path, context: ResolveContext) -> None:
    (root / DECOMPOSED).touch()
    (root / COMPOSED).touch()

    assert canonical(f"file:{DECOMPOSED}", context) == "file:cafe%CC%81"
    assert canonical(f"file:{COMPOSED}", context) == "file:caf%C3%A9"


def test_a_pattern_may_not_go_up(context: ResolveContext) -> None:
    with pytest.raises(AttachmentError, match="goes up after a wildcard"):
        canonical("file:*/../x", context)


def test_a_name_that_is_too_long_is_still_declared(context: ResolveContext) -> None:
    assert canonical(f"file:{'x' * 300}", context) == f"file:{'x' * 300}"


def test_tools_name_files_as_attachments_do(root: Path) -> None:
    names = CanonicalNames()
    (root / DECOMPOSED).touch()
    (root / "link").symlink_to(DECOMPOSED)
    base = os.path.realpath(root)

    assert names.real_path(str(root / "link")) == f"{base}/{DECOMPOSED}"
    assert names.real_path(str(root / COMPOSED)) == f"{base}/{DECOMPOSED}"
    assert names.uri(f"{base}/{DECOMPOSED}") == f"file://{base}/caf%C3%A9"


def test_a_link_is_followed_under_its_other_unicode_form(root: Path) -> None:
    (root / "target").touch()
    (root / DECOMPOSED).symlink_to("target")

    assert real_path(root / COMPOSED, Names()).endswith("/target")


@pytest.mark.parametrize(
    ("path", "directory", "below"),
    [("/a/b", "/a", ["b"]), ("/a", "/a", []), ("/ab", "/a", None), ("/a", "/", ["a"]), ("/", "/a", None)],
)
def test_a_path_is_below_a_directory_name_by_name(path: str, directory: str, below: list[str] | None) -> None:
    assert parts_below(path, directory) == below

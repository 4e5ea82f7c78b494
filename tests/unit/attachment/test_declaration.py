from __future__ import annotations

from collections.abc import Collection

import pytest

from jp.attachment.base import AttachmentError, DeclarationContext, ParsedDeclaration, parse, scheme_of


def around(*existing: str, schemes: Collection[str] = ("file", "gh")) -> DeclarationContext:
    return DeclarationContext(directory="/w", exists=existing.__contains__, built_in=("file",), schemes=lambda: schemes)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("src/main.rs", "file:///w/src/main.rs"),
        ("./main.rs", "file:///w/./main.rs"),
        ("/etc/hosts", "file:///etc/hosts"),
        ("~/notes.md", "file:~/notes.md"),
        ("~", "file:~"),
        ("~notes", "file:///w/~notes"),
        ("src/**/*.rs", "file:///w/src/**/*.rs"),
        ("a%20b#c.txt", "file:///w/a%2520b%23c.txt"),
        ("file:src/main.rs", "file:src/main.rs"),
        ("File:src/main.rs", "File:src/main.rs"),
        ("gh:pull/1", "gh:pull/1"),
        ("gh+x://y", "gh+x://y"),
        ("jp-c17", "jp:jp-c17"),
        ("jp-c17?", "jp:jp-c17"),
        ("jp-c17?u,a:0..3", "jp:jp-c17?select=u,a:0..3"),
        ("jp-c17?-2", "jp:jp-c17?select=-2"),
        ("jp-c17?raw", "jp:jp-c17?raw"),
        ("jp-c17?raw&select=u", "jp:jp-c17?raw&select=u"),
        ("jp-c17?select=u", "jp:jp-c17?select=u"),
        ("jp-c17.md", "file:///w/jp-c17.md"),
        ("jp-c", "file:///w/jp-c"),
        ("jp-c1*", "file:///w/jp-c1*"),
    ],
)
def test_paths_and_uris_are_read(text: str, uri: str) -> None:
    assert parse(text, around()) == ParsedDeclaration(uri=uri)


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("[slug].tsx", "file:///w/%5Bslug%5D.tsx"),
        ("a:b.txt", "file:///w/a%3Ab.txt"),
        ("C:x", "file:///w/C%3Ax"),
        ("what?.md", "file:///w/what%3F.md"),
        ("x?exclude", "file:///w/x%3Fexclude"),
        ("jp-c17", "file:///w/jp-c17"),
    ],
)
def test_what_exists_as_it_stands_is_that_file(name: str, uri: str) -> None:
    assert parse(name, around(name)) == ParsedDeclaration(uri=uri)


def test_a_conversation_can_be_omitted() -> None:
    assert parse("!jp-c17?u", around()) == ParsedDeclaration(uri="jp:jp-c17?select=u", exclude=True)


def test_a_file_cannot_take_the_place_of_a_uri_with_an_authority() -> None:
    assert parse("gh://x", around("gh://x")).uri == "gh://x"


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("!Cargo.lock", "file:///w/**/Cargo.lock"),
        ("!*.lock", "file:///w/**/*.lock"),
        ("!target/", "file:///w/**/target/"),
        ("!./Cargo.lock", "file:///w/./Cargo.lock"),
        ("!src/gen", "file:///w/src/gen"),
        ("!/abs", "file:///abs"),
        ("!.", "file:///w/."),
        ("!..", "file:///w/.."),
        ("!file:Cargo.lock", "file:Cargo.lock"),
        ("file:Cargo.lock?exclude", "file:Cargo.lock"),
        ("file:Cargo.lock?exclude=true", "file:Cargo.lock"),
        ("!file:Cargo.lock?exclude=true", "file:Cargo.lock"),
    ],
)
def test_excludes_are_read(text: str, uri: str) -> None:
    assert parse(text, around()) == ParsedDeclaration(uri=uri, exclude=True)


def test_the_originals_parameter_may_say_no() -> None:
    assert parse("file:a?exclude=false", around()) == ParsedDeclaration(uri="file:a")


def test_another_scheme_keeps_its_parameters() -> None:
    assert parse("gh://x?exclude", around()) == ParsedDeclaration(uri="gh://x?exclude")


@pytest.mark.parametrize("text", ["", "!", "a\0b"])
def test_nothing_is_no_attachment(text: str) -> None:
    with pytest.raises(AttachmentError, match="is not an attachment"):
        parse(text, around())


def test_a_dash_is_told_to_be_piped() -> None:
    with pytest.raises(AttachmentError, match="'-' is not an attachment") as raised:
        parse("-", around("-"))

    assert "standard input is there only for" in raised.value.hint


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(AttachmentError, match="'http', which is not known") as raised:
        parse("http://example.org", around())

    assert raised.value.hint == "known schemes: file, gh"


def test_a_colon_in_a_missing_name_is_explained() -> None:
    with pytest.raises(AttachmentError, match="the scheme 'a'") as raised:
        parse("!a:b.txt", around())

    assert "written './a:b.txt'" in raised.value.hint


@pytest.mark.parametrize("text", ["C:\\x", "c:/x"])
def test_a_windows_path_is_called_one(text: str) -> None:
    with pytest.raises(AttachmentError, match="path of Windows") as raised:
        parse(text, around())

    assert "/mnt/c/x" in raised.value.hint


def test_what_other_packages_provide_is_not_looked_up_for_files() -> None:
    def lookup() -> Collection[str]:
        raise AssertionError

    nearby = DeclarationContext(directory="/w", exists=lambda _: True, built_in=("file",), schemes=lookup)

    assert parse("file:x", nearby).uri == "file:x"
    assert parse("a:b", nearby).uri == "file:///w/a%3Ab"
    assert parse("src", nearby).uri == "file:///w/src"


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("file:x", "file"),
        ("MCP+a+b://x", "mcp"),
        ("mcp+a_b+c", "mcp"),
        ("mcp+a/b+c", ""),
        ("src/a:b", ""),
        ("1a:b", ""),
        ("x", ""),
    ],
)
def test_the_scheme_ends_at_a_plus(uri: str, scheme: str) -> None:
    assert scheme_of(uri) == scheme

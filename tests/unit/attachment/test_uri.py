from __future__ import annotations

import os

import pytest

from jp.attachment.base import AttachmentError
from jp.attachment.file_paths import FilePath, decode, encode, nfc, parse_file_uri


@pytest.mark.parametrize(
    ("uri", "start", "segments"),
    [
        ("file:src/main.rs", "root", ("src", "main.rs")),
        ("FILE:src/main.rs", "root", ("src", "main.rs")),
        ("file:./src//main.rs/", "root", ("src", "main.rs")),
        ("file:.", "root", ()),
        ("file:%2E", "root", ()),
        ("file:../x", "root", ("..", "x")),
        ("file://src/main.rs", "root", ("src", "main.rs")),
        ("file:///etc/hosts", "filesystem", ("etc", "hosts")),
        ("file:/etc/hosts", "filesystem", ("etc", "hosts")),
        ("file://localhost/etc/hosts", "filesystem", ("etc", "hosts")),
        ("file://LOCALHOST/etc/hosts", "filesystem", ("etc", "hosts")),
        ("file:///", "filesystem", ()),
        ("file:~", "home", ()),
        ("file:~/notes", "home", ("notes",)),
        ("file:~notes", "root", ("~notes",)),
        ("file:./~", "root", ("~",)),
        ("file:a b?.txt", "root", ("a b?.txt",)),
    ],
)
def test_every_form_of_a_file_uri_is_read(uri: str, start: str, segments: tuple[str, ...]) -> None:
    assert parse_file_uri(uri) == FilePath(start=start, segments=segments)  # pyright: ignore[reportArgumentType]  a literal


@pytest.mark.parametrize("uri", ["file:", "file://", "file://localhost"])
def test_a_uri_without_a_path_is_refused(uri: str) -> None:
    with pytest.raises(AttachmentError, match="names no path"):
        parse_file_uri(uri)


def test_a_fragment_is_refused_with_the_way_to_write_the_character() -> None:
    with pytest.raises(AttachmentError, match="fragment") as raised:
        parse_file_uri("file:a#b.txt")

    assert "file:a%23b.txt" in raised.value.hint


@pytest.mark.parametrize("uri", ["file:100%", "file:100%.txt", "file:a%2", "file:a%zz"])
def test_a_percent_sign_that_encodes_nothing_is_refused(uri: str) -> None:
    with pytest.raises(AttachmentError, match="without two hexadecimal digits"):
        parse_file_uri(uri)


@pytest.mark.parametrize("code", ["%2F", "%2f", "%00"])
def test_what_no_file_name_can_hold_is_refused(code: str) -> None:
    with pytest.raises(AttachmentError, match="no file name can contain"):
        parse_file_uri(f"file:a{code}b")


def test_names_are_encoded_to_the_unreserved_set_in_upper_case() -> None:
    assert encode("a b/ü#1?%*.txt") == "a%20b/%C3%BC%231%3F%25%2A.txt"


def test_bytes_that_are_not_utf8_survive_encoding() -> None:
    name = os.fsdecode(b"caf\xe9")

    assert encode(name) == "caf%E9"
    assert decode("caf%e9") == name


def test_raw_characters_beyond_ascii_mean_themselves() -> None:
    assert decode("naïve%20✓") == "naïve ✓"


def test_names_are_composed() -> None:
    assert nfc("e\u0301") == "é"
    assert nfc("plain") == "plain"

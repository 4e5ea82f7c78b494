from __future__ import annotations

import pytest

from jp.attachment.media import BinaryMedia, TextMedia, UnsupportedMedia, identify, may_be_sent

PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a\0", "image/gif"),
        (b"GIF87a\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7\n\xff", "application/pdf"),
    ],
)
def test_pictures_and_pdfs_are_known_by_their_content(data: bytes, mime_type: str) -> None:
    assert identify(data, "notes.txt") == BinaryMedia(mime_type=mime_type)
    assert may_be_sent(data)


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [
        ("main.rs", "text/x-rust"),
        ("A.PY", "text/x-python"),
        ("x.tar.json", "application/json"),
        ("Makefile", "text/plain"),
        ("rs", "text/plain"),
        ("picture.png", "text/plain"),
        ("x.", "text/plain"),
    ],
)
def test_text_has_the_type_of_its_name(name: str, mime_type: str) -> None:
    assert identify(b"text", name) == TextMedia(mime_type=mime_type, text="text")


def test_an_empty_file_is_text() -> None:
    assert identify(b"", "x") == TextMedia(mime_type="text/plain", text="")


def test_a_byte_order_mark_of_utf8_stays_so_that_the_text_is_the_files() -> None:
    assert identify(b"\xef\xbb\xbfx", "x") == TextMedia(mime_type="text/plain", text="\ufeffx")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_with_a_mark_is_decoded(encoding: str) -> None:
    data = "\ufeffhé ✓".encode(encoding)

    assert identify(data, "x") == TextMedia(mime_type="text/plain", text="hé ✓")
    assert may_be_sent(data)


def test_a_zero_byte_makes_a_file_binary() -> None:
    media = identify(b"text\0", "x")

    assert isinstance(media, UnsupportedMedia)
    assert "zero byte at 4" in media.reason
    assert not may_be_sent(b"text\0")


@pytest.mark.parametrize(("data", "encoding"), [(b"caf\xe9", "UTF-8"), (b"\xff\xfea", "UTF-16")])
def test_text_in_another_encoding_is_not_text(data: bytes, encoding: str) -> None:
    media = identify(data, "x")

    assert isinstance(media, UnsupportedMedia)
    assert encoding in media.reason
    assert "iconv" in media.hint

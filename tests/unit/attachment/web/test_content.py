from __future__ import annotations

import codecs
import gc
import time

import pytest

from jp.attachment.media import (
    BinaryMedia,
    ContentType,
    Kind,
    UnsupportedMedia,
    WebText,
    interpret,
    parse_content_type,
    unsupported,
)

PNG = b"\x89PNG\r\n\x1a\n...."


def text_of(body: bytes, header: str, name: str = "x") -> WebText:
    media = interpret(body, parse_content_type(header), name)
    assert isinstance(media, WebText), media
    return media


def refused(body: bytes, header: str) -> UnsupportedMedia:
    media = interpret(body, parse_content_type(header), "x")
    assert isinstance(media, UnsupportedMedia), media
    return media


@pytest.mark.parametrize(
    ("header", "mime_type", "charset"),
    [
        ("text/html", "text/html", ""),
        ("Text/HTML; Charset=UTF-8", "text/html", "utf-8"),
        ('text/html;charset="iso-8859-1"; x=y', "text/html", "iso-8859-1"),
        (" text/plain ;boundary=x; charset = 'koi8-r'", "text/plain", "koi8-r"),
        ("", "", ""),
        ("x" * 1000, "x" * 100, ""),
    ],
)
def test_a_content_type_is_taken_apart(header: str, mime_type: str, charset: str) -> None:
    assert parse_content_type(header) == ContentType(mime_type=mime_type, charset=charset)


@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [
        ("text/html", "html"),
        ("application/xhtml+xml", "html"),
        ("text/markdown", "text"),
        ("application/json", "text"),
        ("application/vnd.github+json", "text"),
        ("image/svg+xml", "text"),
        ("application/xml", "text"),
        ("image/png", "picture"),
        ("application/pdf", "picture"),
        ("", "unknown"),
        ("application/octet-stream", "unknown"),
        ("video/mp4", "other"),
        ("application/zip", "other"),
        ("image/tiff", "other"),
    ],
)
def test_a_type_is_of_a_kind(mime_type: str, kind: Kind) -> None:
    assert ContentType(mime_type=mime_type).kind == kind


@pytest.mark.parametrize(
    "header", ["image/png", "text/html", "application/octet-stream", "", "image/jpeg", "video/mp4"]
)
def test_a_picture_is_one_whatever_its_server_says(header: str) -> None:
    assert interpret(PNG, parse_content_type(header), "x") == BinaryMedia(mime_type="image/png")


def test_what_is_no_picture_is_refused_as_one() -> None:
    assert refused(b"<html>", "image/png").reason == "no 'image/png', though its server says so"


def test_another_type_is_refused_by_its_name() -> None:
    media = refused(b"PK\3\4", "application/zip")

    assert media == unsupported(ContentType(mime_type="application/zip"))
    assert media.reason == "of the type 'application/zip'"
    assert "PDF can be attached" in media.hint


def test_text_keeps_the_type_that_its_server_gives() -> None:
    assert text_of(b"{}", "application/json") == WebText(mime_type="application/json", text="{}")
    assert text_of(b"<p>", "text/html") == WebText(mime_type="text/html", text="<p>", is_html=True)


@pytest.mark.parametrize("header", ["", "application/octet-stream"])
def test_what_has_no_type_is_known_by_its_name_and_content(header: str) -> None:
    assert text_of(b"x = 1", header, "a.py") == WebText(mime_type="text/x-python", text="x = 1")
    assert "zero byte" in refused(b"a\0b", header).reason


@pytest.mark.parametrize(
    "start", [b"<!DOCTYPE html>", b" \n<!-- a --><!-- b -->\n<html lang=en>", b"<?xml version='1.0'?><HTML>", b"<head>"]
)
def test_a_page_without_a_type_is_a_page(start: bytes) -> None:
    assert text_of(start, "").is_html
    assert not text_of(start, "application/octet-stream").is_html


def test_text_that_is_no_page_is_none() -> None:
    assert not text_of(b"<htmlx>", "").is_html


def test_a_start_that_looks_like_a_page_for_long_is_read_at_once() -> None:
    gc.disable()
    try:
        before = time.process_time()
        assert not text_of(b"<!-- -->" * 512, "").is_html
        assert time.process_time() - before < 2  # a search that tries all ways would take longer than the universe
    finally:
        gc.enable()


@pytest.mark.parametrize("charset", ["", "; charset=utf-8"])
def test_binary_that_calls_itself_text_is_refused(charset: str) -> None:
    assert refused(b"a\0b", "text/plain" + charset).reason == "binary, though its server says that it is 'text/plain'"


# What an encoding is: by mark, then header, then declaration.


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        ("für".encode(), "text/plain", "für"),
        ("für".encode("latin-1"), "text/plain; charset=iso-8859-1", "für"),
        ("„10 €“".encode("cp1252"), "text/plain; charset=latin1", "„10 €“"),
        ("привет".encode("koi8-r"), "text/plain; charset=koi8-r", "привет"),
        ("日本".encode("cp932"), "text/html; charset=Shift_JIS", "日本"),
        ("文".encode("gb18030"), "text/html; charset=gb2312", "文"),
        (codecs.BOM_UTF8 + "für".encode(), "text/plain; charset=iso-8859-1", "für"),
        ("für".encode("utf-16"), "text/plain", "für"),
        ("für".encode("utf-16-le"), "text/plain; charset=utf-16le", "für"),
        ("für".encode("utf-32"), "text/plain; charset=utf-8", "für"),
    ],
)
def test_text_is_decoded(body: bytes, header: str, text: str) -> None:
    assert text_of(body, header) == WebText(
        mime_type=header.partition(";")[0], text=text, is_html=header.startswith("text/html")
    )


@pytest.mark.parametrize(
    "declaration",
    [
        b"<meta charset=koi8-r>",
        b'<META name=x>\n<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
        b"<meta charset = 'KOI8-R' />",
    ],
)
def test_a_page_declares_its_encoding(declaration: bytes) -> None:
    text = "привет"

    assert text in text_of(declaration + text.encode("koi8-r"), "text/html").text
    assert text in text_of(declaration + text.encode(), "text/html; charset=utf-8").text
    assert text in text_of(b"x" + declaration + text.encode(), "text/plain").text


def test_xml_declares_its_encoding() -> None:
    body = '<?xml version="1.0" encoding="windows-1251"?><a>привет</a>'.encode("cp1251")

    assert "привет" in text_of(body, "application/xml").text


def test_a_declaration_that_can_be_read_is_not_in_utf_16() -> None:
    assert "für" in text_of("<meta charset=utf-16>für".encode(), "text/html").text


def test_what_does_not_fit_is_replaced_and_said() -> None:
    media = text_of(b"f\xfcr", "text/plain")

    assert media.text == "f\ufffdr"
    assert media.notices == ("is not valid UTF-8; what does not fit was replaced",)
    assert text_of(codecs.BOM_UTF8 + b"f\xfcr", "text/plain").notices == media.notices
    assert text_of(b"\xff", "text/plain; charset=koi8-r").notices == ()


@pytest.mark.parametrize(
    "charset", ["nosuch", "hex", "utf-7", "punycode", "unicode_escape", "idna", "rot13", "undefined", "a\0b"]
)
def test_an_encoding_that_is_not_of_the_web_is_not_used(charset: str) -> None:
    media = text_of("für".encode(), f"text/plain; charset={charset}")

    assert media.text == "für"
    assert media.notices == (f"names the encoding {charset!r}, which is not known; it was read as UTF-8",)

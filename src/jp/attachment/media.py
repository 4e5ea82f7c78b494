"""Types of content: text, pictures, PDF, by their bytes, their name and their `Content-Type`. Pure."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Literal

import msgspec

HEAD = 8192
"""Bytes that suffice to tell pictures, PDF and binary files from text."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)

# The marks of UTF-32 begin with those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_TEXT_TYPES = {
    "bash": "text/x-shellscript",
    "c": "text/x-c",
    "cc": "text/x-c++",
    "cpp": "text/x-c++",
    "cs": "text/x-csharp",
    "css": "text/css",
    "csv": "text/csv",
    "diff": "text/x-diff",
    "ex": "text/x-elixir",
    "exs": "text/x-elixir",
    "go": "text/x-go",
    "h": "text/x-c",
    "hpp": "text/x-c++",
    "hs": "text/x-haskell",
    "htm": "text/html",
    "html": "text/html",
    "ini": "text/x-ini",
    "java": "text/x-java",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "jsx": "text/jsx",
    "kt": "text/x-kotlin",
    "lua": "text/x-lua",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "nix": "text/x-nix",
    "patch": "text/x-diff",
    "php": "text/x-php",
    "pl": "text/x-perl",
    "proto": "text/x-protobuf",
    "py": "text/x-python",
    "pyi": "text/x-python",
    "r": "text/x-r",
    "rb": "text/x-ruby",
    "rs": "text/x-rust",
    "rst": "text/x-rst",
    "scala": "text/x-scala",
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "svg": "image/svg+xml",
    "swift": "text/x-swift",
    "tex": "text/x-tex",
    "toml": "application/toml",
    "ts": "text/typescript",
    "tsv": "text/tab-separated-values",
    "tsx": "text/tsx",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zig": "text/x-zig",
    "zsh": "text/x-shellscript",
}


class TextMedia(msgspec.Struct, frozen=True, kw_only=True):
    """Text, decoded."""

    mime_type: str
    text: str


class BinaryMedia(msgspec.Struct, frozen=True, kw_only=True):
    """A picture or a PDF."""

    mime_type: str


class UnsupportedMedia(msgspec.Struct, frozen=True, kw_only=True):
    """Other content. `reason` completes `… is {reason}`."""

    reason: str
    hint: str


Media = TextMedia | BinaryMedia | UnsupportedMedia

_SUPPORTED_TYPES = "text, PNG, JPEG, GIF and WebP images and PDF can be attached"


def signature(head: bytes) -> str | None:
    """Return the MIME type of a picture or a PDF, from its first bytes."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for mark, mime_type in _SIGNATURES if head.startswith(mark)), None)


def may_be_sent(head: bytes) -> bool:
    """Return whether a file with the first bytes `head` may be text, a picture or a PDF."""
    return signature(head) is not None or b"\0" not in head or _encoding(head) is not None


def is_kept_byte_by_byte(head: bytes) -> bool:
    """Return whether a copy of a file with these first bytes keeps them; UTF-16 and UTF-32 become UTF-8."""
    return signature(head) is not None or _encoding(head) is None


def _encoding(data: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def identify(data: bytes, name: str) -> Media:
    """Return the media of the whole content `data` of a file with this `name`.

    Text is UTF-8, whose byte order mark is kept, or UTF-16 or UTF-32 with a byte order mark.
    """
    if (mime_type := signature(data)) is not None:
        return BinaryMedia(mime_type=mime_type)
    if (encoding := _encoding(data)) is not None:
        return _decoded(data, name, encoding)
    if (position := data.find(b"\0")) >= 0:
        reason = f"binary (application/octet-stream): there is a zero byte at {position:,}"
        return UnsupportedMedia(reason=reason, hint=_SUPPORTED_TYPES)
    return _decoded(data, name, "utf-8")


def _decoded(data: bytes, name: str, encoding: str) -> Media:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        reason = f"not {encoding.upper()} text: the byte at {error.start:,} does not fit"
        hint = f"{_SUPPORTED_TYPES} Convert text first: `iconv -f latin1 -t utf-8`"
        return UnsupportedMedia(reason=reason, hint=hint)
    return TextMedia(mime_type=text_type(name), text=text)


def text_type(name: str) -> str:
    """Return the MIME type of a text file called `name`, by its extension."""
    _, dot, extension = name.rpartition(".")
    return _TEXT_TYPES.get(extension.lower() if dot else "", "text/plain")


_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_GZIP_MARK = b"\x1f\x8b"

SUPPORTED = "gzip, deflate"
"""The encodings, as a request names them."""


class UnsupportedEncodingError(Exception):
    """A content encoding that was not requested; its text names it."""


class BoundError(Exception):
    """The content has more than the bound."""


class DamagedError(Exception):
    """The content does not match its encoding, or is incomplete."""


class Unpacker:
    """An incremental decoder of a body. `encoding` is the value of `Content-Encoding`.

    Input and output have at most `max_bytes` each.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        """Raises UnsupportedEncodingError: the encoding is none of `SUPPORTED`."""
        name = encoding.strip().lower()
        if name not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise UnsupportedEncodingError(name)
        self._max_bytes = max_bytes
        self._packed = 0
        self._unpacked = 0
        self._held = b""
        self._bits = _GZIP if "gzip" in name else _ZLIB
        self._inflate = None if name in {"", "identity"} else zlib.decompressobj(self._bits)

    def feed(self, data: bytes) -> bytes:
        """Return the decoded next piece.

        Raises:
            BoundError: there is more than the bound.
            DamagedError: it is not of the encoding.
        """
        self._packed += len(data)
        data, self._held = self._held + data, b""
        if self._packed < len(_GZIP_MARK) and self._inflate is not None:
            # A header has two bytes.
            self._held = data
            return b""
        pieces: list[bytes] = []
        while data:
            piece, data = self._step(data)
            self._unpacked += len(piece)
            pieces.append(piece)
            if max(self._packed, self._unpacked) > self._max_bytes:
                raise BoundError
        return b"".join(pieces)

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Return some decoded output of `data`, and the rest of `data`."""
        if self._inflate is None:
            return data, b""
        if self._inflate.eof:
            # Several gzip members are one body (RFC 1952 §2.2); other data after the end is padding.
            if self._bits == _GZIP and len(data) < len(_GZIP_MARK):
                self._held = data
                return b"", b""
            if self._bits != _GZIP or not data.startswith(_GZIP_MARK):
                return b"", b""
            self._inflate = zlib.decompressobj(_GZIP)
        try:
            piece = self._inflate.decompress(data, self._max_bytes - self._unpacked + 1)
        except zlib.error:
            if self._bits != _ZLIB or self._unpacked:
                raise DamagedError from None
            # Many servers send `deflate` without a zlib header (RFC 9110 §8.4.1.2).
            self._bits = _RAW
            self._inflate = zlib.decompressobj(_RAW)
            return b"", data
        return piece, self._inflate.unused_data or self._inflate.unconsumed_tail

    def close(self) -> None:
        """Check that the input is complete.

        Raises:
            DamagedError: it is not.
        """
        if self._inflate is not None and self._packed and not self._inflate.eof:
            raise DamagedError


Kind = Literal["html", "text", "picture", "unknown", "other"]

_LONGEST_TYPE = 100
_HEAD = 4096
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]+)")
_HTML_START = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PICTURES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "application/pdf"})
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_TEXT = frozenset({
    "application/ecmascript", "application/graphql", "application/javascript", "application/json",
    "application/json5", "application/jsonl", "application/markdown", "application/sql", "application/toml",
    "application/typescript", "application/x-httpd-php", "application/x-javascript", "application/x-latex",
    "application/x-ndjson", "application/x-perl", "application/x-python", "application/x-ruby", "application/x-sh",
    "application/x-shellscript", "application/x-tex", "application/x-toml", "application/x-typescript",
    "application/x-yaml", "application/xml", "application/xml-dtd", "application/yaml",
})  # fmt: skip

# The web's meaning of these names (WHATWG Encoding §4.2), which have fewer characters in Python.
_MEANT = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs",
    "x-mac-roman": "macintosh",
    "unicode": "utf-16",
}
# Python has codecs that are not for text, and slow ones.
_ENCODINGS = re.compile(
    r"utf-(?:8|16|32)(?:-[bl]e)?|cp\d+|iso8859-\d+|koi8-[rut]|mac-(?:roman|cyrillic)|gb18030|big5(?:hkscs)?"
    r"|euc_(?:jp|kr)|iso2022_(?:jp|kr)|johab|tis-620|hz"
)

_WEB_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

SUPPORTED_WEB_TYPES = "text, web pages, PNG, JPEG, GIF and WebP images and PDF can be attached"


class ContentType(msgspec.Struct, frozen=True, kw_only=True):
    """A `Content-Type`: a MIME type in lower case without parameters, and a charset; empty if missing."""

    mime_type: str = ""
    charset: str = ""

    @property
    def kind(self) -> Kind:
        """Return the kind of content to expect."""
        name = self.mime_type
        if name in _HTML:
            return "html"
        if name in _UNKNOWN:
            return "unknown"
        if name in _PICTURES:
            return "picture"
        if name.startswith("text/") or name in _TEXT or name.endswith(("+json", "+xml", "+yaml", "+json-seq")):
            return "text"
        return "other"


class WebText(msgspec.Struct, frozen=True, kw_only=True):
    """Decoded text. `notices` complete `… {notice}`."""

    mime_type: str
    text: str
    is_html: bool = False
    notices: tuple[str, ...] = ()


WebMedia = WebText | BinaryMedia | UnsupportedMedia


def parse_content_type(header: str) -> ContentType:
    """Parse the value of `Content-Type`."""
    name, _, parameters = header.partition(";")
    charset = _CHARSET.search(parameters)
    return ContentType(mime_type=name.strip().lower()[:_LONGEST_TYPE], charset=charset[1].lower() if charset else "")


def interpret(body: bytes, content_type: ContentType, name: str) -> WebMedia:
    """Return the media of a whole `body`; `name` is the last part of its path."""
    if (mime_type := signature(body)) is not None:
        return BinaryMedia(mime_type=mime_type)
    kind = content_type.kind
    if kind == "picture":
        reason = f"no {content_type.mime_type!r}, though its server says so"
        return UnsupportedMedia(reason=reason, hint=SUPPORTED_WEB_TYPES)
    if kind == "other":
        return unsupported(content_type)
    if kind == "unknown" and not (content_type.mime_type == "" and _HTML_START.match(body[:_HEAD])):
        return _identified(identify(body, name))
    return _web_text(body, content_type, is_html=kind in {"html", "unknown"})


def unsupported(content_type: ContentType) -> UnsupportedMedia:
    """Return the media for a type that cannot be attached."""
    return UnsupportedMedia(reason=f"of the type {content_type.mime_type!r}", hint=SUPPORTED_WEB_TYPES)


def _identified(media: Media) -> WebMedia:
    return WebText(mime_type=media.mime_type, text=media.text) if isinstance(media, TextMedia) else media


def _web_text(body: bytes, content_type: ContentType, *, is_html: bool) -> WebMedia:
    encoding, notices = _web_encoding(body, content_type, is_html=is_html)
    if b"\0" in body and not encoding.startswith(("utf-16", "utf-32")):
        reason = f"binary, though its server says that it is {content_type.mime_type!r}"
        return UnsupportedMedia(reason=reason, hint=SUPPORTED_WEB_TYPES)
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        notices = (*notices, f"is not valid {_label(encoding)}; what does not fit was replaced")
    mime_type = content_type.mime_type or "text/html"
    return WebText(mime_type=mime_type, text=text, is_html=is_html, notices=notices)


def _label(encoding: str) -> str:
    return "UTF-8" if encoding == "utf-8-sig" else encoding.upper()


def _web_encoding(body: bytes, content_type: ContentType, *, is_html: bool) -> tuple[str, tuple[str, ...]]:
    """Return Python's name of the encoding, from byte order mark, header or declaration; and notices."""
    marked = next((encoding for mark, encoding in _WEB_MARKS if body.startswith(mark)), None)
    if marked is not None:
        return marked, ()
    declared = _META.search(body[:_HEAD]) if is_html else _XML_DECLARATION.match(body[:_HEAD])
    # A declaration that is readable as ASCII cannot be in UTF-16.
    inner = re.sub(r"^utf-?(?:16|32).*", "utf-8", declared[1].decode("ascii").lower()) if declared else ""
    name = content_type.charset or inner
    if not name:
        return "utf-8", ()
    known = _known(name)
    return (
        ("utf-8", (f"names the encoding {name!r}, which is not known; it was read as UTF-8",))
        if known is None
        else (known, ())
    )


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(_MEANT.get(name, name)).name
    except (LookupError, ValueError):
        return None
    return found if _ENCODINGS.fullmatch(found) else None

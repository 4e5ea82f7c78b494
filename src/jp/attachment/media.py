"""Identification of media: text, pictures, PDF, or unsupported; by content first, then by name. Pure."""

from __future__ import annotations

import codecs

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
    """Anything else. `reason` says how it differs from text: `… is {reason}`."""

    reason: str
    hint: str


Media = TextMedia | BinaryMedia | UnsupportedMedia

_WHAT_IS_TAKEN = "Text, PNG, JPEG, GIF and WebP images and PDF can be attached."


def signature(head: bytes) -> str | None:
    """Return the MIME type of a picture or a PDF, from its first bytes."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for mark, mime_type in _SIGNATURES if head.startswith(mark)), None)


def may_be_sent(head: bytes) -> bool:
    """Return whether a file that begins with `head` may be text, a picture or a PDF."""
    return signature(head) is not None or b"\0" not in head or _encoding(head) is not None


def is_kept_byte_by_byte(head: bytes) -> bool:
    """Return whether the snapshot of a file that begins with `head` has its bytes: other encodings become UTF-8."""
    return signature(head) is not None or _encoding(head) is None


def _encoding(data: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def identify(data: bytes, name: str) -> Media:
    """Return what the whole content `data` of a file called `name` is.

    Text is UTF-8, a byte order mark kept as it stands, or UTF-16 and UTF-32 that begin with one.
    """
    if (mime_type := signature(data)) is not None:
        return BinaryMedia(mime_type=mime_type)
    if (encoding := _encoding(data)) is not None:
        return _decoded(data, name, encoding)
    if (position := data.find(b"\0")) >= 0:
        reason = f"binary (application/octet-stream): there is a zero byte at {position:,}"
        return UnsupportedMedia(reason=reason, hint=_WHAT_IS_TAKEN)
    return _decoded(data, name, "utf-8")


def _decoded(data: bytes, name: str, encoding: str) -> Media:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        reason = f"not {encoding.upper()} text: the byte at {error.start:,} does not fit"
        hint = f"{_WHAT_IS_TAKEN} Convert text first: `iconv -f latin1 -t utf-8`."
        return UnsupportedMedia(reason=reason, hint=hint)
    return TextMedia(mime_type=text_type(name), text=text)


def text_type(name: str) -> str:
    """Return the MIME type of a text file called `name`, by its extension."""
    _, dot, extension = name.rpartition(".")
    return _TEXT_TYPES.get(extension.lower() if dot else "", "text/plain")

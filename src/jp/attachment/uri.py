"""The `file` URIs that users write: their forms and their percent-encoding (RFC 3986, RFC 8089). Pure."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from jp.attachment.base import AttachmentError
from jp.conversation.uri import file_uri

_SCHEME = re.compile(r"file:", re.IGNORECASE)
_TRIPLET = re.compile(rb"%([0-9A-Fa-f]{2})")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

Start = Literal["root", "home", "filesystem"]
"""Where a path begins: at the workspace's root, at the user's home directory, or at `/`."""


class FilePath(msgspec.Struct, frozen=True, kw_only=True):
    """A `file` URI taken apart. `segments` are still percent-encoded, and none is empty or `.`."""

    start: Start
    segments: tuple[str, ...]


def parse_file_uri(uri: str) -> FilePath:
    """Take `uri` apart.

    `file:a/b` begins at the root, `file:/a`, `file:///a` and `file://localhost/a` at `/`, `file:~/a` at home. In
    `file://a/b`, `a` is not a host but a directory, as in the original.

    Raises:
        AttachmentError: it has a fragment, names nothing, or has an encoding that no file name can have.
    """
    if "#" in uri:
        hint = f"For a '#' in a file name write '%23': {uri.replace('#', '%23')!r}, or give the plain path."
        raise AttachmentError(f"{uri!r} has a fragment, but files are attached whole", hint=hint)
    if (stray := _STRAY_PERCENT.search(uri)) is not None:
        hint = "For a '%' in a file name write '%25', or give the plain path."
        raise AttachmentError(f"{uri!r} has a '%' without two hexadecimal digits at {stray.start()}", hint=hint)
    start, path = _start(_SCHEME.sub("", uri, count=1))
    if not path and start == "root":
        raise AttachmentError(f"{uri!r} names no path", hint="'file:.' is the workspace's root.")
    segments = tuple(segment for segment in path.split("/") if decode(segment) not in {"", "."})
    for segment in segments:
        _require_name(decode(segment), uri)
    return FilePath(start=start, segments=segments)


def _start(rest: str) -> tuple[Start, str]:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() in {"", "localhost"}:
            return ("filesystem", path) if slash else ("root", "")
        return "root", rest[2:]
    if rest.startswith("/"):
        return "filesystem", rest
    if rest == "~" or rest.startswith("~/"):
        return "home", rest[1:]
    return "root", rest


def _require_name(name: str, uri: str) -> None:
    for char, code in (("/", "%2F"), ("\0", "%00")):
        if char in name:
            raise AttachmentError(f"{uri!r} has {code!r}, which no file name can hold")


def decode(segment: str) -> str:
    """The name that a percent-encoded segment means; bytes that are not UTF-8 become surrogates (`os.fsdecode`)."""
    raw = _TRIPLET.sub(lambda match: bytes.fromhex(match[1].decode()), segment.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def encode(path: str) -> str:
    """`path` percent-encoded: unreserved characters and `/` stay (RFC 3986 §2.3)."""
    return file_uri(f"/{path}").removeprefix("file:///")


def nfc(name: str) -> str:
    """`name` in Unicode's composed form."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFC", name)

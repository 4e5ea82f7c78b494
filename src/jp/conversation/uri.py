"""Canonical `file` URIs: one spelling for one file, whoever names it."""

from __future__ import annotations

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
_ENCODED = tuple(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in range(256))


def file_uri(path: bytes | str) -> str:
    """`file://` and the percent-encoded bytes of `path`, which is absolute and free of symlinks.

    Unreserved characters (RFC 3986 §2.3) and `/` stay, every other byte becomes `%` and two uppercase digits; so
    distinct paths have distinct URIs. A `str` is encoded as file names are: surrogates stand for bytes that are not
    UTF-8. In which case and Unicode form a name is spelled only its directory knows, so that is the caller's part.
    """
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    return "file://" + "".join(map(_ENCODED.__getitem__, raw))

"""Compressed responses, unpacked no further than a bound: a small one may hold gigabytes. Pure."""

from __future__ import annotations

import zlib

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_GZIP_MARK = b"\x1f\x8b"

SUPPORTED = "gzip, deflate"
"""The encodings, as a request names them."""


class UnsupportedEncodingError(Exception):
    """An encoding that was not asked for. The text names it."""


class BoundError(Exception):
    """There is more than the bound."""


class DamagedError(Exception):
    """It is not what it says, or breaks off."""


class Unpacker:
    """One body of a response, piece by piece.

    `encoding` is the value of `Content-Encoding`. Both what comes in and what goes out have at most `max_bytes`.
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
        """The next piece, unpacked.

        Raises:
            BoundError: there is more than the bound.
            DamagedError: it is not of the encoding.
        """
        self._packed += len(data)
        data, self._held = self._held + data, b""
        if self._packed < len(_GZIP_MARK) and self._inflate is not None:
            # One byte does not tell whether there is a header.
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
        """Something unpacked from `data`, and what is left of it."""
        if self._inflate is None:
            return data, b""
        if self._inflate.eof:
            # Several gzip streams in a row are one body (RFC 1952 §2.2); anything else behind the end is padding.
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
            # Half of the servers mean by `deflate` what has no header (RFC 9110 §8.4.1.2).
            self._bits = _RAW
            self._inflate = zlib.decompressobj(_RAW)
            return b"", data
        return piece, self._inflate.unused_data or self._inflate.unconsumed_tail

    def close(self) -> None:
        """Say that nothing comes any more.

        Raises:
            DamagedError: something is missing.
        """
        if self._inflate is not None and self._packed and not self._inflate.eof:
            raise DamagedError

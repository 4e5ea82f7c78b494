from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterable

import pytest

from jp.attachment.media import BoundError, DamagedError, Unpacker, UnsupportedEncodingError

TEXT = b"a line of text\n" * 1000


def zipped(data: bytes) -> bytes:
    """The same bytes at any time: they name tests, and every worker has to know each by the same name."""
    return gzip.compress(data, mtime=0)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def unpacked(encoding: str, pieces: Iterable[bytes], *, max_bytes: int = len(TEXT)) -> bytes:
    unpacker = Unpacker(encoding, max_bytes)
    data = b"".join(unpacker.feed(piece) for piece in pieces)
    unpacker.close()
    return data


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 10**6])
@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", zipped(TEXT)),
        (" X-GZIP ", zipped(TEXT)),
        ("gzip", zipped(TEXT[:5000]) + zipped(b"") + zipped(TEXT[5000:])),
        ("gzip", zipped(TEXT) + b"\0" * 100),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT) + b"rest"),
    ],
)
def test_a_body_is_unpacked_however_it_is_cut(encoding: str, packed: bytes, size: int) -> None:
    assert unpacked(encoding, in_pieces(packed, size)) == TEXT


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_deflate_without_a_header_is_understood(size: int) -> None:
    assert unpacked("deflate", in_pieces(raw_deflate(TEXT), size)) == TEXT


def test_an_empty_body_needs_no_end() -> None:
    assert unpacked("gzip", []) == b""


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip"])
def test_other_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(UnsupportedEncodingError, match=encoding):
        Unpacker(encoding, 1)


@pytest.mark.parametrize(("encoding", "packed"), [("gzip", zipped(TEXT)), ("", TEXT), ("deflate", zlib.compress(TEXT))])
def test_more_than_the_bound_is_refused(encoding: str, packed: bytes) -> None:
    with pytest.raises(BoundError):
        unpacked(encoding, [packed], max_bytes=len(TEXT) - 1)


def test_a_bomb_is_left_before_it_has_gone_off() -> None:
    bomb = zipped(bytes(10_000_000))
    unpacker = Unpacker("gzip", 1000)
    tracemalloc.start()

    with pytest.raises(BoundError):
        unpacker.feed(bomb)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_streams_that_hold_nothing_count_as_they_come() -> None:
    empty = zipped(b"")
    unpacker = Unpacker("gzip", len(empty) * 10)

    for _ in range(10):
        assert unpacker.feed(empty) == b""
    with pytest.raises(BoundError):
        unpacker.feed(empty)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", b"this is no gzip"),
        ("gzip", zipped(TEXT)[:-1]),
        ("gzip", zipped(TEXT)[:-8] + bytes(8)),
        ("deflate", b"\xff\xff\xff\xff"),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("gzip", b"\x1f"),
    ],
)
def test_what_is_damaged_or_incomplete_is_refused(encoding: str, packed: bytes) -> None:
    with pytest.raises(DamagedError):
        unpacked(encoding, [packed])

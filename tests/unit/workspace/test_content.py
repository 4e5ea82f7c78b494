from __future__ import annotations

import pytest

from jp.cli.terminal.wording import worded
from jp.conversation.resource import (
    AudioBlock,
    Carrier,
    ImageBlock,
    Payload,
    Resource,
    TextBlock,
    checksum,
    size_in_bytes,
)
from jp.workspace.blobs import INLINE_BYTES, BlobDamagedError, BlobMissingError, MemoryBlobs, inlined, stored

LONG = "äöü\n" * 2000
BYTES = bytes(range(256)) * 20

LARGE: list[Carrier] = [
    Payload(text=LONG),
    TextBlock(text=LONG),
    Resource(uri="file:///a", text=LONG, name="a"),
    Resource(uri="file:///a", blob=BYTES, mime_type="image/png"),
    ImageBlock(mime_type="image/png", blob=BYTES),
    AudioBlock(mime_type="audio/wav", blob=BYTES),
]


@pytest.mark.parametrize(
    "carrier", LARGE, ids=["payload", "text", "text-resource", "binary-resource", "image", "audio"]
)
def test_large_content_goes_to_the_store_and_comes_back_as_it_was(carrier: Carrier) -> None:
    blobs = MemoryBlobs()

    kept = stored(carrier, blobs)

    assert kept.sha256 == checksum(carrier)
    assert kept.size == size_in_bytes(carrier)
    assert not isinstance(kept, (Payload, Resource)) or kept.text is None
    assert isinstance(kept, Payload) or kept.blob is None
    assert type(kept) is type(carrier)
    assert inlined(kept, blobs, conversation="c") == carrier
    assert stored(kept, blobs) is kept


@pytest.mark.parametrize(
    "carrier", LARGE, ids=["payload", "text", "text-resource", "binary-resource", "image", "audio"]
)
def test_text_is_told_from_binary_without_reading_it(carrier: Carrier) -> None:
    kept = stored(carrier, MemoryBlobs())

    match kept:
        case Resource(mime_type="image/png"):
            assert (kept.chars, kept.lines) == (None, None)
        case Payload() | Resource():
            assert (kept.chars, kept.lines) == (len(LONG), 2000)
        case _:
            pass


@pytest.mark.parametrize(("text", "lines"), [("x\n" * 3000, 3000), ("x\n" * 3000 + "y", 3001), ("x" * 5000, 1)])
def test_a_last_line_without_an_end_is_a_line(text: str, lines: int) -> None:
    assert stored(Payload(text=text), MemoryBlobs()).lines == lines


def test_the_limit_is_in_bytes_and_itself_inline() -> None:
    blobs = MemoryBlobs()

    assert stored(Payload(text="x" * INLINE_BYTES), blobs).sha256 is None
    assert stored(Payload(text="x" * (INLINE_BYTES + 1)), blobs).sha256 is not None
    assert stored(Payload(text="ä" * (INLINE_BYTES // 2 + 1)), blobs).sha256 is not None
    assert stored(Resource(uri="file:///a", blob=b"x" * INLINE_BYTES), blobs).sha256 is None


@pytest.mark.parametrize(
    "carrier",
    [Payload(text="x"), Payload(), Resource(uri="u", text=""), Resource(uri="u", blob=b"x"), ImageBlock(mime_type="m")],
    ids=repr,
)
def test_small_content_stays_as_it_is(carrier: Carrier) -> None:
    blobs = MemoryBlobs()

    assert stored(carrier, blobs) is carrier
    assert inlined(carrier, blobs, conversation="c") is carrier


def test_a_missing_blob_is_told_with_the_conversation() -> None:
    kept = stored(Payload(text=LONG), MemoryBlobs())

    with pytest.raises(BlobMissingError, match=f"'17-a'.*{kept.sha256}"):
        inlined(kept, MemoryBlobs(), conversation="17-a")


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("file:///a%20b", "if it has not changed since, attach it again: `--attach file:///a%20b`"),
        ("gh:o/n/pull/1?x=y", "if it has not changed since, attach it again: `--attach 'gh:o/n/pull/1?x=y'`"),
        ("file:///a#L1-20", ""),
    ],
)
def test_of_a_source_it_is_said_how_it_comes_back(uri: str, hint: str) -> None:
    kept = stored(Resource(uri=uri, name="a b", text=LONG), MemoryBlobs())

    with pytest.raises(BlobMissingError, match="content of 'a b' cannot be read") as raised:
        inlined(kept, MemoryBlobs(), conversation="17-a")

    assert worded(raised.value.hint) == hint


def test_text_that_is_none_is_told_with_the_conversation() -> None:
    blobs = MemoryBlobs()
    sha256 = blobs.put(b"\xff\xfe")
    claimed = Resource(uri="u", sha256=sha256, size=2, chars=2, lines=1)

    with pytest.raises(BlobDamagedError, match=f"'17-a'.*{sha256}"):
        inlined(claimed, blobs, conversation="17-a")

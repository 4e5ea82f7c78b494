"""What holds for every log that is written, cut, and opened again."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Header,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    encode,
)
from jp.conversation.resource import ImageBlock, Payload, Resource, ResourceBlock, TextBlock
from jp.conversation.thread import map_carriers
from jp.workspace.blobs import DiskBlobs
from jp.workspace.files import Stamps
from jp.workspace.log import Log, open_log
from jp.workspace.store import parse_log, read_stream
from streams import any_streams, streams
from workspaces import START, fixed_stamps

# Where there is a file system in memory, syncing hundreds of logs does not wait for a disk.
MEMORY = Path("/dev", "shm")
HEADER = Header(id="h", at="t", format=1, created_at="t", nonce="n")

# Around the size at which content leaves its line, and far from it.
sizes = st.sampled_from((0, 1, 100, 4095, 4096, 4097, 9000))


def text_of_size(text: str, size: int) -> str:
    return (text * size)[:size]


def bytes_of_size(data: bytes, size: int) -> bytes:
    return (data * size)[:size]


texts = st.builds(text_of_size, st.text(st.characters(codec="utf-8"), min_size=1), sizes)
binaries = st.builds(bytes_of_size, st.binary(min_size=1), sizes)
resources = st.one_of(
    st.builds(Resource, uri=st.just("file:///a"), text=texts),
    st.builds(Resource, uri=st.just("file:///a"), blob=binaries, mime_type=st.just("image/png")),
)
blocks = st.one_of(
    st.builds(TextBlock, text=texts),
    st.builds(ResourceBlock, resource=resources),
    st.builds(ImageBlock, mime_type=st.just("image/png"), blob=binaries),
)
contents = st.one_of(
    st.builds(ChatRequest, content=texts, resources=st.lists(resources, max_size=3).map(tuple)),
    st.builds(ToolCallResponse, request=st.just("e1"), content=st.lists(blocks, max_size=3).map(tuple)),
    st.builds(
        RequestContext,
        provider=st.just("p"),
        model=st.just("m"),
        renderer=st.just(1),
        system=st.lists(st.builds(Payload, text=texts), max_size=2).map(tuple),
        tools=st.none() | st.builds(Payload, text=texts),
    ),
)


class Place:
    """A conversation's directory, and its blobs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "conversations" / "17"
        self.directory.mkdir(parents=True)
        self.path = self.directory / "events.jsonl"
        self.path.write_bytes(encode(HEADER) + b"\n")
        self.blobs = DiskBlobs(directory / "blobs")

    def open(self) -> Log:
        return open_log(self.directory, self.blobs, stamps=fixed_stamps())

    def entries(self) -> list[AnyEntry]:
        return read_stream(self.directory, self.blobs).entries


@contextmanager
def new_place() -> Generator[Place]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory:
        yield Place(Path(directory))


@given(any_streams())
def test_what_is_recorded_is_what_is_read(entries: tuple[AnyEntry, ...]) -> None:
    with new_place() as place:
        with place.open() as log:
            recorded = [log.append(entry) for entry in entries]
            assert len(recorded) == len(entries)
            kept = list(log.entries)

        assert place.entries() == [entry for number, entry in enumerate(kept) if entry not in kept[:number]]


@given(any_streams())
def test_opening_only_ever_adds_and_adds_once(entries: tuple[AnyEntry, ...]) -> None:
    with new_place() as place:
        with place.open() as log:
            for entry in entries:
                log.append(entry)
        written = place.path.read_bytes()
        place.open().close()
        opened = place.path.read_bytes()
        place.open().close()

        assert opened.startswith(written)
        assert place.path.read_bytes() == opened
        calls = {entry.id for entry in place.entries() if isinstance(entry, ToolCallRequest)}
        added = place.entries()[len(entries) + 1 :]
        assert all(isinstance(entry, ToolCallResponse) and entry.request in calls for entry in added)


@given(st.lists(contents, max_size=4))
def test_content_comes_back_as_it_came_wherever_it_lay(entries: list[AnyEntry]) -> None:
    with new_place() as place:
        with place.open() as log:
            recorded = [log.append(entry) for entry in entries]
        stream = read_stream(place.directory, place.blobs)

        assert [map_carriers(entry, stream.load) for entry in stream.entries[1:]] == recorded
        assert [type(entry) for entry in recorded] == [type(entry) for entry in entries]


@given(streams(), st.text(st.characters(codec="utf-8")))
def test_a_log_that_is_torn_anywhere_in_its_last_line_loses_that_line_only(
    entries: tuple[AnyEntry, ...], text: str
) -> None:
    with new_place() as place:
        with place.open() as log:
            for entry in (*entries[-5:], ChatResponse(message=text)) if text else entries[-5:]:
                log.append(entry)
        data = place.path.read_bytes()

    last = data.rindex(b"\n", 0, -1) + 1
    whole, before = (parse_log(lines, place.path).entries for lines in (data, data[:last]))
    for end in range(last, len(data)):
        torn = parse_log(data[:end], place.path)
        if end == len(data) - 1:
            assert torn.entries == whole
            assert not torn.terminated
        else:
            assert torn.entries == before
            assert torn.end == last
            assert torn.terminated


@given(st.lists(contents, min_size=1, max_size=3), st.data())
def test_whatever_tail_is_cut_off_the_log_goes_on(entries: list[AnyEntry], data: st.DataObject) -> None:
    with new_place() as place:
        with place.open() as log:
            for entry in entries:
                log.append(entry)
        written = place.path.read_bytes()
        start = written.index(b"\n") + 1
        end = data.draw(st.integers(start, len(written)))
        place.path.write_bytes(written[:end])
        whole = written[:end].rpartition(b"\n")[0] + b"\n"
        torn = written[len(whole) : end]
        completes = written[end : end + 1] == b"\n"

        with place.open() as log:
            log.append(TurnStart())

        after = place.path.read_bytes()
        kept = [path.read_bytes() for path in place.directory.glob("*.torn-*")]
        assert after.startswith(written[: end + 1] if completes else whole)
        assert kept == ([torn] if torn and not completes else [])
        assert isinstance(place.entries()[-1], TurnStart)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.binary(max_size=10))
def test_ids_are_unique_and_sorted_whatever_the_clock_does(steps: list[int], noise: bytes) -> None:
    moments = iter(steps)
    wandering = Stamps(now=lambda: START + next(moments), entropy=noise.ljust)
    with new_place() as place:
        with open_log(place.directory, place.blobs, stamps=wandering) as log:
            ids = [log.append(TurnStart()).id for _ in steps]

        assert ids == sorted(set(ids))

"""A session over the standard streams of a process: a message a line, within bounds.

The SDK has such a transport too. It keeps a line of any length, reads what is no message for ever, and lets a
message with half a character in it go unanswered: a server could take the whole of jp's memory, or its time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    Event,
    create_memory_object_stream,
    create_task_group,
    move_on_after,
)

from jp.mcp.bounds import TooManyValuesError, ValueMeter
from jp.mcp.messages import message_of
from jp.mcp.process import ServerProcess

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

LONGEST_MESSAGE = 16 * 1024 * 1024
"""In bytes: a resource of 10 MiB as base64, and some more."""

_MOST_NOISE = 1024 * 1024
"""So many bytes that are no messages a server may print: a greeting, the output of a program that it runs."""

_SHOWN = 2000
_FLUSH_SECS = 0.5


class StdioLink:
    """What connects a process with a session. `broken` says why it was cut, where neither of them ended."""

    def __init__(self, process: ServerProcess, log: Callable[[str], None]) -> None:
        """`process` runs; the link ends it."""
        self.broken = ""
        self.ended = Event()
        self._process = process
        self._log = log
        self._noise = 0
        self._values = ValueMeter()
        self._writing = CancelScope()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """The two streams of a session. Leaving it ends the process."""
        incoming, read_stream = create_memory_object_stream["SessionMessage | Exception"](0)
        write_stream, outgoing = create_memory_object_stream["SessionMessage"](0)
        # What is closed last is what tasks may still be reading.
        with closing(self._process), incoming, read_stream, write_stream, outgoing:
            async with create_task_group() as tasks:
                written = Event()
                tasks.start_soon(self._read, incoming)
                tasks.start_soon(self._write, outgoing, written)
                tasks.start_soon(self._process.listen, self._log)
                try:
                    yield read_stream, write_stream
                finally:
                    await self._leave(read_stream, write_stream, written)
                    tasks.cancel_scope.cancel()

    async def _leave(
        self,
        read_stream: MemoryObjectReceiveStream[SessionMessage | Exception],
        write_stream: MemoryObjectSendStream[SessionMessage],
        written: Event,
    ) -> None:
        """Send what is still to be said, that a call was cancelled perhaps, and end the process."""
        with CancelScope(shield=True):
            # From here on what it says is read and forgotten: it could not end with a full pipe.
            read_stream.close()
            write_stream.close()
            with move_on_after(_FLUSH_SECS):
                await written.wait()
            self._writing.cancel()
            await written.wait()
            await self._process.end()

    async def _read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        begun = bytearray()
        with incoming:
            while not self.broken and (chunk := await self._process.read()):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    self._count(line)
                    await self._take(bytes(begun + line), incoming)
                    begun.clear()
                    self._values.reset()
                begun += rest
                self._count(rest)
                if len(begun) > LONGEST_MESSAGE:
                    self.stop(f"it sent a message of more than {LONGEST_MESSAGE:,} bytes")
        self.ended.set()

    def _count(self, piece: bytes) -> None:
        try:
            self._values.feed(piece)
        except TooManyValuesError as error:
            self.stop(f"it sent {error}")

    async def _take(self, line: bytes, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        from mcp.shared.message import SessionMessage

        if self.broken:
            return
        message = message_of(line)
        if message is not None:
            with suppress(BrokenResourceError, ClosedResourceError):
                await incoming.send(SessionMessage(message))
            return
        self._noise += len(line) + 1
        if line.strip() and self._noise <= _SHOWN:
            self._log(line[:_SHOWN].decode("utf-8", "replace"))
        if self._noise > _MOST_NOISE and not self.broken:
            self.stop(f"it printed more than {_MOST_NOISE:,} bytes that are no messages")

    def stop(self, why: str) -> None:
        """See `jp.mcp.bounds.Link`."""
        self.broken = self.broken or why
        self._process.kill()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage], written: Event) -> None:
        try:
            with self._writing, outgoing:
                async for item in outgoing:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.write(f"{text}\n".encode())
        except OSError:
            # It does not read any more: whoever waits for an answer hears of it when its output ends.
            self._process.kill()
        finally:
            written.set()

"""One call of a file tool: consent, and changes of files that are shown before they are written."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import ParamSpec, TypeVar

import msgspec

from jp.conversation.entries import Facts, Question
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import Answer, ToolInvocation, ToolOutput
from jp.tool.files.territory import (
    Content,
    FileAccessError,
    FileSurroundings,
    Place,
    Territory,
    in_words,
    legible,
    parent_of,
    read_in,
    require_regular,
    status_of,
)

REPLACING = Lock()
"""Held from the last look at a file to its replacement: other calls replace files too."""

_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create(directory: int, place: Place, data: bytes) -> None:
    """Write a file that is not there yet, with the permissions that new files have.

    Raises:
        FileAccessError: something is there.
        OSError: the operating system refuses.
    """
    name = place.names[-1]
    with _aside(directory, data, 0o666) as aside:
        try:
            put_where_nothing_is(directory, aside, directory, name)
        except FileExistsError:
            raise FileAccessError(f"{place.written!r} was created meanwhile, so nothing was written") from None


def replace(directory: int, place: Place, data: bytes, *, known: Content) -> None:
    """Write a file anew, with the permissions and, where that is allowed, the owner that it has.

    Raises:
        FileAccessError: it is not what is `known` of it any more: then it stays as it is.
        OSError: the operating system refuses.
    """
    name = place.names[-1]
    # Putting another file in its place would not need the right to write to it.
    if not os.access(name, os.W_OK, dir_fd=directory):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with _aside(directory, data, 0o600) as aside:
        _give(directory, aside, known)
        with REPLACING:
            if read_in(directory, place).data != known.data:
                raise FileAccessError(f"{place.written!r} was changed meanwhile, so nothing was written; read it again")
            os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)


def put_where_nothing_is(source: int, name: str, target: int, new_name: str) -> None:
    """Give a file another name, and never to another file's cost.

    Raises:
        FileExistsError: the name is taken.
        OSError: the operating system refuses.
    """
    try:
        os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # There are file systems without links: take the name first, then put the file there.
        os.close(os.open(new_name, _ASIDE, 0o600, dir_fd=target))
        try:
            os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        except OSError:
            os.unlink(new_name, dir_fd=target)
            raise
    else:
        _take_away(source, name, target, new_name)


def _take_away(source: int, name: str, target: int, new_name: str) -> None:
    """Take the first of a file's two names, and where that is refused the second: it never keeps both."""
    try:
        os.unlink(name, dir_fd=source)
    except FileNotFoundError:  # somebody else took it away; the file has its new name
        return
    except OSError:
        os.unlink(new_name, dir_fd=target)
        raise


def put_over(source: int, name: str, target: int, place: Place) -> None:
    """Give a file the name of another one, which is lost.

    Raises:
        FileAccessError: what has the name is no regular file.
        OSError: the operating system refuses.
    """
    status = status_of(target, place.names[-1])
    if status is not None:
        require_regular(status, place)
    os.rename(name, place.names[-1], src_dir_fd=source, dst_dir_fd=target)


@contextmanager
def _aside(directory: int, data: bytes, mode: int) -> Generator[str]:
    """Yield a new file with `data` under a name of its own, which is gone afterwards if it still has that name."""
    name = f".jp-{os.urandom(6).hex()}.tmp"
    descriptor = os.open(name, _ASIDE, mode, dir_fd=directory)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor has no path
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _give(directory: int, name: str, known: Content) -> None:
    """Make owner and permissions of a new file those that are `known`."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        mode = known.mode
        if (status.st_uid, status.st_gid) != (known.owner, known.group):
            try:
                os.fchown(descriptor, known.owner, known.group)
            except OSError:
                # Whose file it becomes, theirs must not be the rights that were somebody else's.
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


P = ParamSpec("P")
T = TypeVar("T")


def territory_of(invocation: ToolInvocation, surroundings: FileSurroundings) -> Territory:
    """Return what the call may reach."""
    return Territory(invocation.root, invocation.settings.access.fs, surroundings)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work: a file system that hangs must not hang what cancels this."""
    from functools import partial

    from anyio.to_thread import run_sync

    return await run_sync(partial(work, *args, **kwargs), abandon_on_cancel=True)


async def require_consent(invocation: ToolInvocation, identity: str, text: str) -> None:
    """Ask a question whose answer has to be yes.

    Raises:
        FileAccessError: it is not, or there is nobody to ask.
    """
    question = Question(id=identity, text=text, kind="boolean", default=False)
    answer = await invocation.inquirer.ask(question, person_only=True)
    if isinstance(answer, Answer):
        if answer.value is True:
            return
        raise FileAccessError(f"{text} The answer was no, so nothing was done.")
    why = "nobody can be asked here" if answer.cause == "nobody" else "it was not answered"
    raise FileAccessError(f"{text} That needs the user's consent, and {why}, so nothing was done.")


class FileTool:
    """A tool that works on files. A call that is refused, or fails, ends in a result that says why."""

    definition: ToolDefinition
    kind: str
    """The kind of its results."""
    path_argument: str | None = "path"
    """The argument with the one path that a call is about."""

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            return await self.work(invocation)
        except FileAccessError as error:
            path = invocation.arguments[self.path_argument] if self.path_argument else None
            shown = legible(path) if isinstance(path, str) else None
            facts = Facts(kind=self.kind, path=shown, first_error=error.message)
            return ToolOutput(content=said(error.message), is_error=True, facts=facts)

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """Do what the call asks for.

        Raises:
            FileAccessError: it is refused, or fails.
        """
        raise NotImplementedError


def said(text: str) -> tuple[TextBlock, ...]:
    """Return a result that is text."""
    return (TextBlock(text=text),)


_AROUND = 3
_MOST_COMPARED = 3_000
"""Beyond so many lines that differ, they are not compared line by line: that may take quadratic time."""

_NO_END = "\\ No newline at end of file"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`lines` are a unified diff without line feeds; `first` and `last` are the changed lines of the new text."""

    lines: tuple[str, ...]
    first: int
    last: int

    def text(self, most: int | None = None) -> str:
        """Return the diff, with at most so many lines where a bound is given."""
        if most is None or len(self.lines) <= most:
            return "\n".join(self.lines)
        left_out = len(self.lines) - most
        return "\n".join([*self.lines[:most], f"… {left_out:,} more lines of the diff"])


def difference(path: str, old: str, new: str) -> Difference:
    """Return the difference from `old` to `new`, two texts that are not the same, of the file `path`."""
    before, after = _lines(old), _lines(new)
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    return Difference(
        lines=(f"--- {path}", f"+++ {path}", *_hunks(before, after, head, tail)),
        first=head + 1,
        last=max(head + 1, len(after) - tail),
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    end = lines.pop()
    return [*lines, f"{end}\n{_NO_END}"] if end else lines


def _same(before: Sequence[str], after: Sequence[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(before), len(after)))


def _hunks(before: list[str], after: list[str], head: int, tail: int) -> Iterator[str]:
    # What is the same at both ends is not compared again; three lines of it are shown.
    skipped = max(0, head - _AROUND)
    old = before[skipped : len(before) - max(0, tail - _AROUND)]
    new = after[skipped : len(after) - max(0, tail - _AROUND)]
    if len(old) + len(new) > _MOST_COMPARED:
        yield _heading(skipped, skipped + len(old), skipped, skipped + len(new))
        yield from _replaced(old, new, head - skipped, min(tail, _AROUND))
        return
    from difflib import SequenceMatcher

    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        yield _heading(skipped + group[0][1], skipped + group[-1][2], skipped + group[0][3], skipped + group[-1][4])
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(" ", old[old_start:old_end])
            else:
                yield from _marked("-", old[old_start:old_end])
                yield from _marked("+", new[new_start:new_end])


def _replaced(old: list[str], new: list[str], lead: int, trail: int) -> Iterator[str]:
    """Yield all of `old` but so many lines at its ends, by all of `new`."""
    yield from _marked(" ", old[:lead])
    yield from _marked("-", old[lead : len(old) - trail])
    yield from _marked("+", new[lead : len(new) - trail])
    yield from _marked(" ", old[len(old) - trail :])


def _marked(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from f"{sign}{line}".split("\n")


def _heading(old_start: int, old_end: int, new_start: int, new_end: int) -> str:
    return f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@"


def _span(start: int, end: int) -> str:
    count = end - start
    # As `diff -u` has it: where there is no line, the one before it is named.
    return f"{start if count == 0 else start + 1}" + ("" if count == 1 else f",{count}")


MOST_SHOWN = 200
"""So many lines of a diff the model is shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a file from `old` to `new`."""

    place: Place
    known: Content
    old: str
    new: str

    def diff(self) -> str:
        """Return the change as a unified diff, whole: it is what a person consents to."""
        return difference(legible(self.place.shown), self.old, self.new).text()


class Previews:
    """Previews of calls, so that a file that somebody else has changed since is noticed.

    What calls of the same tool have made of it meanwhile, one after the other, was shown too.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, str] = {}
        self._made: dict[str, list[str]] = {}

    def remember(self, invocation: ToolInvocation, known: Content) -> None:
        """Keep in mind what the file had when the call was shown."""
        self._shown[_identity(invocation)] = _checksum(known.data)

    def require_same(self, invocation: ToolInvocation, place: Place, known: Content) -> None:
        """See that a file has what it had when the call was shown, if it was.

        Raises:
            FileAccessError: it has not.
        """
        current = _checksum(known.data)
        shown = self._shown.pop(_identity(invocation), current)
        made_since = self._made.get(place.path, [])
        if shown == current or (shown in made_since and made_since[-1] == current):
            return
        raise FileAccessError(
            f"{place.written!r} has changed since this call was shown, so nothing was written; read it again"
        )

    def made(self, place: Place, old: bytes, new: bytes) -> None:
        """Keep in mind that a call has made the one content of the other."""
        since = self._made.setdefault(place.path, [])
        if not since or since[-1] != _checksum(old):
            since[:] = [_checksum(old)]
        since.append(_checksum(new))


def made(change: Change) -> ToolOutput:
    """Make the change, whole or not at all.

    Raises:
        FileAccessError: the file is not what is known of it any more, or cannot be written.
    """
    place = change.place
    with in_words(place, "write"), parent_of(place) as directory:
        replace(directory, place, change.new.encode(), known=change.known)
    path = legible(place.shown)
    found = difference(path, change.old, change.new)
    facts = Facts(kind="patch", path=path, lines=f"{found.first}-{found.last}")
    return ToolOutput(content=said(f"Changed {path!r}:\n{found.text(MOST_SHOWN)}"), facts=facts)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _identity(invocation: ToolInvocation) -> bytes:
    return msgspec.json.encode((str(invocation.root), invocation.arguments), order="sorted")

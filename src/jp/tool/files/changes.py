"""File tools' base, edits of texts, and changes of files, written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

from jp.conversation.entries import Facts, Question
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import Answer, ToolInvocation, ToolOutput
from jp.tool.files.access import (
    Content,
    FileAccess,
    FileAccessError,
    FileNames,
    ResolvedPath,
    legible,
    read_in,
    require_regular,
    status_of,
)

if TYPE_CHECKING:
    from regex import Pattern


REPLACING = Lock()
"""Held from the last look at a file to its replacement: other calls replace files too."""

_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create(directory: int, place: ResolvedPath, data: bytes) -> None:
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


def replace(directory: int, place: ResolvedPath, data: bytes, *, known: Content) -> None:
    """Replace a file, with its permissions and, if that is allowed, its owner.

    Raises:
        FileAccessError: it has changed since it was `known`; it stays as it is.
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


def put_over(source: int, name: str, target: int, place: ResolvedPath) -> None:
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


def access_of(invocation: ToolInvocation, names: FileNames) -> FileAccess:
    """Return what the call may reach."""
    return FileAccess(invocation.root, invocation.settings.access.fs, names)


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

    def __init__(self, names: FileNames) -> None:
        self._names = names

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            return await self.work(invocation)
        except FileAccessError as error:
            path = invocation.arguments[self.path_argument] if self.path_argument else None
            shown = legible(path) if isinstance(path, str) else None
            facts = Facts(kind=self.kind, path=shown, first_error=error.message)
            return ToolOutput(content=text_result(error.message), is_error=True, facts=facts)

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """Do what the call asks for.

        Raises:
            FileAccessError: it is refused, or fails.
        """
        raise NotImplementedError


def text_result(text: str) -> tuple[TextBlock, ...]:
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
        omitted = len(self.lines) - most
        return "\n".join([*self.lines[:most], f"… {omitted:,} more lines of the diff"])


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


_PLACES_SHOWN = 5
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))")


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement. `number` counts the edits of a call from 1."""

    number: int
    old: str
    new: str
    replace_all: bool = False

    def fail(self, why: str) -> FileAccessError:
        """Return what is wrong with it, in words for the model; nothing has been changed."""
        return FileAccessError(f"pattern {self.number}: {why}. Nothing was changed.")


class Match(msgspec.Struct, frozen=True):
    """A match of an expression: from `start` to before `end`, with the text of each group by number and name."""

    start: int
    end: int
    groups: Mapping[str, str | None]


def replaced_exactly(text: str, edit: Edit) -> tuple[str, int]:
    """Return `text` with the edit, and how often it applied.

    Raises:
        FileAccessError: `old` is not there, or more than once where only one is meant.
    """
    if not edit.old:
        raise edit.fail("'old' is empty")
    if edit.old == edit.new:
        raise edit.fail("'old' and 'new' are the same")
    count = text.count(edit.old)
    if count == 0:
        raise edit.fail(f"'old' is not in the file{_near(text, edit.old)}")
    if count > 1 and not edit.replace_all:
        places = _places(text, _found(text, edit.old))
        raise edit.fail(
            f"'old' is in the file {count} times, at {places}; make it longer, or say replace_all where all are meant"
        )
    return text.replace(edit.old, edit.new), count


def replaced_matches(text: str, edit: Edit, matches: Sequence[Match]) -> tuple[str, int]:
    """Return `text` with what matches the expression of the edit replaced, and how often.

    Raises:
        FileAccessError: nothing matches, more than one where only one is meant, or `new` refers to no group.
    """
    if not matches:
        raise edit.fail("the expression 'old' matches nothing in the file")
    if len(matches) > 1 and not edit.replace_all:
        places = _places(text, [match.start for match in matches])
        raise edit.fail(
            f"the expression 'old' matches {len(matches)} times, at {places}; "
            "make it narrower, or say replace_all where all are meant"
        )
    pieces: list[str] = []
    done = 0
    for match in matches:
        pieces += (text[done : match.start], _filled(edit, match.groups))
        done = match.end
    return "".join([*pieces, text[done:]]), len(matches)


def _filled(edit: Edit, groups: Mapping[str, str | None]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["braced"] or found["bare"]
        if name not in groups:
            raise edit.fail(f"'new' refers to ${{{name}}}, but 'old' has no such group; a dollar sign is written '$$'")
        return groups[name] or ""

    return _REFERENCE.sub(fill, edit.new)


def _found(text: str, old: str) -> list[int]:
    starts: list[int] = []
    start = text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    return starts


def _places(text: str, starts: Sequence[int]) -> str:
    shown = dict.fromkeys(str(text.count("\n", 0, start) + 1) for start in starts[:_PLACES_SHOWN])
    more = " and more" if len(starts) > _PLACES_SHOWN else ""
    return f"line {', '.join(shown)}{more}" if len(shown) == 1 and not more else f"lines {', '.join(shown)}{more}"


def _near(text: str, old: str) -> str:
    """Return where the file has `old` but for white space at the ends of its lines."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    lines = [line.strip() for line in text.split("\n")]
    for index, line in enumerate(lines):
        if line == wanted[0] and lines[index : index + len(wanted)] == wanted:
            return f"; line {index + 1} begins what differs from it in white space only"
    return ""


SECONDS = 20.0
"""Most seconds for one text."""

MOST_MATCHES = 20_000
"""Most matches of the expression of an edit."""

_LONGEST = 2_000
_MOST_EXPANDED = 1_000_000
"""Most characters of an expression times its counts: it is compiled with its repetitions written out."""

_SECS_WHOLE = 0.1
_LONGEST_LINE = 1_000_000
"""A line is searched up to here: on longer text, the time limit of `regex` is exceeded several times over."""

_ESCAPE_OR_BRACE = re.compile(
    r"(?P<escape>\\[pPN]\{[^{}]*\}|\\.)|\{(?P<count>(?P<least>\d+)(?:,\d*)?\}|,\d+\})?", re.DOTALL
)
_SEES_OTHER_LINES = re.compile(r"\((?:\*|\?(?!:|P?<\w|i\)))|[*+?}]\+|\\[AZzGK]")
"""Look-around, flags, atomic groups and anchors: whether they match depends on what is around a line."""


def compiled(pattern: str, *, by_line: bool = True, longest: int = _LONGEST) -> Pattern[str]:
    """Compile an expression of Python, with `^` and `$` at the ends of lines.

    Braces that are no count are text, as in `re`: in `regex` they would allow errors (`{e<=1}`).

    Raises:
        ValueError: it is malformed, too long, or repeats too much.
    """
    import regex

    if len(pattern) > longest:
        raise ValueError(f"it has more than {longest:,} characters")
    expanded = len(pattern)

    def with_plain_braces(found: re.Match[str]) -> str:
        nonlocal expanded
        expanded *= max(1, int((found["least"] or "1")[:9]))
        return found[0] if found["escape"] or found["count"] else r"\{"

    expression = _ESCAPE_OR_BRACE.sub(with_plain_braces, pattern)
    if expanded > _MOST_EXPANDED:
        raise ValueError("it repeats too much")
    try:
        return regex.compile(expression, regex.MULTILINE if by_line else 0)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


class LineMatcher:
    """Finds the lines of a text that match an expression, each line on its own."""

    def __init__(self, pattern: str) -> None:
        """Compile `pattern`.

        Raises:
            FileAccessError: it is empty or malformed, or spans lines.
        """
        if not pattern:
            raise FileAccessError("'pattern' is empty")
        outside_of_sets = re.sub(r"\\[^n]|\[[^\]]*\]", "", pattern)
        if "\n" in outside_of_sets or "\\n" in outside_of_sets:
            raise FileAccessError("'pattern' cannot be searched for: a line has no line feed")
        try:
            self._expression = compiled(pattern)
        except ValueError as error:
            raise FileAccessError(f"'pattern' cannot be searched for: {error}") from None
        self._can_skip = _SEES_OTHER_LINES.search(pattern) is None

    def lines(self, lines: Sequence[str], *, seconds: float = SECONDS) -> list[int]:
        """Return the numbers of the lines that match, counted from 1.

        Raises:
            FileAccessError: it takes more than `seconds`.
        """
        if self._can_skip and not self._may_match("\n".join(lines)):
            return []
        end = time.monotonic() + seconds
        try:
            return [number for number, line in enumerate(lines, 1) if self._matches(line, end)]
        except (TimeoutError, MemoryError) as error:
            raise _stopped(error, seconds) from None

    def _may_match(self, text: str) -> bool:
        """Return whether any line could match: one search of a text is faster than one of each line."""
        if len(text) > _LONGEST_LINE:
            return True
        try:
            return self._expression.search(text, timeout=_SECS_WHOLE, concurrent=True) is not None
        except (TimeoutError, MemoryError):
            return True

    def _matches(self, line: str, end: float) -> bool:
        found = self._expression.search(line, endpos=_LONGEST_LINE, timeout=_left(end), concurrent=True)
        return found is not None


def matches_of(edit: Edit, text: str, *, seconds: float = SECONDS) -> list[Match]:
    """Return the matches of `old` as an expression of Python in which `^` and `$` are the ends of lines.

    Raises:
        FileAccessError: it is malformed, matches too often, or takes more than `seconds`.
    """
    try:
        expression = compiled(edit.old)
    except ValueError as error:
        raise edit.fail(f"the expression 'old' is malformed: {error}") from None
    found: list[Match] = []
    end = time.monotonic() + seconds
    try:
        for match in expression.finditer(text, timeout=seconds, concurrent=True):
            _left(end)
            if len(found) == MOST_MATCHES:
                raise edit.fail(f"the expression 'old' matches more than {MOST_MATCHES:,} times")
            numbered = {str(number): match[number] for number in range(expression.groups + 1)}
            found.append(Match(match.start(), match.end(), {**numbered, **match.groupdict()}))
    except (TimeoutError, MemoryError) as error:
        raise _stopped(error, seconds) from None
    return found


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _stopped(error: TimeoutError | MemoryError, seconds: float) -> FileAccessError:
    cost = f"longer than {seconds:g} seconds" if isinstance(error, TimeoutError) else "too much memory"
    return FileAccessError(f"the expression took {cost}, so it was stopped; make it simpler")

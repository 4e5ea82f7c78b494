"""`fs_grep_files`."""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, said, territory_of
from jp.tool.files.opening import Start, Walks, legible, mode_of, read_whole
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import FileAccessError, Place, Territory

MOST_SHOWN = 200
"""So many matching lines are shown."""

MOST_COUNTED = 5_000
"""A search ends where it has found more."""

MOST_LINES = 600
"""Beyond so many lines, matches are shown without their context."""

LONGEST = 400
"""So many characters of a line are shown."""


class SearchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text, each line with a line feed at its end, and how many lines there are."""

    shown: str
    text: str
    lines: int

    @classmethod
    def of(cls, shown: str, raw: str) -> SearchedFile:
        """The file whose content is `raw`: byte order mark and carriage returns at line ends are not searched."""
        text = raw.removeprefix("\ufeff")
        if text and not text.endswith("\n"):
            text += "\n"
        text = text.replace("\r\n", "\n")
        return cls(shown=shown, text=text, lines=text.count("\n"))


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a file, by number which of them match, and those of these that are shown. Numbers count from 1."""

    shown: str
    lines: list[str]
    matching: frozenset[int]
    numbers: list[int]


class SearchReport:
    """What is found, gathered."""

    def __init__(self, *, context: int) -> None:
        self._context = context
        self._found: list[_Found] = []
        self._left_out = 0
        self._shown = 0
        self.count = 0
        """How many lines match."""

    def leave_out(self) -> None:
        """Count a file that is too large, not UTF-8 or not readable."""
        self._left_out += 1

    def add(self, files: Sequence[SearchedFile], numbers: Sequence[int]) -> None:
        """Take in which lines match. `numbers` count through all of the files from 1, and are sorted."""
        ends = list(accumulate(file.lines for file in files))
        by_file: dict[int, list[int]] = {}
        for number in numbers:
            index = bisect_right(ends, number - 1)
            by_file.setdefault(index, []).append(number - (ends[index] - files[index].lines))
        for index, found in by_file.items():
            self._add(files[index], found)

    def _add(self, file: SearchedFile, numbers: list[int]) -> None:
        self.count += len(numbers)
        some = numbers[: MOST_SHOWN - self._shown]
        if some:
            self._shown += len(some)
            lines = file.text.split("\n")
            self._found.append(_Found(shown=file.shown, lines=lines[:-1], matching=frozenset(numbers), numbers=some))

    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._lines(), *self._notes()])

    def _lines(self) -> list[str]:
        groups = [group for found in self._found for group in _groups(found, self._context)]
        if self._context == 0:
            return [line for group in groups for line in group]
        if sum(map(len, groups)) > MOST_LINES:
            return [line for found in self._found for group in _groups(found, 0) for line in group]
        return [line for index, group in enumerate(groups) for line in (["--", *group] if index else group)]

    def _notes(self) -> Iterator[str]:
        if self.count == 0:
            yield "No matches found."
        if self.count > self._shown:
            more = "more than " if self.count > MOST_COUNTED else ""
            count = MOST_COUNTED if more else self.count
            yield f"… the first {self._shown} of {more}{count:,} matching lines; narrow the pattern or the paths"
        if self._is_without_context:
            yield "… shown without context, because there is much of it"
        if self._left_out:
            yield f"… {self._left_out:,} files were not searched: too large, not UTF-8, or not readable"

    @property
    def _is_without_context(self) -> bool:
        return sum(len(group) for found in self._found for group in _groups(found, self._context)) > MOST_LINES


def _groups(found: _Found, context: int) -> Iterator[list[str]]:
    """The matching lines, of which there is one at least, with those around them, adjoining ones together."""
    group: list[str] = []
    last = 0
    for number in found.numbers:
        start = max(1, number - context)
        if group and start > last + 1:
            yield group
            group = []
        stop = min(len(found.lines), number + context)
        for line in range(max(start, last + 1), stop + 1):
            sign = ":" if line in found.matching else "-"
            group.append(f"{found.shown}{sign}{line}{sign}{_cut(found.lines[line - 1])}")
        last = stop
    yield group


def _cut(line: str) -> str:
    more = len(line) - LONGEST
    return line if more <= 0 else f"{line[:LONGEST]} [… {more:,} more characters]"


def installed_ripgrep() -> str | None:
    """The path of ripgrep, if it is installed; a directory of PATH that is relative does not count."""
    for directory in os.get_exec_path():
        program = os.path.join(directory, "rg")  # noqa: PTH118  a plain name
        if directory.startswith("/") and os.access(program, os.X_OK):
            return program
    return None


MOST_CONTEXT = 20
_AT_ONCE = 8 * 1024 * 1024
"""How many characters are searched at once."""

_DEFINITION = ToolDefinition(
    name="fs_grep_files",
    description=(
        "Search the text files of the workspace line by line for a regular expression. Results are lines such as "
        "'path:12:text', with context also 'path-11-text'. Files that ignore files such as .gitignore name, and hidden "
        "ones, are only searched where 'paths' names them."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "description": (
                    "The expression: as for ripgrep, without look-around and backreferences. '(?i)' in front ignores "
                    "case."
                ),
            },
            "context": {
                "type": "integer",
                "description": f"So many lines before and after each match; 0 by default, at most {MOST_CONTEXT}.",
            },
            "paths": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Files and directories to search. None: the workspace.",
            },
            "extensions": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Of directories, only files with these extensions, such as 'py'. None: all.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


class GrepFiles:
    """Matching lines as text: what was found is no content of its own that could be named by a URI and read again.

    `ripgrep` says where it is installed; what is found does not depend on that.
    """

    def __init__(
        self, surroundings: FileSurroundings, *, ripgrep: Callable[[], str | None] = installed_ripgrep
    ) -> None:
        self._surroundings = surroundings
        self._ripgrep = ripgrep

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    @property
    def reads_only(self) -> bool:
        """True: see `jp.tool.base.ReadsOnly`."""
        return True

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            return await self._searched(invocation)
        except FileAccessError as error:
            return failed(error, "search")

    async def _searched(self, invocation: ToolInvocation) -> ToolOutput:
        arguments = invocation.arguments
        context = int(arguments.get("context", 0))
        if context < 0:
            raise FileAccessError(f"context is {context}, but it is a number of lines")
        from jp.tool.files.edits import LineMatcher
        from jp.tool.files.search_dialect import expression_of

        matcher = LineMatcher(expression_of(str(arguments["pattern"])), ripgrep=self._ripgrep())
        report = SearchReport(context=min(context, MOST_CONTEXT))
        portions = _Portions(invocation, self._surroundings, report)
        searched = 0
        while report.count <= MOST_COUNTED and (files := await in_thread(portions.next)):
            searched += len(files)
            invocation.progress(f"{searched:,} files searched")
            report.add(files, await matcher.lines("".join(file.text for file in files)))
        paths = arguments.get("paths", ())
        path = legible(str(paths[0])) if len(paths) == 1 else None
        return ToolOutput(content=said(report.text()), facts=Facts(kind="search", path=path, matches=report.count))


class _Portions:
    """The files to be searched, as many at once as are worth a process."""

    def __init__(self, invocation: ToolInvocation, surroundings: FileSurroundings, report: SearchReport) -> None:
        self._invocation = invocation
        self._surroundings = surroundings
        self._report = report
        self._places = self._found()

    def next(self) -> list[SearchedFile]:
        """The next ones; none at the end."""
        files: list[SearchedFile] = []
        size = 0
        while size < _AT_ONCE and (place := next(self._places, None)) is not None:
            file = self._read(place)
            if file is not None:
                files.append(file)
                size += len(file.text)
        return files

    def _found(self) -> Iterator[Place]:
        arguments = self._invocation.arguments
        extensions = frozenset(str(extension).removeprefix(".") for extension in arguments.get("extensions", ()))
        territory = territory_of(self._invocation, self._surroundings)
        walks = Walks(territory, self._surroundings, extensions)
        seen: set[str] = set()
        for written in arguments.get("paths", ()) or ["."]:
            for place in _of_path(str(written), territory, walks):
                if place.path not in seen:
                    seen.add(place.path)
                    yield place

    def _read(self, place: Place) -> SearchedFile | None:
        try:
            data = read_whole(place).data
        except FileAccessError:
            self._report.leave_out()
            return None
        if b"\0" in data:
            return None
        try:
            return SearchedFile.of(legible(place.shown), data.decode())
        except UnicodeDecodeError:
            self._report.leave_out()
            return None


def _of_path(written: str, territory: Territory, walks: Walks) -> Iterator[Place]:
    place = territory.place(written, "walk")
    mode = mode_of(place)
    if mode is None:
        globs = "; globs are not read, but 'extensions' are" if "*" in written else ""
        raise FileAccessError(f"there is no file {written!r}{globs}")
    if stat.S_ISDIR(mode):
        yield from walks.files(Start(place=place))
    elif stat.S_ISREG(mode):
        yield territory.place(written, "read")
    else:
        raise FileAccessError(f"{written!r} is not a regular file")

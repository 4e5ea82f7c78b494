"""`fs_read_file`, `fs_list_files` and `fs_grep_files`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from jp.conversation.entries import Facts, JsonObject
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.access import (
    FileAccess,
    FileAccessError,
    FileNames,
    FileWalker,
    ResolvedPath,
    WalkStart,
    legible,
    mode_of,
    read_whole,
    text_of,
)
from jp.tool.files.changes import FileTool, LineMatcher, access_of, in_thread, text_result

_READ_FILE = ToolDefinition(
    name="fs_read_file",
    description=(
        "Read a text file of the workspace, or some of its lines. Lines count from 1; start_line and end_line are "
        "both included and optional."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
            "start_line": {"type": "integer", "description": "The first line."},
            "end_line": {"type": "integer", "description": "The last line; past the end of the file means its end."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadFile(FileTool):
    """A text file as a `resource` block; a part of it has a fragment such as `#L10-200`."""

    definition = _READ_FILE
    reads_only = True
    kind = "read"

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        return await in_thread(_read, invocation, self._names)


def _read(invocation: ToolInvocation, names: FileNames) -> ToolOutput:
    arguments = invocation.arguments
    place = access_of(invocation, names).place(str(arguments["path"]), "read")
    text = text_of(read_whole(place).data, place.written)
    uri = names.uri(place.path)
    total, lines = text.count("\n") + bool(text and not text.endswith("\n")), None
    if "start_line" in arguments or "end_line" in arguments:
        text, lines = _selected(text, arguments, place.written)
        uri = f"{uri}#L{lines}"
    resource = Resource(uri=uri, mime_type=names.mime_type(place.path), text=text)
    facts = Facts(kind="read", path=legible(place.shown), lines=lines, total_lines=total)
    return ToolOutput(content=(ResourceBlock(resource=resource),), facts=facts)


def _selected(text: str, arguments: JsonObject, written: str) -> tuple[str, str]:
    """Return the lines that `arguments` ask for, and their range such as `10-200`.

    A line ends with a line feed, as in an editor: a last one opens no further line.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    start = int(arguments.get("start_line", 1))
    end = int(arguments.get("end_line", len(lines)))
    if start < 1:
        raise FileAccessError(f"start_line is {start}, but lines count from 1")
    if start > len(lines):
        raise FileAccessError(f"start_line is {start}, but {written!r} has {len(lines)} lines")
    if end < start:
        raise FileAccessError(f"end_line is {end}, before start_line {start}")
    last = min(end, len(lines))
    ended = last < len(lines) or text.endswith("\n")
    return "\n".join(lines[start - 1 : last]) + ("\n" if ended else ""), f"{start}-{last}"


MOST_LISTED = 1_000
"""So many paths are listed; of the others it is said how many there are."""

_NO_GLOBS = " Globs are not read: give a directory as a prefix, and extensions."

_LIST_FILES = ToolDefinition(
    name="fs_list_files",
    description=(
        "List the files of the workspace, one path a line. Files that ignore files such as .gitignore name, and hidden "
        "ones, are omitted unless a prefix names them."
    ),
    parameters={
        "type": "object",
        "properties": {
            "prefixes": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Directories such as 'src/', or beginnings of paths such as 'src/test_'. None: all.",
            },
            "extensions": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Extensions of file names, such as 'py'. None: all.",
            },
        },
        "additionalProperties": False,
    },
)


class ListFiles(FileTool):
    """Paths as text: a list has no content of its own that could be named by a URI and read again."""

    definition = _LIST_FILES
    reads_only = True
    kind = "list"
    path_argument = None

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        return await in_thread(_listed, invocation, self._names)


def _listed(invocation: ToolInvocation, names: FileNames) -> ToolOutput:
    arguments = invocation.arguments
    prefixes = [str(prefix) for prefix in arguments.get("prefixes", ())]
    extensions = frozenset(str(extension).removeprefix(".") for extension in arguments.get("extensions", ()))
    access = access_of(invocation, names)
    walks = FileWalker(access, names, extensions)
    found = {place.path: place for prefix in prefixes or ["."] for place in _of_prefix(prefix, access, walks)}
    paths = [legible(found[path].shown) for path in sorted(found, key=lambda path: path.split("/"))]
    facts = Facts(kind="list", path=legible(prefixes[0]) if len(prefixes) == 1 else None, matches=len(paths))
    return ToolOutput(content=text_result(_text(paths, prefixes)), facts=facts)


def _of_prefix(prefix: str, access: FileAccess, walks: FileWalker) -> Iterator[ResolvedPath]:
    place = access.place(prefix, "walk")
    mode = mode_of(place)
    if mode is None:
        directory, beginning = os.path.split(prefix)
        above = access.place(directory or ".", "walk")
        if beginning and mode_of(above) is not None:
            yield from walks.files(WalkStart(place=above, beginning=beginning))
    elif stat.S_ISDIR(mode):
        yield from walks.files(WalkStart(place=place))
    elif stat.S_ISREG(mode) and walks.has_ending(place.path):
        yield access.place(prefix, "read")


def _text(paths: list[str], prefixes: list[str]) -> str:
    if not paths:
        return "No files found." + (_NO_GLOBS if any("*" in prefix for prefix in prefixes) else "")
    more = len(paths) - MOST_LISTED
    note = [f"… and {more:,} more files; narrow it with prefixes or extensions"] if more > 0 else []
    return "\n".join([*paths[:MOST_LISTED], *note])


MOST_SHOWN = 200
"""So many matching lines are shown."""

MOST_COUNTED = 5_000
"""A search ends where it has found more."""

MOST_LINES = 600
"""Beyond so many lines, matches are shown without their context."""

LONGEST = 400
"""So many characters of a line are shown."""


def lines_of(raw: str) -> list[str]:
    """Return the lines of a file, without the byte order mark and without carriage returns at their ends."""
    lines = raw.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A file's lines, the numbers of those that match, and of those that are shown. Numbers count from 1."""

    path: str
    lines: Sequence[str]
    matching: frozenset[int]
    numbers: Sequence[int]


class SearchReport:
    """The matches of a search and their text."""

    def __init__(self, *, context: int) -> None:
        self._context = context
        self._found: list[_Found] = []
        self._omitted = 0
        self._shown = 0
        self.count = 0
        """Number of lines that match."""

    def leave_out(self) -> None:
        """Count a file that is too large, not UTF-8 or not readable."""
        self._omitted += 1

    def add(self, path: str, lines: Sequence[str], numbers: Sequence[int]) -> None:
        """Add a file whose lines with these numbers match, in ascending order."""
        self.count += len(numbers)
        some = numbers[: MOST_SHOWN - self._shown]
        if some:
            self._shown += len(some)
            self._found.append(_Found(path=path, lines=lines, matching=frozenset(numbers), numbers=some))

    def text(self) -> str:
        """Return all of it."""
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
        if self._omitted:
            yield f"… {self._omitted:,} files were not searched: too large, not UTF-8, or not readable"

    @property
    def _is_without_context(self) -> bool:
        return sum(len(group) for found in self._found for group in _groups(found, self._context)) > MOST_LINES


def _groups(found: _Found, context: int) -> Iterator[list[str]]:
    """Yield the matching lines, of which there is one at least, with those around them, adjoining ones together."""
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
            group.append(f"{found.path}{sign}{line}{sign}{_cut(found.lines[line - 1])}")
        last = stop
    yield group


def _cut(line: str) -> str:
    more = len(line) - LONGEST
    return line if more <= 0 else f"{line[:LONGEST]} [… {more:,} more characters]"


MOST_CONTEXT = 20
_FILES_AT_ONCE = 256
"""Files between two reports of progress."""

_GREP_FILES = ToolDefinition(
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
                "description": "The expression, as in Python. '(?i)' in front ignores case.",
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


class GrepFiles(FileTool):
    """Returns matching lines as text: a search has no URI under which it could be read again."""

    definition = _GREP_FILES
    reads_only = True
    kind = "search"
    path_argument = None

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        arguments = invocation.arguments
        context = int(arguments.get("context", 0))
        if context < 0:
            raise FileAccessError(f"context is {context}, but it is a number of lines")
        report = SearchReport(context=min(context, MOST_CONTEXT))
        search = _Search(invocation, self._names, report, LineMatcher(str(arguments["pattern"])))
        while await in_thread(search.go_on):
            invocation.progress(f"{search.searched:,} files searched")
        paths = arguments.get("paths", ())
        path = legible(str(paths[0])) if len(paths) == 1 else None
        return ToolOutput(
            content=text_result(report.text()), facts=Facts(kind="search", path=path, matches=report.count)
        )


class _Search:
    """One search, which stops after some files so that it can report and be canceled."""

    def __init__(
        self, invocation: ToolInvocation, names: FileNames, report: SearchReport, matcher: LineMatcher
    ) -> None:
        self.searched = 0
        self._invocation = invocation
        self._names = names
        self._report = report
        self._matcher = matcher
        self._places = self._found()

    def go_on(self) -> bool:
        """Search the next files; return whether there may be more."""
        places = list(islice(self._places, _FILES_AT_ONCE))
        for place in places:
            if self._report.count <= MOST_COUNTED:
                self._add(place)
        return bool(places) and self._report.count <= MOST_COUNTED

    def _found(self) -> Iterator[ResolvedPath]:
        arguments = self._invocation.arguments
        extensions = frozenset(str(extension).removeprefix(".") for extension in arguments.get("extensions", ()))
        access = access_of(self._invocation, self._names)
        walks = FileWalker(access, self._names, extensions)
        seen: set[str] = set()
        for written in arguments.get("paths", ()) or ["."]:
            for place in _of_path(str(written), access, walks):
                if place.path not in seen:
                    seen.add(place.path)
                    yield place

    def _add(self, place: ResolvedPath) -> None:
        try:
            data = read_whole(place).data
            if b"\0" in data:
                return
            lines = lines_of(data.decode())
        except (FileAccessError, UnicodeDecodeError):
            self._report.leave_out()
            return
        self.searched += 1
        self._report.add(legible(place.shown), lines, self._matcher.lines(lines))


def _of_path(written: str, access: FileAccess, walks: FileWalker) -> Iterator[ResolvedPath]:
    place = access.place(written, "walk")
    mode = mode_of(place)
    if mode is None:
        globs = "; globs are not read, but 'extensions' are" if "*" in written else ""
        raise FileAccessError(f"there is no file {written!r}{globs}")
    if stat.S_ISDIR(mode):
        yield from walks.files(WalkStart(place=place))
    elif stat.S_ISREG(mode):
        yield access.place(written, "read")
    else:
        raise FileAccessError(f"{written!r} is not a regular file")


TOOLS: Mapping[str, type[FileTool]] = {tool.definition.name: tool for tool in (ReadFile, ListFiles, GrepFiles)}

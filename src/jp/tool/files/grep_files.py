"""`fs_grep_files`."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, said, territory_of
from jp.tool.files.errors import FileAccessError
from jp.tool.files.installed import installed_ripgrep
from jp.tool.files.opening import legible, mode_of, read_whole
from jp.tool.files.search_report import MOST_COUNTED, SearchedFile, SearchReport
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import Place, Territory
from jp.tool.files.walking import Start, Walks

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
        from jp.tool.files.matching import LineMatcher
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

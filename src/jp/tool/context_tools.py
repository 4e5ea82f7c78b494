"""`recall`, `search_history`, `refresh_resource` and `describe_tools`: tools that read the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from jp.config.entries import ParameterConfig, ToolConfig
from jp.context.markers import checksum_of
from jp.conversation.entries import AnyEntry, ChatRequest, Facts, JsonObject
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.conversation.turns import turns_of, undone
from jp.errors import JpError
from jp.tool.base import ConfiguredTool, Stream, Toolbox, ToolInvocation, ToolOutput, error_output
from jp.tool.delivery import BOUND
from jp.tool.toolbox import RECALL, REFRESH, SEARCH

_RECALL_NOTE = 120
"""Most bytes of the note below a page."""

_SMALLEST_PAGE = 256

_RECALL = ToolDefinition(
    name=RECALL,
    description=(
        "Read content that was removed from this conversation to save room. Where text was cut there is "
        "[[cut:…:HANDLE:+CHARACTERS]] from offset BYTES; the line in place of an old result or argument says "
        "recall HANDLE. search_history finds handles by words. "
        "It gives one page of the original and the offset of the next one."
    ),
    parameters={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle as it is written there, such as 0123abcd."},
            "offset": {"type": "integer", "description": "The byte to begin at; without it, at the beginning."},
            "lines": {"type": "integer", "description": "At most so many lines; without it, as many as fit."},
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
)

_WHERE = "A handle is in [[cut:…:HANDLE:+CHARACTERS]], or after the word recall in the line in place of an old result."


class HandleError(JpError):
    """A handle names nothing in this conversation, or several things."""


class FoundContent(msgspec.Struct, frozen=True, kw_only=True):
    """The original that a handle names. `uri` and `mime_type` are set if the log has them."""

    handle: str
    sha256: str
    data: bytes
    is_text: bool
    uri: str | None = None
    mime_type: str | None = None

    @property
    def kind(self) -> str:
        """Return what content that is no text is called."""
        return f"binary content ({self.mime_type or 'of unknown type'})"


class Contents(Protocol):
    """Finds contents by their handles."""

    def find(self, handle: str, stream: Stream) -> FoundContent:
        """Return what `handle` names in `stream`, and nowhere else.

        Raises:
            HandleError: it names nothing, or several contents; in words for the model.
            StorageError: the content cannot be read.
        """
        ...


class Recall:
    """The tool. A page fits into the tool's own bound with what is said of it, so that it is never cut itself.

    It is text, whatever it is a page of: a part of a resource is no delivery of the resource.
    """

    definition = _RECALL
    in_pages: Literal[True] = True

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Read it in a thread of its own: the disk may hang."""
        from anyio.to_thread import run_sync

        wanted = _handle_in(str(invocation.arguments["handle"]))
        try:
            found = await run_sync(self._contents.find, wanted, invocation.stream, abandon_on_cancel=True)
        except HandleError as error:
            return error_output(f"{error.message}. {_WHERE}")
        return _page(found, invocation)


def _handle_in(text: str) -> str:
    """Return the handle that `text` is, or has in it where it is a whole marker."""
    marked = re.search(r"\[\[cut:[^:\]]*:([0-9a-f]+):", text)
    return text if marked is None else marked[1]


def _page(found: FoundContent, invocation: ToolInvocation) -> ToolOutput:
    from jp.context.markers import page_of_text

    offset, lines = invocation.arguments.get("offset", 0), invocation.arguments.get("lines")
    size = len(found.data)
    if not found.is_text:
        told = f"`{found.handle}` is {found.kind} of {size} bytes, which is no text"
        return error_output(f"{told}: the user can see it with `jp conversation recall {found.handle}`.")
    if not 0 <= offset < max(size, 1):
        return error_output(f"offset is {offset}, but `{found.handle}` has {size} bytes, counted from 0.")
    if lines is not None and lines < 1:
        return error_output(f"lines is {lines}, but a page has at least 1.")
    limit = max((invocation.settings.max_bytes or BOUND) - _RECALL_NOTE, _SMALLEST_PAGE)
    page = page_of_text(found.data, int(offset), lines=None if lines is None else int(lines), most=limit)
    end = page.offset + len(page.data)
    more = "this is the end" if page.next_offset is None else f"go on with offset {page.next_offset}"
    text = page.data.decode("utf-8", "replace")
    note = f"[bytes {page.offset} to {end} of {size} of {found.handle}; {more}]"
    return ToolOutput(
        content=(TextBlock(text=text), TextBlock(text=note)) if text else (TextBlock(text=note),),
        facts=Facts(kind="read", path=found.uri),
    )


_EXCERPTS = 5
_MOST_EXCERPTS = 20
_HISTORY_NOTE = 160
"""Bytes that the note below the excerpts takes at most."""

_HEADING = 160
"""Bytes that what is said above an excerpt takes besides what describes the content."""

_SMALLEST_TEXT = 120
_ABOUT_SHARE = 3
"""Share of an excerpt's room (one part in so many) for the description of its content."""

_SEARCH_HISTORY = ToolDefinition(
    name=SEARCH,
    description=(
        "Search this conversation, also what is hidden by now. Gives the best excerpts of messages, results, arguments "
        "and attachments, each with a handle and an offset from which recall reads on. Secrets are redacted."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words of the text: names, paths, parts of an error."},
            "limit": {"type": "integer", "description": f"Excerpts at most; without it, {_EXCERPTS}."},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)


class FoundPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and where: from byte `offset` on of the content with this `handle`."""

    handle: str
    turn: int
    about: str
    offset: int
    size: int
    text: str


class History(Protocol):
    """Finds passages of a conversation by words."""

    def search(self, query: str, limit: int, stream: Stream) -> Sequence[FoundPassage]:
        """Return at most `limit` passages of `stream`, the best first. Any text is a query."""
        ...


class SearchHistory:
    """The tool. Its excerpts fit into the tool's own bound, so that none is cut."""

    definition = _SEARCH_HISTORY
    in_pages: Literal[True] = True

    def __init__(self, history: History) -> None:
        self._history = history

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Search in a thread, because the disk may hang."""
        from anyio.to_thread import run_sync

        from jp.context.search import words_of

        query, limit = str(invocation.arguments["query"]), int(invocation.arguments.get("limit", _EXCERPTS))
        if not 1 <= limit <= _MOST_EXCERPTS:
            return error_output(f"limit is {limit}, but can be 1 to {_MOST_EXCERPTS}.")
        words = words_of(query)
        if not words:
            return error_output("The query has no word: write words that stand in the text.")
        found = await run_sync(self._history.search, query, limit, invocation.stream, abandon_on_cancel=True)
        if not found:
            text = "Nothing in this conversation has any of these words. Try other words, or parts of names."
            return ToolOutput(content=(TextBlock(text=text),), facts=Facts(kind="search", matches=0))
        shown = _excerpts(found, words, invocation.settings.max_bytes or BOUND)
        more = f"; other words or limit (at most {_MOST_EXCERPTS}) give others" if len(found) == limit else ""
        note = f"[{len(shown)} excerpts; recall with a handle and its offset reads on{more}]"
        return ToolOutput(
            content=(TextBlock(text="\n\n".join((*shown, note))),), facts=Facts(kind="search", matches=len(found))
        )


def _excerpts(found: Sequence[FoundPassage], words: Sequence[str], bound: int) -> list[str]:
    """Return as many excerpts as fit; each gets the same room, and what a short one leaves, the ones after it."""
    from jp.context.search import window

    left = bound - _HISTORY_NOTE
    shown: list[str] = []
    for position, one in enumerate(found):
        room = left // (len(found) - position) - _HEADING
        if room < _SMALLEST_TEXT and shown:
            break
        about = window(one.about, (), max(room, _SMALLEST_TEXT) // _ABOUT_SHARE)
        text = window(one.text, words, max(room - len(about.encode()), _SMALLEST_TEXT))
        where = f"recall {one.handle} offset {one.offset} of {one.size} bytes"
        shown.append(f"[turn {one.turn}; {about}; {where}]\n{text}")
        left -= len(shown[-1].encode()) + 2
    return shown


_CONTEXT = 3
_MOST_LINES = 20_000
"""Between the first and the last change: comparing more takes seconds."""

_SHARE = 2
"""A diff has less than one part in so many of the content."""

_DIGITS = 12
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a resource, and its place in words for a model."""

    text: str
    place: str


def short_diff(uri: str, before: Version, after: Version) -> str | None:
    """Return the diff from `before` to `after` with both checksums; None if it is longer than half of `after`."""
    old, new = _lines(before.text), _lines(after.text)
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    skipped = max(start - _CONTEXT, 0)
    kept = max(end - _CONTEXT, 0)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    if max(len(old), len(new)) > _MOST_LINES:
        return None
    head = f"{uri} has changed since {before.place}. What is different now:\n"
    text = "".join([head, _named("---", before), _named("+++", after), *_hunks(old, new, skipped)])
    return text if len(text.encode()) * _SHARE < len(after.text.encode()) else None


def _named(sign: str, version: Version) -> str:
    return f"{sign} {version.place} (checksum: sha256:{checksum_of(version.text)[:_DIGITS]})\n"


def _lines(text: str) -> list[str]:
    """Return the lines of `text`, each with its line feed, where it has one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning."""
    shorter = min(len(old), len(new))
    return next((number for number in range(shorter) if old[number] != new[number]), shorter)


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    """Yield the hunks between two texts without their first `skipped` lines."""
    from difflib import unified_diff

    for line in list(unified_diff(old, new, n=_CONTEXT))[2:]:
        text = _HUNK.sub(lambda found: _moved(found, skipped), line) if line.startswith("@@") else line
        yield text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _moved(found: re.Match[str], skipped: int) -> str:
    first, second = int(found[1]) + skipped, int(found[3]) + skipped
    return f"@@ -{first}{found[2] or ''} +{second}{found[4] or ''} @@"


_MOST_NAMED = 20

_REFRESH_RESOURCE = ToolDefinition(
    name=REFRESH,
    description=(
        "Read an attachment again. Attachments are as they were when the user attached them; use this where one may "
        "have changed since, for example after you have modified the file. It gives the content, or what has changed, "
        "or says that nothing has."
    ),
    parameters={
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The URI of the attachment, exactly as it is written there."}
        },
        "required": ["uri"],
        "additionalProperties": False,
    },
)


class KnownCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that the model can read whole: its text, the entry that delivered it, and where it stands."""

    text: str
    entry: str
    place: str


class Attachments(Protocol):
    """Reads attachments, and knows what the model can see of them."""

    async def resolve(self, uri: str, stream: Stream) -> Resource:
        """Return what `uri`, attached in `stream`, holds now: confined, bounded and trusted as when it was attached.

        Raises:
            JpError: it cannot be read, or must not be.
        """
        ...

    def newest_copy(self, uri: str, stream: Stream) -> KnownCopy | None:
        """Return the newest copy that the model can see; None where there is none, or where it is no text or was cut.

        Raises:
            StorageError: it cannot be read.
        """
        ...


class RefreshResource:
    """The tool. Only attachments of this conversation can be read with it."""

    definition = _REFRESH_RESOURCE

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Read it, and compare it with what the model can see. That, and the disk, may take their time."""
        from anyio.to_thread import run_sync

        uri, stream = str(invocation.arguments["uri"]), invocation.stream
        known = attached_uris(stream.entries)
        if uri not in known:
            return error_output(_not_attached(uri, known))
        resource = await self._attachments.resolve(uri, stream)
        limit = invocation.settings.max_bytes or BOUND
        shown = await run_sync(_shown, resource, self._attachments, stream, limit, abandon_on_cancel=True)
        facts = _facts(resource, uri)
        return ToolOutput(content=(ResourceBlock(resource=shown),), facts=facts)


def _facts(resource: Resource, uri: str) -> Facts:
    if uri.startswith(("http://", "https://")):
        return Facts(kind="web", url=uri, title=resource.title)
    return Facts(kind="read", path=resource.name or uri, title=resource.title)


def attached_uris(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return the URIs of everything that was attached and not undone; the newest last."""
    gone = undone(entries)
    requests = [
        entry
        for turn in turns_of(entries)
        if turn.id not in gone
        for entry in turn.entries
        if isinstance(entry, ChatRequest)
    ]
    uris = [resource.uri for request in requests for resource in request.resources]
    return tuple(dict.fromkeys(reversed(uris)))[::-1]


def _not_attached(uri: str, known: Sequence[str]) -> str:
    if not known:
        return "Nothing is attached to this conversation."
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    named = ", ".join(reversed(known[-_MOST_NAMED:]))
    return f"{uri!r} is not attached to this conversation. These are: {named}{more}."


def _shown(resource: Resource, attachments: Attachments, stream: Stream, limit: int) -> Resource:
    """Return `resource` as a diff against the newest copy, where that is short and fits into `limit` bytes."""
    copy = None if resource.text is None else attachments.newest_copy(resource.uri, stream)
    if copy is None or resource.text is None or copy.text == resource.text:
        return resource
    before = Version(text=copy.text, place=copy.place)
    after = Version(text=resource.text, place="now")
    diff = short_diff(resource.uri, before, after)
    if diff is None or len(diff.encode()) > limit:
        return resource
    return replace(resource, formatted=diff, formatted_against=copy.entry)


NAME = "describe_tools"

_DESCRIBE_TOOLS = ToolDefinition(
    name=NAME,
    description=(
        "Read more about tools before you use them: their full description, examples, and what their parameters mean. "
        "Also where a call was refused because its arguments did not fit."
    ),
    parameters={
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The names of the tools, such as those of a request.",
            }
        },
        "required": ["tools"],
        "additionalProperties": False,
    },
)


class DescribeTools:
    """The tool. `toolbox` gives the tools that the model is offered."""

    definition = _DESCRIBE_TOOLS

    def __init__(self, toolbox: Callable[[], Toolbox]) -> None:
        self._toolbox = toolbox

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port. The result lists unknown names; it is an error only if no name is known."""
        toolbox = self._toolbox()
        names = list(dict.fromkeys(map(str, invocation.arguments["tools"])))
        known = [name for name in names if name in toolbox]
        parts = [description_of(toolbox[name]) for name in known]
        missing = [name for name in names if name not in toolbox]
        if missing or not names:
            parts.append(_missing(missing, toolbox))
        return ToolOutput(content=(TextBlock(text="\n\n".join(parts)),), is_error=not known)


def has_more_to_say(configured: ConfiguredTool) -> bool:
    """Return whether there is more to say of a tool than its definition does."""
    settings = configured.settings
    parameters = settings.parameters.values()
    return bool(_more(settings) or any(map(_more, parameters)))


def _more(said: ToolConfig | ParameterConfig) -> str | None:
    # Where there is no summary, the definition has the description.
    return said.examples or (said.description if said.summary else None)


def description_of(configured: ConfiguredTool) -> str:
    """Return all that there is to say of a tool, as Markdown."""
    definition, settings = configured.tool.definition, configured.settings
    paragraphs = [f"# {definition.name}"]
    for text in (definition.description, settings.description, settings.examples and f"Examples:\n{settings.examples}"):
        if text and text.strip() not in paragraphs:
            paragraphs.append(text.strip())
    parameters = "\n".join(_parameters(definition.parameters, settings))
    paragraphs.append(f"Parameters:\n{parameters}" if parameters else "It takes no parameters.")
    return "\n\n".join(paragraphs)


def _parameters(schema: JsonObject, settings: ToolConfig) -> Iterator[str]:
    properties: dict[str, JsonObject] = schema.get("properties", {})
    for name, declared in properties.items():
        kind = "required" if name in schema.get("required", ()) else "optional"
        more = settings.parameters.get(name, ParameterConfig())
        yield f"- `{name}` ({_type_of(declared)}, {kind}){_colon(declared, more)}"


def _type_of(declared: JsonObject) -> str:
    types = declared.get("type", "any")
    return types if isinstance(types, str) else " or ".join(map(str, types))


def _colon(declared: JsonObject, more: ParameterConfig) -> str:
    said = [declared.get("description"), more.description, more.examples and f"Examples: {more.examples}"]
    texts = list(dict.fromkeys(str(text).strip() for text in said if text))
    return f": {' '.join(texts)}" if texts else ""


def _missing(names: list[str], toolbox: Toolbox) -> str:
    there = ", ".join(name for name in sorted(toolbox) if name != NAME) or "none"
    said = "".join(f"There is no tool {name!r}. " for name in names)
    return f"{said}The tools are: {there}."

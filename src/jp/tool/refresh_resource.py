"""`refresh_resource`: what an attachment holds now, as a diff where that is shorter (RFD 065)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from jp.context.markers import checksum_of
from jp.conversation.entries import AnyEntry, ChatRequest, Facts
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolDefinition
from jp.conversation.turns import turns_of, undone
from jp.tool.base import Stream, ToolInvocation, ToolOutput, error_output
from jp.tool.bounding import BOUND
from jp.tool.toolbox import REFRESH

_CONTEXT = 3
_MOST_LINES = 20_000
"""Between the first and the last change: comparing more takes seconds."""

_SHARE = 2
"""A diff has less than one part in so many of the content."""

_DIGITS = 12
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a resource, and where it stands in words for a model."""

    text: str
    place: str


def short_diff(uri: str, before: Version, after: Version) -> str | None:
    """How `after` differs from `before`, with both checksums; None where that is not shorter than half of `after`."""
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
    """The lines of `text`, each with its line feed, where it has one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines in front are the same."""
    shorter = min(len(old), len(new))
    return next((number for number in range(shorter) if old[number] != new[number]), shorter)


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    """The hunks between two texts of which the first `skipped` lines were left out."""
    from difflib import unified_diff

    for line in list(unified_diff(old, new, n=_CONTEXT))[2:]:
        text = _HUNK.sub(lambda found: _moved(found, skipped), line) if line.startswith("@@") else line
        yield text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _moved(found: re.Match[str], skipped: int) -> str:
    first, second = int(found[1]) + skipped, int(found[3]) + skipped
    return f"@@ -{first}{found[2] or ''} +{second}{found[4] or ''} @@"


_MOST_NAMED = 20

_DEFINITION = ToolDefinition(
    name=REFRESH,
    description=(
        "Read an attachment again. Attachments are as they were when the user attached them; use this where one may "
        "have changed since, for example after you have modified the file. It gives the content, or what has changed, "
        "or says that nothing has."
    ),
    parameters={
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The URI of the attachment, exactly as it stands with it."}
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
        """What `uri`, which is attached in `stream`, holds now: confined, bounded and trusted as when it was attached.

        Raises:
            JpError: it cannot be read, or must not be.
        """
        ...

    def newest_copy(self, uri: str, stream: Stream) -> KnownCopy | None:
        """The newest copy that the model can see; None where there is none, or where it is no text or was cut.

        Raises:
            StorageError: it cannot be read.
        """
        ...


class RefreshResource:
    """The tool. Only what stands in this conversation as an attachment can be read with it."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _DEFINITION

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
    """The URIs of everything that was attached and not undone; the newest last."""
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
    """`resource` as a diff against the newest copy, where that is short and fits into `limit` bytes."""
    copy = None if resource.text is None else attachments.newest_copy(resource.uri, stream)
    if copy is None or resource.text is None or copy.text == resource.text:
        return resource
    before = Version(text=copy.text, place=copy.place)
    after = Version(text=resource.text, place="now")
    diff = short_diff(resource.uri, before, after)
    if diff is None or len(diff.encode()) > limit:
        return resource
    return replace(resource, formatted=diff, formatted_against=copy.entry)

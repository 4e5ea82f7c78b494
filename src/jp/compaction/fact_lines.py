"""Lines of facts about tool calls, and the hints of tools for their own calls (RFD D17)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, assert_never, cast

import msgspec

from jp.compaction.log_contents import handles_of
from jp.compaction.status_lines import content_size, whole_size
from jp.config.entries import ToolCompactionConfig, ToolConfig
from jp.config.model import ToolCallMode, ToolCallsConfig
from jp.context.markers import checksum_of
from jp.context.types import Call
from jp.context.types import Facts as ToldFacts
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    Facts,
    Header,
    JsonObject,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    ToolOverride,
)
from jp.conversation.resource import (
    BinaryContent,
    Carrier,
    StoredContent,
    TextContent,
    checksum,
    content_of,
    formatted_of,
    size_in_bytes,
)
from jp.conversation.thread import carriers_in

if TYPE_CHECKING:
    from jp.context.markers import Cutter


_CHEAP_ARGUMENTS = ToolCompactionConfig(request="keep", response="strip")
_CHEAP_RESULTS = ToolCompactionConfig(request="strip", response="keep")
_CHEAP = ToolCompactionConfig(request="keep", response="keep")

SHIPPED: Mapping[str, ToolCompactionConfig] = {
    "ask_user": _CHEAP,
    "fs_create_file": _CHEAP_RESULTS,
    "fs_delete_file": _CHEAP,
    "fs_grep_files": _CHEAP_ARGUMENTS,
    "fs_list_files": _CHEAP_ARGUMENTS,
    "fs_modify_file": ToolCompactionConfig(request="strip", response="strip"),
    "fs_move_file": _CHEAP,
    "fs_read_file": _CHEAP_ARGUMENTS,
    "recall": _CHEAP_ARGUMENTS,
    "refresh_resource": _CHEAP_ARGUMENTS,
    "run_command": _CHEAP_ARGUMENTS,
    "search_history": _CHEAP_ARGUMENTS,
    "web_fetch": _CHEAP_ARGUMENTS,
}
"""Hints of jp's own tools. The profile alone decides about other tools."""

_POLICIES: Mapping[ToolCallMode, ToolCallPolicy] = {
    "digest": ToolCallPolicy(policy="digest", request=True, response=True),
    "strip": ToolCallPolicy(policy="strip", request=True, response=True),
    "strip-requests": ToolCallPolicy(policy="strip", request=True),
    "strip-responses": ToolCallPolicy(policy="strip", response=True),
    "omit": ToolCallPolicy(policy="omit"),
}


def tool_policy(mode: ToolCallMode | ToolCallsConfig) -> ToolCallPolicy:
    """Return the policy that a profile or an option names."""
    if isinstance(mode, ToolCallsConfig):
        if mode.policy == "omit":
            return _POLICIES["omit"]
        request = mode.response is not True if mode.request is None else mode.request
        response = mode.request is not True if mode.response is None else mode.response
        return ToolCallPolicy(policy=mode.policy, request=request, response=response)
    return _POLICIES[mode]


def overrides_for(names: Iterable[str], tools: Mapping[str, ToolConfig]) -> dict[str, ToolOverride]:
    """Return the hints of the tools called `names`, sorted; `tools` is `conversation.tools`.

    They are stored in the overlay: a later change of the configuration does not change old turns.
    """
    found: dict[str, ToolOverride] = {}
    for name in sorted(set(names)):
        hints = hints_of(name, tools)
        if hints != ToolCompactionConfig():
            found[name] = ToolOverride(request=hints.request, response=hints.response)
    return found


def hints_of(name: str, tools: Mapping[str, ToolConfig]) -> ToolCompactionConfig:
    """Return the hints of a tool: its own settings, then what is built in. `tools` is `conversation.tools`."""
    shipped = SHIPPED.get(name, ToolCompactionConfig())
    own = tools[name].compaction if name in tools else ToolCompactionConfig()
    return ToolCompactionConfig(request=own.request or shipped.request, response=own.response or shipped.response)


LONGEST_ARGUMENT = 400
_MOST_HANDLES = 8
_NONCE = re.compile(r"[0-9A-Za-z_-]{4,64}")
NO_NONCE = "0" * 16
"""For a log without one: the original's as long as nothing was added, which is shown but not sent."""


class StatusLineFormatter:
    """Of a response how it ended and its handle, in a digest with what is known of it; of a request its short values.

    What was said of a log is not worked out again while the log only grows.
    """

    def __init__(self) -> None:
        self._newest = LogStatusLines()

    def of(self, entries: Sequence[AnyEntry]) -> LogStatusLines:
        """Return the status lines for a view of `entries`."""
        self._newest = self._newest.grown(entries)
        return self._newest


class LogStatusLines:
    """The stand-ins of one log. What they need of it is looked for when something is stripped."""

    def __init__(self, entries: Sequence[AnyEntry] = ()) -> None:
        self._entries = tuple(entries)
        self._arguments: dict[int, tuple[ToolCallRequest, JsonObject | str]] = {}
        self._lines: dict[tuple[int, bool], tuple[ToolCallResponse, ToolCallRequest, Facts | None, str | None]] = {}

    def grown(self, entries: Sequence[AnyEntry]) -> LogStatusLines:
        """Return the status lines of `entries`, reusing what is known if they only add to the earlier ones.

        Overlays at the end do not change the status lines of the entries before them.
        """
        end = len(entries)
        while end and isinstance(entries[end - 1], Compaction):
            end -= 1
        known = self._entries
        if known and len(known) <= end and all(map(is_, known, entries)):
            if len(known) == end:
                return self
            found = LogStatusLines(entries[:end])
            found._arguments, found._lines = self._arguments, self._lines
            return found
        return LogStatusLines(entries[:end])

    def arguments(self, call: ToolCallRequest) -> JsonObject | str:
        """Return the arguments with their long strings cut."""
        known = self._arguments.get(id(call))
        if known is None or known[0] is not call:
            known = self._arguments[id(call)] = (call, self._cut(call.arguments))
        return known[1]

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str | None:
        """Return how the call ended, with handles where there is something to recall."""
        return self._known(call, response, None, is_digest=False)

    def digest(self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None) -> str | None:
        """Return a line with as much as there is room for, always with a handle, and evidence below it."""
        return self._known(call, response, response.facts if facts is None else facts, is_digest=True)

    def _known(
        self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None, *, is_digest: bool
    ) -> str | None:
        key = id(response), is_digest
        known = self._lines.get(key)
        if known is None or known[0] is not response or known[1] is not call or known[2] != facts:
            line = self._line(call, response, facts, is_digest=is_digest)
            known = self._lines[key] = (response, call, facts, line)
        return known[3]

    def _cut(self, arguments: JsonObject | str) -> JsonObject | str:
        from jp.context.markers import bounded

        if isinstance(arguments, str):
            return bounded(arguments, LONGEST_ARGUMENT, self._cutter)
        shorter = msgspec.json.decode(msgspec.json.encode(arguments), type=JsonObject)
        # A stack in place of recursion: a model may nest as deep as it likes.
        inside: list[Any] = [shorter]
        while inside:
            holder = inside.pop()
            for key, value in _members(holder):
                if isinstance(value, str):
                    holder[key] = bounded(value, LONGEST_ARGUMENT, self._cutter)
                elif isinstance(value, dict | list):
                    inside.append(value)
        return arguments if shorter == arguments else shorter

    def _line(
        self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None, *, is_digest: bool
    ) -> str | None:
        from jp.context.digest_lines import Stripped, digest_text, status_line

        def line(handle: str) -> str | None:
            named = msgspec.structs.replace(stripped, handle=handle)
            return digest_text(subject, _facts(facts), named) if is_digest else status_line(subject, named)

        carriers = tuple(carriers_in(response))
        stripped = Stripped(
            size=whole_size(response.content),
            room=content_size(response.content),
            is_error=response.is_error,
            lines=_line_count(response, carriers),
        )
        subject = Call(id=call.call_id, name=call.name, arguments="")
        handles = self._handles_in(carriers)
        for count in range(len(handles), 0, -1):
            named = ", ".join(handles[:count])
            found = line(named)
            if found is None or found.partition("\n")[0].endswith(f"; recall {named}"):
                return found
        return None if handles else line("")

    def _handles_in(self, carriers: Sequence[Carrier]) -> tuple[str, ...]:
        """Return the handles of the largest carriers, largest first."""
        largest = sorted(filter(size_in_bytes, carriers), key=size_in_bytes, reverse=True)
        found = (self._handles.get(checksum(carrier)) for carrier in largest)
        return tuple(dict.fromkeys(handle for handle in found if handle is not None))[:_MOST_HANDLES]

    @cached_property
    def _handles(self) -> dict[str, str]:
        """The handle for each checksum in the log."""
        return handles_of(self._entries)

    @cached_property
    def _cutter(self) -> Cutter:
        from jp.context.markers import Cutter

        return Cutter(nonce_of(self._entries), KnownArtifacts(self._handles))


def _members(holder: Any) -> list[tuple[Any, Any]]:
    """Return what an object or a list of JSON holds, with the key or the number of each."""
    if isinstance(holder, list):
        return list(enumerate(cast("list[Any]", holder)))
    return list(holder.items())


def nonce_of(entries: Sequence[AnyEntry]) -> str:
    """Return the nonce of the markers in views of a log; `NO_NONCE` if its header has none that is valid."""
    first = entries[0] if entries else None
    found = first.nonce if isinstance(first, Header) else ""
    return found if _NONCE.fullmatch(found) else NO_NONCE


class KnownArtifacts:
    """Originals that need not be kept: they are in the log. See `jp.context.markers.Artifacts`."""

    def __init__(self, handles: Mapping[str, str]) -> None:
        self._handles = handles
        self._contents: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        """Return the handle of a checksum; the whole checksum if the log does not contain it."""
        return self._handles.get(sha256, sha256)

    def keep(self, content: str) -> str:
        """Know it for as long as a view is made."""
        handle = self.handle(checksum_of(content))
        self._contents[handle] = content
        return handle

    def recall(self, handle: str) -> str | None:
        """Return the text of a handle met so far."""
        return self._contents.get(handle)


def _line_count(response: ToolCallResponse, carriers: Sequence[Carrier]) -> int | None:
    """Return the number of lines, None unless all content is text that is shown unchanged."""
    counts = [_lines_of(carrier) for carrier in carriers]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(response.content) else None


def _lines_of(carrier: Carrier) -> int | None:
    if formatted_of(carrier) is not None:
        return None
    content = content_of(carrier)
    match content:
        case StoredContent(lines=lines):
            return lines
        case TextContent(text=text):
            return text.count("\n") + (not text.endswith("\n") and bool(text))
        case BinaryContent():
            return None
        case _:
            assert_never(content)


def _facts(recorded: Facts | None) -> ToldFacts | None:
    if recorded is None:
        return None
    told = {name: value for name, value in msgspec.structs.asdict(recorded).items() if value is not None}
    return ToldFacts(**told)

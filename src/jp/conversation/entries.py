"""Entries: the lines of a conversation's log, and their encoding as JSON."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from jp.conversation.resource import Block, Payload, Resource
from jp.errors import JpError, reason_of

FORMAT = 1

Finish = Literal["stop", "tools", "length", "refused", "error", "cancelled"]
JsonObject = dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The fields of every line. `at` is RFC 3339, UTC."""

    id: str = ""
    at: str = ""


class Original(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file of the original JP that a log was converted from: the checksum of its bytes, and how many these are.

    `attachments` are declarations that came with it and are in none of its requests.
    """

    sha256: str
    size: int
    attachments: tuple[str, ...] = ()


class Header(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="header"):
    """The first line. `nonce` makes markers that text cannot forge.

    It is empty as long as there is no log: of a conversation of the original JP that nobody has continued yet.
    """

    format: int
    created_at: str
    nonce: str = ""
    original: Original | None = None


class TurnStart(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="turn_start"):
    """A turn begins.

    `after` are the ids of the entries that it follows: the last event before it, what changed the conversation since
    then, and the ends of other branches that git merged into the log; see `jp.conversation.branches`.
    """

    after: tuple[str, ...] = ()


class ChatRequest(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="chat_request"):
    """A message of the user, with the snapshots attached at this turn.

    `attachments` are the declarations that were resolved for it, in the form in which they are configured.
    """

    content: str
    resources: tuple[Resource, ...] = ()
    attachments: tuple[str, ...] = ()
    schema: JsonObject | None = None
    author: str | None = None


class RequestContext(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="request_context"):
    """The parts of later requests that are not in the stream. `tools` is canonical JSON, `renderer` a version."""

    provider: str
    model: str
    renderer: int
    system: tuple[Payload, ...] = ()
    tools: Payload | None = None
    parameters: JsonObject = {}


class ChatResponse(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="chat_response"):
    """A piece of the answer: exactly one of `message`, `reasoning` and `data`.

    `data` is structured output. If the model sent more than the JSON of a value, `text` is all of it, and `data`
    is the value in it, or the same text if it has none. `metadata` is opaque and belongs to the provider and
    model that it names under `provider` and `model`.
    """

    message: str | None = None
    reasoning: str | None = None
    data: Any = msgspec.UNSET
    text: str | None = None
    metadata: JsonObject | None = None


class ToolCallRequest(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call_request"):
    """The model calls a tool. `call_id` is the provider's and may repeat.

    `arguments` is an object, or the text that the model sent where that is not one.
    """

    call_id: str
    name: str
    arguments: JsonObject | str
    metadata: JsonObject | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts that a digest or a status line states about a tool result.

    `lines` is a range such as `10-200`, of a file that has `total_lines`. A fetched page has a `url`, perhaps a
    `title`, and over HTTP a `status`. `evidence` are lines of the content without secrets: errors, failed tests,
    matches.
    """

    kind: str | None = None
    path: str | None = None
    url: str | None = None
    title: str | None = None
    status: int | None = None
    lines: str | None = None
    total_lines: int | None = None
    exit_code: int | None = None
    matches: int | None = None
    first_error: str | None = None
    evidence: tuple[str, ...] | None = None


LEAST_OBSERVED = 400
"""Characters of a result below which its digest would be no shorter than the result, so that it needs no evidence."""


class ToolCallResponse(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call_response"):
    """The result of a call. `request` is the id of its `tool_call_request` entry."""

    request: str
    content: tuple[Block, ...]
    is_error: bool = False
    duration_ms: int | None = None
    facts: Facts | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question of a tool. `options` are the choices of a `select`."""

    id: str
    text: str
    kind: Literal["boolean", "select", "text"]
    options: tuple[str, ...] = ()
    default: Any = None


class InquiryRequest(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="inquiry_request"):
    """A tool asks. `request` is the id of the `tool_call_request` entry."""

    request: str
    question: Question


class InquiryResponse(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="inquiry_response"):
    """Somebody answered; who it was, the original did not write. `request` is the id of the `inquiry_request` entry.

    Where it was a model that was asked for it, `model` is its id (`provider/name`), and `usage` what that took.
    """

    request: str
    answer: Any
    answered_by: Literal["user", "assistant", "config", "unknown"]
    model: str | None = None
    usage: Usage | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one request. `input` excludes those read from and written to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the tokens of both."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        reasoning=one.reasoning + other.reasoning,
    )


class Digests(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hashes of what was sent, by section, cache markers aside; `settings` of parameters that reasoning is bound to.

    The first `kept` messages hash as in the `cycle_end` before, `messages` are the hashes of the others: repeating
    all of them in every entry would make the log grow with the square of its length.
    """

    system: str = ""
    tools: str = ""
    kept: int = 0
    messages: tuple[str, ...] = ()
    settings: str = ""


class InputChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that a provider reports of a request: `input_transformations`.

    `type` is what it did, `path` where the part is in the request, or its id, and `reason` why.
    """

    type: str
    path: str
    reason: str = ""


class CycleEnd(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="cycle_end"):
    """An attempt is over; tools have not run yet. `attempt` counts from 1 in each cycle.

    `error` names the kind of a failure. `message_complete`: the attempt failed after its message had come to its end.
    `rejected` are the ids of earlier answers whose reasoning the provider did not
    take as its own any more: from here on they are shown without their metadata. `withheld` counts the pieces of
    reasoning that jp did not send because something before them had changed, `input_changes` are what the provider
    itself changed of the request.
    """

    attempt: int
    finish: Finish
    usage: Usage = Usage()
    digests: Digests = Digests()
    error: str | None = None
    message_complete: bool = False
    rejected: tuple[str, ...] = ()
    withheld: int = 0
    input_changes: tuple[InputChange, ...] = ()


class ConfigDelta(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="config_delta"):
    """From here on, this configuration is merged over what held before."""

    delta: JsonObject


class SummaryChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's account of raw entries: of the turns `from_id` to `to_id`, with `to_cycle` as in `Compaction`.

    `digest` is of these entries and of the instructions; with another one the account does not hold any more.
    """

    from_id: str
    to_id: str
    digest: str
    account: JsonObject
    to_cycle: int | None = None


class SummaryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The summary that replaces whole turns; `state` is its typed form.

    `model` wrote it and reported `usage`. `kept` are texts that it names by their handles and that are nowhere else in
    the log. `chunks` need not be read again for a later summary of more turns.
    """

    text: str
    state: JsonObject = {}
    model: str | None = None
    usage: Usage | None = None
    kept: tuple[Payload, ...] = ()
    chunks: tuple[SummaryChunk, ...] = ()


class ToolCallPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The policy for tool calls. `request` and `response` select the halves that are stripped."""

    policy: Literal["strip", "digest", "omit"]
    request: bool = False
    response: bool = False


class ToolOverride(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool's own policy, resolved when the overlay was made (RFD D17)."""

    request: Literal["keep", "strip"] | None = None
    response: Literal["keep", "strip"] | None = None


class Compaction(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="compaction"):
    """An overlay over turns `from_turn`..`to_turn` (0-based, inclusive; RFD 064).

    `from_id` and `to_id`, entry ids of the `turn_start`s, win over the numbers. `to_cycle` (0-based, inclusive) ends
    the range inside turn `to_turn`. An absent policy changes nothing. `facts` are of responses that were recorded
    without evidence, by the ids of their entries: a digest shows them. `kept` are the ids of calls and results that
    `tool_calls` does not change.
    """

    from_turn: int
    to_turn: int
    from_id: str | None = None
    to_id: str | None = None
    to_cycle: int | None = None
    source: Literal["manual", "auto"] = "manual"
    summary: SummaryPolicy | None = None
    reasoning: Literal["strip"] | None = None
    tool_calls: ToolCallPolicy | None = None
    tool_overrides: dict[str, ToolOverride] = {}
    resources: Literal["superseded"] | None = None
    facts: dict[str, Facts] = {}
    kept: tuple[str, ...] = ()


class Revert(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="revert"):
    """Undoes compactions, config deltas, turns (by their `turn_start`) or other reverts."""

    entries: tuple[str, ...]


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a type, or with a value, that this version does not know; kept byte for byte in `raw`."""

    raw: bytes
    id: str = ""
    at: str = ""
    type: str = ""


Event = (
    TurnStart
    | ChatRequest
    | RequestContext
    | ChatResponse
    | ToolCallRequest
    | ToolCallResponse
    | InquiryRequest
    | InquiryResponse
    | CycleEnd
)
Overlay = ConfigDelta | Compaction | Revert
KnownEntry = Header | Event | Overlay
AnyEntry = KnownEntry | Unknown


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[KnownEntry] = msgspec.json.Decoder(KnownEntry)

# Bytes that are no UTF-8 and nesting without end are not reported as DecodeErrors.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Head(msgspec.Struct, frozen=True):
    type: object = ""
    id: object = ""
    at: object = ""


_head_decoder = msgspec.json.Decoder(_Head)


class MalformedEntryError(JpError):
    """A line of a log is not a JSON object."""


class UnwritableEntryError(JpError):
    """An entry holds what JSON cannot: text that is no Unicode, or nesting without end."""


def encode(entry: AnyEntry) -> bytes:
    """Return one line, without its newline. An unknown entry comes out as it came in.

    Raises:
        UnwritableEntryError: it holds surrogates (bytes of a file name or an argument that are no UTF-8), or is nested
            too deeply.
    """
    if isinstance(entry, Unknown):
        return entry.raw
    try:
        return _encoder.encode(entry)
    except (UnicodeEncodeError, RecursionError) as error:
        msg = f"an entry cannot be written: {reason_of(error)}"
        raise UnwritableEntryError(msg, hint="text has to be UTF-8") from None


def decode(line: bytes) -> AnyEntry:
    """Read one line. Whatever is a JSON object but no entry of this version becomes `Unknown`.

    Raises:
        MalformedEntryError: the line is not a JSON object.
    """
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        pass
    except _NOT_JSON as error:
        msg = f"not JSON: {reason_of(error)}"
        raise MalformedEntryError(msg) from None
    try:
        head = _head_decoder.decode(line)
    except _NOT_JSON as error:
        msg = f"not an entry: {reason_of(error)}"
        raise MalformedEntryError(msg) from None
    return Unknown(raw=bytes(line), id=_text(head.id), at=_text(head.at), type=_text(head.type))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

"""The provider port: requests, the parts of a response, and what a model can do."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, cast

import msgspec

from jp.conversation.entries import InputChange, JsonObject, Usage
from jp.conversation.thread import Thread, count_unchanged
from jp.provider.errors import ProviderError

if TYPE_CHECKING:
    from jp.context.estimate import PartTokens


class TextDelta(msgspec.Struct, frozen=True):
    """More of the message in block `index`."""

    index: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of the reasoning in block `index`; empty text opens a block that has metadata only."""

    index: int
    text: str


class DataDelta(msgspec.Struct, frozen=True):
    """More of the structured output's JSON in block `index`."""

    index: int
    text: str


class ToolCallStart(msgspec.Struct, frozen=True):
    """A call begins in block `index`. `call_id` is never empty: an adapter makes one where the provider gives none."""

    index: int
    call_id: str
    name: str


class ToolArgumentsDelta(msgspec.Struct, frozen=True):
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


class BlockEnd(msgspec.Struct, frozen=True):
    """Block `index` is complete. `metadata` is opaque: signatures, item ids, encrypted reasoning."""

    index: int
    metadata: JsonObject | None = None


class KeepAlive(msgspec.Struct, frozen=True):
    """The provider is there but has nothing to say."""


class UsageReport(msgspec.Struct, frozen=True):
    """Tokens so far; a later report replaces an earlier one."""

    usage: Usage


class InputReport(msgspec.Struct, frozen=True):
    """Changes that the provider made to the request; a later report replaces an earlier one."""

    changes: tuple[InputChange, ...]


class Finished(msgspec.Struct, frozen=True):
    """The response is complete. `detail` explains a refusal.

    `is_final` says of an answer that reached its length that the provider does not want to be asked to go on with it.
    """

    reason: Literal["stop", "tools", "length", "refused"]
    detail: str = ""
    is_final: bool = False


Part = (
    TextDelta
    | ReasoningDelta
    | DataDelta
    | ToolCallStart
    | ToolArgumentsDelta
    | BlockEnd
    | KeepAlive
    | UsageReport
    | InputReport
    | Finished
)


Framing = Literal["sse", "ndjson", "json"]
"""Format that splits a response into events; `json` is one event with the whole body."""


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a request that cannot fit is not sent; `hint` says how it would fit."""

    message: str
    hint: str


DIGEST_CHARS = 16


def digest_of(items: Iterable[bytes]) -> str:
    """Return the hash of a part of a request, as logs keep it."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(len(item).to_bytes(8))
        digest.update(item)
    return digest.hexdigest()[:DIGEST_CHARS]


class SentMessage(tuple[bytes, ...]):  # noqa: SLOT001  its properties are kept with it
    """A message as prompt caches see it: its role, then its content blocks, each as canonical JSON."""

    @cached_property
    def digest(self) -> str:
        """Its hash, computed once: a message is sent again in each later request."""
        return digest_of(self)

    @cached_property
    def size(self) -> int:
        """Its bytes."""
        return sum(map(len, self))

    @cached_property
    def tokens(self) -> PartTokens:
        """Its estimated tokens, counted once."""
        from jp.context.estimate import estimate_parts

        return estimate_parts(self)


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """A request as prompt caches see it, without cache markers: in this order, each item canonical JSON."""

    tools: tuple[bytes, ...] = ()
    system: tuple[bytes, ...] = ()
    messages: tuple[SentMessage, ...] = ()
    settings: tuple[bytes, ...] = ()
    """Parameters that belong to the prefix behind which a model takes its reasoning back."""


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request on the wire, without credentials.

    Attributes:
        path: appended to the account's base URL.
        model: the requested model.
        framing: the format of the response.
        headers: the adapter's own headers (versions, betas).
        omitted: notes about parameters that are not sent, or in another form, because the model does not accept them.
        unfit: set if the request certainly does not fit the model's window: it can be inspected, and is not sent.
        probe: a body that requests next to nothing, not streamed: a server that ends a stream before its first event
            may respond to it with the reason.
        prefix_bound: models whose reasoning is accepted only if nothing before it has changed since they produced it.
    """

    path: str
    model: str
    body: JsonObject
    sections: Sections
    framing: Framing = "sse"
    headers: tuple[tuple[str, str], ...] = ()
    omitted: tuple[str, ...] = ()
    unfit: Unfit | None = None
    probe: JsonObject | None = None
    prefix_bound: tuple[str, ...] = ()


class BodyEncoder:
    """Encodes the bodies of requests as JSON; what a list had in the request before is copied.

    Objects of a list that are in the next request, too, must not have changed.
    """

    def __init__(self) -> None:
        self._lists: dict[str, _ListEncoder] = {}

    def encode(self, body: JsonObject) -> bytes:
        """Return what `msgspec.json.encode` returns."""
        pieces: list[bytes | bytearray] = []
        for name, value in body.items():
            pieces += (b"," if pieces else b"{", msgspec.json.encode(name), b":")
            if isinstance(value, list):
                items = cast("list[object]", value)
                pieces += (b"[", self._lists.setdefault(name, _ListEncoder()).encode(items), b"]")
            else:
                pieces.append(msgspec.json.encode(value))
        return b"".join((*pieces, b"}" if pieces else b"{}"))


class _ListEncoder:
    """Encodes the items of a list that grows."""

    def __init__(self) -> None:
        self._items: Sequence[object] = ()
        self._ends: list[int] = []
        self._encoded = bytearray()

    def encode(self, items: Sequence[object]) -> bytearray:
        same = count_unchanged(self._items, items)
        del self._ends[same:]
        del self._encoded[self._ends[-1] if same else 0 :]
        self._items = ()  # an item that cannot be encoded leaves nothing behind
        for item in items[same:]:
            self._encoded += b"," if self._ends else b""
            self._encoded += msgspec.json.encode(item)
            self._ends.append(len(self._encoded))
        self._items = tuple(items)
        return self._encoded


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a model. None means unknown; prices are USD for a million tokens.

    Cache entries that a provider keeps for an hour cost `cache_write_long_price`. A request whose prompt has more than
    `long_prompt` tokens, including cached ones, costs `long_prompt_factor` times as much in every class; the output
    `long_prompt_output_factor` times as much, if that factor is set. `shutdown` is the day (YYYY-MM-DD) from which the
    provider does not respond for the model, `successor` the model that it names instead.
    """

    provider: str
    id: str
    context_window: int | None = None
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    cache_write_long_price: float | None = None
    long_prompt: int | None = None
    long_prompt_factor: float = 1.0
    long_prompt_output_factor: float | None = None
    shutdown: str | None = None
    successor: str | None = None


class Provider(Protocol):
    """One response from one model.

    `renderer` is the version of `render`'s output: it grows whenever the same thread would give other bytes.
    """

    @property
    def id(self) -> str:
        """The provider's id, such as `anthropic`."""
        ...

    @property
    def renderer(self) -> int:
        """See the class."""
        ...

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`. Pure: the same thread gives the same bytes in canonical JSON.

        Raises:
            ConfigurationError: the provider does not accept a parameter.
            ProviderError: a new attachment has a type that it does not accept (kind `unsupported`).
        """
        ...

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the reasoning in `thread` that an error of kind `rejected_reasoning` is about. Pure.

        Empty if the error does not say.
        """
        ...

    def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """Send `request` and yield parts as they come; the last one is `Finished`.

        Who leaves early closes it (`contextlib.aclosing`): that ends the connection.

        Raises:
            AuthenticationError: there is no key to send it with.
            ProviderError: the request failed, or the stream ended without `Finished`.
        """
        ...


class ResponseDecoder(Protocol):
    """The pure half that reads: one wire event in, any number of parts out."""

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Read one server-sent event, or one NDJSON line with an empty `event`. Unknown ones give nothing.

        Raises:
            ProviderError: the event reports an error.
        """
        ...

    def close(self) -> Sequence[Part]:
        """Return the remaining parts at the end of the stream, with `Finished` if the answer is complete."""
        ...


__all__ = [
    "Framing",
    "ModelDetails",
    "Provider",
    "ProviderError",
    "ResponseDecoder",
    "Sections",
    "Unfit",
    "WireRequest",
]


Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""Levels of reasoning in the words of the vendors, least first."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """Abilities of a model family.

    Attributes:
        thinking: the control of reasoning: an effort as a hint (`adaptive`), a number of tokens (`budget`), one of the
            `levels`, or none (`none`).
        thinking_off: the way to turn reasoning off; `between_tools` and `never` do not turn all of it off.
        levels: the supported levels, least first.
        budgets: whether a number of tokens is accepted as well, within `least_budget` and `most_budget`.
        forced_tools: whether a tool choice is accepted.
        sampling: whether a temperature is accepted, `sampling_while_thinking` also with reasoning.
        bound_thinking: whether reasoning is accepted only after the prefix that it was produced after.
        reads: other models of the provider whose reasoning is accepted.
        structured: whether the API can enforce a schema, `structured_with_tools` also with tools.
        images: whether images can be attached; `documents` (PDF) and `recordings` (audio and video) likewise.
        media_in_results: whether these are accepted in a tool result.
        streams: false for a model whose responses are not streamed.
    """

    thinking: Literal["none", "adaptive", "budget", "levels"] = "adaptive"
    thinking_off: Literal["disabled", "between_tools", "never"] = "disabled"
    thinks_by_default: bool = False
    levels: tuple[Level, ...] = ("low", "medium", "high", "xhigh", "max")
    budgets: bool = True
    least_budget: int = 1024
    most_budget: int | None = None
    tools: bool = True
    forced_tools: bool = True
    sampling: bool = False
    sampling_while_thinking: bool = False
    bound_thinking: bool = False
    reads: tuple[str, ...] = ()
    structured: bool = True
    structured_with_tools: bool = True
    images: bool = True
    documents: bool = True
    recordings: bool = False
    media_in_results: bool = True
    streams: bool = True


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model, from the table or inferred from its name (`known` is false)."""

    details: ModelDetails
    abilities: Abilities
    known: bool = True

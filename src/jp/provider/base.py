"""What the turn needs of a provider, and what an adapter has to give."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.errors import ProviderError
from jp.provider.parts import Part

Framing = Literal["sse", "ndjson", "json"]
"""How a response is cut into events; `json` is one event that is the whole body."""


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request is not sent: it cannot fit. `hint` says how it would."""

    message: str
    hint: str


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What goes over the wire, without credentials.

    `path` is appended to the account's base URL. `model` is whom it asks, `framing` how the answer comes. `headers` are
    the adapter's own (versions, betas). `left_out` are sentences about parameters that the model is not sent, or in
    another form, because it does not take them. `unfit` is there where the request is certain not to fit the model's
    window: it can be looked at, and is not sent. `probe` is a body that asks for next to nothing, as a whole: a server
    that ends a stream before its first event may answer that with the reason. `prefix_bound` are the
    models whose reasoning is taken back only where nothing before it has changed since they produced it.
    """

    path: str
    model: str
    body: JsonObject
    framing: Framing = "sse"
    headers: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    unfit: Unfit | None = None
    probe: JsonObject | None = None
    prefix_bound: tuple[str, ...] = ()


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model. None means unknown; prices are USD for a million tokens.

    Entries that a provider keeps for an hour cost `cache_write_long_price`. A request whose prompt has more than
    `long_prompt` tokens, cached ones included, costs `long_prompt_factor` times as much in every class; the output
    `long_prompt_output_factor` times as much, where that is another factor. `shutdown` is the day (YYYY-MM-DD) from
    which the provider does not answer for the model any more, `successor` the model that it names instead.
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
        """The request for `thread`. Pure: the same thread gives the same bytes in canonical JSON.

        Raises:
            ConfigurationError: a parameter is one that this provider cannot be sent.
            ProviderError: a new attachment is of a type that it does not take, of kind `unsupported`.
        """
        ...

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see, cache markers aside."""
        ...

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the reasoning in `thread` that an error of kind `rejected_reasoning` is about. Pure.

        Empty where the error does not say.
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


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """A request as prompt caches see it: in this order, each item canonical JSON."""

    tools: tuple[bytes, ...]
    system: tuple[bytes, ...]
    messages: tuple[tuple[bytes, ...], ...]
    """One item for each message: its role, then its content blocks."""
    settings: tuple[bytes, ...] = ()
    """Parameters that belong to the prefix behind which a model takes its reasoning back."""


class ResponseDecoder(Protocol):
    """The pure half that reads: one wire event in, any number of parts out."""

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Read one server-sent event, or one NDJSON line with an empty `event`. Unknown ones give nothing.

        Raises:
            ProviderError: the event reports an error.
        """
        ...

    def close(self) -> Sequence[Part]:
        """The stream has ended: what the events so far come to, `Finished` included where they are a whole answer."""
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

"""The messages of a request, in the smallest form that any host can convert to and from.

Nothing here is decided by the look of a text. The nature of a message is in its `Meta`, which the host fills when the
message is created and which is never sent.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]

Kind = Literal["real", "synthetic", "summary"]
"""The author. `real`: the person, the model, a tool. `synthetic`: the host on behalf of one of them (a nudge, injected
memory, a notice). `summary`: the replacement of messages that were removed.
"""


class TextBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="text"):
    """Text that is at hand. `uri` identifies it where it is the content of a resource."""

    text: str
    uri: str = ""
    origin: str = ""


class StoredBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="stored"):
    """Content that the host keeps and that is sent without ever being looked at here.

    `sha256` and `size` are those of its bytes. `chars` and `lines` are there for text only: they tell it from pictures
    and other binary content, whose cost depends on `mime_type`.
    """

    sha256: str
    size: int
    mime_type: str = ""
    chars: int | None = None
    lines: int | None = None
    uri: str = ""
    origin: str = ""


class ReasoningBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="reasoning"):
    """The model's reasoning before its answer. `signature` is the provider's and means nothing here."""

    text: str
    signature: str = ""
    origin: str = ""


Block = TextBlock | StoredBlock | ReasoningBlock
Content = str | tuple[Block, ...]


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a tool. `arguments` is the text that the model sent, JSON or not; ids may repeat in later rounds."""

    id: str
    name: str
    arguments: str
    origin: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool's own record of a call, so that its output need not be parsed.

    `kind` names the sort of tool (`terminal`, `read`, `search`, …); `lines` is a range such as `10-200`, of a file that
    has `total_lines`. A fetched page has a `url`, perhaps a `title`, and over HTTP a `status`. `evidence` are lines of
    the output, without secrets.
    """

    kind: str = ""
    path: str = ""
    url: str = ""
    title: str = ""
    status: int | None = None
    lines: str = ""
    total_lines: int | None = None
    exit_code: int | None = None
    matches: int | None = None
    first_error: str = ""
    duration_ms: int | None = None
    evidence: tuple[str, ...] = ()


class Digested(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content was replaced by something shorter. `sha256` is the original's."""

    sha256: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's question while it ran, and the person's answer."""

    question: str
    answer: str


class Meta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The nature of a message; never sent.

    `hidden`: the person does not see it. `digested`, `facts` and `said` belong to a tool's message: the replacement of
    its content, the tool's record, and the person's answer while it ran.
    """

    kind: Kind = "real"
    hidden: bool = False
    digested: Digested | None = None
    facts: Facts | None = None
    said: tuple[Answered, ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a transcript.

    `calls` are an assistant's. `call_id` and `is_error` are a tool's: the call that it answers, and how that ended.
    `origin`, here and on blocks and calls, is whatever the host needs to find its own record again.
    """

    role: Role
    content: Content = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    is_error: bool = False
    meta: Meta = Meta()
    origin: str = ""


Transcript = tuple[Message, ...]
"""Messages in the order in which a provider is sent them. Tool definitions stand apart and are never touched."""


def texts_of(message: Message) -> tuple[str, ...]:
    """Return the loaded texts in the content of `message`, without reasoning."""
    if isinstance(message.content, str):
        return (message.content,)
    return tuple(block.text for block in message.content if isinstance(block, TextBlock))


def has_content(message: Message) -> bool:
    """Return whether `message` has text or an image to show; blank text and reasoning alone do not count."""
    if isinstance(message.content, tuple) and any(isinstance(block, StoredBlock) for block in message.content):
        return True
    return any(text and not text.isspace() for text in texts_of(message))

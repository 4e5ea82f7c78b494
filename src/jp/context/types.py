"""What a model is sent, as messages: the smallest form that any host can convert to and from.

Nothing here is ever decided by looking at what a text seems to be. What a message is stands in its `Meta`, which the
host fills when the message comes to be and which is never sent.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]

Kind = Literal["real", "synthetic", "summary"]
"""Who is speaking. `real`: the person, the model, a tool. `synthetic`: the host on somebody's behalf (a nudge, injected
memory, a notice). `summary`: what stands for messages that were left out.
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
    """What the model thought before it spoke. `signature` is the provider's and means nothing here."""

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
    """What a tool recorded while it ran, so that nobody has to read it out of its output.

    `kind` names the sort of tool (`terminal`, `read`, `search`, …); `lines` is a range such as `10-200`, of a file that
    has `total_lines`. What was fetched has a `url`, perhaps a `title`, and over HTTP a `status`.
    `evidence` are lines of the output, without secrets.
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
    """What a tool asked while it ran, and the person's answer."""

    question: str
    answer: str


class Meta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a message is; never sent.

    `hidden`: the person does not see it. `digested`, `facts` and `said` belong to a tool's message: what stands for its
    content, what the tool recorded, and what the person answered while it ran.
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
    """The texts in the content of `message` that are at hand, reasoning aside."""
    if isinstance(message.content, str):
        return (message.content,)
    return tuple(block.text for block in message.content if isinstance(block, TextBlock))


def has_content(message: Message) -> bool:
    """Whether `message` says something or shows something; blank text and reasoning alone do not."""
    if isinstance(message.content, tuple) and any(isinstance(block, StoredBlock) for block in message.content):
        return True
    return any(text and not text.isspace() for text in texts_of(message))

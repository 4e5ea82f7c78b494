"""A summary's message: how it is told from all others, read again, and sent where sides have to alternate."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from jp.context.budget import size_of
from jp.context.excerpt import excerpt
from jp.context.handles import checksum_of
from jp.context.markers import Cutter
from jp.context.summary_state import RULE, VERSION, SummaryState
from jp.context.summary_text import parse_summary, render_summary
from jp.context.types import Digested, Message, Meta, TextBlock, Transcript, has_content, texts_of

INHERITED_LIMIT = 3_000


def is_summary(message: Message) -> bool:
    """Whether `message` stands for others; by what it is, whatever its text looks like."""
    return message.meta.kind == "summary"


def summary_row(state: SummaryState, gone: Sequence[Message], nonce: str) -> Message:
    """The message for `state`, which stands for the messages `gone`.

    It has the user's role, so that system messages stay as they are, and is hidden and no person's. `meta.digested`
    says by which version it was written; its checksum is that of the text.
    """
    text = render_summary(state, nonce)
    digested = Digested(sha256=checksum_of(text), original_bytes=sum(map(size_of, gone)), rule=RULE, version=VERSION)
    return Message(role="user", content=text, meta=Meta(kind="summary", hidden=True, digested=digested))


def state_of(message: Message, cutter: Cutter) -> SummaryState:
    """What the summary `message` knows; of one by another version or program, the beginning and end of its text."""
    text = "\n\n".join(filter(None, texts_of(message)))
    digested = message.meta.digested
    if digested is not None and (digested.rule, digested.version) == (RULE, VERSION):
        found = parse_summary(text, cutter.nonce)
        if found is not None:
            return found
    return SummaryState(inherited=excerpt(text, INHERITED_LIMIT, cutter))


def alternating(messages: Transcript) -> Transcript:
    """`messages` for a provider that takes no two of one side in a row: a summary joins the message after it.

    The text of that message stays a block of its own, byte for byte; a blank one leaves a summary. This is how messages
    are sent and not how they are kept: who keeps it has a message of the person with a summary in it.
    """
    rows: list[Message] = []
    for message in messages:
        if rows and is_summary(rows[-1]) and message.role == "user" and not is_summary(message):
            rows[-1] = _joined(rows[-1], message)
        else:
            rows.append(message)
    return tuple(rows) if len(rows) < len(messages) else messages


def _joined(summary: Message, message: Message) -> Message:
    record = TextBlock(text="\n\n".join(texts_of(summary)))
    own = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    return replace(message, content=(record, *own), meta=message.meta if has_content(message) else summary.meta)

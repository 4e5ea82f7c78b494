"""Budgets: the tokens of a window, the items that fill it, the items to remove first, and the cost of a cache break."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from heapq import nlargest
from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.context.estimate import PER_IMAGE, estimate_tokens, estimate_tokens_of_bytes
from jp.context.types import Block, Call, Message, ReasoningBlock, StoredBlock, TextBlock

PER_MESSAGE = 4
PER_CALL = 12
PER_RESULT = 8
"""Tokens of a role, and of the envelope of a call and of a result."""

_PER_PAGE = 2_250
_BYTES_PER_PAGE = 50_000

_TRIGGER_PERCENT = 80
_MOST_USEFUL = 350_000


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens. `window` is the model's, of which `reserved` are kept for its answer."""

    window: int
    reserved: int = 0


def threshold(budget: Budget) -> int:
    """Return the number of tokens at which compaction is due.

    It is four fifths of the window without the answer, and never so much that models lose track.
    """
    return min(max(budget.window - budget.reserved, 0) * _TRIGGER_PERCENT // 100, _MOST_USEFUL)


def estimate_message(message: Message) -> int:
    """Return the tokens of `message` as sent: its content, its calls with their envelopes, its reference to a call."""
    content = message.content
    tokens = PER_MESSAGE
    tokens += estimate_tokens(content) if isinstance(content, str) else sum(map(estimate_block, content))
    tokens += sum(map(estimate_call, message.calls))
    if message.role == "tool":
        tokens += PER_RESULT + estimate_tokens(message.call_id)
    return tokens


def estimate_messages(messages: Iterable[Message]) -> int:
    """Return the tokens of all `messages`."""
    return sum(map(estimate_message, messages))


def size_of_call(call: Call) -> int:
    """Bytes of what is sent of `call`, as for a message."""
    return _utf8(call.id) + _utf8(call.name) + _utf8(call.arguments)


def estimate_call(call: Call) -> int:
    """Return the tokens of a call with its envelope."""
    return PER_CALL + estimate_tokens(call.id) + estimate_tokens(call.name) + estimate_tokens(call.arguments)


def estimate_block(block: Block) -> int:
    """Return the tokens of a block of content."""
    match block:
        case TextBlock(text=text) | ReasoningBlock(text=text):
            return estimate_tokens(text)
        case StoredBlock(size=size, chars=chars) if chars is not None:
            return estimate_tokens_of_bytes(size, chars)
        case StoredBlock(mime_type="application/pdf", size=size):
            return max(size // _BYTES_PER_PAGE, 1) * _PER_PAGE
        case StoredBlock():
            return PER_IMAGE
        case _:
            assert_never(block)


def size_of_block(block: Block) -> int:
    """Bytes of what is sent of `block`, as for a message."""
    match block:
        case TextBlock(text=text):
            return _utf8(text)
        case ReasoningBlock(text=text, signature=signature):
            return _utf8(text) + _utf8(signature)
        case StoredBlock(size=size):
            return size
        case _:
            assert_never(block)


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


ItemKind = Literal[
    "system",
    "user",
    "attachments",
    "assistant",
    "reasoning",
    "arguments",
    "results",
    "images",
    "summaries",
    "digests",
    "synthetic",
]
"""`images` is whatever is not text, wherever it stands; `digests` are results for which something shorter stands;
`synthetic` is what the host said on the person's behalf.
"""


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A block, a call, or a message that has neither. `tokens` include a share of what surrounds it.

    `message` is the position in the transcript, `block` the number of the block in its content, `call` that of the call
    in it. `tool` is the name that the model called.
    """

    kind: ItemKind
    tokens: int
    size: int
    message: int
    block: int | None = None
    call: int | None = None
    tool: str = ""


def items_of(messages: Iterable[Message]) -> Iterator[Item]:
    """Yield every item in order; together they have the tokens of the messages."""
    names: dict[str, str] = {}
    for position, message in enumerate(messages):
        if message.calls:
            names = {call.id: call.name for call in message.calls}
        tool = names.get(message.call_id, "") if message.role == "tool" else ""
        envelope = PER_MESSAGE
        if message.role == "tool":
            envelope += PER_RESULT + estimate_tokens(message.call_id)
        first, *others = _items_in(position, message, tool) or [_bare(position, message, tool)]
        yield replace(first, tokens=first.tokens + envelope)
        yield from others


def largest_items(items: Iterable[Item], count: int) -> list[Item]:
    """Return the `count` largest items by tokens, earlier ones first among equals."""
    return nlargest(count, items, key=lambda item: item.tokens)


def _items_in(position: int, message: Message, tool: str) -> list[Item]:
    content = message.content
    if isinstance(content, str):
        blocks: tuple[Block, ...] = (TextBlock(text=content),) if content else ()
    else:
        blocks = content
    found = [
        Item(
            kind=_kind_of(message, block),
            tokens=estimate_block(block),
            size=size_of_block(block),
            message=position,
            block=number,
            tool=tool,
        )
        for number, block in enumerate(blocks)
    ]
    for number, call in enumerate(message.calls):
        tokens, size = estimate_call(call), size_of_call(call)
        found.append(Item(kind="arguments", tokens=tokens, size=size, message=position, call=number, tool=call.name))
    return found


def _bare(position: int, message: Message, tool: str) -> Item:
    return Item(kind=_kind_of(message, TextBlock(text="")), tokens=0, size=0, message=position, tool=tool)


def _kind_of(message: Message, block: Block) -> ItemKind:
    if message.role == "system":
        return "system"
    if message.meta.kind == "summary":
        return "summaries"
    if message.role == "tool" and message.meta.digested is not None:
        return "digests"
    match block:
        case ReasoningBlock():
            return "reasoning"
        case StoredBlock(chars=None):
            return "images"
        case StoredBlock(uri=uri) | TextBlock(uri=uri):
            return _kind_of_text(message, uri)
        case _:
            assert_never(block)


def _kind_of_text(message: Message, uri: str) -> ItemKind:
    match message.role:
        case "tool":
            return "results"
        case "assistant":
            return "assistant"
        case _:
            if message.meta.kind == "synthetic":
                return "synthetic"
            return "attachments" if uri else "user"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Content that can be shown shorter. It frees `freed` tokens.

    `rank` is that of its pass: those of a lower rank give way first. Among equals, what loses less gives way first by
    `loss`, then what comes earlier by `position`.
    """

    key: str
    freed: int
    rank: int
    loss: int = 0
    position: int = 0


def least_loss(candidates: Iterable[Candidate], need: int) -> frozenset[str]:
    """Return the keys of what gives way to free `need` tokens, as little as that takes; all where it is not enough.

    What was chosen early and is not needed in the end, because a larger piece came after it, stays after all, the
    most valuable first.
    """
    chosen: list[Candidate] = []
    freed = 0
    for one in sorted(candidates, key=_worth):
        if freed >= need:
            break
        if one.freed > 0:
            chosen.append(one)
            freed += one.freed
    for one in reversed(chosen.copy()):
        if freed - one.freed >= need:
            chosen.remove(one)
            freed -= one.freed
    return frozenset(one.key for one in chosen)


def _worth(one: Candidate) -> tuple[int, int, int]:
    return one.rank, one.loss, one.position


_MILLION = 1_000_000


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """USD for a million tokens, as the host knows them.

    Without a price of reading or writing the cache, such tokens cost what uncached input does.
    """

    input: float
    cache_read: float | None = None
    cache_write: float | None = None


class PromptEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit, in tokens: how many stand from the first changed one on, `before` and `after` it.

    What stands before that place costs the same either way. `once` is what making the edit costs in USD, such as the
    request for a summary.
    """

    before: int
    after: int
    once: float = 0.0


class EditCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an edit, in tokens and USD.

    The next request reads `rewritten` tokens without the cache; each request has `saved` fewer tokens. `next_request`
    is the additional cost of the next request, including that of the edit itself, negative if it is cheaper; every
    later one costs `each_later` less. `break_even` is the number of further requests after which the edit has paid off,
    None if it never does.
    """

    rewritten: int
    saved: int
    next_request: float
    each_later: float
    break_even: int | None


def cost_of_edit(edit: PromptEdit, prices: Prices, *, is_warm: bool) -> EditCost:
    """Return the cost of `edit`. `is_warm`: the cache still contains the present prompt.

    A cold cache has to be written either way, so an edit pays off at once.
    """
    read, write = _rates(prices)
    before, after = Fraction(edit.before), Fraction(edit.after)
    now = write * after + _exact(edit.once) * _MILLION - (read if is_warm else write) * before
    later = read * (before - after)
    return EditCost(
        rewritten=edit.after,
        saved=edit.before - edit.after,
        next_request=float(now / _MILLION),
        each_later=float(later / _MILLION),
        break_even=_break_even(now, later),
    )


def _break_even(now: Fraction, later: Fraction) -> int | None:
    """Return the least number of requests, at least 1, that together cost no more with the edit than without."""
    if later < 0 or (later == 0 and now > 0):
        return None
    return 1 if now <= 0 else 1 + -(-now // later)


def _rates(prices: Prices) -> tuple[Fraction, Fraction]:
    """Return the price of a token that is read from the cache, and of one that is written to it."""
    plain = _exact(prices.input)
    read = plain if prices.cache_read is None else _exact(prices.cache_read)
    return read, plain if prices.cache_write is None else _exact(prices.cache_write)


def _exact(price: float) -> Fraction:
    """Return a price as it is written, not the nearest binary number."""
    return Fraction(repr(price))

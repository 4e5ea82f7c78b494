"""What references, bounds and diffs kept out of the requests of a conversation, and what was recalled all the same.

Every request sends the view again, so what is left out of one is left out of all that follow, until a compaction takes
its place. A view only grows between two overlays: it is made once for each stretch between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import msgspec

from jp.compaction.projection import Settlement, settlement_of
from jp.compaction.stand_ins import StandIns
from jp.conversation.entries import AnyEntry, Compaction, CycleEnd, Revert
from jp.conversation.resource import (
    BinaryContent,
    Block,
    Carrier,
    Resource,
    ResourceBlock,
    StoredContent,
    TextBlock,
    content_of,
    formatted_of,
    size_in_bytes,
)
from jp.conversation.thread import ToolResult, UserResource, UserText, ViewEvent


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of text that were not sent, by what left them out; `recalled` are those that were sent to bring some back.

    A reference counts with what would have stood in its place, be that cut or not.
    """

    references: int = 0
    bounds: int = 0
    diffs: int = 0
    recalled: int = 0

    def __add__(self, other: Saved) -> Saved:
        """Both together."""
        return Saved(
            references=self.references + other.references,
            bounds=self.bounds + other.bounds,
            diffs=self.diffs + other.diffs,
            recalled=self.recalled + other.recalled,
        )

    @property
    def left_out(self) -> int:
        """What was left out, in whichever way."""
        return self.references + self.bounds + self.diffs

    @property
    def total(self) -> int:
        """What was left out, less what was recalled."""
        return self.left_out - self.recalled


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """`each` is of one request with everything that there is now, `sent` of all that were sent.

    From `requests` of these something was left out.
    """

    each: Saved = Saved()
    sent: Saved = Saved()
    requests: int = 0


def savings_of(entries: Sequence[AnyEntry], stand_ins: StandIns, *, recall: str) -> Savings:
    """The savings of a stream; `recall` is the name of the tool by which a model recalls."""
    positions = {entry.id: position for position, entry in enumerate(entries)}
    overlays = [number for number, entry in enumerate(entries) if isinstance(entry, (Compaction, Revert))]
    each, sent, requests = Saved(), Saved(), 0
    for start, end in pairwise([0, *overlays, len(entries)]):
        sendings = [number for number in range(start, end) if isinstance(entries[number], CycleEnd)]
        if not sendings and end < len(entries):
            continue
        found = list(_saved_in(settlement_of(entries[:end], stand_ins), recall))
        found.sort(key=lambda one: positions.get(one[0], 0))
        until = [positions.get(origin, 0) for origin, _ in found]
        sums = list(accumulate((saved for _, saved in found), initial=Saved()))
        of_requests = [sums[bisect_left(until, sending)] for sending in sendings]
        sent = sum(of_requests, sent)
        requests += sum(saved.left_out > 0 for saved in of_requests)
        each = sums[-1]
    return Savings(each=each, sent=sent, requests=requests)


def _saved_in(settlement: Settlement, recall: str) -> Iterator[tuple[str, Saved]]:
    """What the view saves, each with the entry of which it is."""
    for position in range(settlement.first, len(settlement.after)):
        before, after = settlement.before[position], settlement.after[position]
        if isinstance(after, ToolResult) and after.name == recall:
            yield after.origin, Saved(recalled=sum(map(_shown_size, after.content)))
            continue
        for number, (original, form) in enumerate(_forms(before, after)):
            if (position, number) not in settlement.superseded:
                yield after.origin, _saved(original, form)


def _forms(before: ViewEvent, after: ViewEvent) -> Iterator[tuple[Carrier, Carrier | str]]:
    """What an event delivers, and how the view shows it."""
    match before, after:
        case UserResource(resource=resource), UserResource(resource=shown):
            yield resource, shown
        case UserResource(resource=resource), UserText(text=text):
            yield resource, text
        case ToolResult(content=blocks), ToolResult(content=forms):
            for block, form in zip(blocks, forms, strict=True):
                match block, form:
                    case ResourceBlock(resource=resource), ResourceBlock(resource=shown):
                        yield resource, shown
                    case ResourceBlock(resource=resource), TextBlock(text=text):
                        yield resource, text or ""
                    case TextBlock(), TextBlock():
                        yield block, form
                    case _:
                        yield TextBlock(text=""), ""
        case _:
            pass


def _saved(original: Carrier, form: Carrier | str) -> Saved:
    if not _is_text(original):
        return Saved()
    if isinstance(form, str):
        full = size_in_bytes(original) if _is_diff(original) else _size(original)
        return Saved(references=full - len(form.encode()))
    left_out = size_in_bytes(form) - _size(form)
    return Saved(diffs=left_out) if _is_diff(form) else Saved(bounds=left_out)


def _is_diff(carrier: Carrier) -> bool:
    return isinstance(carrier, Resource) and carrier.formatted_against is not None


def _is_text(carrier: Carrier) -> bool:
    match content_of(carrier):
        case BinaryContent() | StoredContent(chars=None):
            return False
        case _:
            return True


def _size(carrier: Carrier) -> int:
    formatted = formatted_of(carrier)
    return size_in_bytes(carrier) if formatted is None else len(formatted.encode())


def _shown_size(block: Block) -> int:
    return _size(block) if isinstance(block, TextBlock) else 0

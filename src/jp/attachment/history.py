"""What a conversation has of its attachments: when each was read last, and the newest copy of each resource. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from jp.attachment.declaration import scheme_of
from jp.conversation.entries import AnyEntry, ChatRequest, Event, Header, Original, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.reverts import undone
from jp.conversation.turns import turns_of


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """The newest copy of a resource, and the turn that has it."""

    turn: int
    resource: Resource


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The newest request that a declaration was resolved for: everything that it declares, everything it brought.

    There is no `turn` where a declaration counts as delivered because a conversation of the original JP made it.
    """

    turn: int | None
    declarations: tuple[str, ...]
    uris: tuple[str, ...]

    @property
    def excludes(self) -> tuple[str, ...]:
        """The excludes that took part, without their `!`."""
        return tuple(text[1:] for text in self.declarations if text.startswith("!"))


class History(msgspec.Struct, frozen=True, kw_only=True):
    """`deliveries` by declaration, `copies` by URI: also those that a tool delivered since."""

    deliveries: Mapping[str, Delivery]
    copies: Mapping[str, Copy]


def history_of(entries: Sequence[AnyEntry]) -> History:
    """The history of a stream. What was undone is no part of it."""
    gone = undone(entries)
    deliveries: dict[str, Delivery] = {}
    copies: dict[str, Copy] = {}
    assumed = assumed_in(entries)
    deliveries.update((text, Delivery(turn=None, declarations=assumed, uris=())) for text in assumed)
    for turn in turns_of(entries):
        for entry in () if turn.id in gone else turn.entries:
            for resource in _resources_of(entry):
                copies[resource.uri] = Copy(turn=turn.number, resource=resource)
            if isinstance(entry, ChatRequest):
                uris = tuple(resource.uri for resource in entry.resources)
                delivery = Delivery(turn=turn.number, declarations=entry.attachments, uris=uris)
                deliveries.update((text, delivery) for text in entry.attachments if not text.startswith("!"))
    return History(deliveries=deliveries, copies=copies)


def assumed_in(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """The declarations that an original's directory made and no request of it names: they count as delivered."""
    match entries:
        case [Header(original=Original(attachments=attachments)), *_]:
            return attachments
        case _:
            return ()


def _resources_of(entry: Event) -> Iterator[Resource]:
    if isinstance(entry, ChatRequest):
        yield from entry.resources
    elif isinstance(entry, ToolCallResponse):
        yield from (block.resource for block in entry.content if isinstance(block, ResourceBlock))


def claimed(declaration: str, delivery: Delivery) -> tuple[str, ...]:
    """Which of the URIs that a request brought came of `declaration`, of a scheme whose URIs say what they name.

    The log does not say. These are its own URI and those of its parts, else the one that it adds parameters to, else
    what of its scheme can be nobody else's.
    """
    others = [text for text in delivery.declarations if text != declaration and not text.startswith("!")]
    free = [uri for uri in delivery.uris if uri not in others]
    parts = tuple(uri for uri in free if uri == declaration or _is_part(uri, declaration))
    own = parts or tuple(uri for uri in free if _is_plainer(uri, declaration))
    if own:
        return own
    scheme = scheme_of(declaration)
    return tuple(uri for uri in free if scheme_of(uri) == scheme and not _is_anybodys(uri, others))


def _is_part(uri: str, whole: str) -> bool:
    path, _, query = whole.partition("?")
    return uri.startswith((f"{path}/", f"{path}#")) and uri.endswith(query)


def _is_plainer(uri: str, declaration: str) -> bool:
    return declaration.startswith((f"{uri}?", f"{uri}&"))


def _is_anybodys(uri: str, declarations: Iterable[str]) -> bool:
    return any(_is_part(uri, text) or _is_plainer(uri, text) for text in declarations)

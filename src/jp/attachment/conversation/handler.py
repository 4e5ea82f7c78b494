"""The `jp` scheme: turns of other conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, Resolution, ResolveContext
from jp.attachment.conversation.excerpt import Excerpt, entries, markdown
from jp.attachment.conversation.selection import Selection, parse_selection
from jp.attachment.files.failures import in_units
from jp.conversation.carriers import CarrierChange
from jp.conversation.entries import AnyEntry, JsonObject
from jp.conversation.resource import Annotations, Resource
from jp.conversation.reverts import undone
from jp.conversation.turns import turns_of
from jp.errors import JpError

_LISTED = 10
_LIST = "List the conversations with `jp conversation ls`."


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is stored, with every turn that may be attached. `modified` is RFC 3339, UTC.

    `load` reads content from the blob store. `metadata` is what its file says.
    """

    title: str
    modified: str
    entries: Sequence[AnyEntry]
    load: CarrierChange
    metadata: JsonObject


class ConversationReader(Protocol):
    """Reads the conversations of a workspace. Reading blocks, and is done in a thread."""

    def ids(self) -> Collection[str]:
        """The ids of all conversations, such as `jp-c17800836875`.

        Raises:
            JpError: they cannot be listed.
        """
        ...

    def read(self, conversation: str) -> StoredConversation:
        """The conversation with this id; of the one that a turn is being taken in, only the turns before it.

        Raises:
            JpError: it is gone, or cannot be read.
        """
        ...

    def base_config(self, conversation: str) -> JsonObject:
        """The configuration that it was created with.

        Raises:
            JpError: it cannot be read.
        """
        ...


class ConversationHandler:
    """`jp`: the selected turns of a conversation, as Markdown or as they are stored. Nothing of it is compacted."""

    def __init__(self, reader: ConversationReader) -> None:
        self._reader = reader

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """The whole id where the beginning of one is given, and the selector in its shortest form.

        Raises:
            AttachmentError: `uri` is malformed, or several ids begin so.
        """
        selection = parse_selection(uri)
        found = self._matching(selection, uri)
        digits = found[0] if found else selection.digits
        return msgspec.structs.replace(selection, digits=digits).uri

    def _matching(self, selection: Selection, written: str) -> list[str]:
        """The digits of the only id that is meant, nothing where there is none."""
        try:
            digits = [conversation.removeprefix("jp-c") for conversation in self._reader.ids()]
        except JpError as error:
            raise _failure(written, error) from error
        if selection.digits in digits:
            return [selection.digits]
        found = sorted((one for one in digits if one.startswith(selection.digits)), key=int, reverse=True)
        if len(found) > 1:
            names = ", ".join(f"jp-c{one}" for one in found[:_LISTED])
            more = f", and {len(found) - _LISTED:,} more" if len(found) > _LISTED else ""
            message = f"{written!r} is the beginning of {len(found):,} conversations: {names}{more}"
            raise AttachmentError(message, hint="Give the whole id.")
        return found

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read in a thread of its own: a log may be large.

        Raises:
            AttachmentError: see the port.
        """
        exclude = next((exclude for exclude in excludes if exclude.uri == declaration.uri), None)
        if exclude is not None:
            notice = f"{declaration.written!r} attaches nothing: {exclude.written!r} leaves it out"
            return Resolution(resources=(), notices=(notice,))

        from anyio.to_thread import run_sync

        def read() -> Resource:
            return self._read(declaration, context)

        return Resolution(resources=(await run_sync(read, abandon_on_cancel=True),))

    def _read(self, declaration: Declaration, context: ResolveContext) -> Resource:
        selection = parse_selection(declaration.uri)
        written = declaration.written
        found = self._matching(selection, written)
        if not found:
            message = f"{written!r}: there is no conversation 'jp-c{selection.digits}' here"
            raise MissingSourceError(message, hint=_LIST)
        conversation = f"jp-c{found[0]}"
        try:
            stored = self._reader.read(conversation)
            excerpt = _excerpt(stored, selection, conversation, written)
            head = self._head(stored, selection, conversation)
            text = _bounded(_pieces(head, excerpt, selection), declaration, context)
        except AttachmentError:
            raise
        except JpError as error:
            raise _failure(written, error) from error
        if not text:
            raise _nothing(excerpt, selection, conversation, written)
        return Resource(
            uri=msgspec.structs.replace(selection, digits=found[0]).uri,
            mime_type="text/markdown" if selection.raw == "no" else "application/x-ndjson",
            annotations=Annotations(last_modified=stored.modified),
            name=f"{conversation} {selection.text}",
            title=stored.title,
            text=text,
        )

    def _head(self, stored: StoredConversation, selection: Selection, conversation: str) -> str:
        """What comes before the turns."""
        if selection.raw == "no":
            title = f"# {' '.join(stored.title.split())}\n\n" if stored.title else ""
            return f"{title}Turns of the conversation {conversation}.\n"
        if selection.raw == "entries":
            return ""
        head = {"id": conversation, "metadata": stored.metadata, "base_config": self._reader.base_config(conversation)}
        return msgspec.json.encode(head).decode() + "\n"


def _failure(written: str, error: JpError) -> AttachmentError:
    return AttachmentError(f"{written!r} cannot be read: {error.message}", hint=error.hint or _LIST)


def _excerpt(stored: StoredConversation, selection: Selection, conversation: str, written: str) -> Excerpt:
    """The turns that are selected; what was undone does not stand.

    Raises:
        AttachmentError: there is no such turn.
    """
    gone = undone(stored.entries)
    standing = [turn for turn in turns_of(stored.entries) if turn.id not in gone]
    if not standing:
        message = f"{written!r}: the conversation {conversation!r} has no turn that could be attached"
        raise AttachmentError(message, hint=f"A turn cannot attach itself. {_LIST}")
    chosen = set(selection.turns.of([turn.number for turn in standing]))
    if not chosen:
        message = f"{written!r}: the conversation {conversation!r} has no turns {selection.turns.text!r}"
        raise AttachmentError(message, hint=f"Its turns are {standing[0].number} to {standing[-1].number}.")
    turns = [turn for turn in standing if turn.number in chosen]
    return Excerpt(turns=turns, contents=selection.contents, load=stored.load)


def _pieces(head: str, excerpt: Excerpt, selection: Selection) -> Iterator[str]:
    """The whole text; nothing where the turns have nothing of what is selected."""
    pieces = markdown(excerpt) if selection.raw == "no" else entries(excerpt)
    first = next(pieces, None)
    if first is not None:
        yield head
        yield first
        yield from pieces


def _bounded(pieces: Iterable[str], declaration: Declaration, context: ResolveContext) -> str:
    """The pieces as one text.

    Raises:
        AttachmentError: they are more than one resource may have.
    """
    taken: list[str] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece.encode())
        if size > context.max_bytes:
            message = f"{declaration.written!r} has more than {in_units(context.max_bytes)}, the most of an attachment"
            raise AttachmentError(message, hint="Select fewer turns: '?select=user,assistant:-3' takes the last three.")
    return "".join(taken)


def _nothing(excerpt: Excerpt, selection: Selection, conversation: str, written: str) -> AttachmentError:
    numbers = [turn.number for turn in excerpt.turns]
    which = f"turn {numbers[0]}" if len(numbers) == 1 else f"turns {numbers[0]} to {numbers[-1]}"
    wanted = ", ".join(selection.contents)
    message = f"{written!r} selects nothing: of {wanted} there is nothing in {which} of {conversation!r}"
    return AttachmentError(message, hint="'?select=*:..' takes everything of every turn.")

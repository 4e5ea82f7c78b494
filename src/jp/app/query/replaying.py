"""Asking the last request of a conversation again, and the code that its newest turn has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from jp.app.options import Options
from jp.app.query.conversation import Held
from jp.app.query.past import message_of, request_of, standing_turns
from jp.app.query.structured import is_correction, where_to_look
from jp.conversation.entries import AnyEntry, ChatRequest, Revert
from jp.conversation.resource import Carrier
from jp.conversation.turns import cycles_of, is_blank, turns_of
from jp.errors import ExitCode, JpError, UsageError
from jp.tool.base import directory_of


class NoCodeError(JpError):
    """The answer has no code block; it is in the log."""

    exit_code = ExitCode.SCHEMA_MISMATCH


def code_in(entries: Sequence[AnyEntry], options: Options) -> str:
    """Return the first code block of the newest turn.

    Raises:
        NoCodeError: there is none.
    """
    code = first_code_block(said_in_newest_turn(entries))
    if code is None:
        hint = f"ask for one in so many words; {where_to_look(options)}"
        raise NoCodeError("the answer has no fenced code block", hint=hint)
    return code


def said_in_newest_turn(entries: Sequence[AnyEntry]) -> str:
    """The messages of a turn, each whole where it was continued."""
    messages = [message_of(cycle) for turn in turns_of(entries)[-1:] for cycle in cycles_of(turn)]
    return "\n\n".join(message for message in messages if message)


def first_code_block(text: str) -> str | None:
    """Return the text of the first fence that is not empty, at any depth; one that is not closed ends the text."""
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").disable("inline").parse(text)
    return next((block.content for block in blocks if block.type == "fence" and not is_blank(block.content)), None)


C = TypeVar("C", bound=Carrier)


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The request that is asked again, as it is stored, and the revert of its turn and of what came after it.

    `identity` is the id of the turn.
    """

    identity: str
    request: ChatRequest
    revert: Revert


class JoiningLog(Protocol):
    """A log that takes several entries in one step; see `jp.workspace.log.Log`."""

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The stream so far."""
        ...

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Append one entry."""
        ...

    def append_together(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Append several entries, or none of them."""
        ...

    def load(self, carrier: C, /) -> C:
        """The carrier with its content inline."""
        ...


class ReplacingRecorder:
    """A recorder of a turn that replaces another: with its request, and not before, the other turn is undone.

    Of what is appended together, what was asked for comes first: see `jp.turn.ports.TurnPorts.record`.
    """

    def __init__(self, log: JoiningLog, revert: Revert) -> None:
        self._log = log
        self._revert: Revert | None = revert

    @property
    def directory(self) -> Path | None:
        """See `jp.tool.base.OnDisk`."""
        return directory_of(self._log)

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """See the port, `jp.turn.ports.Recorder`."""
        return self._log.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        """See the port."""
        if self._revert is None or not isinstance(entry, ChatRequest):
            return self._log.append(entry)
        recorded = self._log.append_together((entry, self._revert))
        self._revert = None
        return recorded[0]

    def load(self, carrier: C, /) -> C:
        """See the port."""
        return self._log.load(carrier)


def last_request(entries: Sequence[AnyEntry]) -> Replayed:
    """The last request of a user in a stream that was not undone.

    Raises:
        UsageError: there is none, or its turn has no name by which it could be undone.
    """
    after: list[str] = []
    for turn in reversed(standing_turns(entries)):
        after.append(turn.id)
        request = request_of(turn)
        if request is None or is_correction(request):
            continue
        if not turn.id:
            raise UsageError("the last turn of this conversation cannot be undone", hint="type its words again")
        return Replayed(identity=turn.id, request=request, revert=Revert(entries=tuple(filter(None, after))))
    raise UsageError("this conversation has no turn that could be asked again", hint='ask something: `jp query "…"`')


def conversation_of(held: Held | None) -> Held:
    """The conversation whose last request is asked again.

    Raises:
        UsageError: there is none.
    """
    if held is None:
        raise UsageError(
            "there is no conversation here whose last request could be asked again",
            hint="name one: `jp query --id last --replay`",
        )
    return held


def again(held: Held | None, words: str, *, author: str | None, edited: str) -> tuple[ChatRequest, Revert]:
    """The last request of a conversation once more, and what undoes its turn.

    `words` are added to its own, or stand in their place where the user started from them: `edited` is that turn's id.
    The snapshots of the old turn come along, their content inline.

    Raises:
        UsageError: there is nothing to ask again, or it is no longer what the user has edited.
        StorageError: a snapshot cannot be read.
    """
    conversation = conversation_of(held)
    replayed = last_request(conversation.entries)
    if edited and edited != replayed.identity:
        raise UsageError(
            "the conversation has gone on since its last request was put into the editor",
            hint="look at it: `jp conversation print`",
        )
    parts = (words,) if edited else (replayed.request.content, words)
    request = replace(
        replayed.request,
        id="",
        at="",
        author=author,
        content="\n\n".join(text for text in parts if text.strip()),
        resources=tuple(conversation.loader.load(resource) for resource in replayed.request.resources),
    )
    return request, replayed.revert

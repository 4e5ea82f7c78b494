"""Forks: a range of turns, prepared from a conversation that is only read, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.options import Options
from jp.app.places import AnyWorkspace
from jp.app.settings import Sources, accepted_of, is_foreign, layers_from, layers_of, require_none_ignored, trust_store
from jp.compaction.overlays import forked_stream
from jp.config.layers import Layer
from jp.config.sources import frozen
from jp.config.trust import mark_of_change
from jp.conversation.entries import AnyEntry, ConfigDelta, Header, JsonObject
from jp.conversation.forking import TurnRange
from jp.conversation.turns import turns_of, undone
from jp.errors import StorageError, UsageError
from jp.workspace.files import SYSTEM, timestamp
from jp.workspace.lifecycle import Seed
from jp.workspace.listing import Metadata, Parent
from jp.workspace.store import Stream, original_of

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


def parse_turns(text: str, count: int, *, option: str) -> TurnRange:
    """The turns that `text` names of `count` turns. A range may reach beyond the last.

    Raises:
        UsageError: `text` is no range, or there are no such turns; it names `option`.
    """
    first, dots, end = text.partition("..")
    try:
        start = int(first) if first or not dots else 0
        stop = (int(end) if end else -1) if dots else start
    except ValueError:
        message = f"{option} cannot be {text!r}"
        raise UsageError(message, hint=f"write N, A..B, A.. or ..B, such as {option} 2..5") from None
    start, stop = (number + count if number < 0 else number for number in (start, stop))
    if 0 <= stop < start < count:
        raise UsageError(
            f"{option} {text}: the range is reversed, it ends before it begins",
            hint=f"write {option} {stop}..{start}: from the first turn to the last one",
        )
    if not 0 <= start < count or stop < start:
        raise _missing(f"{option} {text}", count)
    return TurnRange(first=start, last=min(stop, count - 1))


def parse_turn(text: str, count: int, *, option: str) -> int:
    """The number of the turn that `text` names of `count` turns.

    Raises:
        UsageError: `text` is no number, or there is no such turn; it names `option`.
    """
    try:
        number = int(text)
    except ValueError:
        message = f"{option} cannot be {text!r}"
        raise UsageError(message, hint=f"write the number of a turn, such as {option}=3 or {option}=-2") from None
    found = number + count if number < 0 else number
    if not 0 <= found < count:
        raise _missing(f"{option}={text}", count)
    return found


def _missing(written: str, count: int) -> UsageError:
    numbers = f"they are 0 to {count - 1}" if count else "there are none"
    return UsageError(f"{written}: there is no such turn", hint=f"of this conversation's turns {numbers}")


ChooseTurns = Callable[[Sequence[AnyEntry]], TurnRange]
"""A choice of the turns of a stream that a fork copies. It has at least one."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that is not written. `stream` is its source's, `layers` are its own settings.

    `metadata` has the source's title and labels. `accepted` are hashes of what counts as the user's in it. `notices`
    say what of it could not come along.
    """

    source: ConversationInfo
    stream: Stream
    entries: tuple[AnyEntry, ...]
    base_config: JsonObject
    layers: tuple[Layer, ...]
    metadata: Metadata
    local: bool
    accepted: frozenset[str]
    turns: TurnRange
    notices: tuple[str, ...]


class Forking(msgspec.Struct, frozen=True, kw_only=True):
    """The place where forks are made: what every fork of a command has in common."""

    options: Options
    workspace: AnyWorkspace
    sources: Sources

    def prepare(self, source: ConversationInfo, choose_turns: ChooseTurns, *, local: bool | None = None) -> Fork:
        """Read a conversation and decide what its fork is. A `local` of None: where the source lies.

        Raises:
            StorageError: it cannot be read.
            UntrustedError: a stranger's values would become the user's own.
            UsageError: it has no turns.
        """
        stream = self.workspace.read(source)
        if not turns_of(stream.entries):
            raise UsageError(f"conversation {str(source.id)!r} has no turns yet", hint="ask something in it first")
        turns = choose_turns(stream.entries)
        forked = forked_stream(stream.entries, turns)
        is_own = not is_foreign(self.workspace, source, stream.entries)
        metadata = _inherited(source, stream.entries, turns)
        is_local = source.local if local is None else local
        foreign = (self.workspace.root is not None and not is_local) or metadata.imported_at is not None
        if not foreign:
            self._require_own(source, stream.entries, is_own=is_own, folds=turns.first > 0)
        accepted = accepted_of(self.workspace, source)
        if is_own:
            accepted |= {*map(mark_of_change, own_changes(self.workspace.base_config(source), stream.entries))}
        base, is_clean = self._base_config(source, turns, forked.before, accepted)
        accepted |= {mark_of_change(base)} if is_clean else set[str]()
        return Fork(
            source=source,
            stream=stream,
            entries=forked.entries,
            base_config=base,
            layers=layers_from(base, forked.entries, foreign=foreign, accepted=accepted),
            metadata=metadata,
            local=is_local,
            accepted=accepted,
            turns=turns,
            notices=(*stream.notices, *forked.notices),
        )

    def write(self, fork: Fork, metadata: Metadata, *, topic: str = "") -> ConversationInfo:
        """Make a fork a conversation. `topic` names its directory where it has no title.

        Raises:
            StorageError: it could not be written; nothing of it is left.
        """
        words = topic or fork.source.directory.name.partition("-")[2].replace("-", " ")
        first = fork.stream.entries[0] if fork.stream.entries else None
        nonce = first.nonce if isinstance(first, Header) else ""
        seed = Seed(entries=fork.entries, blobs=fork.stream.blobs, nonce=nonce)
        info = self.workspace.create(fork.base_config, metadata, local=fork.local, topic=words, seed=seed)
        try:
            self._pass_trust_on(fork, info)
        except StorageError:
            self.take_back(info)
            raise
        return info

    def take_back(self, info: ConversationInfo) -> None:
        """Remove a fork that could not be completed."""
        with suppress(StorageError):
            self.workspace.remove(info, None)
        trust_store(self.options, self.workspace, info).forget()

    def _pass_trust_on(self, fork: Fork, info: ConversationInfo) -> None:
        """Have the user's decisions about the source hold for its fork."""
        if fork.accepted:
            trust_store(self.options, self.workspace, info).accept(fork.accepted)

    def _require_own(self, source: ConversationInfo, entries: Sequence[AnyEntry], *, is_own: bool, folds: bool) -> None:
        """Refuse to write a stranger's values where they would count as the user's; `folds`: those of files, too."""
        if is_own and not folds:
            return
        lower = tuple(layer for layer in self.sources.lower if folds or not layer.foreign)
        layers = layers_of(self.workspace, source, entries)
        require_none_ignored(replace(self.sources, lower=lower, cfg=()).resolve(conversation=layers), source)

    def _base_config(
        self, source: ConversationInfo, turns: TurnRange, before: Sequence[ConfigDelta], accepted: Collection[str]
    ) -> tuple[JsonObject, bool]:
        """Return the source's first configuration, and the deltas that held before the first turn that is copied.

        Besides, whether that was put together now, of nothing that waits for the user's trust.
        """
        base = self.workspace.base_config(source)
        if turns.first == 0 or not before:
            return base, False
        layers = layers_from(base, before, foreign=True, accepted=accepted)
        resolved = self.sources.resolve(conversation=layers, cfg=False)
        return frozen(resolved), not resolved.ignored


def _inherited(source: ConversationInfo, entries: Sequence[AnyEntry], turns: TurnRange) -> Metadata:
    """Return the metadata that a fork has from its source. A fork of what came from elsewhere came from there, too."""
    imported = source.metadata.imported_at
    if imported is None and original_of(entries) is not None:
        imported = timestamp(SYSTEM.now())
    return Metadata(
        title=source.metadata.title,
        untitled=source.metadata.untitled,
        first_words=source.metadata.first_words,
        labels=source.metadata.labels,
        imported_at=imported,
        parent=Parent(conversation=str(source.id), from_turn=turns.first, to_turn=turns.last),
    )


def up_to(text: str, *, option: str) -> ChooseTurns:
    """All turns up to and including the one that `text` names."""

    def choose(entries: Sequence[AnyEntry]) -> TurnRange:
        return TurnRange(first=0, last=parse_turn(text, len(turns_of(entries)), option=option))

    return choose


def own_changes(base_config: JsonObject, entries: Sequence[AnyEntry]) -> list[JsonObject]:
    """Return the changes of the configuration that a conversation of the user's own makes, one by one."""
    gone = undone(entries)
    deltas = [entry.delta for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return [base_config, *deltas]


def with_labels(metadata: Metadata, *, title: str | None, labels: Mapping[str, str]) -> Metadata:
    """The metadata of a fork under the title and with the labels that were asked for besides its source's."""
    untitled = metadata.untitled and title is None
    title = metadata.title if title is None else title
    return replace(metadata, title=title, untitled=untitled, labels={**metadata.labels, **labels})

"""Forks: prepared from a conversation that is only read, and then written, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.places import AnyWorkspace
from jp.cli.settings import Sources, layers_from, layers_of
from jp.cli.trust import accept_own, require_trust, trust_store
from jp.compaction.clipping import forked_stream
from jp.config.layers import Layer
from jp.config.stored import frozen
from jp.conversation.entries import AnyEntry, ConfigDelta, JsonObject
from jp.conversation.forking import TurnRange
from jp.conversation.reverts import undone
from jp.conversation.turns import turns_of
from jp.errors import UsageError
from jp.workspace.forking import Seed
from jp.workspace.metadata import Metadata, Parent
from jp.workspace.store import Stream

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo

ChooseTurns = Callable[[Sequence[AnyEntry]], TurnRange]
"""Which turns of a stream a fork copies. It has at least one."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that is not written. `stream` is its source's, `layers` are its own settings.

    `metadata` has the source's title and labels. `notices` say what of the source could not come along.
    """

    source: ConversationInfo
    stream: Stream
    entries: tuple[AnyEntry, ...]
    base_config: JsonObject
    layers: tuple[Layer, ...]
    metadata: Metadata
    local: bool
    turns: TurnRange
    notices: tuple[str, ...]


class Forking(msgspec.Struct, frozen=True, kw_only=True):
    """Where forks are made: what every one of a command has in common."""

    options: GlobalOptions
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
        is_local = source.local if local is None else local
        if is_local and (turns.first > 0 or not source.local):
            layers = layers_of(self.workspace, source, stream.entries)
            require_trust(self.sources.resolve(conversation=layers).layers, self.options, self.workspace, source)
        base = self._base_config(source, turns, forked.before)
        return Fork(
            source=source,
            stream=stream,
            entries=forked.entries,
            base_config=base,
            layers=layers_from(base, forked.entries, foreign=self.workspace.root is not None and not is_local),
            metadata=Metadata(
                title=source.metadata.title,
                labels=source.metadata.labels,
                parent=Parent(conversation=str(source.id), from_turn=turns.first, to_turn=turns.last),
            ),
            local=is_local,
            turns=turns,
            notices=(*stream.notices, *forked.notices),
        )

    def write(self, fork: Fork, metadata: Metadata, *, topic: str = "") -> ConversationInfo:
        """Make a fork a conversation. `topic` names its directory where it has no title.

        Raises:
            StorageError: it could not be written; nothing of it is left.
        """
        words = topic or fork.source.directory.name.partition("-")[2].replace("-", " ")
        seed = Seed(entries=fork.entries, blobs=fork.stream.blobs)
        info = self.workspace.create(fork.base_config, metadata, local=fork.local, topic=words, seed=seed)
        accepted = trust_store(self.options, self.workspace, fork.source).accepted()
        trust_store(self.options, self.workspace, info).accept(accepted)
        if fork.source.local and not info.local:
            for change in own_changes(fork.base_config, fork.entries):
                accept_own(change, self.options, self.workspace, info)
        return info

    def _base_config(self, source: ConversationInfo, turns: TurnRange, before: Sequence[ConfigDelta]) -> JsonObject:
        """What the source was created with, and the deltas that held before the first turn that is copied."""
        base = self.workspace.base_config(source)
        if turns.first == 0 or not before:
            return base
        foreign = self.workspace.root is not None and not source.local
        layers = layers_from(base, before, foreign=foreign)
        return frozen(self.sources.resolve(conversation=layers, cfg=False))


def own_changes(base_config: JsonObject, entries: Sequence[AnyEntry]) -> list[JsonObject]:
    """What a conversation of the user's own says of the configuration, change by change."""
    gone = undone(entries)
    deltas = [entry.delta for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return [base_config, *deltas]


def with_labels(metadata: Metadata, *, title: str | None, labels: dict[str, str]) -> Metadata:
    """The metadata of a fork under the title and with the labels that were asked for besides its source's."""
    return replace(metadata, title=metadata.title if title is None else title, labels={**metadata.labels, **labels})

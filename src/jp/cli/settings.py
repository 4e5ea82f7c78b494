"""The configuration that holds for a command, with and without a conversation."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.places import AnyWorkspace, current_directory
from jp.config.files import Places
from jp.config.layers import Ignored, Layer, Resolved
from jp.config.sources import cfg_layers, lower_layers
from jp.config.stored import conversation_layers
from jp.config.trust import Accepted, resolve_trusted, without_lapsing
from jp.conversation.entries import AnyEntry, ConfigDelta, JsonObject
from jp.conversation.turns import undone
from jp.errors import ConfigurationError
from jp.workspace.layout import MARKER, silo_directory, user_config_directory
from jp.workspace.store import original_of

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.workspace.listing import ConversationInfo


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What every configuration of this process is made of: the files and the environment, and `--cfg`."""

    places: Places
    lower: tuple[Layer, ...]
    cfg: tuple[Layer, ...]
    root: str
    accepted: Accepted
    resolved: dict[tuple[int, ...], Resolved] = {}
    """Results by the identities of their layers, which they hold: one command asks several times for the same."""

    def resolve(self, *, conversation: Sequence[Layer] = (), flags: Sequence[Layer] = (), cfg: bool = True) -> Resolved:
        """The configuration with a conversation's own layers and the options of a command; `cfg`: with `--cfg` too.

        What a stranger's files loosen and nobody has accepted is ignored in it.

        Raises:
            ConfigurationError: the layers do not fit together.
        """
        layers = [*self.lower, *conversation, *(self.cfg if cfg else ()), *flags]
        identity = tuple(map(id, layers))
        if identity not in self.resolved:
            self.resolved[identity] = resolve_trusted(layers, self.root, self.accepted)
        return self.resolved[identity]

    def kept(self, *, conversation: Sequence[Layer] | None, flags: Sequence[Layer]) -> Resolved:
        """What a conversation keeps of the configuration: without what the variables, `--cfg` and options loosen.

        A `conversation` of None is a new one.

        Raises:
            ConfigurationError: the layers do not fit together.
        """
        after = self.resolve(conversation=conversation or (), flags=flags)
        files = tuple(layer for layer in self.lower if layer.origin.kind != "environment")
        lasting = self if conversation is not None else replace(self, lower=files)
        if not self.cfg and not flags and lasting.lower == self.lower:
            return after
        return without_lapsing(after, lasting.resolve(conversation=conversation or (), cfg=False))

    def needing_trust(self, conversation: Sequence[Layer] = ()) -> tuple[Ignored, ...]:
        """What would be ignored if the user had accepted nothing yet, except of the conversation's own layers."""
        layers = [*self.lower, *conversation, *self.cfg]
        return resolve_trusted(layers, self.root).ignored


def read_sources(options: GlobalOptions, workspace: AnyWorkspace, *, lenient: bool = False) -> Sources:
    """Read the configuration files, the environment and `--cfg`.

    `lenient`: where one of the files or the environment is invalid, none of them counts, and a note says so.

    Raises:
        ConfigurationError: one of them is invalid.
    """
    places = config_places(workspace)
    try:
        lower = lower_layers(places, os.environ)
    except ConfigurationError as error:
        if not lenient:
            raise
        notice(options, f"printed without your settings: {error.message}")
        lower = []
    return Sources(
        places=places,
        lower=tuple(lower),
        cfg=tuple(cfg_layers(options.config, places, lower)),
        root=str(workspace.root or workspace.user_data),
        accepted=lambda: accepted_of(workspace),
    )


def accepted_of(workspace: AnyWorkspace, info: ConversationInfo | None = None) -> frozenset[str]:
    """The hashes of what the user has accepted of the workspace's files, or of one conversation."""
    from jp.workspace.trust import TrustStore

    conversation = "" if info is None else info.id.digits
    root = workspace.root or workspace.user_data
    return TrustStore(root, user_data=workspace.user_data, conversation=conversation).accepted()


def config_places(workspace: AnyWorkspace) -> Places:
    """Where configuration files lie for a command in `workspace`."""
    root = workspace.root
    private = None if root is None else silo_directory(root / MARKER, workspace.user_data, create=False)
    return Places(cwd=current_directory(), user=user_config_directory(os.environ), root=root, user_workspace=private)


def layers_of(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> tuple[Layer, ...]:
    """The layers of a conversation: what it was created with, and the deltas in its log that stand.

    Raises:
        StorageError: its base configuration is damaged.
    """
    foreign = is_foreign(workspace, info, entries)
    accepted = accepted_of(workspace, info) if foreign else frozenset[str]()
    return layers_from(workspace.base_config(info), entries, foreign=foreign, accepted=accepted)


def is_foreign(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> bool:
    """Whether somebody else may have written a conversation: it lies where others write, or it came from elsewhere."""
    is_shared = workspace.root is not None and not info.local
    return is_shared or info.metadata.imported_at is not None or original_of(entries) is not None


def layers_from(
    base: JsonObject, entries: Sequence[AnyEntry], *, foreign: bool, accepted: Collection[str] = ()
) -> tuple[Layer, ...]:
    """The layers of a conversation with the base configuration `base` and these entries."""
    gone = undone(entries)
    deltas = [(entry.id, entry.delta) for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return conversation_layers(base, deltas, foreign=foreign, accepted=accepted).layers


def trusted_config(options: GlobalOptions, *, say: bool = False) -> AppConfig:
    """The configuration that holds, in which no stranger decides where a key goes, or which one.

    `say`: with a notice where something is ignored.
    """
    from jp.cli.places import open_workspace
    from jp.cli.trust import tell_ignored

    resolved = read_sources(options, open_workspace(options)).resolve()
    if say:
        tell_ignored(options, resolved)
    return resolved.config


def own_config(options: GlobalOptions) -> AppConfig:
    """The configuration outside of any workspace."""
    from jp.workspace.layout import user_data_directory
    from jp.workspace.workspace import Workspace

    outside = Workspace(None, user_data=user_data_directory())
    return read_sources(options, outside).resolve().config

"""The configuration that holds for a command: layers read, merged, and checked for trust."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.places import AnyWorkspace, current_directory
from jp.config.layers import Layer, Resolved, resolve
from jp.config.places import Places, user_directory
from jp.config.sources import cfg_layers, lower_layers
from jp.config.stored import conversation_layers
from jp.config.trust import UntrustedError, trust_hash, values_needing_trust
from jp.conversation.entries import AnyEntry, ConfigDelta
from jp.conversation.reverts import undone
from jp.workspace.layout import MARKER, silo_directory

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.trust import TrustStore


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What every configuration of this process is made of: the files and the environment, and `--cfg`."""

    places: Places
    lower: tuple[Layer, ...]
    cfg: tuple[Layer, ...]

    def resolve(self, *, conversation: Sequence[Layer] = (), flags: Sequence[Layer] = (), cfg: bool = True) -> Resolved:
        """The configuration with a conversation's own layers and the options of a command; `cfg`: with `--cfg` too.

        Raises:
            ConfigurationError: the layers do not fit together.
        """
        return resolve([*self.lower, *conversation, *(self.cfg if cfg else ()), *flags])


def read_sources(options: GlobalOptions, workspace: AnyWorkspace) -> Sources:
    """Read the configuration files, the environment and `--cfg`.

    Raises:
        ConfigurationError: one of them is invalid.
    """
    places = config_places(workspace)
    lower = lower_layers(places, os.environ)
    return Sources(places=places, lower=tuple(lower), cfg=tuple(cfg_layers(options.config, places, lower)))


def config_places(workspace: AnyWorkspace) -> Places:
    """Where configuration files lie for a command in `workspace`."""
    root = workspace.root
    private = None if root is None else silo_directory(root / MARKER, workspace.user_data, create=False)
    return Places(cwd=current_directory(), user=user_directory(os.environ), root=root, user_workspace=private)


def layers_of(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> tuple[Layer, ...]:
    """The layers of a conversation: what it was created with, and the deltas in its log that stand.

    Raises:
        StorageError: its base configuration is damaged.
    """
    gone = undone(entries)
    deltas = [(entry.id, entry.delta) for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    foreign = workspace.root is not None and not info.local
    return conversation_layers(workspace.base_config(info), deltas, foreign=foreign).layers


def require_trust(layers: Sequence[Layer], options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Refuse to go on where files of the workspace declare what the user has not seen (design: safety).

    Raises:
        UntrustedError: they do; it says which values these are.
    """
    if workspace.root is None:
        return
    values = values_needing_trust(layers, str(workspace.root))
    if values and not trust_store(options, workspace, workspace.root).is_trusted(trust_hash(values)):
        raise UntrustedError(values)


def trust_lower(sources: Sources, options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Trust what the files of the workspace declare now.

    Raises:
        StorageError: that could not be remembered.
    """
    if workspace.root is not None:
        values = values_needing_trust(sources.lower, str(workspace.root))
        trust_store(options, workspace, workspace.root).trust(trust_hash(values))


def trust_store(options: GlobalOptions, workspace: AnyWorkspace, root: Path) -> TrustStore:
    """What the user has trusted of the workspace at `root`."""
    from jp.workspace.trust import TrustStore

    return TrustStore(root, user_data=workspace.user_data, persistent=options.persist)

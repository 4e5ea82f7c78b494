"""The configuration that holds for a command: layers read, and merged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.places import AnyWorkspace, current_directory
from jp.config.layers import Layer, Resolved, resolve
from jp.config.places import Places, user_directory
from jp.config.sources import cfg_layers, lower_layers
from jp.config.stored import conversation_layers
from jp.conversation.entries import AnyEntry, ConfigDelta, JsonObject
from jp.conversation.reverts import undone
from jp.errors import ConfigurationError
from jp.workspace.layout import MARKER, silo_directory
from jp.workspace.store import original_of

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


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
    return layers_from(workspace.base_config(info), entries, foreign=is_foreign(workspace, info, entries))


def is_foreign(workspace: AnyWorkspace, info: ConversationInfo, entries: Sequence[AnyEntry]) -> bool:
    """Whether somebody else may have written a conversation: it lies where others write, or it came from elsewhere."""
    is_shared = workspace.root is not None and not info.local
    return is_shared or info.metadata.imported_at is not None or original_of(entries) is not None


def layers_from(base: JsonObject, entries: Sequence[AnyEntry], *, foreign: bool) -> tuple[Layer, ...]:
    """The layers of a conversation with the base configuration `base` and these entries."""
    gone = undone(entries)
    deltas = [(entry.id, entry.delta) for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return conversation_layers(base, deltas, foreign=foreign).layers

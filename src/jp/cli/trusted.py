"""The configuration for who asks providers or looks for keys, outside of any conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.config.model import AppConfig


def trusted_config(options: GlobalOptions, *, say: bool = False) -> AppConfig:
    """The configuration that holds, in which no stranger decides where a key goes, or which one.

    `say`: with a notice where something is ignored.
    """
    from jp.cli.places import open_workspace
    from jp.cli.settings import read_sources
    from jp.cli.trust import tell_ignored

    resolved = read_sources(options, open_workspace(options)).resolve()
    if say:
        tell_ignored(options, resolved)
    return resolved.config


def own_config(options: GlobalOptions) -> AppConfig:
    """The configuration outside of any workspace."""
    from jp.cli.settings import read_sources
    from jp.workspace.layout import user_data_directory
    from jp.workspace.workspace import Workspace

    outside = Workspace(None, user_data=user_data_directory())
    return read_sources(options, outside).resolve().config

"""The configuration for who asks providers or looks for keys, outside of any conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.config.model import AppConfig


def trusted_config(options: GlobalOptions, *, say: bool = False) -> AppConfig:
    """The configuration, without a stranger's files where they say what the user has not accepted.

    So that nobody else decides where a key goes, or which one. `say`: with a notice where something does not count.
    """
    from jp.cli.output import notice
    from jp.cli.places import open_workspace
    from jp.cli.settings import read_sources
    from jp.cli.trust import sensitive_values, unaccepted
    from jp.config.layers import resolve

    workspace = open_workspace(options)
    layers = read_sources(options, workspace).resolve().layers
    if unaccepted(sensitive_values(layers, workspace), options, workspace):
        layers = tuple(layer for layer in layers if not layer.foreign)
        if say:
            notice(options, "the files of this workspace do not count here before `jp workspace trust`")
    return resolve(layers).config


def own_config(options: GlobalOptions) -> AppConfig:
    """The configuration outside of any workspace."""
    from jp.cli.settings import read_sources
    from jp.workspace.layout import user_data_directory
    from jp.workspace.workspace import Workspace

    outside = Workspace(None, user_data=user_data_directory())
    return read_sources(options, outside).resolve().config

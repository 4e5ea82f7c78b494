"""Where configuration files lie."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from jp.config.layers import LayerKind

FILE_NAME = "config.toml"
DIRECTORY_FILE_NAME = ".jp.toml"
WORKSPACE_DIRECTORY = ".jp"
FRAGMENTS = "config"
"""The directory for fragments, beside each `config.toml`."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The directories that are looked in; None: there is none.

    `user` holds the user's own configuration, `root` is the workspace's root, `user_workspace` holds what the user
    keeps for this workspace outside it.
    """

    cwd: Path
    user: Path | None = None
    root: Path | None = None
    user_workspace: Path | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is read if it is there."""

    kind: LayerKind
    path: Path

    @property
    def foreign(self) -> bool:
        """Whether it comes with the workspace, so that a stranger may have written it."""
        return self.kind in {"workspace", "directory"}


def user_directory(environ: Mapping[str, str]) -> Path | None:
    """The user's configuration directory: `$JP_GLOBAL_CONFIG_DIR`, `$XDG_CONFIG_HOME/jp`, or the platform's."""
    chosen = environ.get("JP_GLOBAL_CONFIG_DIR", "")
    if chosen:
        return Path(chosen).absolute()
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    if base.is_absolute():
        return base / "jp"
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute():
        return None
    return home / ("Library/Application Support" if sys.platform == "darwin" else ".config") / "jp"


def candidates(places: Places) -> Iterator[Candidate]:
    """The files, least specific first."""
    if places.user is not None:
        yield Candidate(kind="user", path=places.user / FILE_NAME)
    if places.root is not None:
        yield Candidate(kind="workspace", path=places.root / WORKSPACE_DIRECTORY / FILE_NAME)
        for directory in _down(places.root, places.cwd):
            yield Candidate(kind="directory", path=directory / DIRECTORY_FILE_NAME)
    if places.user_workspace is not None:
        yield Candidate(kind="user-workspace", path=places.user_workspace / FILE_NAME)


def _down(root: Path, cwd: Path) -> Iterator[Path]:
    if not cwd.is_relative_to(root):
        root, cwd = root.resolve(), cwd.resolve()
    parts = cwd.relative_to(root).parts if cwd.is_relative_to(root) else ()
    yield root
    for count in range(1, len(parts) + 1):
        yield root.joinpath(*parts[:count])

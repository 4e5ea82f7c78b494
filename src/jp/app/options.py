"""Options that hold for every use case, in any program that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from jp.app.targets import Picker


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a use case works, and its settings beside those of the files.

    A caller that wants to hear notices or logs, or has a picker, derives a class and overrides the method.

    Args:
        config: values such as `assistant.model.id=…`, left to right, as `--cfg` takes them.
        workspace: the directory of a workspace; None for the one around the current directory.
        persist: False writes nothing.
    """

    config: tuple[str, ...] = ()
    workspace: str | None = None
    persist: bool = True

    def notice(self, text: str) -> None:
        """Tell the user something that they may want to know. Nobody listens here."""
        del text

    def log(self, text: str, *, level: int = 1) -> None:
        """Tell how things are done, for a user who wants to know at least `level` of it. Nobody listens here."""
        del text, level

    def picker(self) -> Picker | None:
        """Return what lets a person choose a conversation; None where nobody can."""

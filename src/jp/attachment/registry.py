"""Which handler reads which scheme, and what users write made into declarations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, ResolveContext
from jp.attachment.declaration import Surroundings, parse, scheme_of
from jp.attachment.files.location import names_something


def _file() -> AttachmentHandler:
    from jp.attachment.files.reading import FileHandler

    return FileHandler()


def _github() -> AttachmentHandler:
    from jp.attachment.github.handler import GithubHandler

    return GithubHandler()


def _http() -> AttachmentHandler:
    from jp.attachment.web.handler import HttpHandler

    return HttpHandler()


def _command() -> AttachmentHandler:
    from jp.attachment.command import CommandHandler

    return CommandHandler()


BUILT_IN: Mapping[str, Callable[[], AttachmentHandler]] = {
    "file": _file,
    "gh": _github,
    "http": _http,
    "https": _http,
    "cmd": _command,
}
"""A function that imports and makes the handler, for each scheme that comes with jp."""


class AttachmentRegistry:
    """Handlers by scheme: jp's own, imported on first use, then those of other packages.

    `cache_directory` is where what other packages provide is remembered, None for nowhere. `joined` makes the
    handlers of schemes that need a port: whoever has it joins them.
    """

    def __init__(
        self,
        *,
        cache_directory: Path | None = None,
        joined: Mapping[str, Callable[[], AttachmentHandler]] | None = None,
    ) -> None:
        self._cache_directory = cache_directory
        self._own = {**BUILT_IN, **(joined or {})}
        self._handlers: dict[str, AttachmentHandler] = {}
        self._third_party: dict[str, str] | None = None

    def _others(self) -> dict[str, str]:
        if self._third_party is None:
            from jp.attachment.third_party import third_party_schemes

            self._third_party = third_party_schemes(self._cache_directory)
        return self._third_party

    def handler(self, uri: str) -> AttachmentHandler:
        """The handler for the scheme of `uri`.

        Raises:
            AttachmentError: there is none, or it does not load.
        """
        scheme = scheme_of(uri)
        if scheme not in self._handlers:
            self._handlers[scheme] = self._made(scheme, uri)
        return self._handlers[scheme]

    def _made(self, scheme: str, uri: str) -> AttachmentHandler:
        make = self._own.get(scheme)
        if make is not None:
            return make()
        value = self._others().get(scheme)
        if value is None:
            message = f"{uri!r} has the scheme {scheme!r}, which is not known"
            raise AttachmentError(message, hint=f"Known schemes: {', '.join(self.schemes())}.")
        from jp.attachment.third_party import load

        return load(scheme, value)

    def schemes(self) -> list[str]:
        """Every scheme that is known, sorted."""
        return sorted({*self._own, *self._others()})

    def declare(self, text: str, context: ResolveContext, *, confined: bool) -> Declaration:
        """Make what a user wrote canonical.

        `confined` is for what a file declares: its relative paths begin at the root, and it may not leave it. What is
        typed begins at the current directory. The result's `text` is declared to the same.

        Raises:
            AttachmentError: it is malformed, or of a scheme that is not known.
        """
        directory = os.path.abspath(context.root if confined else context.cwd)  # noqa: PTH100  keeps links and text
        around = Surroundings(
            directory=directory,
            exists=lambda path: names_something(path, directory),
            built_in=self._own.keys(),
            schemes=self.schemes,
        )
        written = parse(text, around)
        uri = self.handler(written.uri).canonical(written.uri, context)
        return Declaration(uri=uri, written=text, exclude=written.exclude, confined=confined)

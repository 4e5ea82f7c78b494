"""The handler of each scheme: built-in ones and those of other packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import msgspec
from msgspec.structs import replace

from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, Resolution, ResolveContext, in_units
from jp.attachment.declaration import Surroundings, parse, scheme_of
from jp.attachment.files.location import names_something
from jp.conversation.resource import size_in_bytes
from jp.entry_points import entries_of, load_entry, package_of
from jp.errors import JpError, reason_of


def _file() -> AttachmentHandler:
    from jp.attachment.files.handler import FileHandler

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
            self._third_party = third_party_schemes(self._cache_directory)
        return self._third_party

    def handler(self, uri: str) -> AttachmentHandler:
        """Return the handler for the scheme of `uri`.

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

        return load(scheme, value)

    def schemes(self) -> list[str]:
        """Return every scheme that is known, sorted."""
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


_MOST_RESOURCES = 2_000
_TOTAL = 10
"""Most bytes of all resources of a declaration, as a multiple of the bound of one."""

_REMEDY = "Tell its authors, or attach something else."


class Guarded:
    """A handler for `scheme`; `source` says where it comes from."""

    def __init__(self, handler: AttachmentHandler, scheme: str, source: Callable[[], str]) -> None:
        self._handler = handler
        self._scheme = scheme
        self._source = source

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """See the port. The result has to be text of the same scheme: another handler would read it.

        Raises:
            AttachmentError: `uri` is malformed, or the handler is defective.
        """
        try:
            found: object = self._handler.canonical(uri, context)
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever another package raises is told of
            self._fail(uri, error)
        try:
            text = msgspec.convert(found, str)
            text.encode()
        except (msgspec.ValidationError, UnicodeEncodeError):
            text = ""
        if scheme_of(text) != self._scheme:
            raise self._defect(uri, f"gave {found!r} for its canonical URI")
        return text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """See the port. What comes is of the types that the port says, and within its bounds.

        Raises:
            AttachmentError: see the port, or the handler is defective.
        """
        try:
            found: object = await self._handler.resolve(declaration, context, excludes=excludes)
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever another package raises is told of
            self._fail(declaration.written, error)
        try:
            resolution = _checked(found)
            _check_bounds(resolution, context)
        except _DefectError as defect:
            raise self._defect(declaration.written, str(defect)) from defect
        return resolution

    def _fail(self, written: str, error: BaseException) -> NoReturn:
        """Raise what a handler meant to say, alone or in the group of its tasks; anything else is a defect."""
        cause = _only_cause(error)
        if isinstance(cause, JpError):
            raise cause
        raise self._defect(written, f"failed: {type(cause).__name__}: {cause}") from error

    def _defect(self, written: str, problem: str) -> AttachmentError:
        message = f"{written!r}: the attachment scheme {self._scheme!r}, {self._source()}, {problem}"
        return AttachmentError(message, hint=_REMEDY)


class _DefectError(Exception):
    """A defect of a handler's result, as the rest of a sentence."""


def _only_cause(error: BaseException) -> BaseException:
    """Return what went wrong in the only task of a group that failed."""
    is_group = isinstance(error, BaseExceptionGroup)
    causes = cast("BaseExceptionGroup[BaseException]", error).exceptions if is_group else ()
    return _only_cause(causes[0]) if len(causes) == 1 else error


def _checked(found: object) -> Resolution:
    """Return what a handler gave, if it can be stored. Structs check nothing when they are made."""
    if not isinstance(found, Resolution):
        raise _DefectError(f"gave {type(found).__name__!r} where a Resolution has to be")
    try:
        plain: object = msgspec.to_builtins(found, builtin_types=(bytes,))
        resolution = msgspec.convert(plain, Resolution, builtin_types=(bytes,))
        for resource in resolution.resources:
            msgspec.json.encode(replace(resource, blob=None))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise _DefectError(f"gave what cannot be stored: {reason_of(error)}") from error
    for resource in resolution.resources:
        if not scheme_of(resource.uri):
            raise _DefectError(f"gave a resource whose URI is {resource.uri!r}")
        if resource.sha256 is not None or (resource.text is None) == (resource.blob is None):
            raise _DefectError(f"gave {resource.uri!r} with other than just one of text and blob")
    return resolution


def _check_bounds(resolution: Resolution, context: ResolveContext) -> None:
    bound = context.max_bytes
    if len(resolution.resources) > _MOST_RESOURCES:
        count = len(resolution.resources)
        raise _DefectError(f"gave {count:,} resources; at most {_MOST_RESOURCES:,} can be attached at once")
    sizes = {resource.uri: size_in_bytes(resource) for resource in resolution.resources}
    for uri, size in sizes.items():
        if size > bound:
            raise _DefectError(f"gave {uri!r} with {in_units(size)}; an attachment has at most {in_units(bound)}")
    if (total := sum(sizes.values())) > _TOTAL * bound:
        raise _DefectError(f"gave {in_units(total)} together; the most is {in_units(_TOTAL * bound)}")


GROUP = "jp.attachments"
"""The entry point group. The name of an entry is its scheme, its value a callable that gives a handler."""

_PACKAGE_REMEDY = "Update or uninstall the package that provides it."
_CACHE_NAME = "attachment-schemes.json"


def third_party_schemes(cache_directory: Path | None) -> dict[str, str]:
    """Return the entry points of other packages: a value such as `package.module:Handler` for each scheme.

    `cache_directory` may be missing or not writable: then every call looks anew.
    """
    found = entries_of(GROUP, None if cache_directory is None else cache_directory / _CACHE_NAME)
    return dict(sorted(((name.lower(), value) for name, value in found.items()), reverse=True))


def load(scheme: str, value: str) -> AttachmentHandler:
    """Import the handler that an entry point names.

    Raises:
        AttachmentError: it cannot be imported, or is no handler.
    """
    try:
        found = load_entry(value)
        handler = found() if callable(found) else found
    except (Exception, SystemExit) as error:
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which failed to load: {error}"
        raise AttachmentError(message, hint=_PACKAGE_REMEDY) from error
    if not (callable(getattr(handler, "canonical", None)) and callable(getattr(handler, "resolve", None))):
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which is not a handler"
        raise AttachmentError(message, hint=_PACKAGE_REMEDY)

    return Guarded(cast("AttachmentHandler", handler), scheme, lambda: _source(scheme, value))


def _source(scheme: str, value: str) -> str:
    return package_of(GROUP, scheme, value)

"""Schemes that other packages add, by entry point; what their handlers give is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, cast

import msgspec
from msgspec.structs import replace

from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, Resolution, ResolveContext
from jp.attachment.declaration import scheme_of
from jp.attachment.files.failures import in_units
from jp.conversation.resource import size_in_bytes
from jp.entry_points import entries_of, load_entry, package_of
from jp.errors import JpError, reason_of

_MOST_RESOURCES = 2_000
_TOTAL = 10
"""How many times the bound of one resource all resources of a declaration may have together."""

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
    """What is wrong with what a handler gave, as the rest of a sentence."""


def _only_cause(error: BaseException) -> BaseException:
    """What went wrong in the only task of a group that failed."""
    is_group = isinstance(error, BaseExceptionGroup)
    causes = cast("BaseExceptionGroup[BaseException]", error).exceptions if is_group else ()
    return _only_cause(causes[0]) if len(causes) == 1 else error


def _checked(found: object) -> Resolution:
    """What a handler gave, if it can be stored. Structs check nothing when they are made."""
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
    """The entry points of other packages: a value such as `package.module:Handler` for each scheme.

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

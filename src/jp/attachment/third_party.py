"""Schemes that other packages add, by entry point."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from jp.attachment.base import AttachmentError, AttachmentHandler
from jp.entry_points import entries_of, load_entry, package_of

GROUP = "jp.attachments"
"""The entry point group. The name of an entry is its scheme, its value a callable that gives a handler."""

_REMEDY = "Update or uninstall the package that provides it."
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
        raise AttachmentError(message, hint=_REMEDY) from error
    if not (callable(getattr(handler, "canonical", None)) and callable(getattr(handler, "resolve", None))):
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which is not a handler"
        raise AttachmentError(message, hint=_REMEDY)

    from jp.attachment.guard import Guarded

    return Guarded(cast("AttachmentHandler", handler), scheme, lambda: _source(scheme, value))


def _source(scheme: str, value: str) -> str:
    return package_of(GROUP, scheme, value)

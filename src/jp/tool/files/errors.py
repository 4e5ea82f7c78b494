"""What a file tool cannot do, in words for a model."""

from __future__ import annotations

from jp.errors import JpError


class FileAccessError(JpError):
    """A file is missing, out of bounds or of a kind that is not read; or what was asked for does not fit it."""

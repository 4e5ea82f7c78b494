"""What excludes take away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from jp.attachment.base import Declaration, ResolveContext
from jp.attachment.files.location import Location, locate, parts_of, real_path
from jp.attachment.files.names import Names, joined
from jp.attachment.files.pattern import PathPattern


class _Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """A path, as URIs spell it, and what of the things below it; None means it and all of them."""

    names: list[str]
    below: PathPattern | None
    written: str
    typed: bool

    def covers(self, names: list[str]) -> bool:
        if names[: len(self.names)] != self.names:
            return False
        return self.below is None or self.below.covers(names[len(self.names) :])


class Exclusion:
    """Which files are not to be attached. One object serves one resolution."""

    def __init__(self, excludes: Sequence[Declaration], context: ResolveContext, names: Names) -> None:
        """`excludes` are `file` declarations.

        Raises:
            AttachmentError: one of them is malformed.
        """
        self._names = names
        self._excluded = tuple(
            _Excluded(
                names=parts_of(names.spelled(path)),
                below=_below(location),
                written=declaration.written,
                typed=declaration.typed,
            )
            for declaration in excludes
            for location in (locate(declaration.uri, context, names),)
            for path in _paths(location, names)
        )

    def by(self, path: str) -> str | None:
        """The exclude, as written, that takes away the file or directory at `path`; None where none does."""
        if not self._excluded:
            return None
        parts = parts_of(self._names.spelled(path))
        return next((excluded.written for excluded in self._excluded if excluded.covers(parts)), None)

    def give_way_to(self, *paths: str) -> None:
        """Forget the excludes that were declared earlier and take away what lies at one of `paths`."""
        places = [parts_of(self._names.spelled(path)) for path in paths] if self._excluded else []
        self._excluded = tuple(
            excluded for excluded in self._excluded if excluded.typed or not any(map(excluded.covers, places))
        )


def _below(location: Location) -> PathPattern | None:
    return PathPattern(location.tail) if location.tail else None


def _paths(location: Location, names: Names) -> Iterator[str]:
    """The place as it is written, and as a walk comes to it: through no link, though it may be one itself."""
    if location.tail or location.path == "/":
        real = real_path(location.path, names)
    else:
        directory, name = os.path.split(location.path)
        real = joined(real_path(directory, names), name)
    yield location.path
    if real != location.path:
        yield real

"""What the vendors' SDKs make of a request by their own types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def assert_typed(body: Mapping[str, Any], types: TypeAdapter[Any]) -> None:
    """The types have a place for everything in `body`, and miss nothing.

    What they do not know they would drop, so what comes out has to equal what went in.
    """
    assert _all_read(types.validate_python(body)) == body


def _all_read(value: object) -> object:
    """The value with everything lazy read: only reading validates it."""
    if isinstance(value, Mapping):
        return {key: _all_read(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return [_all_read(item) for item in cast("Iterable[object]", value)]

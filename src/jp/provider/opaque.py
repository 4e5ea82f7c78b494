"""Opaque metadata, such as a signature: it is for the model that made it, and for no other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.entries import JsonObject
from jp.provider.models import canonical_name


def is_readable(metadata: JsonObject | None, provider: str, model: str, *, reads: Sequence[str] = ()) -> bool:
    """Return whether `model` takes reasoning with this metadata: its own, or that of a model which it `reads`."""
    return any(is_made_by(metadata, provider, maker) for maker in (model, *reads))


def is_made_by(metadata: JsonObject | None, provider: str, model: str) -> bool:
    """Whether `metadata` comes from this model of this provider; snapshots of a model take each other's."""
    given = metadata or {}
    maker = given.get("model")
    if given.get("provider") != provider or not isinstance(maker, str):
        return False
    return canonical_name(maker) == canonical_name(model)

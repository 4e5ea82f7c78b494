"""Errors of estimates for each model, as its provider has reported: a small file among the user's caches.

It is a help and no more: where it cannot be read nothing is known, where it cannot be written nothing is learned, and
no request is ever made of it. The last process that writes wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from jp.context.breakdown import Calibration, calibrate, ratio_of
from jp.errors import StorageError
from jp.file_access import read_beginning, replace_cached
from jp.turn.measuring import Measured

_VERSION = 1
_LARGEST = 1024 * 1024
_MOST_MODELS = 200
_NOTABLE = 0.01
"""The ratio has to move by this share, or the answers to double, or nothing is written."""


class KnownError(msgspec.Struct, frozen=True):
    """The correction known for a model: its tokens for one that is estimated, learned from so many answers."""

    ratio: float = 1.0
    answers: int = 0


class _File(msgspec.Struct, frozen=True):
    version: int
    models: dict[str, KnownError]
    """By `provider/model`; what was learned last is last."""


def known_error(model: str) -> KnownError:
    """Return the correction known for a model, `provider/model`."""
    path = _path()
    known = KnownError() if path is None else _read(path).get(model, KnownError())
    return KnownError(ratio_of(Calibration({model: known.ratio}), model), known.answers)


def learn(provider: str, measured: Iterable[Measured]) -> None:
    """Keep what the answers of a provider teach, where that is news. It never fails."""
    path = _path()
    if path is None:
        return
    models = _read(path)
    after = dict(models)
    for one in measured:
        name = f"{provider}/{one.model}"
        _learn(after, name, one)
    if any(_is_news(models.get(name), known) for name, known in after.items() if known is not models.get(name)):
        _write(path, after)


def _learn(models: dict[str, KnownError], name: str, measured: Measured) -> None:
    before = models.get(name)
    known = Calibration({} if before is None else {name: before.ratio})
    learned = calibrate(known, name, estimated=measured.estimated, reported=measured.reported)
    if name in learned.ratios and learned is not known:
        models.pop(name, None)
        models[name] = KnownError(learned.ratios[name], 1 if before is None else before.answers + 1)


def _is_news(before: KnownError | None, after: KnownError) -> bool:
    if before is None or after.answers >= 2 * before.answers:
        return True
    return abs(after.ratio - before.ratio) >= _NOTABLE * before.ratio


def _path() -> Path | None:
    from jp.workspace.layout import user_cache_directory

    try:
        return user_cache_directory() / "estimates.json"
    except StorageError:
        return None


def _read(path: Path) -> dict[str, KnownError]:
    try:
        stored = msgspec.json.decode(read_beginning(path, _LARGEST), type=_File)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
    return stored.models if stored.version == _VERSION else {}


def _write(path: Path, models: dict[str, KnownError]) -> None:
    kept = dict(list(models.items())[-_MOST_MODELS:])
    with suppress(StorageError):
        replace_cached(path, msgspec.json.encode(_File(_VERSION, kept)))

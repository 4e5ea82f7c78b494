"""What is known of a model: its window, its prices, and how far estimates of its tokens are off."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.config.model import AppConfig, LlmConfig
from jp.context.calibration import Calibration, calibrate, ratio_of
from jp.errors import JpError, StorageError
from jp.provider.base import ModelDetails
from jp.provider.registry import ModelId
from jp.reading import read_beginning
from jp.turn.measuring import Measured
from jp.turn.spending import DetailsOf

if TYPE_CHECKING:
    from jp.provider.catalogue.store import Catalogue, CatalogueStore, Kept


def details_of(config: AppConfig, model: ModelId) -> ModelDetails:
    """What is known of a model, for people: windows, limits and prices; None where a value is unknown.

    It never fails, whatever `model.provider` is: a log may name one that nobody knows any more. A provider's
    catalogue is read once in a process.
    """
    from jp.provider.catalogue.known import known_model

    settings = config.providers.llm
    return known_model(settings, model, _catalogue(settings, model.provider)).details


def catalogue_store() -> CatalogueStore:
    """The user's catalogues.

    Raises:
        StorageError: there is no place for them.
    """
    from jp.provider.catalogue.store import CatalogueStore
    from jp.workspace.layout import user_cache_directory

    return CatalogueStore(user_cache_directory() / "models")


def kept_of(settings: LlmConfig, provider: str) -> Kept:
    """What is kept of a provider's models, nothing where it has no address or there is no place."""
    from jp.provider.catalogue.store import Kept
    from jp.provider.registry import base_url_of

    try:
        return catalogue_store().read(provider, base_url_of(settings, provider, os.environ))
    except JpError:
        return Kept()


def _catalogue(settings: LlmConfig, provider: str) -> Catalogue | None:
    from jp.provider.registry import base_url_of

    try:
        return _read_once(provider, base_url_of(settings, provider, os.environ))
    except JpError:
        return None


@cache
def _read_once(provider: str, base_url: str) -> Catalogue | None:
    return catalogue_store().read(provider, base_url).catalogue


def pricing(config: AppConfig) -> DetailsOf:
    """What is known of each model, looked up once. It never fails."""

    @cache
    def look_up(provider: str, name: str) -> ModelDetails:
        return details_of(config, ModelId(provider, name))

    return look_up


_VERSION = 1
_LARGEST = 1024 * 1024
_MOST_MODELS = 200
_NOTABLE = 0.01
"""The ratio has to move by this share, or the answers to double, or nothing is written."""


class Known(msgspec.Struct, frozen=True):
    """What is known of a model: its tokens for one that is estimated, learned from so many answers."""

    ratio: float = 1.0
    answers: int = 0


class _File(msgspec.Struct, frozen=True):
    version: int
    models: dict[str, Known]
    """By `provider/model`; what was learned last is last."""


def known_of(model: str) -> Known:
    """What is known of a model, `provider/model`."""
    path = _path()
    known = Known() if path is None else _read(path).get(model, Known())
    return Known(ratio_of(Calibration({model: known.ratio}), model), known.answers)


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


def _learn(models: dict[str, Known], name: str, measured: Measured) -> None:
    before = models.get(name)
    known = Calibration({} if before is None else {name: before.ratio})
    learned = calibrate(known, name, estimated=measured.estimated, reported=measured.reported)
    if name in learned.ratios and learned is not known:
        models.pop(name, None)
        models[name] = Known(learned.ratios[name], 1 if before is None else before.answers + 1)


def _is_news(before: Known | None, after: Known) -> bool:
    if before is None or after.answers >= 2 * before.answers:
        return True
    return abs(after.ratio - before.ratio) >= _NOTABLE * before.ratio


def _path() -> Path | None:
    from jp.workspace.layout import user_cache_directory

    try:
        return user_cache_directory() / "estimates.json"
    except StorageError:
        return None


def _read(path: Path) -> dict[str, Known]:
    try:
        stored = msgspec.json.decode(read_beginning(path, _LARGEST), type=_File)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
    return stored.models if stored.version == _VERSION else {}


def _write(path: Path, models: dict[str, Known]) -> None:
    temporary = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
    kept = dict(list(models.items())[-_MOST_MODELS:])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(_File(_VERSION, kept)))
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()

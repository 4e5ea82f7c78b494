"""Models as use cases need them: windows, prices, abilities, and the keys of accounts."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from jp.config.model import AppConfig, LlmConfig
from jp.conversation.entries import JsonObject
from jp.errors import JpError
from jp.provider.base import ModelDetails
from jp.provider.registry import ModelId
from jp.turn.usage import DetailsOf

if TYPE_CHECKING:
    from jp.provider.catalogue import CachedCatalogue, Catalogue, CatalogueStore
    from jp.provider.discovery import Proposal
    from jp.provider.key_storage import KeyRing, KeyStorage
    from jp.provider.keys import FoundKey

_CATALOGUES = "models"
"""Directory of the catalogues in the user's cache."""


def details_of(config: AppConfig, model: ModelId) -> ModelDetails:
    """Return the details of a model, for people: windows, limits and prices; None where a value is unknown.

    It never fails, whatever `model.provider` is: a log may name one that nobody knows any more. A provider's
    catalogue is read once in a process.
    """
    from jp.provider.catalogue import model_facts

    settings = config.providers.llm
    return model_facts(settings, model, _catalogue(settings, model.provider)).details


def catalogue_store() -> CatalogueStore:
    """Return the user's catalogues.

    Raises:
        StorageError: there is no place for them.
    """
    from jp.provider.catalogue import CatalogueStore
    from jp.workspace.layout import user_cache_directory

    return CatalogueStore(user_cache_directory() / _CATALOGUES)


def kept_of(settings: LlmConfig, provider: str) -> CachedCatalogue:
    """Return the stored list of a provider's models, empty where it has no address or there is no place."""
    from jp.provider.catalogue import CachedCatalogue
    from jp.provider.registry import base_url_of

    try:
        return catalogue_store().read(provider, base_url_of(settings, provider, os.environ))
    except JpError:
        return CachedCatalogue()


def _catalogue(settings: LlmConfig, provider: str) -> Catalogue | None:
    from jp.provider.registry import base_url_of

    try:
        return _read_once(provider, base_url_of(settings, provider, os.environ))
    except JpError:
        return None


@cache
def _read_once(provider: str, base_url: str) -> Catalogue | None:
    from jp.workspace.layout import user_cache_directory

    if not (user_cache_directory() / _CATALOGUES).is_dir():
        return None  # nobody has refreshed a list: nothing has to be imported for it
    return catalogue_store().read(provider, base_url).catalogue


def listed_abilities(config: AppConfig, model: ModelId) -> JsonObject:
    """Return the abilities that the provider lists otherwise than jp's table has them, for the request's parameters."""
    catalogue = _catalogue(config.providers.llm, model.provider)
    if catalogue is None:
        return {}
    from jp.provider.catalogue import listed_abilities

    return listed_abilities(config.providers.llm, model, catalogue)


def pricing(config: AppConfig) -> DetailsOf:
    """Return a function that gives the details of a model, looked up once for each. It never fails."""

    @cache
    def look_up(provider: str, name: str) -> ModelDetails:
        return details_of(config, ModelId(provider, name))

    return look_up


class UserKeys:
    """The stored keys. Nothing is imported or read before one is asked for, and none gets into what jp says."""

    def find(self, provider: str) -> FoundKey | None:
        """Return the key that is stored for a provider.

        Raises:
            JpError: what is stored may not be used, or cannot be read.
        """
        from jp.render.sanitize import keep_secret

        found = open_key_storage().find(provider)
        if found is not None:
            keep_secret(found.key)
        return found

    def may_have(self, provider: str) -> bool:
        """Return whether a key has been stored for a provider."""
        return open_key_storage().may_have(provider)


def has_stored_key(provider: str) -> bool:
    """Return whether a usable key is stored for a provider."""
    try:
        return UserKeys().find(provider) is not None
    except JpError:
        return False


def usable_models(settings: LlmConfig) -> tuple[Proposal, ...]:
    """Return a model for each account that can be used: with a key, or a server that is declared and responds."""
    from jp.provider.discovery import proposals

    return proposals(settings, os.environ, has_stored_key=has_stored_key, is_declared=True)


def open_key_storage() -> KeyStorage:
    """Open the storage of the user's keys: the keyring, and a file in the user's data directory.

    Raises:
        StorageError: there is no place for the user's data.
    """
    from jp.provider.key_storage import KeyFile, KeyStorage
    from jp.workspace.layout import user_data_directory

    def ring() -> KeyRing | None:
        from jp.provider.key_storage import open_ring

        return open_ring()

    return KeyStorage(KeyFile(user_data_directory() / "keys.json"), ring)

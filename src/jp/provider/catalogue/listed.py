"""What a provider says of its models, in one form for all of them. Pure."""

from __future__ import annotations

import msgspec


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model as its provider lists it. None is what it does not say; prices are USD for a million tokens.

    `aliases` are other names that the server takes for it. `levels` are those of reasoning, least first, empty where
    none are said; `thinks` tells whether there is any. `answers` is false for what only embeds, hears or paints.
    `mandatory` tells whether reasoning cannot be turned off; `shutdown` is the day (YYYY-MM-DD) from which the model
    does not answer any more.
    """

    id: str
    aliases: tuple[str, ...] = ()
    title: str = ""
    context_window: int | None = None
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    tools: bool | None = None
    images: bool | None = None
    documents: bool | None = None
    structured: bool | None = None
    thinks: bool | None = None
    levels: tuple[str, ...] = ()
    answers: bool | None = None
    mandatory: bool | None = None
    shutdown: str = ""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list. `skipped` counts entries that say nothing usable; `next` is what asks for the next part."""

    models: tuple[Listed, ...]
    skipped: int = 0
    next: str = ""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """All that a provider listed, when (`at`, RFC 3339 UTC), and at which address."""

    provider: str
    base_url: str
    at: str
    models: tuple[Listed, ...]
    skipped: int = 0

    def find(self, name: str) -> Listed | None:
        """The model that the provider knows by a name."""
        return next((model for model in self.models if name == model.id or name in model.aliases), None)

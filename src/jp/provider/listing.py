"""Models as providers list them, and what reads an entry of such a list. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model as its provider lists it. None is what it does not say; prices are USD for a million tokens.

    `aliases` are other names that the server takes for it. `levels` are those of reasoning, least first, empty where
    none are said; `thinks` tells whether there is any. `answers` is false for what only embeds, hears or paints.
    `mandatory` tells whether reasoning cannot be turned off, `thinks_by_default` whether it takes place unasked,
    `budgets` whether it can be bounded by a number of tokens; `shutdown` is the day (YYYY-MM-DD) from which the model
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
    thinks_by_default: bool | None = None
    budgets: bool | None = None
    shutdown: str = ""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list. `skipped` counts entries that say nothing usable; `next` is what asks for the next part."""

    models: tuple[Listed, ...]
    skipped: int = 0
    next: str = ""


_MOST_TOKENS = 1_000_000_000
_MILLION = 1_000_000
_LONGEST_NAME = 200

Fields = dict[str, object]


def fields(value: object) -> Fields:
    """A JSON object; an empty one where it is something else."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """A JSON array; an empty one where it is something else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """A text; an empty one where it is something else."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> frozenset[str]:
    """The texts of an array."""
    return frozenset(item for item in items(value) if isinstance(item, str))


def name(value: object) -> str:
    """A model's name as a person could type it; an empty one where it is none.

    A name with `~` is none: OpenRouter calls by it what stands for another model from day to day.
    """
    found = text(value)
    is_plain = found.isprintable() and not any(character.isspace() or character == "~" for character in found)
    return found if is_plain and len(found) <= _LONGEST_NAME else ""


def tokens(*values: object) -> int | None:
    """The first of several values that is a count of tokens; zero says that a server does not know."""
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS:
            return int(value)
    return None


def flag(value: object) -> bool | None:
    """A truth value."""
    return value if isinstance(value, bool) else None


def price(value: object) -> float | None:
    """A price for one token, also as a text, as one for a million; a negative one says that it varies."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return round(found * _MILLION, 6) if math.isfinite(found) and found >= 0 else None


LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Levels of reasoning in the words of the vendors, least first."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def day(value: object) -> str:
    """Return a date as it is written, empty where it is none."""
    said = text(value)
    return said if _DAY.fullmatch(said) else ""


def read_page(body: object, where: str, read: Callable[[Fields], Listed], *, after: str = "") -> Page | None:
    """Return what a page of a list says, None where it is no such page.

    Args:
        body: The page.
        where: The field that holds the models.
        read: Reads one of them.
        after: The field that says where the next page begins, empty where there is none.
    """
    if not isinstance(fields(body).get(where), list):
        return None
    models: dict[str, Listed] = {}
    skipped = 0
    for entry in items(fields(body).get(where)):
        model = read(fields(entry))
        if model.id:
            models.setdefault(model.id, model)
        else:
            skipped += 1
    return Page(models=tuple(models.values()), skipped=skipped, next=text(fields(body).get(after)))


def read_chat_models(body: object) -> Page | None:
    """Return what a server lists that speaks Chat Completions: each adds to OpenAI's list what it likes."""
    return read_page(body, "data", _chat)


def _chat(entry: Fields) -> Listed:
    able = fields(entry.get("capabilities"))
    meta = fields(entry.get("meta"))
    window = tokens(*map(entry.get, ("max_model_len", "context_length", "context_window", "max_context_length")))
    return Listed(
        id=name(entry.get("id")),
        aliases=tuple(sorted({name(alias) for alias in items(entry.get("aliases"))} - {"", name(entry.get("id"))})),
        context_window=window or tokens(meta.get("n_ctx"), meta.get("n_ctx_train")),
        max_output=tokens(entry.get("max_completion_tokens"), entry.get("max_output_tokens")),
        tools=flag(able.get("function_calling")),
        images=flag(able.get("vision")),
        answers=flag(able.get("completion_chat")),
    )


PAGE_SIZE = 1000
"""As many as the servers that have pages give at once."""

NO_KEY = "-"
"""What an SDK believes to be the key: it needs none, since our headers are sent."""


def server_root(base_url: str) -> str:
    """The address of a server without the version of its API, below which it says what it is itself."""
    return base_url.rstrip("/").removesuffix("/v1")


async def all_pages(page: Any) -> list[object]:
    """Return all pages of a list that an SDK turns, as JSON."""
    pages: list[object] = [page.model_dump(mode="json", by_alias=True)]
    while page.has_next_page():
        page = await page.get_next_page()
        pages.append(page.model_dump(mode="json", by_alias=True))
    return pages

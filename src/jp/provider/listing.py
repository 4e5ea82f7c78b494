"""Models as providers list them, and parsers for entries of such lists. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec


class ListedModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model as its provider lists it. None is a value that the list lacks; prices are USD for a million tokens.

    Attributes:
        aliases: other names that the server accepts for it.
        levels: levels of reasoning, least first; empty if the list has none.
        thinks: whether the model reasons.
        answers: false for a model that only makes embeddings, transcripts or images.
        mandatory: whether reasoning cannot be turned off.
        thinks_by_default: whether it reasons without being asked.
        budgets: whether reasoning can be limited to a number of tokens.
        shutdown: the day (YYYY-MM-DD) from which the model does not respond.
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
    """A page of a list. `skipped` counts entries that are not usable; `next` is the cursor of the next page."""

    models: tuple[ListedModel, ...]
    skipped: int = 0
    next: str = ""


_MOST_TOKENS = 1_000_000_000
_MILLION = 1_000_000
_LONGEST_NAME = 200

Fields = dict[str, object]


def fields(value: object) -> Fields:
    """Return a JSON object; an empty one for any other value."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return a JSON array; an empty one for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a string; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> frozenset[str]:
    """Return the strings of an array."""
    return frozenset(item for item in items(value) if isinstance(item, str))


def name(value: object) -> str:
    """Return a model's name that a user can type; an empty one if there is none.

    A name with `~` is not one: OpenRouter uses it for an alias whose model changes over time.
    """
    found = text(value)
    is_plain = found.isprintable() and not any(character.isspace() or character == "~" for character in found)
    return found if is_plain and len(found) <= _LONGEST_NAME else ""


def tokens(*values: object) -> int | None:
    """Return the first value that is a count of tokens; zero means that the server does not know."""
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS:
            return int(value)
    return None


def flag(value: object) -> bool | None:
    """Return a boolean, None for any other value."""
    return value if isinstance(value, bool) else None


def price(value: object) -> float | None:
    """Return the price of a million tokens, given that of one as a number or string; None if negative: it varies."""
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
    """Return a date as it is written, empty if it is not one."""
    said = text(value)
    return said if _DAY.fullmatch(said) else ""


def read_page(body: object, where: str, read: Callable[[Fields], ListedModel], *, after: str = "") -> Page | None:
    """Return the page in a JSON value, None if it is not a page.

    Args:
        body: The JSON value.
        where: The field that holds the models.
        read: The parser of one model.
        after: The field with the cursor of the next page, empty if there is none.
    """
    if not isinstance(fields(body).get(where), list):
        return None
    models: dict[str, ListedModel] = {}
    skipped = 0
    for entry in items(fields(body).get(where)):
        model = read(fields(entry))
        if model.id:
            models.setdefault(model.id, model)
        else:
            skipped += 1
    return Page(models=tuple(models.values()), skipped=skipped, next=text(fields(body).get(after)))


def read_chat_models(body: object) -> Page | None:
    """Return the page of a server that speaks Chat Completions: each extends OpenAI's list with its own fields."""
    return read_page(body, "data", _chat)


def _chat(entry: Fields) -> ListedModel:
    able = fields(entry.get("capabilities"))
    meta = fields(entry.get("meta"))
    window = tokens(*map(entry.get, ("max_model_len", "context_length", "context_window", "max_context_length")))
    return ListedModel(
        id=name(entry.get("id")),
        aliases=tuple(sorted({name(alias) for alias in items(entry.get("aliases"))} - {"", name(entry.get("id"))})),
        context_window=window or tokens(meta.get("n_ctx"), meta.get("n_ctx_train")),
        max_output=tokens(entry.get("max_completion_tokens"), entry.get("max_output_tokens")),
        tools=flag(able.get("function_calling")),
        images=flag(able.get("vision")),
        answers=flag(able.get("completion_chat")),
    )


PAGE_SIZE = 1000
"""Page size that all servers with pages accept."""

NO_KEY = "-"
"""Placeholder key for an SDK, which does not need one because jp's headers are sent."""


def server_root(base_url: str) -> str:
    """Return the URL of a server without the version of its API; below it are its own endpoints."""
    return base_url.rstrip("/").removesuffix("/v1")


async def all_pages(page: Any) -> list[object]:
    """Return all pages of a list that an SDK iterates, as JSON."""
    pages: list[object] = [page.model_dump(mode="json", by_alias=True)]
    while page.has_next_page():
        page = await page.get_next_page()
        pages.append(page.model_dump(mode="json", by_alias=True))
    return pages

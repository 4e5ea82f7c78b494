"""Lists of models as providers write them. Pure: what they mean, and where the next page is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import cast

from jp.provider.catalogue.store import Listed, Page

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


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_SPEECHLESS = frozenset({
    *("audio", "babbage", "dall", "davinci", "embedding", "image", "instruct", "moderation", "realtime"),
    *("sora", "transcribe", "tts", "whisper"),
})
"""What OpenAI's list has besides models that answer in words, where their names are all that it says of them."""


def read_page(kind: str, body: object) -> Page | None:
    """What a page of a provider's list says; None where it is no such page. `kind` is what the server speaks."""
    match kind:
        case "anthropic":
            return _page(body, "data", _anthropic, after="last_id" if fields(body).get("has_more") is True else "")
        case "google":
            return _page(body, "models", _google, after="nextPageToken")
        case "openai":
            return _page(body, "data", _openai)
        case "openrouter":
            return _page(body, "data", _openrouter)
        case "ollama":
            return _page(body, "models", read_ollama)
        case _:
            return _page(body, "data", _chat)


def _page(body: object, where: str, read: Callable[[Fields], Listed], *, after: str = "") -> Page | None:
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


def _anthropic(entry: Fields) -> Listed:
    able = fields(entry.get("capabilities"))

    def supports(what: str) -> bool | None:
        return flag(fields(able.get(what)).get("supported"))

    effort = fields(able.get("effort"))
    levels = tuple(level for level in _LEVELS if fields(effort.get(level)).get("supported") is True)
    return Listed(
        id=name(entry.get("id")),
        title=text(entry.get("display_name")),
        context_window=tokens(entry.get("max_input_tokens")),
        max_output=tokens(entry.get("max_tokens")),
        images=supports("image_input"),
        documents=supports("pdf_input"),
        structured=supports("structured_outputs"),
        thinks=supports("thinking"),
        levels=levels,
    )


def _google(entry: Fields) -> Listed:
    # The vendor's SDK has another name for what the API calls methods.
    methods = texts(entry.get("supportedGenerationMethods") or entry.get("supportedActions"))
    return Listed(
        id=name(text(entry.get("name")).removeprefix("models/")),
        title=text(entry.get("displayName")),
        context_window=tokens(entry.get("inputTokenLimit")),
        max_output=tokens(entry.get("outputTokenLimit")),
        thinks=flag(entry.get("thinking")),
        answers="generateContent" in methods if methods else None,
    )


def _openai(entry: Fields) -> Listed:
    found = name(entry.get("id"))
    return Listed(
        id=found,
        answers=None if _SPEECHLESS.isdisjoint(found.split("-")) else False,
        shutdown=_day(entry.get("shutdown_date")),
    )


def _day(value: object) -> str:
    """Return a date as it is written, empty where it is none."""
    said = text(value)
    return said if _DAY.fullmatch(said) else ""


def _openrouter(entry: Fields) -> Listed:
    best = fields(entry.get("top_provider"))
    prices = fields(entry.get("pricing"))
    made = fields(entry.get("architecture"))
    taken = texts(made.get("input_modalities"))
    given = texts(made.get("output_modalities"))
    parameters = texts(entry.get("supported_parameters"))
    reasoning = fields(entry.get("reasoning"))
    efforts = texts(reasoning.get("supported_efforts"))
    return Listed(
        id=name(entry.get("id")),
        title=text(entry.get("name")),
        context_window=tokens(best.get("context_length"), entry.get("context_length")),
        max_output=tokens(best.get("max_completion_tokens")),
        input_price=price(prices.get("prompt")),
        output_price=price(prices.get("completion")),
        cache_read_price=price(prices.get("input_cache_read")),
        cache_write_price=price(prices.get("input_cache_write")),
        tools="tools" in parameters if parameters else None,
        images="image" in taken if taken else None,
        documents="file" in taken if taken else None,
        structured="structured_outputs" in parameters if parameters else None,
        thinks="reasoning" in parameters if parameters else None,
        levels=tuple(level for level in _LEVELS if level in efforts),
        mandatory=flag(reasoning.get("mandatory")),
        shutdown=_day(entry.get("expiration_date")),
        answers="text" in given if given else None,
    )


def _chat(entry: Fields) -> Listed:
    """An entry of a server that speaks OpenAI's Chat Completions: each adds to it what it likes."""
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


def read_ollama(entry: Fields) -> Listed:
    """A model as Ollama lists it, or as it shows it when it is asked for one."""
    found = name(entry.get("model") or entry.get("name"))
    able = texts(entry.get("capabilities"))
    trained = (value for key, value in fields(entry.get("model_info")).items() if key.endswith(".context_length"))
    return Listed(
        id=found,
        aliases=(found.removesuffix(":latest"),) if found.endswith(":latest") else (),
        context_window=tokens(fields(entry.get("details")).get("context_length"), *trained),
        tools="tools" in able if able else None,
        images="vision" in able if able else None,
        thinks="thinking" in able if able else None,
        answers="completion" in able if able else None,
    )


def with_properties(page: Page, properties: object) -> Page:
    """The page of llama.cpp with what the server says of itself: how much it really holds, which is what it was told.

    That is said of the one model that it has loaded.
    """
    from msgspec.structs import replace

    said = fields(properties)
    window = tokens(fields(said.get("default_generation_settings")).get("n_ctx"))
    if len(page.models) != 1 or window is None:
        return page
    template = fields(said.get("chat_template_caps"))
    (model,) = page.models
    changed = replace(
        model,
        context_window=window,
        images=flag(fields(said.get("modalities")).get("vision")),
        tools=flag(template.get("supports_tools")),
    )
    return replace(page, models=(changed,))

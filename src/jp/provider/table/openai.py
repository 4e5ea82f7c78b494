"""OpenAI's models, newest first, and open ones of the family that other servers run."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from jp.provider.base import Abilities, Level, Model, ModelDetails

PromptCache = Literal["automatic", "extended", "explicit"]
"""How the prompt cache is asked for: not at all; to be kept for a day; or by breakpoints, and by none to be without."""

_MOST_LEVELS: tuple[Level, ...] = ("none", "low", "medium", "high", "xhigh", "max")

_GPT_6 = Abilities(thinking="levels", levels=_MOST_LEVELS, thinks_by_default=True)
_ASTRA = Abilities(thinking="levels", levels=_MOST_LEVELS[1:], thinks_by_default=True, thinking_off="never")
_BOUND = msgspec.structs.replace(_ASTRA, bound_thinking=True)
_GPT_5_5 = Abilities(thinking="levels", levels=_MOST_LEVELS[:5], thinks_by_default=True)
_GPT_5_4 = Abilities(thinking="levels", levels=_MOST_LEVELS[:5], sampling=True)
_GPT_5_1 = Abilities(thinking="levels", levels=_MOST_LEVELS[:4])
_GPT_5 = Abilities(
    thinking="levels", levels=("minimal", "low", "medium", "high"), thinks_by_default=True, thinking_off="never"
)
_CODEX = Abilities(thinking="levels", levels=_MOST_LEVELS[1:5], thinks_by_default=True, thinking_off="never")
_PRO = Abilities(thinking="levels", levels=_MOST_LEVELS[2:5], thinks_by_default=True, thinking_off="never")
_PRO_AT_ONCE = msgspec.structs.replace(_PRO, streams=False)
_GPT_5_PRO = Abilities(thinking="levels", levels=("high",), thinks_by_default=True, thinking_off="never")
_O_SERIES = Abilities(thinking="levels", levels=("low", "medium", "high"), thinks_by_default=True, thinking_off="never")
_PLAIN = Abilities(thinking="none", levels=(), sampling=True)
_OSS = Abilities(
    thinking="levels",
    levels=("low", "medium", "high"),
    thinks_by_default=True,
    thinking_off="never",
    sampling=True,
    sampling_while_thinking=True,
    structured=False,
    images=False,
    documents=False,
)


class _Price(msgspec.Struct, frozen=True):
    """USD for a million tokens; `read` is what those cost that come from the cache, None where that is unknown.

    `writes` says that what goes into the cache costs a quarter more, `steps` that long prompts cost more.
    """

    input: float
    output: float
    read: float | None
    writes: bool = False
    steps: bool = False


_LONG_PROMPT = 272_000

_SHUTDOWNS: dict[str, tuple[str, str | None]] = {
    "gpt-5": ("2026-12-11", "gpt-6.1-sol"),
    "gpt-5-mini": ("2026-12-11", "gpt-6.1-terra"),
    "gpt-5-nano": ("2026-12-11", None),
    "gpt-5-pro": ("2026-12-11", None),
    "o3": ("2026-12-11", None),
    "o3-pro": ("2026-12-11", None),
    "gpt-4.1": ("2027-01-14", "gpt-6-luna"),
    "gpt-4.1-mini": ("2027-01-14", "gpt-6-luna"),
    "gpt-4o": ("2027-01-14", "gpt-6-luna"),
    "gpt-4o-mini": ("2027-01-14", "gpt-6-luna"),
    "gpt-5.1": ("2027-04-01", None),
    "gpt-5.3-codex": ("2027-04-01", None),
    "gpt-5.4-nano": ("2027-04-01", None),
}
"""Shutdown date of each model, and the successor that OpenAI names.

From developers.openai.com/api/docs/deprecations, read 2026-11-22; of o3, the pro models and those of 2027 as dev.to
quotes that page on 2026-10-28 and later.
"""


def _model(name: str, limits: tuple[int, int], price: _Price | None, abilities: Abilities) -> Model:
    details = ModelDetails(provider="openai", id=name, context_window=limits[0], max_output=limits[1])
    if price is not None:
        write = round(price.input * 1.25, 6) if price.writes else None
        details = msgspec.structs.replace(
            details,
            input_price=price.input,
            output_price=price.output,
            cache_read_price=price.read,
            cache_write_price=write,
            cache_write_long_price=write,
            long_prompt=_LONG_PROMPT if price.steps else None,
            long_prompt_factor=2.0 if price.steps else 1.0,
            long_prompt_output_factor=1.5 if price.steps else None,
        )
    day, successor = _SHUTDOWNS.get(name, (None, None))
    details = msgspec.structs.replace(details, shutdown=day, successor=successor)
    return Model(details=details, abilities=abilities)


_LARGE = (1_050_000, 128_000)
_MEDIUM = (400_000, 128_000)
_O = (200_000, 100_000)
_GPT_4_1 = (1_047_576, 32_768)
_GPT_4O = (128_000, 16_384)
_OPEN = (131_072, 131_072)
"""The context window and the longest output, in tokens."""

_SOL_5_6 = _Price(4.0, 20.0, 0.4, writes=True, steps=True)
_GPT_5_PRICE = _Price(1.25, 10.0, 0.125)
_GPT_5_2_PRICE = _Price(1.75, 14.0, 0.175)

MODELS = (
    # Prices, limits and levels of 6.2: LiteLLM discussion 52347 and docs.laozhang.ai, both 2026-11-18.
    _model("gpt-6.2-astra", _LARGE, _Price(8.0, 40.0, 0.4, writes=True, steps=True), _BOUND),
    _model("gpt-6.2-sol", _LARGE, _Price(2.0, 10.0, 0.1, writes=True, steps=True), _BOUND),
    # It takes low to max, and no none: apidog.com, gpt-6-1-terra-vs-gpt-6-1-sol, 2026-10.
    _model("gpt-6.1-sol", _LARGE, _Price(2.0, 10.0, 0.1, writes=True, steps=True), _ASTRA),
    _model("gpt-6.1-terra", _LARGE, _Price(1.0, 5.0, 0.05, writes=True, steps=True), _GPT_6),
    _model("gpt-6-astra", _LARGE, _Price(10.0, 50.0, 1.0, writes=True, steps=True), _ASTRA),
    _model("gpt-6-sol", _LARGE, _Price(2.0, 10.0, 0.2, writes=True, steps=True), _GPT_6),
    _model("gpt-6-luna", _LARGE, _Price(0.1, 0.5, 0.01, writes=True, steps=True), _GPT_6),
    _model("gpt-5.6", _LARGE, _SOL_5_6, _GPT_6),
    _model("gpt-5.6-sol", _LARGE, _SOL_5_6, _GPT_6),
    _model("gpt-5.6-terra", _LARGE, _Price(2.0, 12.0, 0.2, writes=True, steps=True), _GPT_6),
    _model("gpt-5.6-luna", _LARGE, _Price(0.2, 1.2, 0.02, writes=True, steps=True), _GPT_6),
    _model("gpt-5.5", _LARGE, _Price(5.0, 30.0, 0.5, steps=True), _GPT_5_5),
    _model("gpt-5.5-pro", _LARGE, _Price(30.0, 180.0, None, steps=True), _PRO_AT_ONCE),
    _model("gpt-5.4", _LARGE, _Price(2.5, 15.0, 0.25, steps=True), _GPT_5_4),
    _model("gpt-5.4-pro", _LARGE, _Price(30.0, 180.0, None, steps=True), _PRO),
    _model("gpt-5.4-mini", _MEDIUM, _Price(0.75, 4.5, 0.075), _GPT_5_4),
    _model("gpt-5.4-nano", _MEDIUM, _Price(0.2, 1.25, 0.02), _GPT_5_4),
    _model("gpt-5.3-codex", _MEDIUM, _GPT_5_2_PRICE, _CODEX),
    _model("gpt-5.2", _MEDIUM, _GPT_5_2_PRICE, _GPT_5_4),
    _model("gpt-5.2-codex", _MEDIUM, _GPT_5_2_PRICE, _CODEX),
    _model("gpt-5.2-pro", _MEDIUM, _Price(21.0, 168.0, None), _PRO),
    _model("gpt-5.1", _MEDIUM, _GPT_5_PRICE, _GPT_5_1),
    _model("gpt-5", _MEDIUM, _GPT_5_PRICE, _GPT_5),
    _model("gpt-5-mini", _MEDIUM, _Price(0.25, 2.0, 0.025), _GPT_5),
    _model("gpt-5-nano", _MEDIUM, _Price(0.05, 0.4, 0.005), _GPT_5),
    _model("gpt-5-pro", _MEDIUM, _Price(15.0, 120.0, None), _GPT_5_PRO),
    _model("o3", _O, _Price(2.0, 8.0, 0.5), _O_SERIES),
    _model("o3-pro", _O, _Price(20.0, 80.0, None), _O_SERIES),
    _model("gpt-4.1", _GPT_4_1, _Price(2.0, 8.0, 0.5), _PLAIN),
    _model("gpt-4.1-mini", _GPT_4_1, _Price(0.4, 1.6, 0.1), _PLAIN),
    _model("gpt-4o", _GPT_4O, _Price(2.5, 10.0, 1.25), _PLAIN),
    _model("gpt-4o-mini", _GPT_4O, _Price(0.15, 0.6, 0.075), _PLAIN),
    _model("gpt-oss-120b", _OPEN, None, _OSS),
    _model("gpt-oss-20b", _OPEN, None, _OSS),
)

SMALL = "gpt-6-luna"
"""The cheap model, for what jp itself has to ask."""

_EXTENDED = frozenset({"gpt-5.5", "gpt-5.5-pro", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-4.1"})
"""Models before 5.6 that keep a prompt for a day where that is asked for."""

_OWN = re.compile(r"(gpt-(?!oss)|o\d|chatgpt-|codex-)")
_GENERATION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_FIRST_EXPLICIT = (5, 6)
_FIRST_THINKING = (5, 0)
_FIRST_BOUND = (6, 2)
"""From here on reasoning behind a changed prefix is dropped (developers.openai.com, guides/latest-model/gpt-6.2-astra
and guides/keep-prefix-unchanged, looked up 2026-11-22)."""

_NEW = _GPT_5_5
_FOREIGN = Abilities(
    thinking="levels",
    levels=("low", "medium", "high"),
    sampling=True,
    sampling_while_thinking=True,
    structured=False,
    documents=False,
)


def is_own(name: str) -> bool:
    """Whether the provider itself has the model, rather than a server that only speaks its protocol."""
    return _OWN.match(name) is not None


def _generation(name: str) -> tuple[int, int] | None:
    found = _GENERATION.match(name)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def prompt_cache(name: str) -> PromptCache:
    """How a model's prompt cache is asked for; `name` is without the date of a snapshot."""
    generation = _generation(name)
    if generation is not None and generation >= _FIRST_EXPLICIT:
        return "explicit"
    return "extended" if name in _EXTENDED else "automatic"


def inferred(name: str) -> Abilities:
    """What a model that is not in the table can be expected to do.

    One that is called as OpenAI calls its own is taken for a newer one, or an older one by its number; any other for
    another server's that speaks the same protocol.
    """
    if not is_own(name):
        return _FOREIGN
    if re.match(r"o\d", name):
        return _O_SERIES
    generation = _generation(name)
    if generation is not None and generation >= _FIRST_BOUND:
        return _BOUND
    is_chat = generation is None or generation < _FIRST_THINKING or name.endswith("-chat-latest")
    return _PLAIN if is_chat else _NEW

"""What models of Ollama can be expected to do, by their names: which there are is up to each server."""

from __future__ import annotations

import re

from jp.provider.base import Abilities, Model

MODELS: tuple[Model, ...] = ()

SMALL = ""
"""None: a second model would take the memory of the first."""

_THINKING = re.compile(
    r"qwen3(?!-(coder|embedding)|-vl.*instruct|.*-instruct)|deepseek-(r1|v3\.[1-9]|v4)|qwq|magistral|cogito|exaone-deep"
    r"|phi4(-mini)?-reasoning|openthinker|smallthinker|deepscaler|marco-o1|nemotron-(3|cascade)|glm-(4\.[5-9]|5)"
    r"|minimax-m[2-9]|kimi-k2(-thinking|\.[5-9])|gemma[4-9]|lfm2\.5-thinking|olmo-3(\.\d)?-think|granite4\.[1-9]"
    r"|.*-thinking"
)
"""Families whose template turns thinking on and off; only what is sure of it is here."""

_PLAIN = re.compile(
    r"(llama|llava|codellama|tinyllama|mistral|mixtral|ministral|devstral|gemma[23]?n?(?![4-9])|codegemma|phi3|phi4(?!.*reasoning)"
    r"|qwen(?!3|q)|qwen3-coder|command-|aya|falcon|starcoder|codestral|granite3|smollm|moondream|bakllava|minicpm-v"
    r"|deepseek-(coder|llm|v2)|yi|solar|vicuna|zephyr|orca|neural-chat|openchat|nous-hermes|stablelm|dolphin)"
)
"""Families that do not think: asked to, the server refuses."""

_BLIND = re.compile(
    r"(llama(2|3|3\.1|3\.2|3\.3)?(?=[:-]|$)(?!.*vision)|codellama|tinyllama|mistral(?!-(small3\.[1-9]|large-3|medium))|mixtral"
    r"|gemma(2|3n)?(?=[:-]|$)|codegemma|phi3(?!.*vision)|phi4|qwen(2|2\.5|3)?(?=[:-]|$)(?!.*vl)|qwen(2\.5|3)-coder|qwq"
    r"|deepseek|gpt-oss|command-r|codestral|starcoder|granite(?!.*vision)|smollm2|tinydolphin|yi|cogito(?!-2)|magistral:.*2506)"
)
"""Families that take no images."""


def _family(name: str) -> str:
    """A name without who has published it, in lower case."""
    return name.rpartition("/")[2].lower()


def is_in_cloud(name: str) -> bool:
    """Whether a model runs on Ollama's own machines, whichever server is asked for it."""
    return _family(name).endswith(("-cloud", ":cloud"))


def is_own(name: str) -> bool:
    """Whether the provider itself has the model: any that a server has pulled is its own."""
    return bool(name)


def thinks(name: str) -> bool | None:
    """Whether a model thinks; None where its name does not tell."""
    family = _family(name)
    if family.startswith("gpt-oss") or _THINKING.match(family):
        return True
    return False if _PLAIN.match(family) else None


def inferred(name: str) -> Abilities:
    """What a model can be expected to do. What its name does not tell is left to the server to refuse."""
    family = _family(name)
    is_gpt_oss = family.startswith("gpt-oss")
    return Abilities(
        thinking="levels" if is_gpt_oss else "none" if thinks(name) is False else "adaptive",
        thinking_off="never" if is_gpt_oss else "disabled",
        thinks_by_default=bool(thinks(name)),
        levels=("low", "medium", "high") if is_gpt_oss else (),
        forced_tools=False,
        sampling=True,
        sampling_while_thinking=True,
        images=_BLIND.match(family) is None,
        documents=False,
    )

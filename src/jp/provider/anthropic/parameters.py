"""How a request is asked for: the choice of tool, sampling, limits, and what only the API knows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.abilities import Model
from jp.provider.anthropic.thinking import Thinking, unmet
from jp.provider.asking import not_sent, sampling_of

_UNKNOWN_CLAUDE_OUTPUT = 32_000
"""What every Claude since 4.1 can write; a model that is newer than the table can write more."""

_UNKNOWN_OUTPUT = 8_192
"""What other servers of this protocol commonly accept."""

PROTECTED = frozenset({"model", "messages", "tools", "system", "stream", "cache_control"})
"""What `other` cannot set: it would not be what the log says was sent."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of tool on the wire. `plea` asks for a tool in words, where the model cannot be forced."""

    wire: JsonObject | None = None
    forces: bool = False
    plea: str = ""


def longest_output(parameters: Parameters, model: Model) -> int:
    """How many tokens the model may write: what is configured, or as many as it can."""
    if parameters.max_tokens is not None:
        return parameters.max_tokens
    known = model.details.max_output
    if known is not None:
        return known
    return _UNKNOWN_CLAUDE_OUTPUT if model.details.id.startswith("claude-") else _UNKNOWN_OUTPUT


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model) -> Choice:
    """The choice of tool. A name is one of `tools`."""
    wanted = parameters.tool_choice
    if not tools or wanted == "auto":
        return Choice()
    if wanted == "none":
        return Choice(wire={"type": "none"})
    names = [tool.name for tool in tools]
    # With a single tool the API wants `any`: naming it is unreliable.
    is_free = wanted == "required" or len(names) == 1
    if not model.abilities.forced_tools:
        plea = (
            "Call one of the tools now."
            if is_free and len(names) > 1
            else f"Call the tool {_named(wanted, names)} now."
        )
        return Choice(plea=plea)
    return Choice(wire={"type": "any"} if is_free else {"type": "tool", "name": wanted}, forces=True)


def _named(wanted: str, names: Sequence[str]) -> str:
    return repr(names[0] if wanted == "required" else wanted)


def takes_sampling(model: Model, thinking: Thinking) -> bool:
    """Whether the API accepts temperature and the like: not while thinking, and not from 4.7 on."""
    return model.abilities.sampling and not thinking.is_active


def left_out(parameters: Parameters, model: Model, thinking: Thinking, *, forced: bool) -> tuple[str, ...]:
    """Sentences about the parameters that are not sent as they were asked for. `forced`: a call of a tool is."""
    name, sentences = model.details.id, list[str]()
    sampling = sampling_of(parameters)
    if sampling and not takes_sampling(model, thinking):
        why = f"{name!r} takes none while it reasons" if model.abilities.sampling else f"{name!r} takes none"
        sentences.append(not_sent(sampling, why))
    max_tokens = longest_output(parameters, model)
    return (*sentences, *unmet(parameters, model, thinking, max_tokens=max_tokens, forced=forced))

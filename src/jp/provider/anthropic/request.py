"""A thread as a request of the Messages API. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from jp.context.cache_hints import Piece, count_markable, place_hints
from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Effort, IncrementalMap, Parameters, Thread, ToolDefinition
from jp.provider.anthropic.messages import (
    PROVIDER,
    THINKING_TYPES,
    Builder,
    Message,
    Messages,
    Place,
    build_messages,
    settle_trailing_answer,
    text_block,
)
from jp.provider.base import Model, Sections, SentMessage, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import model_for
from jp.provider.parameters import SHARES, call_request, effort_of, is_off, merged, nearest_level, not_sent, sampling_of
from jp.provider.transcript import IncrementalMessages

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Beta header that lets a request ask to drop thoughts whose signature no longer fits."""

_LEAST_BUDGET = 1024


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking on the wire. `is_active` says whether the model may think; `effort` goes into the output's config."""

    wire: JsonObject | None = None
    is_active: bool = False
    effort: str | None = None


def _off(model: Model) -> Thinking:
    """Explicitly off: a model that thinks by default would go on thinking, unseen and billed."""
    match model.abilities.thinking_off:
        case "disabled":
            return Thinking(wire={"type": "disabled"})
        case "between_tools":
            return Thinking(wire={"type": "between_tools"}, is_active=True)
        case "never":
            return Thinking(is_active=True)
        case _:
            assert_never(model.abilities.thinking_off)


def _adaptive(effort: Effort | None, model: Model) -> Thinking:
    wire: JsonObject = {"type": "adaptive", "display": "summarized"}
    if model.abilities.bound_thinking:
        # A compaction changes what came before a signature; without this, the whole request is refused then.
        wire["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    return Thinking(
        wire=wire, is_active=True, effort=None if effort is None else nearest_level(effort, model.abilities.levels)
    )


def _ceiling(max_tokens: int) -> int:
    return max_tokens - min(_LEAST_BUDGET, max_tokens // 10)


def _budget(parameters: Parameters, max_tokens: int) -> Thinking:
    """Return a number of tokens below the output limit, so that an answer fits after the thoughts."""
    ceiling = _ceiling(max_tokens)
    if ceiling < _LEAST_BUDGET:
        return Thinking(wire={"type": "disabled"})
    if isinstance(parameters.reasoning, int):
        wanted = parameters.reasoning
    else:
        wanted = max_tokens * SHARES[effort_of(parameters, max_tokens) or "medium"] // 100
    tokens = max(_LEAST_BUDGET, min(wanted, ceiling))
    return Thinking(wire={"type": "enabled", "budget_tokens": tokens, "display": "summarized"}, is_active=True)


def thinking_of(parameters: Parameters, model: Model, *, max_tokens: int, plain: bool) -> Thinking:
    """Return the thinking settings of a request.

    `plain` turns thinking off if possible: a tool is forced, or the answer to be continued did not begin with a
    thought, which the API requires of models with a budget.
    """
    abilities = model.abilities
    thinks = abilities.thinks_by_default if parameters.reasoning is None else True
    if is_off(parameters):
        return _off(model)
    if not thinks:
        return Thinking()
    if plain and abilities.thinking_off == "disabled":
        return _off(model)
    if abilities.thinking == "budget":
        return _budget(parameters, max_tokens)
    return _adaptive(effort_of(parameters, max_tokens), model)


def unmet(parameters: Parameters, model: Model, thinking: Thinking, *, max_tokens: int, forced: bool) -> Iterator[str]:
    """Sentences about reasoning that is not sent as it was asked for. `forced`: the model is made to call a tool."""
    name, wanted = model.details.id, parameters.reasoning
    if is_off(parameters):
        if thinking.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif wanted is not None and not thinking.is_active:
        yield f"reasoning {wanted!r} not sent: {_hindrance(model, max_tokens=max_tokens, forced=forced)}"
    elif isinstance(wanted, int):
        yield from _changed_number(wanted, thinking, name, max_tokens)
    elif wanted in {"xhigh", "max"} and thinking.effort not in {None, wanted}:
        yield f"reasoning {wanted!r} sent as {thinking.effort!r}, the most that {name!r} knows"


def _hindrance(model: Model, *, max_tokens: int, forced: bool) -> str:
    if model.abilities.thinking == "budget" and _ceiling(max_tokens) < _LEAST_BUDGET:
        return f"it takes {_LEAST_BUDGET} tokens at least, and the longest output, {max_tokens}, holds the answer too"
    name = model.details.id
    return f"{name!r} does not reason about a call that it has to make" if forced else f"{name!r} goes on without it"


def _changed_number(wanted: int, thinking: Thinking, name: str, max_tokens: int) -> Iterator[str]:
    sent = None if thinking.wire is None else thinking.wire.get("budget_tokens")
    if sent is None:
        yield f"reasoning {wanted} sent as {thinking.effort!r}: {name!r} takes no number of tokens"
    elif sent < wanted:
        yield f"reasoning {wanted} sent as {sent}: the longest output, {max_tokens}, holds the answer too"
    elif sent > wanted:
        yield f"reasoning {wanted} sent as {sent}, the least that {name!r} takes"


_UNKNOWN_CLAUDE_OUTPUT = 32_000
"""Output limit of every Claude since 4.1; a model newer than the table may have a higher one."""

_UNKNOWN_OUTPUT = 8_192
"""Output limit that other servers of this protocol commonly accept."""

PROTECTED = frozenset({"model", "messages", "tools", "system", "stream", "cache_control"})
"""Fields that `other` cannot set: the log would not say what was sent."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of tool on the wire. `plea` asks for a tool in words, where the model cannot be forced."""

    wire: JsonObject | None = None
    forces: bool = False
    plea: str = ""


def longest_output(parameters: Parameters, model: Model) -> int:
    """Return the most tokens that the model may write: the configured number, or the model's limit."""
    if parameters.max_tokens is not None:
        return parameters.max_tokens
    known = model.details.max_output
    if known is not None:
        return known
    return _UNKNOWN_CLAUDE_OUTPUT if model.details.id.startswith("claude-") else _UNKNOWN_OUTPUT


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model) -> Choice:
    """Return the tool choice; a name is one of `tools`."""
    wanted = parameters.tool_choice
    if not tools or wanted == "auto":
        return Choice()
    if wanted == "none":
        return Choice(wire={"type": "none"})
    names = [tool.name for tool in tools]
    # With a single tool the API wants `any`: naming it is unreliable.
    is_free = wanted == "required" or len(names) == 1
    if not model.abilities.forced_tools:
        return Choice(plea=call_request(wanted, names))
    return Choice(wire={"type": "any"} if is_free else {"type": "tool", "name": wanted}, forces=True)


def takes_sampling(model: Model, thinking: Thinking) -> bool:
    """Return whether the API accepts temperature and similar parameters: not while thinking, and not from 4.7 on."""
    return model.abilities.sampling and not thinking.is_active


def omitted(parameters: Parameters, model: Model, thinking: Thinking, *, forced: bool) -> tuple[str, ...]:
    """Sentences about the parameters that are not sent as they were asked for. `forced`: a call of a tool is."""
    name, sentences = model.details.id, list[str]()
    sampling = sampling_of(parameters)
    if sampling and not takes_sampling(model, thinking):
        why = f"{name!r} takes none while it reasons" if model.abilities.sampling else f"{name!r} takes none"
        sentences.append(not_sent(sampling, why))
    max_tokens = longest_output(parameters, model)
    return (*sentences, *unmet(parameters, model, thinking, max_tokens=max_tokens, forced=forced))


_TOOL = Piece(section="tools")
_SYSTEM = Piece(section="system")
_ASKED = Piece(section="messages")
_ATTACHED = Piece(section="messages", is_attached=True)
_PASSING = Piece(section="messages", is_volatile=True)
_ANSWER = Piece(section="messages", is_answer=True)
_THOUGHT = Piece(section="messages", is_answer=True, carries=False)


def cache_points(
    tools: Sequence[JsonObject], system: Sequence[JsonObject], conversation: Messages, *, passing: Place | None
) -> tuple[list[JsonObject], list[Place]]:
    """Return the tools and system blocks to mark, and the places in messages: four together (the limit of the API).

    `passing` is a block that the next request will not have: nothing after it is ever read again. The API ignores marks
    in a prompt that is too short for them, and knows its length better than an estimate does.
    """
    static = [*tools, *system]
    pieces = [_TOOL] * len(tools) + [_SYSTEM] * len(system)
    places: list[Place] = []
    messages, attached = conversation.messages, conversation.last_resource
    sizes = ((message.role == "assistant", len(message.content)) for message in reversed(messages))
    first = 0 if passing is not None else max(len(messages) - count_markable(sizes), 0)
    if attached is not None and attached[0] < first:
        places.append(attached)
        pieces.append(_ATTACHED)
    for number, message in enumerate(messages[first:], first):
        for index, block in enumerate(message.content):
            place = (number, index)
            places.append(place)
            if message.role == "assistant":
                pieces.append(_THOUGHT if block["type"] in THINKING_TYPES else _ANSWER)
            else:
                pieces.append(_PASSING if place == passing else _ATTACHED if place == attached else _ASKED)
    marked = [hint.position for hint in place_hints(pieces)]
    return (
        [static[position] for position in marked if position < len(static)],
        [places[position - len(static)] for position in marked if position >= len(static)],
    )


VERSION = "2023-06-01"
"""The version of the API. Later ones take no temperature, which models up to 4.6 know."""

_PATH = "/v1/messages"
_MARKER = "cache_control"


def _tool(tool: ToolDefinition, model: Model) -> JsonObject:
    wire: JsonObject = {"name": tool.name}
    if tool.description.strip():
        wire["description"] = tool.description
    wire["input_schema"] = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    if model.details.id.startswith("claude-"):
        # Without it the API holds back each argument until it is complete: minutes of silence for a large one.
        wire["eager_input_streaming"] = True
    return wire


def _answers_a_thoughtless_call(messages: Sequence[Message]) -> bool:
    """Return whether the last answer called tools without beginning with a thought."""
    answer = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if answer is None:
        return False
    kinds = [block["type"] for block in answer.content]
    return "tool_use" in kinds and kinds[0] not in THINKING_TYPES


def _marker(policy: CachePolicy) -> JsonObject:
    return {"type": "ephemeral", "ttl": "1h"} if policy == "long" else {"type": "ephemeral"}


def _output_config(thinking: Thinking, schema: JsonObject | None, model: Model) -> JsonObject:
    config: JsonObject = {} if thinking.effort is None else {"effort": thinking.effort}
    if schema is not None:
        from jp.provider.anthropic.messages import answer_format

        wanted = answer_format(schema, model)
        return config if wanted is None else {**config, "format": wanted}
    return config


def _headers(betas: Sequence[str], thinking: Thinking) -> tuple[tuple[str, str], ...]:
    wanted = [*betas, BINDING_BETA] if thinking.wire is not None and "block_binding" in thinking.wire else list(betas)
    headers = [("anthropic-version", VERSION)]
    if wanted:
        headers.append(("anthropic-beta", ",".join(dict.fromkeys(wanted))))
    return tuple(headers)


def _canonical(block: JsonObject) -> bytes:
    return msgspec.json.encode(block, order="deterministic")


def _mark(points: tuple[list[JsonObject], list[Place]], wires: list[JsonObject], marker: JsonObject) -> None:
    """Mark blocks of this request, and blocks of messages in copies: other requests have the same messages."""
    blocks, places = points
    for block in blocks:
        block[_MARKER] = marker
    for number, index in places:
        content = list(wires[number]["content"])
        content[index] = {**content[index], _MARKER: marker}
        wires[number] = {**wires[number], "content": content}


class RenderCache:
    """State of the previous request, for a thread that grows."""

    def __init__(self) -> None:
        self.messages = IncrementalMessages[Builder]()
        self.wires = IncrementalMap[Message, JsonObject](
            lambda message: {"role": message.role, "content": message.content}
        )
        self.sections = IncrementalMap[Message, SentMessage](_sent)


def _sent(message: Message) -> SentMessage:
    return SentMessage((msgspec.json.encode(message.role), *map(_canonical, message.content)))


def render(
    thread: Thread, *, betas: Sequence[str] = (), provider: str = PROVIDER, growth: RenderCache | None = None
) -> WireRequest:
    """Return the request for `thread`. The same thread gives the same bytes, with any `growth`.

    Args:
        thread: The conversation and its settings.
        betas: Names of beta features, for a header.
        provider: Whose signatures are its own.
        growth: Kept from one request to the next.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the API does not take (`unsupported`), or there is nothing to send
            (`invalid_request`).
    """
    model = model_for(PROVIDER, thread)
    parameters = thread.parameters
    growth = RenderCache() if growth is None else growth
    conversation = build_messages(thread, provider=provider, growing=growth.messages)
    messages = conversation.messages
    settle_trailing_answer(messages)
    if not messages:
        raise ProviderError("there is no message to send", kind="invalid_request")
    system = [text_block(part) for part in thread.system if part.strip()]
    tools = [_tool(tool, model) for tool in thread.tools]
    max_tokens = longest_output(parameters, model)
    choice = choice_of(parameters, thread.tools, model)
    plain = choice.forces or _answers_a_thoughtless_call(messages)
    thinking = thinking_of(parameters, model, max_tokens=max_tokens, plain=plain)
    plea = conversation.plead(choice.plea) if choice.plea else None
    sections = Sections(
        tools=tuple(map(_canonical, tools)),
        system=tuple(map(_canonical, system)),
        messages=tuple(growth.sections.map(messages)),
    )
    wires = list(growth.wires.map(messages))
    if parameters.cache != "off":
        _mark(cache_points(tools, system, conversation, passing=plea), wires, _marker(parameters.cache))
    optional: JsonObject = {
        "system": system,
        "tools": tools,
        "tool_choice": choice.wire,
        "thinking": thinking.wire,
        "output_config": _output_config(thinking, thread.schema, model),
        "stop_sequences": [word for word in parameters.stop_words if word.strip()],
    }
    body: JsonObject = {"model": thread.model, "max_tokens": max_tokens, "stream": True}
    body.update({name: value for name, value in optional.items() if value})
    if takes_sampling(model, thinking):
        body.update(sampling_of(parameters))
    body["messages"] = wires
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=merged(body, parameters.other, protected=PROTECTED),
        sections=sections,
        headers=_headers(betas, thinking),
        omitted=omitted(parameters, model, thinking, forced=choice.forces),
        prefix_bound=(thread.model, *model.abilities.reads) if model.abilities.bound_thinking else (),
    )

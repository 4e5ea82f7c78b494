"""The state machine of a turn, and its settings: limits, retries, system parts. Pure and total."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.config.model import AppConfig, AssistantConfig, Instruction, InstructionExample, SystemSection
from jp.conversation.entries import Finish
from jp.conversation.thread import Parameters
from jp.provider.errors import ProviderError

Ending = Literal["answered", "empty", "uncalled", "refused", "capped", "failed"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a turn.

    `max_continuations` limits how often a cut answer is continued. `max_insistence` limits how often a required call
    is requested again.
    """

    max_cycles: int = 50
    max_continuations: int = 5
    max_insistence: int = 3


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a turn.

    `cycle` counts from 0, and `attempt` counts from 1 within a cycle. `retries` counts the attempts after transient
    failures. `reasoning_removed` is true if one attempt was sent without rejected reasoning. `answered` is true if
    message text or data has arrived in this turn.
    """

    cycle: int = 0
    attempt: int = 1
    retries: int = 0
    reasoning_removed: bool = False
    continuations: int = 0
    insistence: int = 0
    answered: bool = False


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over.

    `incomplete` says that a message stands there which is not complete yet, or which something may have to follow,
    `whole` that a failure came after all that there was to come, `answered` that message text or data came,
    `calls` how many complete calls, `owing` that a call was demanded and none came. Two are about an error: `retryable`
    says that waiting and asking again may help, `mendable` that the next request will be without what it failed for.
    """

    finish: Finish
    incomplete: bool = False
    whole: bool = False
    answered: bool = False
    calls: int = 0
    owing: bool = False
    retryable: bool = False
    mendable: bool = False


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Send a request.

    `continuing`: the answer goes on where its message is incomplete. `insisting`: what came lacks the call that was
    demanded, so it is demanded again.
    """

    continuing: bool = False
    insisting: bool = False


class RunTools(msgspec.Struct, frozen=True, kw_only=True):
    """Run the calls of the cycle."""


class EndTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn is over."""

    ending: Ending


def after_attempt(state: TurnState, ended: AttemptEnded, limits: Limits) -> tuple[TurnState, Ask | RunTools | EndTurn]:
    """Decide what follows an attempt."""
    state = replace(state, answered=state.answered or ended.answered)
    match ended.finish:
        case "stop" | "tools" | "length" if ended.calls:
            return state, RunTools()
        case "stop" | "tools" if ended.owing and state.insistence < limits.max_insistence:
            return _next_cycle(replace(state, insistence=state.insistence + 1), limits, Ask(insisting=True))
        case "length" if ended.incomplete and state.continuations < limits.max_continuations:
            return _next_cycle(replace(state, continuations=state.continuations + 1), limits, Ask(continuing=True))
        case "error" | "cancelled" if ended.mendable and not ended.whole:
            return replace(state, attempt=state.attempt + 1, reasoning_removed=True), Ask(continuing=ended.incomplete)
        case "error" | "cancelled" if ended.retryable and not ended.whole:
            retried = replace(state, attempt=state.attempt + 1, retries=state.retries + 1)
            return retried, Ask(continuing=ended.incomplete)
        case finish:
            came: Finish = "stop" if ended.whole else finish
            return state, EndTurn(ending=_ending(came, answered=state.answered, owing=ended.owing))


def after_tools(state: TurnState, limits: Limits) -> tuple[TurnState, Ask | EndTurn]:
    """Decide what follows when every call of the cycle has its response."""
    return _next_cycle(state, limits, Ask())


def _ending(finish: Finish, *, answered: bool, owing: bool) -> Ending:
    match finish:
        case "stop" | "tools" if owing:
            return "uncalled"
        case "stop" | "tools":
            return "answered" if answered else "empty"
        case "length":
            return "capped"
        case "refused":
            return "refused"
        case "error" | "cancelled":
            return "failed"
        case _:
            assert_never(finish)


def _next_cycle(state: TurnState, limits: Limits, ask: Ask) -> tuple[TurnState, Ask | EndTurn]:
    if state.cycle + 1 >= limits.max_cycles:
        return state, EndTurn(ending="capped")
    return replace(state, cycle=state.cycle + 1, attempt=1, retries=0, reasoning_removed=False), ask


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The number of retries of a failed request within one cycle, and the delays between them."""

    max_retries: int = 5
    base_seconds: float = 1.0
    max_seconds: float = 60.0


def waiting_time(policy: RetryPolicy, error: ProviderError, *, retry: int, jitter: float) -> float | None:
    """Seconds to wait after `error` before retry number `retry` (from 1), None where waiting is not worth it.

    Exponential with jitter in the upper half (`jitter` from 0 to 1), so that many clients do not return at once.
    What the provider asks for is the least; where it asks for more than `max_seconds`, a person decides. What its
    kind of error is known to take is waited for as far as `max_seconds` allows.
    """
    asked = error.retry_after or 0.0
    if retry > policy.max_retries or asked > policy.max_seconds:
        return None
    backoff = min(policy.max_seconds, policy.base_seconds * 2 ** (retry - 1))
    return max(backoff * (0.5 + jitter / 2), min(policy.max_seconds, error.least_wait), asked)


def _section(section: SystemSection) -> str:
    if section.tag is not None:
        title = f' title="{section.title}"' if section.title is not None else ""
        return f"<{section.tag}{title}>\n{section.content}\n</{section.tag}>"
    return section.content if section.title is None else f"# {section.title}\n\n{section.content}"


def _instruction(instruction: Instruction) -> str:
    title = f' title="{instruction.title}"' if instruction.title is not None else ""
    lines = [f"<instruction{title}>"]
    if instruction.description is not None:
        lines.append(instruction.description)
    lines += [f"- {item}" for item in instruction.items]
    lines += map(_example, instruction.examples)
    return "\n".join([*lines, "</instruction>"])


def _example(example: str | InstructionExample) -> str:
    if isinstance(example, str):
        return f"<example>\n{example}\n</example>"
    parts = [f"<good>\n{example.good}\n</good>", f"<bad>\n{example.bad}\n</bad>"]
    if example.reason is not None:
        parts.append(f"<reason>\n{example.reason}\n</reason>")
    return "\n".join(["<example>", *parts, "</example>"])


def system_parts(assistant: AssistantConfig) -> tuple[str, ...]:
    """Return the parts of the system prompt: the prompt, then sections and instructions by position, stably."""
    placed = [(section.position, _section(section)) for section in assistant.system_prompt_sections]
    placed += [(instruction.position, _instruction(instruction)) for instruction in assistant.instructions]
    placed.sort(key=lambda item: item[0])
    parts = (assistant.system_prompt, *(text for _, text in placed))
    return tuple(part for part in parts if part.strip())


def parameters_of(assistant: AssistantConfig) -> Parameters:
    """Return the request parameters from the assistant's configuration."""
    configured = assistant.model.parameters
    return Parameters(
        max_tokens=configured.max_tokens,
        temperature=configured.temperature,
        top_p=configured.top_p,
        top_k=configured.top_k,
        stop_words=configured.stop_words,
        reasoning=configured.reasoning,
        tool_choice=assistant.tool_choice,
        cache=assistant.request.cache,
        other=configured.other,
    )


def limits_of(config: AppConfig) -> Limits:
    """Return the limits of a turn. If `max_tokens` is configured, a cut answer is not continued."""
    limits = Limits(max_cycles=config.assistant.request.max_cycles)
    is_bounded = config.assistant.model.parameters.max_tokens is not None
    return replace(limits, max_continuations=0) if is_bounded else limits


def retry_policy_of(config: AppConfig) -> RetryPolicy:
    """Return the retry policy for failed requests."""
    request = config.assistant.request
    return RetryPolicy(
        max_retries=request.max_retries,
        base_seconds=request.base_backoff_ms / 1000,
        max_seconds=float(request.max_backoff_secs),
    )

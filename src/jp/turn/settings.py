"""From the configuration to what a request holds besides the stream, and how often it is retried. Pure."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from jp.config.model import AppConfig, AssistantConfig, Instruction, SystemSection
from jp.conversation.thread import Parameters
from jp.provider.errors import ProviderError
from jp.turn.machine import Limits


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
    return "\n".join([*lines, "</instruction>"])


def system_parts(assistant: AssistantConfig) -> tuple[str, ...]:
    """The parts of the system prompt: the prompt, then sections and instructions by position, stably."""
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

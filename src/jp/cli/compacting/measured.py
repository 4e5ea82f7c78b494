"""The measured size of a conversation's last request beside its estimate. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from jp.compaction.projection import project
from jp.compaction.stand_ins import StandIns
from jp.compaction.transcript import transcript_of
from jp.context.breakdown import Part
from jp.context.budget import estimate_messages
from jp.context.estimate import estimate_tokens
from jp.context.types import Transcript
from jp.conversation.entries import AnyEntry, Usage
from jp.conversation.thread import ToolDefinition
from jp.conversation.usage import prompt_tokens, reported_usage
from jp.turn.request import Loader, RequestSettings, canonical_json, context_in_force, is_same_context
from jp.turn.sent import sent_requests, settings_of


class LastCycle(msgspec.Struct, frozen=True, kw_only=True):
    """The last request whose tokens the provider reported, and what is estimated of the same.

    `added` is the estimate of what came since; None where what was sent then does not stand in the context any more.
    """

    turn: int
    cycle: int
    model: str
    usage: Usage
    reported: int
    estimated: int
    added: int | None

    @property
    def ratio(self) -> float:
        """Reported tokens for one that is estimated."""
        return self.reported / max(self.estimated, 1)


def last_cycle(
    entries: Sequence[AnyEntry], messages: Transcript, loader: Loader, stand_ins: StandIns
) -> LastCycle | None:
    """Return the last request of a stream that was measured; `messages` are those of its view."""
    reported = reported_usage(entries)
    for sent in reversed(sent_requests(entries)):
        usage = reported.get((sent.turn, sent.cycle, sent.attempt))
        if usage is not None and prompt_tokens(usage):
            then = entries[: sent.entries]
            before = transcript_of(project(then, stand_ins, continuing=sent.going_on), then).messages
            beside = sum(part.tokens for part in parts_of(settings_of(sent.context, loader)))
            current = context_in_force(entries)
            stands = current is not None and is_same_context(sent.context, current)
            return LastCycle(
                turn=sent.turn,
                cycle=sent.cycle,
                model=model_name(sent.context.provider, sent.context.model),
                usage=usage,
                reported=prompt_tokens(usage),
                estimated=beside + estimate_messages(before),
                added=_added(before, messages) if stands else None,
            )
    return None


def _added(before: Transcript, now: Transcript) -> int | None:
    """Return the messages since the last request, None if the view no longer begins with what was sent."""
    return estimate_messages(now[len(before) :]) if now[: len(before)] == before else None


def parts_of(
    settings: RequestSettings, configured: str = "", on_servers: Collection[str] = frozenset()
) -> Iterator[Part]:
    """What a request has beside its messages. Of the system prompt, sections and instructions are rules."""
    prompt = configured if configured in settings.system else "".join(settings.system[:1])
    for text in settings.system:
        bucket = "system_prompt" if text == prompt else "rules"
        yield Part(bucket=bucket, tokens=estimate_tokens(text), size=len(text.encode()))
    for tool in settings.tools:
        bucket = "mcp_tools" if tool.name in on_servers else "tool_definitions"
        yield Part(bucket=bucket, tokens=_tool_tokens(tool), size=len(canonical_json(tool).encode()))


def _tool_tokens(tool: ToolDefinition) -> int:
    return estimate_tokens(canonical_json(tool))


def model_name(provider: str, name: str) -> str:
    """Return a model with its provider."""
    return f"{provider}/{name}" if provider else "not known"

"""What a dry run predicts is what comes: on every shared conversation, to the byte of the request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from conversations import MODEL, Conversation, conversation_of, sampled_conversations
from jp.app.compaction.compact import Proposals, StaleProposalError
from jp.app.compaction.order import CompactionOrder, PolicyFlags, RangeFlags, order_of
from jp.app.compaction.preview import Previewer
from jp.app.compaction.summarizer import local_summary
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import Range
from jp.compaction.projection import project
from jp.compaction.transcript import transcript_of
from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.config.model import AppConfig
from jp.context.budget import estimate_messages
from jp.context.types import Message
from jp.conversation.entries import AnyEntry, Compaction, Revert, SummaryPolicy, decode, encode
from jp.conversation.turns import divide
from jp.errors import UsageError
from jp.provider.anthropic.request import render
from jp.provider.base import WireRequest
from jp.turn.request import InlineLoader, RequestSettings, build_thread

MOST = 8
CONFIG: AppConfig = config_of(read_partial({"assistant": {"model": {"id": f"anthropic/{MODEL}"}}}))
SETTINGS = RequestSettings(provider="anthropic", model=MODEL, renderer=1)


def order(profile: str | None = None, **flags: str) -> CompactionOrder:
    ranges = RangeFlags(keep_last=flags.pop("keep", "1"))
    policies = PolicyFlags(tools=flags.get("tools"))
    return order_of(CONFIG.conversation.compaction, profile=profile, policies=policies, ranges=ranges)


ORDERS = (order("default"), order("light", keep="0"), order(tools="omit", keep="20k"))


@pytest.fixture(scope="module")
def conversations() -> Sequence[Conversation]:
    return sampled_conversations(MOST)


def previewer(entries: Sequence[AnyEntry]) -> Previewer:
    return Previewer(entries, CONFIG, InlineLoader(), now=0.0)


def stored(overlays: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
    """Entries as the log gives them back."""
    return tuple(
        decode(encode(replace(overlay, id=f"z{number}", at="2026-01-02T00:00:00Z")))
        for number, overlay in enumerate(overlays)
    )


def sent(entries: Sequence[AnyEntry]) -> WireRequest:
    return render(build_thread(entries, SETTINGS, loader=InlineLoader(), status_formatter=StatusLineFormatter()))


def tokens(entries: Sequence[AnyEntry]) -> int:
    return estimate_messages(transcript_of(project(entries, StatusLineFormatter()), entries).messages)


def test_what_is_predicted_is_what_is_shown_and_sent_after_it_and_undoing_it_restores_every_byte(
    conversations: Sequence[Conversation],
) -> None:
    freed = 0
    for conversation in conversations:
        before = sent(conversation.entries)
        found = previewer(conversation.entries)
        for wish in ORDERS:
            preview = found.preview(wish, found.plan(wish))
            after = (*conversation.entries, *stored(preview.overlays))
            then = sent(after)
            undo = Revert(id="u", entries=tuple(entry.id for entry in after[len(conversation.entries) :]))

            assert tokens(after) == preview.effect.after
            assert then == sent((*conversation.entries, *preview.overlays))
            assert (preview.effect.freed > 0) == preview.frees
            # Reasoning of the original has no signature: it is in the view, and no vendor is sent it.
            is_unsent = all(overlay.tool_calls is overlay.summary is None for overlay in preview.overlays)
            assert (then == before) is not preview.frees or (then == before and is_unsent)
            assert sent((*after, undo)) == before
            freed += preview.frees
    assert freed > len(conversations)


def test_what_is_compacted_is_not_compacted_again(conversations: Sequence[Conversation]) -> None:
    for conversation in conversations:
        plan = previewer(conversation.entries).plan(ORDERS[0])
        after = (*conversation.entries, *stored(plan.overlays))

        assert previewer(after).plan(ORDERS[0]).overlays == ()


def test_a_proposal_is_applied_as_it_was_proposed(conversations: Sequence[Conversation], tmp_path: Path) -> None:
    proposals = Proposals(tmp_path)
    for conversation in conversations:
        turns = Range(first=0, last=len(divide(conversation.entries).turns) - 1)
        found = previewer(conversation.entries)
        policy = local_summary(conversation.entries, turns, InlineLoader(), limit=2_000)
        assert policy is not None
        proposed = [replace(found.planner.bare(turns), summary=policy)]
        predicted = found.effect(proposed).after

        identity = proposals.keep("jp-c1", proposed, conversation.entries)
        applied = (*conversation.entries, *stored(proposals.read(identity, "jp-c1", conversation.entries)))

        assert tokens(applied) == predicted
        assert sent(applied) == sent((*conversation.entries, *proposed))


def test_a_summary_is_expected_to_be_shorter_and_never_longer_than_what_it_stands_for(
    conversations: Sequence[Conversation],
) -> None:
    heavy = order("heavy")
    told = 0
    for conversation in conversations:
        found = previewer(conversation.entries)
        summary = found.preview(heavy, found.plan(heavy)).summary
        if summary is not None:
            assert 0 < summary.expected <= summary.at_most <= summary.replaced
            assert summary.before + summary.replaced <= found.planner.tokens
            assert summary.input > 0
            told += 1
    assert told > 1


def test_what_stands_before_a_summary_stays_in_the_cache(conversations: Sequence[Conversation]) -> None:
    entries = conversations[-1].entries
    found = previewer(entries)
    later = order_of(
        CONFIG.conversation.compaction, policies=PolicyFlags(summary=""), ranges=RangeFlags(start="1", keep_last="1")
    )

    preview = found.preview(later, found.plan(later))

    assert preview.summary is not None
    assert preview.cost is not None
    assert preview.summary.before == found.planner.shape.turns[0].tokens > 0
    assert preview.cost.rewritten == (
        preview.effect.after - preview.summary.before - preview.summary.replaced + preview.summary.expected
    )


TRANSCRIPT = (Message(role="user", content="Go."), Message(role="assistant", content="Gone."))


def test_a_proposal_is_for_its_conversation_and_for_turns_as_they_were(tmp_path: Path) -> None:
    proposals = Proposals(tmp_path)
    entries = conversation_of(TRANSCRIPT)
    overlay = Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="It went."), source="manual")
    identity = proposals.keep("jp-c1", [overlay], entries)

    assert proposals.read(identity, "jp-c1", entries) == (overlay,)
    assert proposals.read(identity, "jp-c1", conversation_of((*TRANSCRIPT, *TRANSCRIPT))) == (overlay,)
    with pytest.raises(UsageError, match="is for conversation 'jp-c1'"):
        proposals.read(identity, "jp-c2", entries)
    with pytest.raises(UsageError, match="is no proposal"):
        proposals.read("../x", "jp-c1", entries)
    with pytest.raises(StaleProposalError):
        proposals.read(identity, "jp-c1", conversation_of((TRANSCRIPT[0], Message(role="assistant", content="Not."))))
    proposals.forget(identity)
    with pytest.raises(UsageError, match="there is no proposal"):
        proposals.read(identity, "jp-c1", entries)

"""What is linear takes a moment for 10,000 messages; what is not takes many seconds."""

from __future__ import annotations

from artifacts import MemoryArtifacts
from jp.context.anchors import latest_real_user, split
from jp.context.budget import group_costs
from jp.context.groups import align_back, index_groups
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter
from jp.context.sanitize import sanitize_pairs
from jp.context.summarizing import run, summarising
from jp.context.summary_asking import Terms
from jp.context.tail import TailLimits, protect_head, select_tail_by_budget
from jp.context.types import Call, Message, Transcript
from summaries import ACCOUNT, AT, FRESH, NONCE, ManyArtifacts, Played, setup

CALLS = Message(role="assistant", calls=(Call(id="call_0", name="run", arguments='{"command": "ls"}'),))
RESULT = Message(role="tool", call_id="call_0", content="ok")


def test_every_step_takes_ten_thousand_messages() -> None:
    exchanges = ((Message(role="user", content=f"do {number}"), CALLS, RESULT) for number in range(3_334))
    messages: Transcript = tuple(message for exchange in exchanges for message in exchange)
    store = MemoryArtifacts()
    index = index_groups(messages)
    costs = group_costs(messages, index)

    assert len(messages) > 10_000
    assert protect_head(messages, index, costs, cap=1_000).end == 4
    assert select_tail_by_budget(index, costs, TailLimits(budget=10**9), head_end=0).start == 0
    assert align_back(index, 9_998) == 9_997
    assert latest_real_user(messages) == 9_999
    assert sanitize_pairs(messages, store).messages is messages
    assert len(split(messages, keep_last_exchanges=2).tail) == 6
    between = (0, len(messages))
    assert shrink_old_arguments(messages, index, Cutter("5eed5eed", store), between=between).messages is messages


def test_a_round_may_have_ten_thousand_calls_with_one_id() -> None:
    calls = tuple(Call(id="call_0", name="run", arguments="{}") for _ in range(10_000))
    messages = (Message(role="assistant", calls=calls), *[RESULT] * 10_000)

    found = sanitize_pairs(messages, MemoryArtifacts()).messages

    assert len({message.call_id for message in found[1:]}) == 10_000


def test_a_summary_may_stand_for_ten_thousand_messages() -> None:
    exchanges = ((Message(role="user", content=f"do {number}"), CALLS, RESULT) for number in range(3_334))
    messages: Transcript = tuple(message for exchange in exchanges for message in exchange)
    host = setup(Terms(window=20_000, limit=2_000, may_fall_back=True), Cutter(NONCE, ManyArtifacts()))
    provider = Played(ACCOUNT)

    found = run(summarising(messages, (0, len(messages) - 2), host, policy=FRESH, at=AT), provider)

    assert (found.status, found.calls, len(found.messages)) == ("summarised", 2, 3)
    assert found.state is not None
    assert (found.state.spoken.first, found.state.spoken.active) == ("do 0", "do 3333")
    assert "messages left out here" in provider.requests[0].record + provider.requests[1].record

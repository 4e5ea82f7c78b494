from __future__ import annotations

import msgspec
import pytest

from compaction import WAYS, Outcome, Prepared, edit_of, line, outcome_of, prices_of, rows, summary_cost, total_of
from context.conversations import conversation_of
from context.gold import gold_of
from context.sessions import Session, read_session
from jp.compaction.planning import Effect
from jp.context.budget import Prices
from jp.conversation.entries import ChatResponse, ToolCallResponse, TurnStart
from jp.provider.base import ModelDetails
from results import Report

PRICES = Prices(input=1.0, cache_read=0.1, cache_write=1.25)
DETAILS = ModelDetails(
    provider="x", id="y", input_price=1.0, output_price=5.0, cache_read_price=0.1, cache_write_price=1.25
)


def rounds(count: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for number in range(count):
        call: dict[str, object] = {
            "id": f"c{number}",
            "name": "Read",
            "arguments": {"file_path": f"src/part{number}.py"},
        }
        made: list[dict[str, object]] = [
            {"role": "user", "text": f"Please mend part number {number}."},
            {"role": "assistant", "reasoning": "It has to be read first. " * 30, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "text": f"line of part {number}\n" * 400},
            {"role": "assistant", "text": f"Part {number} is repaired."},
        ]
        messages += made
    return messages


SESSION = Session("s", read_session(msgspec.json.Encoder().encode_lines(rounds(5))))
PREPARED = Prepared(conversation_of(SESSION), gold_of(SESSION.messages))


def effect(before: int, after: int, untouched: int = 0) -> Effect:
    return Effect(before=before, after=after, untouched=untouched)


def outcome(found: Effect, once: float = 0.0, *, seen: float = 1.0, recalled: float = 1.0) -> Outcome:
    return Outcome(found, edit_of(found, once, PRICES), seen, recalled)


def test_a_session_becomes_a_log_with_its_turns_its_reasoning_and_its_facts() -> None:
    entries = PREPARED.conversation.entries

    assert sum(isinstance(entry, TurnStart) for entry in entries) == 5
    assert sum(isinstance(entry, ChatResponse) and entry.reasoning is not None for entry in entries) == 5
    responses = [entry for entry in entries if isinstance(entry, ToolCallResponse)]
    assert [None if one.facts is None else one.facts.path for one in responses[:1]] == ["src/part0.py"]
    assert len({entry.id for entry in entries}) == len(entries)


def test_what_stands_before_the_first_change_costs_the_same_either_way() -> None:
    edit = edit_of(effect(10_000, 4_000, untouched=2_000), 0.0, PRICES)

    assert (edit.rewritten, edit.saved) == (2_000, 6_000)
    assert edit.next_request == pytest.approx((2_000 * 1.25 - 8_000 * 0.1) / 1e6)
    assert edit.each_later == pytest.approx(6_000 * 0.1 / 1e6)
    assert edit.break_even == 1 + 3
    assert edit_of(effect(100, 50), 1.0, PRICES).break_even == 1 + -(-(50 * 1.25 - 10 + 1e6) // 5)


def test_a_model_is_paid_for_what_it_reads_and_writes() -> None:
    assert summary_cost(100_000, 2_000, DETAILS) == pytest.approx(0.1 + 0.01)
    assert prices_of(DETAILS) == PRICES
    with pytest.raises(ValueError, match="no price"):
        prices_of(ModelDetails(provider="x", id="y"))


def test_totals_add_up_what_was_compacted_and_what_was_not() -> None:
    much, little = outcome(effect(10_000, 4_000), seen=0.5), outcome(effect(10_000, 9_000), seen=0.9)
    total = total_of([much, outcome(effect(1_000, 1_000)), little], PRICES)

    assert (total.compacted, total.breaks, total.before, total.after) == (2, 2, 21_000, 14_000)
    assert (total.read_before, total.read_after) == (pytest.approx(0.0021), pytest.approx(0.0014))
    assert total.once == pytest.approx((4_000 * 1.25 - 1_000 + 9_000 * 1.25 - 1_000) / 1e6)
    assert total.break_even == ((1 + 7) + (1 + 103)) / 2
    assert (total.seen, total.never) == (pytest.approx(0.8), 0)
    assert total_of([outcome(effect(5, 5))], PRICES).break_even is None
    assert line("x", total).split()[:4] == ["x", "2", "14,000", "33.3"]


def test_each_way_leaves_less_and_only_ours_can_recall_what_left() -> None:
    found = {way.name: outcome_of(way, PREPARED, DETAILS) for way in WAYS}

    before = found["light 0/1"].effect.before
    assert all(one.effect.before == before > one.effect.after for one in found.values())
    assert found["default 0/1"].effect.after < found["default 0/3"].effect.after < found["light 0/3"].effect.after
    assert found["original 0/1"].effect.after < found["original 1/1"].effect.after
    assert found["default 0/1"].recalled == 1.0 > found["original 0/1"].recalled
    assert found["heavy 0/1"].edit.next_request > found["default 0/1"].edit.next_request


def test_without_recordings_the_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JP_TEST_DATA", raising=False)

    assert [text.partition(":")[0] for text in rows(Report(lambda _: None))] == ["skipped"]

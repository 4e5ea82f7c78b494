from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.app.reports import CycleRow, ProviderChange, TurnRow, UsageReport, usage_report_of
from jp.cli.conversation.usage import changed_text, report_parts, report_value
from jp.compaction.large_items import Saved, Savings
from jp.config.model import AppConfig
from jp.conversation.entries import (
    ChatRequest,
    Compaction,
    CycleEnd,
    InputChange,
    InquiryResponse,
    SummaryPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
)
from jp.conversation.resource import TextBlock
from jp.render.tables import plain_text
from jp.turn.usage import CacheReport, Change, Miss, Spending
from jp.workspace.listing import Parent


@pytest.mark.parametrize(
    ("change", "seconds", "text"),
    [
        (Change(section="tools"), 1, "the tool definitions changed"),
        (Change(section="system"), 1, "the system prompt changed"),
        (Change(section="message", message=3, turn=1), 1, "message 3, turn 1, changed"),
        (Change(section="message", message=3), 1, "message 3 changed"),
        (Change(section="parameters", parameters=("a", "b")), 1, "same prefix, other parameters: a, b"),
        (
            Change(section="nothing"),
            59,
            "same prefix; the provider's cache had expired or missed after less than a minute",
        ),
        (Change(section="nothing"), 250, "same prefix; the provider's cache had expired or missed after 4 min"),
        (Change(section="nothing"), None, "same prefix; the provider's cache had expired or missed"),
        (Change(section="untold"), 1, "the log does not say what was sent"),
    ],
)
def test_what_changed_is_named_for_a_person(change: Change, seconds: float | None, text: str) -> None:
    assert changed_text(change, seconds) == text


def report(spending: Spending, *, misses: int = 0, lapsed: int = 0) -> UsageReport:
    cycle = CycleRow(number=0, attempts=1, model="p/m", spending=spending)
    turn = TurnRow(number=0, is_undone=False, is_copied=True, cycles=(cycle,), spending=spending)
    miss = Miss(turn=0, cycle=0, attempt=1, change=Change(section="tools"), expected=9000, read=10, seconds=1.0)
    return UsageReport(
        turns=(turn,),
        models={"p/m": spending},
        total=spending,
        undone=Spending(),
        copied=spending,
        parent="jp-c1",
        cache=CacheReport(misses=(miss,) * misses, lapsed=lapsed),
    )


PARTLY = Spending(cycles=2, usage=Usage(input=1000, cache_read=3000, output=5), usd=0.5, untold=1, unpriced=1)


def test_what_is_only_a_part_is_marked() -> None:
    lines = plain_text(report_parts(report(PARTLY), by_cycle=False), width=None).splitlines()

    assert lines[1].split() == ["0", "copied", "1", "1,000+", "3,000+", "0+", "5+", "0+", "$0.5000+", "p/m"]
    assert "total      1 turn, 2 cycles: 4,000 tokens in, 5 out" in lines
    assert "           the tokens of 1 of the cycles are not recorded" in lines
    assert "cost       at least $0.5000; what 1 of 2 cycles cost is unknown" in lines
    assert "cache      75% of the tokens that went in were read from it" in lines
    assert "copied     at least $0.5000 of it in turns that were copied from jp-c1" in lines


def test_only_so_many_misses_are_listed() -> None:
    text = plain_text(report_parts(report(PARTLY, misses=1022, lapsed=2), by_cycle=False), width=None)

    assert text.count("  turn 0, cycle 0: the tool definitions changed (10 of about 9,000 tokens read)\n") == 20
    assert "  and 1,002 more: `--format json` lists them all\n" in text
    assert "\n2 requests came later than the cache is kept" in text


def test_a_turn_that_asked_nothing_has_no_numbers() -> None:
    empty = replace(report(Spending()), parent=None)
    turn = replace(empty.turns[0], cycles=(), is_copied=False)

    text = plain_text(report_parts(replace(empty, turns=(turn,)), by_cycle=False))
    assert text.splitlines()[1].split() == [
        "0", "0", "-", "-", "-", "-", "-", "-", "-",
    ]  # fmt: skip


def test_the_turns_that_a_fork_was_made_of_are_its_first() -> None:
    found = usage_report_of((), AppConfig(), parent=Parent(conversation="jp-c1", from_turn=2, to_turn=3))

    assert (found.parent, found.turns, found.hit_rate) == ("jp-c1", (), None)


def test_what_answers_to_tools_took_is_counted_and_said() -> None:
    answer = InquiryResponse(
        request="q", answer=True, answered_by="assistant", model="script/x", usage=Usage(input=1200, output=7)
    )

    found = usage_report_of([TurnStart(id="t"), answer], AppConfig())
    text = plain_text(report_parts(found, by_cycle=False), width=None)

    assert found.total.usage == Usage(input=1200, output=7)
    assert "questions  1,200 tokens in, 7 out for answers to what tools asked" in text
    assert report_value(found)["inquiries"]["usage"]["input"] == 1200


def test_what_summaries_took_is_counted_and_said() -> None:
    summary = SummaryPolicy(text="x", model="script/x", usage=Usage(input=1200, output=7))

    found = usage_report_of([TurnStart(id="t"), Compaction(from_turn=0, to_turn=0, summary=summary)], AppConfig())

    assert found.total.usage == Usage(input=1200, output=7)
    text = plain_text(report_parts(found, by_cycle=False), width=None)
    assert "summaries  1,200 tokens in, 7 out for summaries of old turns" in text
    assert report_value(found)["summaries"]["usage"]["output"] == 7


def test_savings_of_requests_are_told_by_kind_and_with_what_was_recalled() -> None:
    sent = Saved(bounds=40_960, diffs=1_024, recalled=2_048)
    savings = Savings(each=Saved(bounds=20_480), sent=sent, requests=3)
    found = replace(report(PARTLY), savings=savings)

    lines = plain_text(report_parts(found, by_cycle=False), width=None).splitlines()

    assert (
        "saved      41.0 KiB, about 10,496 tokens, not sent in 3 requests: 40.0 KiB by bounds, 1.0 KiB by diffs"
        in lines
    )
    assert "recalled   2.0 KiB, about 512 tokens" in lines
    value = report_value(found)["saved"]
    assert (value["requests"], value["each"]["bounds"]) == (3, {"bytes": 20_480, "tokens": 5_120})
    assert value["sent"]["references"] == {"bytes": 0, "tokens": 0}
    assert value["sent"]["total"] == {"bytes": 39_936, "tokens": 9_984}


def test_where_nothing_was_omitted_nothing_is_said_of_it() -> None:
    text = plain_text(report_parts(report(PARTLY), by_cycle=False), width=None)

    assert "saved" not in text
    assert "recalled" not in text


def test_what_a_log_saves_is_in_its_report() -> None:
    cut = TextBlock(text="y" * 5_000, formatted="y" * 1_000)
    entries = [
        TurnStart(id="t"),
        ChatRequest(id="q", content="Go."),
        ToolCallRequest(id="c", call_id="c", name="read", arguments={}),
        CycleEnd(id="e", attempt=1, finish="tools"),
        ToolCallResponse(id="r", request="c", content=(cut,)),
        CycleEnd(id="f", attempt=1, finish="stop"),
    ]

    assert usage_report_of(entries, AppConfig()).savings.sent == Saved(bounds=4_000)


def test_reasoning_that_was_not_sent_and_what_the_provider_dropped_is_told() -> None:
    change = InputChange(type="thinking_dropped", path="messages.1.content.0", reason="prefix_binding_mismatch")
    found = replace(report(PARTLY), withheld=3, input_changes=(ProviderChange(turn=2, cycle=1, change=change),) * 21)

    text = plain_text(report_parts(found, by_cycle=False), width=None)

    line = "  turn 2, cycle 1: thinking_dropped messages.1.content.0 (prefix_binding_mismatch)\n"
    assert "reasoning  3 pieces not sent with the newest request: what came before has changed\n" in text
    assert f"changed by the provider before the model saw the request:\n{line * 20}  and 1 more: `--format" in text
    assert report_value(found)["reasoning"]["withheld"] == 3
    assert len(report_value(found)["reasoning"]["changed_by_provider"]) == 21


def test_all_that_a_provider_changed_is_listed_where_it_is_little() -> None:
    change = InputChange(type="thinking_dropped", path="messages.1.content.0", reason="prefix_binding_mismatch")
    found = replace(report(PARTLY), input_changes=(ProviderChange(turn=2, cycle=1, change=change),))

    text = plain_text(report_parts(found, by_cycle=False), width=None)

    assert text.count("thinking_dropped") == 1
    assert "more: `--format" not in text


def test_the_newest_request_says_what_was_not_sent() -> None:
    changes = (InputChange(type="reasoning_removed", path="rs_1", reason="prefix_mismatch"),)
    ends = (CycleEnd(id="e1", attempt=1, finish="stop", withheld=1, input_changes=changes),)
    entries = (TurnStart(id="t"), ChatRequest(id="r", content="?"), *ends)

    found = usage_report_of(entries, AppConfig())

    assert (found.withheld, [one.change for one in found.input_changes]) == (1, list(changes))
    assert usage_report_of((), AppConfig()).withheld == 0

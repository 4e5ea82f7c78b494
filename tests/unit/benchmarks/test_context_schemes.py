from __future__ import annotations

import pytest

from context import automatic, speed, tables
from context import availability as points
from context.automatic import MemoryLog, baseline_bill, product_bill, requests_of
from context.availability import BASELINES, OURS, WAYS, WITHOUT_FACTS, Score, dominated_by, parts_of
from context.gold import places_of
from context.product import Product
from context.schemes import Named
from context.sessions import Session, synthetic_session
from context.tokens import estimating, measured_by
from jp.context.budget import estimate_messages
from jp.context.types import Call, Message, ReasoningBlock, Transcript, texts_of
from jp.conversation.entries import Compaction, ToolCallResponse
from results import Report
from transcript_validator import complaints

SESSION = synthetic_session(40)
TOKENS = estimate_messages(SESSION)


def contents(messages: Transcript) -> list[str]:
    return ["".join(texts_of(row)) for row in messages if row.role == "tool"]


def compacted(name: str, messages: Transcript, percent: int) -> Transcript:
    [scheme] = [scheme for scheme in BASELINES if scheme.name.startswith(name)]
    return scheme.make().compact(messages, estimate_messages(messages) * percent // 100)


@pytest.mark.parametrize("scheme", BASELINES, ids=[scheme.name for scheme in BASELINES])
@pytest.mark.parametrize("percent", [10, 25, 50])
def test_every_scheme_keeps_to_the_budget_and_to_what_providers_take(scheme: Named, percent: int) -> None:
    maker = scheme.make()
    context: Transcript = ()
    tokens = 0
    for part in parts_of(SESSION, 3):
        context = (*context, *part)
        tokens += estimate_messages(part)
        context = maker.compact(context, tokens * percent // 100)

    assert estimate_messages(context) <= TOKENS * percent // 100
    assert complaints(context) == []
    assert context[-1:] == SESSION[-1:]
    assert [row.meta.kind for row in context].count("summary") <= 1


def test_masking_spares_ten_rounds_placeholders_five_results_and_clearing_goes_from_the_oldest() -> None:
    old = contents(SESSION)

    assert contents(compacted("masking", SESSION, 60))[-10:] == old[-10:]
    assert contents(compacted("masking", SESSION, 60))[-11].startswith("[old output omitted: ")
    assert contents(compacted("placeholder", SESSION, 60))[-6:] == ["[old tool result content cleared]", *old[-5:]]
    cleared = contents(compacted("clear oldest", SESSION, 60))
    first = next(at for at, text in enumerate(cleared) if not text.startswith("[old tool"))
    assert 0 < first < 37
    assert cleared[first:] == old[first:]


def test_the_stub_counts_what_left_over_all_compactions() -> None:
    once = compacted("keep last 20", SESSION, 90)
    twice = compacted("keep last 20", (*once, *SESSION[1:]), 90)

    stubs = [texts_of(row)[0] for row in (*once, *twice) if row.meta.kind == "summary"]
    kept = len(once) - 2
    assert stubs[0] == f"[{len(SESSION) - 1 - kept} earlier messages were left out]"
    assert stubs[1] == f"[{2 * (len(SESSION) - 1) - (len(twice) - 2)} earlier messages were left out]"


def test_line_digests_say_how_a_command_ended_and_recall_nothing_while_hashes_do() -> None:
    said = {name: compacted(name, SESSION, 50) for name in ("line digests", "hash digests")}

    assert any(text.startswith("[bash] ran `pytest tests/2` -> exit 0, ") for text in contents(said["line digests"]))
    for scheme in BASELINES[4:6]:
        maker = scheme.make()
        context = maker.compact(SESSION, TOKENS // 2)
        recalled = set(maker.recallable(context))
        assert recalled <= set(contents(SESSION))
        assert bool(recalled) is not scheme.name.startswith("line digests")


def test_parts_have_about_the_same_length_and_together_everything() -> None:
    parts = list(parts_of(SESSION, 10))

    assert [row for part in parts for row in part] == list(SESSION)
    assert len(parts) == 10
    assert max(map(estimate_messages, parts)) < TOKENS * 20 // 100
    assert all(part[0].role != "tool" for part in parts)


def test_the_twenty_lines_keep_exit_codes_and_lines_about_errors_of_the_oldest_results_only_as_far_as_needed() -> None:
    wrong = "Process exited with code 2\nfine\nerror: no column\n" + "fine\n" * 400
    rows = list(SESSION)
    first = next(at for at, row in enumerate(rows) if row.role == "tool")
    rows[first] = Message(role="tool", call_id=rows[first].call_id, content=wrong)

    masked = contents(compacted("twenty", tuple(rows), 60))
    assert masked[0] == "[old output omitted: exit code 2]\nerror: no column"
    assert masked[-5:] == contents(SESSION)[-5:]


def test_one_with_fewer_tokens_and_as_much_in_it_is_better_and_no_other() -> None:
    ours = Score(OURS, 10, 1, kept=0.1, in_view=0.5, recalled=0.8, searched=0.99, over=0)

    assert dominated_by(ours, [ours._replace(kept=0.2), ours._replace(recalled=0.9, in_view=0.4), ours]) == []
    better = ours._replace(way="other", in_view=0.6)
    assert dominated_by(ours, [better]) == [better]
    table = list(points.lines([ours, better], estimating()))
    assert "not on the front: chain 1, budget 10 %, jp: other has 60.0 % with 10.0 % of the tokens" in table
    assert "below the bar: chain 1, budget 10 %, jp: 50.0 % in view, 75 % are asked for" in table
    assert not any("with recall and one search" in row for row in table)
    assert "tokens by jp's estimate" in table[-1]


def test_a_log_without_host_facts_has_none_and_the_same_words() -> None:
    logs = {facts: Product(facts=facts) for facts in (True, False)}
    for log in logs.values():
        log.grow(SESSION)
    facts = {
        known: [entry.facts for entry in log.entries if isinstance(entry, ToolCallResponse)]
        for known, log in logs.items()
    }

    assert all(found is not None for found in facts[True])
    assert not any(facts[False])
    assert [texts_of(row) for row in logs[True].view()] == [texts_of(row) for row in logs[False].view()]


@pytest.mark.parametrize("facts", [True, False])
def test_jp_makes_room_in_a_log_that_only_grows_and_recalls_what_left(*, facts: bool) -> None:
    log = Product(facts=facts)
    for part in parts_of(SESSION, 3):
        before = tuple(log.entries)
        log.grow(part)
        log.compact(estimate_messages(SESSION) // 4)
        assert tuple(log.entries[: len(before)]) == before

    view = log.view()
    assert any(isinstance(entry, Compaction) for entry in log.entries)
    assert estimate_messages(view) < TOKENS // 2
    assert complaints(view) == []
    assert set(log.recallable()) & set(contents(SESSION))


def test_the_model_finds_what_left_by_one_search_for_words_beside_it() -> None:
    log = Product()
    log.grow(SESSION)
    [found, nothing] = log.search(["command exit result 17", "zzyzx"])

    assert 1 < len(found) <= 6
    assert found[0].startswith("[turn ")
    assert "result 17" in "".join(found)
    assert nothing[0].startswith("Nothing in this conversation")


def test_tokens_are_counted_of_everything_that_is_sent_and_texts_are_cut_to_them() -> None:
    class Words:
        def encode_ordinary(self, text: str) -> list[int]:
            return [len(word) for word in text.split()]

    words = measured_by(Words(), "words")
    call = Call(id="c", name="run", arguments='{"command": "make all"}')
    blocks = (ReasoningBlock(text="think well"),)
    assert words.count((Message(role="user", content="one two three"),)) == 4 + 3
    assert words.count((Message(role="assistant", content=blocks, calls=(call,)),)) == 8 + 2 + 1 + 3
    assert words.truncate("a b c d e f g h " * 50, 100) == "a b c d e f g h " * 12 + "a b c d "
    assert len(estimating().truncate("x" * 100, 10)) == 40


def test_the_cache_is_missed_once_for_a_compaction_and_with_every_request_that_masks_anew() -> None:
    window = TOKENS * 2 // 3
    bills = {named.name: baseline_bill(named.make(), SESSION, window, ()) for named in BASELINES}
    whole = baseline_bill(BASELINES[0].make(), SESSION, TOKENS * 2, ())

    assert (whole.breaks, whole.requests, whole.compactions) == (0, 41, 0)
    assert whole.billed == pytest.approx(0.1 * whole.read + 1.25 * (whole.prompt - whole.read))
    clearing = bills["clear oldest, keep 3"]
    assert 1 <= clearing.breaks <= clearing.compactions
    assert bills["masking, keep 10"].breaks > 20
    assert all(bill.longest <= window for bill in bills.values())


def test_a_request_costs_what_is_new_in_it() -> None:
    messages = (Message(role="user", content="x" * 4_000), *(Message(role="assistant", content="y" * 400),) * 2)
    first, second = 1_004, 104

    bill = baseline_bill(BASELINES[0].make(), messages, 10_000, ())

    assert (bill.prompt, bill.read, bill.requests) == (2 * first + second, first, 2)


@pytest.mark.parametrize("summarizer", ["reliable", "failing", "none"])
def test_automatic_compaction_carries_a_session_with_one_break_a_compaction(
    summarizer: automatic.Summarizer,
) -> None:
    session = synthetic_session(60)
    bill = product_bill(session, 20_000, summarizer, ())

    assert bill.finished
    assert bill.requests == len(list(requests_of(session)))
    assert 1 <= bill.breaks == bill.compactions < 15
    assert bill.longest <= 20_000


def test_a_session_whose_newest_exchange_does_not_fit_is_told() -> None:
    messages = (Message(role="user", content="word " * 9_000), Message(role="assistant", content="no"))

    assert not product_bill(messages, 4_000, "none", ()).finished
    assert list(MemoryLog().entries)


def test_the_bars_of_automatic_compaction_are_checked() -> None:
    good = automatic.Bill(requests=2, prompt=1_000, read=995, compactions=1, breaks=1, in_view=0.9)
    bad = good._replace(read=0, breaks=2, finished=False, in_view=0.5)

    assert list(automatic.missed(32_000, "none", [good], {"other": [bad]})) == []
    assert [text.partition("none: ")[2] for text in automatic.missed(32_000, "none", [bad], {"other": [good]})] == [
        "0.0 % are read from the cache, 91 % are asked for",
        "1 sessions do not finish",
        "1 breaks more than compactions",
        "other is billed 106 and keeps as much, jp 1,250",
    ]


def test_all_tables_are_made_and_where_there_are_no_recordings_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = Report(lambda _: None)
    monkeypatch.delenv("JP_TEST_DATA", raising=False)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setattr(speed, "SIZES", (100,))
    skipped = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"
    assert list(tables.availability_rows(report)) == list(tables.automatic_rows(report)) == [skipped]
    assert next(tables.speed_rows(report)) == f"recorded sessions {skipped}"

    monkeypatch.setattr(points, "CHAINS", (1,))
    monkeypatch.setattr(points, "BUDGETS", (25,))
    monkeypatch.setattr(points, "WAYS", WAYS[:3])
    monkeypatch.setattr(automatic, "WINDOWS", {8_000: 50})
    monkeypatch.setattr(automatic, "BASELINES", BASELINES[:1])
    monkeypatch.setattr(automatic, "SUMMARIZERS", {"none": ""})
    monkeypatch.setattr(tables, "recorded_sessions", lambda: [Session("one", SESSION)])
    table = list(tables.availability_rows(report))
    ways = [line.split("%  ")[1][:20].rstrip() for line in table if line.startswith("    1     25%")]
    assert ways[:3] == [OURS, WITHOUT_FACTS, BASELINES[0].name]
    assert table[2].startswith("| 25 %   |           1 |")
    assert report.figures["table"] == "\n".join(table[:3])
    assert sum(line.startswith("   8,000  ") for line in tables.automatic_rows(report)) == 2
    assert any("of which mentions" in line for line in tables.speed_rows(report))


def test_places_join_a_call_and_what_came_of_it() -> None:
    assert any(
        "pytest tests/2 Process exited with code 0 result 2 line of what" in place.text for place in places_of(SESSION)
    )

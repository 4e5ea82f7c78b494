from __future__ import annotations

from pathlib import Path

import pytest

from context import availability as points
from context import cache, plot, speed, tables
from context.availability import OURS, SCHEMES, Score, dominated_by, parts_of
from context.gold import places_of
from context.schemes import Named
from context.sessions import Session
from jp.context.budget import estimate_messages
from jp.context.types import Message, Transcript, texts_of
from transcript_validator import complaints

SESSION = cache.synthetic_session(40)
TOKENS = estimate_messages(SESSION)


def contents(messages: Transcript) -> list[str]:
    return ["".join(texts_of(row)) for row in messages if row.role == "tool"]


def compacted(name: str, messages: Transcript, percent: int) -> Transcript:
    [scheme] = [scheme for scheme in SCHEMES if scheme.name.startswith(name)]
    return scheme.make().compact(messages, estimate_messages(messages) * percent // 100)


@pytest.mark.parametrize("scheme", SCHEMES, ids=[scheme.name for scheme in SCHEMES])
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


def test_line_digests_say_how_a_command_ended_and_recall_nothing_while_hashes_and_handles_do() -> None:
    said = {name: compacted(name, SESSION, 50) for name in ("line digests", "hash digests", OURS)}

    assert any(text.startswith("[bash] ran `pytest tests/2` -> exit 0, ") for text in contents(said["line digests"]))
    for scheme in SCHEMES[5:7] + SCHEMES[:1]:
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


def test_one_with_fewer_tokens_and_as_much_in_it_is_better_and_no_other() -> None:
    ours = Score(OURS, 10, 1, retained=0.1, closed=0.5, recoverable=0.8, over=0)

    assert dominated_by(ours, [ours._replace(retained=0.2), ours._replace(recoverable=0.9, closed=0.4), ours]) == []
    better = ours._replace(scheme="other", closed=0.6)
    assert dominated_by(ours, [better]) == [better]
    assert "not on the front: chain 1, budget 10 %: other has 60.0 % with 10.0 % of the tokens" in points.lines([
        ours,
        better,
    ])


def test_the_cache_is_missed_once_for_a_compaction_and_with_every_request_that_masks_anew() -> None:
    limit = TOKENS // 2
    bills = {scheme.name: cache.bill_of(scheme.make(), SESSION, limit) for scheme in SCHEMES}
    whole = cache.bill_of(cache.Unchanged(), SESSION, TOKENS)

    assert (whole.breaks, whole.requests, whole.closed) == (0, 41, 1.0)
    assert whole.billed == pytest.approx(0.1 * whole.read + 1.25 * (whole.prompt - whole.read))
    assert 1 <= bills[OURS].breaks <= bills[OURS].compactions
    assert bills["masking, keep 10"].breaks > 20
    assert bills[OURS].longest <= limit


def test_a_request_costs_what_is_new_in_it() -> None:
    messages = (Message(role="user", content="x" * 4_000), *(Message(role="assistant", content="y" * 400),) * 2)
    first, second = 1_004, 104

    bill = cache.bill_of(cache.Unchanged(), messages, 10_000)

    assert (bill.prompt, bill.read, bill.requests) == (2 * first + second, first, 2)


def test_the_synthetic_session_holds_to_what_is_promised() -> None:
    """Of a shorter one, which is compacted as often, more has to be written."""
    shorter = cache.synthetic_session(cache.SYNTHETIC_CALLS * 2 // 3)
    bill = cache.bill_of(SCHEMES[0].make(), shorter, cache.SYNTHETIC_LIMIT * 2 // 3)

    assert bill.read / bill.prompt >= 0.95
    assert bill.breaks <= bill.compactions


def test_all_tables_are_made_and_where_there_are_no_recordings_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def silent(text: str) -> None:
        pass

    monkeypatch.delenv("JP_TEST_DATA", raising=False)
    monkeypatch.setattr(speed, "SIZES", (100,))
    monkeypatch.setattr(cache, "SCHEMES", SCHEMES[:1])
    monkeypatch.setattr(cache, "synthetic_session", lambda: SESSION)
    skipped = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"
    assert list(tables.availability_rows(silent)) == [skipped]
    assert [next(rows(silent)) for rows in (tables.cache_rows, tables.speed_rows)] == [
        f"recorded sessions {skipped}"
    ] * 2

    monkeypatch.setattr(points, "CHAINS", (1,))
    monkeypatch.setattr(tables, "PLOT", tmp_path / "new" / "plot.png")
    monkeypatch.setattr(tables, "recorded_sessions", lambda: [Session("one", SESSION)])
    table = list(tables.availability_rows(silent))
    assert len([line for line in table if OURS in line and "%" in line]) >= 3
    assert any(line.startswith(f"{OURS}: at most one break") for line in tables.cache_rows(silent))
    assert any("of which mentions" in line for line in tables.speed_rows(silent))
    assert (tmp_path / "new" / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_needs_no_score_of_every_chain(tmp_path: Path) -> None:
    plot.draw([Score(OURS, 10, 10, retained=0.1, closed=0.5, recoverable=0.8, over=0)], tmp_path / "plot.png")

    assert (tmp_path / "plot.png").stat().st_size > 1_000


def test_places_join_a_call_and_what_came_of_it() -> None:
    assert any(
        "pytest tests/2 Process exited with code 0 result 2 line of what" in place.text for place in places_of(SESSION)
    )

from __future__ import annotations

import pytest
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages
from jp.context.compress import Compressed, compressing, run
from jp.context.digest_lines import ToolRule
from jp.context.markers import Cutter
from jp.context.types import Message, Transcript
from summaries import ACCOUNT, AT, FRESH, NONCE, SYSTEM, TERMS, Played, answer, ran, setup, user, work
from transcript_validator import complaints

RULES = {"run": ToolRule(kind="terminal", subject="command")}
LONG = "a line of what was printed\n"
TALK: Transcript = (SYSTEM, *(row for number in range(40) for row in (user(f"{number} " * 300), answer("yes " * 300))))
WORK: Transcript = (
    SYSTEM,
    user("Mend it."),
    *(row for n in range(30) for row in ran(f"make {n}", f"{n} {LONG * 200}")),
)


def compressed(messages: Transcript, target: int, store: MemoryArtifacts | None = None) -> Compressed:
    """Nobody is there to be asked."""
    host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, store or MemoryArtifacts()))
    return run(compressing(messages, target, host, RULES, policy=FRESH, at=AT), Played())


def test_what_fits_stays_as_it_is() -> None:
    found = compressed(WORK, estimate_messages(WORK))

    assert (found.stage, found.messages is WORK, found.before) == ("fits", True, found.after)


@pytest.mark.parametrize("percent", [20, 50, 90])
def test_old_results_give_way_before_anything_else_does_and_all_of_them_at_once(percent: int) -> None:
    store = MemoryArtifacts()
    target = estimate_messages(WORK) * percent // 100

    found = compressed(WORK, target, store=store)

    digested = [at for at, row in enumerate(found.messages) if row.meta.digested]
    results = [at for at, row in enumerate(WORK) if row.role == "tool"]
    exact = next(at for at in results if at not in digested and at > digested[0])
    assert found.stage == "digested"
    assert found.after == estimate_messages(found.messages) <= target
    assert digested == [at for at in results if digested[0] <= at < exact]
    assert digested[0] < 10
    assert estimate_messages(WORK[exact:]) <= max(target * 20 // 100, estimate_messages(WORK[-6:]))
    assert [row for row in found.messages if row.role != "tool"] == [row for row in WORK if row.role != "tool"]
    assert found.messages[-6:] == WORK[-6:]


def test_where_digests_are_not_enough_the_oldest_messages_leave_for_the_one_summary() -> None:
    target = estimate_messages(TALK) * 30 // 100

    found = compressed(TALK, target)

    assert (found.stage, found.outcome and found.outcome.status) == ("summarised", "fallback")
    assert found.after == estimate_messages(found.messages) <= target
    assert [row.meta.kind for row in found.messages].count("summary") == 1
    assert found.messages[-4:] == TALK[-4:]


def test_a_model_is_asked_only_where_a_summary_is_needed_and_its_account_is_taken() -> None:
    model = Played(ACCOUNT)

    for messages in (WORK, TALK):
        target = estimate_messages(messages) * 30 // 100
        found = run(compressing(messages, target, setup(), RULES, policy=FRESH, at=AT), model)

    assert len(model.requests) == 1
    assert (found.outcome and found.outcome.status) == "summarised"


def test_compressing_again_and_again_keeps_one_summary_and_the_first_request() -> None:
    context: Transcript = (SYSTEM, user("Mend the parser, whatever it takes."))
    for _ in range(6):
        context = (*context, *TALK[1:], *work(4))
        found = compressed(context, 6_000)
        context = found.messages
        assert (found.stage, found.after <= 6_000) == ("summarised", True)
        assert complaints(context) == []

    summaries = [row for row in context if row.meta.kind == "summary"]
    assert len(summaries) == 1
    assert "Mend the parser, whatever it takes." in str(summaries[0].content)


def test_what_cannot_fit_gets_as_small_as_it_can() -> None:
    last = user("word " * 6_000)
    messages = (*TALK, *WORK[1:], last)

    found = compressed(messages, 1_000)

    assert found.stage == "too_large"
    assert estimate_messages((SYSTEM, last)) < found.after < estimate_messages((SYSTEM, last)) + 600
    assert (found.messages[0], found.messages[-1]) == (SYSTEM, last)


@pytest.mark.parametrize("messages", [(), (SYSTEM,), (user("word " * 900),)])
def test_with_nothing_that_may_leave_everything_stays(messages: tuple[Message, ...]) -> None:
    found = compressed(messages, 0)

    assert found.messages is messages
    assert found.stage == ("too_large" if messages else "fits")


def test_every_result_that_gave_way_can_be_recalled() -> None:
    store = MemoryArtifacts()
    found = compressed((*WORK, *TALK[1:]), 5_000, store=store)

    assert found.stage == "summarised"
    assert {row.content for row in WORK if row.role == "tool"} <= set(store.kept.values())


def test_the_same_transcript_again_changes_nothing() -> None:
    once = compressed(WORK, 5_000)

    assert compressed(once.messages, 5_000).messages is once.messages


def test_a_request_without_room_keeps_its_beginning_and_end_and_is_whole_again_once_there_is_room() -> None:
    store = MemoryArtifacts()
    request = "Mend the parser. " + "It is slow with long lines. " * 130 + "Add a test."
    step = ran("make", LONG * 30)

    tight = compressed((SYSTEM, user(request), *step * 8), 1_000, store=store)
    again = compressed((*tight.messages, *step * 40), 3_000, store=store)

    cut = next(row.content for row in tight.messages if row.meta.kind == "summary")
    assert (tight.stage, tight.after <= 1_000, request in str(cut)) == ("summarised", True, False)
    assert "Mend the parser. It is slow" in str(cut)
    assert "lines. Add a test." in str(cut)
    assert tight.outcome is not None
    assert tight.outcome.state is not None
    assert store.recall(tight.outcome.state.whole_request) == request
    assert request in str(next(row.content for row in again.messages if row.meta.kind == "summary"))


def test_where_what_has_to_stay_is_too_large_the_rest_gets_as_small_as_it_can() -> None:
    system = Message(role="system", content="Rules. " * 1_000)
    messages = (system, user("Mend it. " * 100), *(row for n in range(30) for row in ran(f"make {n}", LONG * 40)))

    found = compressed(messages, 1_000)

    pinned = estimate_messages((system,))
    assert found.stage == "too_large"
    assert 1_000 < pinned < found.after < pinned + 700 < found.before // 2
    assert [row.role for row in found.messages] == ["system", "user", "assistant", "tool"]

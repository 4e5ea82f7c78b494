from __future__ import annotations

from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.estimate import estimate_tokens
from jp.context.evidence import Mentions
from jp.context.summary_fold import (
    Computed,
    Told,
    answers_in,
    fit_summary,
    fold_state,
    fold_summaries,
    told_locally,
    with_whole_request,
    without_secrets,
)
from jp.context.summary_schema import NOTHING_SAID, Decision
from jp.context.summary_source import Command, Ledger, Spoken
from jp.context.summary_text import Provenance, Recallable, SummaryState, render_summary
from jp.context.types import Message, Meta
from summaries import ACCOUNT, NONCE, answer, cutter, requirements_of, user

FULL = SummaryState(
    account=replace(
        ACCOUNT,
        requirements=tuple(f"requirement {n} {'word ' * 50}" for n in range(30)),
        decisions=(Decision(what="tabs " * 60),) * 12,
        done=("this and that " * 20,),
        hypothesis="it is the cache",
    ),
    spoken=Spoken(first="first " * 500, later=("later " * 500,) * 7, active="active " * 100),
    ledger=Ledger(read=("a.py",) * 9, modified=("b.py",), commands=(Command(command="make " * 30),) * 15),
    mentions=Mentions(paths=("src/a.py",) * 80),
    answers=("yes " * 100,) * 9,
    inherited="old " * 500,
    recallable=tuple(Recallable(handle=f"{n:08x}", what="run make") for n in range(40)),
)


def test_requirements_that_a_model_lost_come_back_first() -> None:
    newer = replace(ACCOUNT, requirements=("be quick", "Do  Step"))

    assert fold_summaries(ACCOUNT, newer) is newer
    assert fold_summaries(replace(ACCOUNT, requirements=("a", "b")), newer).requirements == (
        "a",
        "b",
        *newer.requirements,
    )


def test_no_secret_that_a_model_or_an_earlier_summary_has_told_stays() -> None:
    told = replace(
        ACCOUNT, decisions=(Decision(what="keep it", why="export API_KEY=a1b2c3d4e5f6"),), open=("token=Z9y8X7w6V5u4",)
    )
    earlier = SummaryState(account=replace(ACCOUNT, requirements=("the password is hunter2-XYZ",)))

    state = fold_state(earlier, Told(account=told), Computed(), MemoryArtifacts())

    assert state.account.decisions == (Decision(what="keep it", why="export API_KEY=[redacted:key]"),)
    assert state.account.open == ("token=[redacted:token]",)
    assert "the password is [redacted:password]" in state.account.requirements
    assert without_secrets(state.account) is state.account


def test_answers_and_inherited_text_stay_until_a_model_accounts_for_them() -> None:
    before = SummaryState(account=ACCOUNT, inherited="old", answers=("yes",))
    computed = Computed(answers=("yes", "no"), evicted=("said long ago",))
    store = MemoryArtifacts()

    local = fold_state(before, told_locally(before), computed, store)
    told = fold_state(local, Told(account=ACCOUNT, unsupported=2), computed, store)

    assert (local.inherited, local.answers, local.provenance.is_local) == ("old", ("yes", "no"), True)
    assert (told.inherited, told.answers) == ("", ())
    assert told.provenance == Provenance(unsupported=2, updates=2)
    assert told_locally(None).account == NOTHING_SAID
    assert [each.what for each in local.recallable] == ["the person: said long ago"]
    assert store.recall(local.recallable[0].handle) == "said long ago"


def test_the_newest_answers_stay_whole_and_older_ones_come_before() -> None:
    rows = (
        answer("a" * 3_000),
        user("?"),
        Message(role="assistant", content="x", meta=Meta(kind="synthetic")),
        answer("c"),
    )

    first, second, third = answers_in(rows, cutter(), ("old",))

    assert (first, len(second), third) == ("old", 700, "c")
    assert len(answers_in([answer("b" * 699)] * 30, cutter(), ("old",))) == 11
    assert answers_in([answer("b" * 690)] * 11, cutter(), ("o" * 700, "old")) == ("old", *["b" * 690] * 11)


def test_what_matters_least_goes_first_and_what_was_asked_for_last() -> None:
    store = MemoryArtifacts()
    before = 10**6
    order: list[str] = []
    for limit in range(9_000, 400, -200):
        found = fit_summary(FULL, limit, NONCE, store)
        size = estimate_tokens(render_summary(found, NONCE))
        assert size <= min(limit, before)
        assert found.account.goal == FULL.account.goal
        assert found.account.next_step == FULL.account.next_step
        assert found.account.requirements[-1] == FULL.account.requirements[-1]
        assert found.spoken.active == FULL.spoken.active
        order += [
            name
            for name, value in (
                ("mentions", found.mentions == Mentions()),
                ("hypothesis", not found.account.hypothesis),
                ("ledger", found.ledger == Ledger()),
                ("answers", not found.answers),
                ("decisions", not found.account.decisions),
                ("later", not found.spoken.later),
                ("first", not found.spoken.first),
            )
            if value and name not in order
        ]

    assert order == ["mentions", "hypothesis", "answers", "ledger", "decisions", "later", "first"]
    assert fit_summary(FULL, 10**6, NONCE, store) is FULL


def test_requirements_without_room_are_recalled_by_one_handle() -> None:
    store = MemoryArtifacts()

    found = fit_summary(FULL, 700, NONCE, store)

    assert len(found.account.requirements) < 20
    assert requirements_of(found, store) == list(FULL.account.requirements)


def test_the_smallest_summary_is_made_where_none_fits() -> None:
    found = fit_summary(FULL, -5, NONCE, MemoryArtifacts())

    assert len(found.account.requirements) == 1
    assert found.spoken == Spoken(active=FULL.spoken.active)


def test_what_is_left_of_a_request_stays_with_its_handle_where_it_cannot_be_recalled() -> None:
    state = SummaryState(spoken=Spoken(active="Mend [...] test."), whole_request="0123abcd")

    found = with_whole_request(state, MemoryArtifacts())

    assert found.spoken == state.spoken
    assert (found.whole_request, [each.handle for each in found.recallable]) == ("", ["0123abcd"])

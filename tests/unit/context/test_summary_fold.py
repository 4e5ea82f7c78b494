from __future__ import annotations

from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.estimate import estimate_tokens
from jp.context.evidence import Mentions
from jp.context.markers import checksum_of
from jp.context.summary_fold import (
    Computed,
    ModelAccount,
    Provenance,
    Recallable,
    SummaryState,
    answers_in,
    fit_summary,
    fold_state,
    fold_summaries,
    leave,
    render_summary,
    without_secrets,
)
from jp.context.summary_schema import NOTHING_SAID, Decision
from jp.context.summary_source import Command, Ledger, Spoken
from jp.context.types import Digested, Message, Meta, StoredBlock, TextBlock
from summaries import ACCOUNT, NONCE, SYSTEM, answer, cutter, ran, requirements_of, user

OUTPUT = "line of output\n" * 100

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


def test_no_secret_that_a_model_has_told_stays() -> None:
    told = replace(
        ACCOUNT, decisions=(Decision(what="keep it", why="export API_KEY=a1b2c3d4e5f6"),), open=("token=Z9y8X7w6V5u4",)
    )
    told = replace(told, requirements=("the password is hunter2-XYZ",))

    state = fold_state(ModelAccount(account=told), Computed(), MemoryArtifacts())

    assert state.account.decisions == (Decision(what="keep it", why="export API_KEY=[redacted:key]"),)
    assert state.account.open == ("token=[redacted:token]",)
    assert "the password is [redacted:password]" in state.account.requirements
    assert without_secrets(state.account) is state.account


def test_answers_stay_where_no_model_accounts_for_them_and_what_there_is_no_room_for_is_recalled() -> None:
    computed = Computed(answers=("yes", "no"), evicted=("said long ago",))
    store = MemoryArtifacts()

    local = fold_state(ModelAccount(account=NOTHING_SAID, is_local=True), computed, store)
    told = fold_state(ModelAccount(account=ACCOUNT, unsupported=2), computed, store)

    assert (local.answers, local.provenance) == (("yes", "no"), Provenance(is_local=True))
    assert (told.answers, told.provenance) == ((), Provenance(unsupported=2))
    assert [each.what for each in local.recallable] == ["the person: said long ago"]
    assert store.recall(local.recallable[0].handle) == "said long ago"


def test_the_newest_answers_stay_whole() -> None:
    rows = (
        answer("a" * 3_000),
        user("?"),
        Message(role="assistant", content="x", meta=Meta(kind="synthetic")),
        answer("c"),
    )

    first, second = answers_in(rows, cutter())

    assert (len(first), second) == (700, "c")
    assert len(answers_in([answer("b" * 699)] * 30, cutter())) == 11


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


def test_what_the_person_said_is_known_by_its_place() -> None:
    rows = (SYSTEM, user("a"), answer("A"), user("b"), answer("B"), user("c"))

    assert leave(rows, cutter()).computed.spoken == Spoken(first="a", later=("b",), active="c")
    assert leave(rows[:3], cutter()).computed.spoken == Spoken(active="a")
    assert leave(rows[2:3], cutter()).computed.spoken == Spoken()


def test_long_results_are_named_with_their_handles_newest_last() -> None:
    store = cutter()
    store.artifacts.keep("what it was")
    stored = StoredBlock(sha256="ab" * 32, size=9_000, chars=9_000)
    digested = Digested(sha256=checksum_of("what it was"))
    lost = Digested(sha256="cd" * 32)
    blocks = Message(role="tool", call_id="c", content=(stored, TextBlock(text=OUTPUT), TextBlock(text="short")))
    rows = (
        *ran("make", OUTPUT),
        *ran("ls", "short"),
        ran("cat", "")[0],
        blocks,
        Message(role="tool", call_id="other", content="digest", meta=Meta(digested=digested)),
        Message(role="tool", call_id="other", content="digest", meta=Meta(digested=lost)),
    )

    found = leave(rows, store).computed.recallable

    assert [(each.handle, each.what) for each in found] == [
        (checksum_of(OUTPUT)[:8], "run make"),
        (checksum_of(OUTPUT)[:8], "run cat"),
        ("abababab", "run cat"),
        (checksum_of("what it was")[:8], "a result"),
    ]


def test_only_so_many_results_are_named() -> None:
    rows = tuple(row for number in range(60) for row in ran(f"c{number}", f"{number} {OUTPUT}"))

    found = leave(rows, cutter()).computed.recallable

    assert [each.what for each in found] == [f"run c{number}" for number in range(20, 60)]

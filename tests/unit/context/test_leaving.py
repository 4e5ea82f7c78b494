from __future__ import annotations

from msgspec.structs import replace

from jp.context.markers import checksum_of
from jp.context.summary_fold import archive, leave
from jp.context.summary_source import Spoken
from jp.context.summary_text import SummaryState, summary_row
from jp.context.types import Call, Digested, Message, Meta, ReasoningBlock, StoredBlock, TextBlock, Transcript
from summaries import ACCOUNT, NONCE, SYSTEM, ManyArtifacts, answer, cutter, ran, user

OUTPUT = "line of output\n" * 100


def spoken(messages: Transcript, between: tuple[int, int]) -> Spoken:
    return leave(messages, between, cutter()).computed.spoken


def summary(**parts: object) -> Message:
    return summary_row(replace(SummaryState(account=ACCOUNT), **parts), (), NONCE)


def test_the_parts_are_the_transcript_and_no_group_is_cut() -> None:
    rows = (SYSTEM, user("a"), *ran("make", OUTPUT), answer("b"), user("c"))

    found = leave(rows, (1, 3), cutter())

    assert (found.head, found.gone, found.kept, found.tail) == (rows[:1], rows[1:2], rows[2:3], rows[3:])


def test_the_first_request_is_known_as_such_unless_it_stays_or_was_never_seen() -> None:
    rows = (SYSTEM, user("a"), answer("A"), user("b"), answer("B"), user("c"))

    assert spoken(rows, (1, 5)) == Spoken(first="a", later=("b",))
    assert spoken(rows, (3, 5)) == Spoken(later=("b",))
    assert spoken(rows, (1, 6)) == Spoken(first="a", later=("b",), active="c")
    assert spoken(rows, (2, 3)) == Spoken()
    inherited = (SYSTEM, summary(inherited="much"), *rows[1:])
    assert spoken(inherited, (1, 5)) == Spoken(later=("a", "b"))
    unseen = (SYSTEM, summary(spoken=Spoken(later=("0",))), *rows[1:])
    assert spoken(unseen, (1, 5)) == Spoken(later=("0", "a", "b"))


def test_what_stood_before_the_summary_was_said_before_what_it_knows() -> None:
    known = summary(spoken=Spoken(later=("b",), active="c"))
    rows = (SYSTEM, user("a"), answer("A"), known, answer("C"), user("d"), answer("D"))

    assert spoken(rows, (1, 5)) == Spoken(first="a", later=("b", "c"))
    assert spoken(rows, (1, 7)) == Spoken(first="a", later=("b", "c"), active="d")
    assert spoken(rows[:5], (1, 5)) == Spoken(first="a", later=("b",), active="c")
    assert spoken(rows, (3, 5)) == Spoken(later=("b", "c"))


def test_a_request_that_stays_makes_older_ones_inactive_and_no_newer_one() -> None:
    pinned = Message(role="user", content="pinned", meta=Meta(verbatim=True))

    assert spoken((pinned, answer("A"), user("b"), answer("B")), (0, 4)) == Spoken(active="b")
    assert spoken((user("a"), answer("A"), pinned, answer("B")), (0, 4)) == Spoken(first="a")


def test_two_summaries_become_one() -> None:
    older = summary(spoken=Spoken(first="a"), older_requirements="0123abcd", answers=("x",), inherited="i")
    newer = summary(spoken=Spoken(later=("b",)), account=replace(ACCOUNT, requirements=("new",)), inherited="j")

    found = leave((older, answer("A"), newer, user("c")), (0, 3), cutter())

    assert found.previous is not None
    assert found.previous.account.requirements == ("do step", "new")
    assert found.previous.spoken == Spoken(first="a", later=("b",))
    assert found.previous.inherited == "i\n\nj"
    assert [each.handle for each in found.previous.recallable] == ["0123abcd"]
    assert found.computed.answers == ("x", "A")
    assert found.tail == (user("c"),)


def test_long_results_are_named_with_their_handles_newest_last() -> None:
    store = cutter()
    store.artifacts.keep("what it was")
    stored = StoredBlock(sha256="ab" * 32, size=9_000, chars=9_000)
    digested = Digested(sha256=checksum_of("what it was"), original_bytes=9_000, rule="bounded")
    lost = Digested(sha256="cd" * 32, original_bytes=9_000, rule="bounded")
    blocks = Message(role="tool", call_id="c", content=(stored, TextBlock(text=OUTPUT), TextBlock(text="short")))
    rows = (
        *ran("make", OUTPUT),
        *ran("ls", "short"),
        ran("cat", "")[0],
        blocks,
        Message(role="tool", call_id="other", content="digest", meta=Meta(digested=digested)),
        Message(role="tool", call_id="other", content="digest", meta=Meta(digested=lost)),
    )

    found = leave(rows, (0, len(rows)), store).computed.recallable

    assert [(each.handle, each.what) for each in found] == [
        (checksum_of(OUTPUT)[:8], "run make"),
        (checksum_of(OUTPUT)[:8], "run cat"),
        ("abababab", "run cat"),
        (checksum_of("what it was")[:8], "a result"),
    ]


def test_only_so_many_results_are_named() -> None:
    rows = tuple(row for number in range(60) for row in ran(f"c{number}", f"{number} {OUTPUT}"))

    found = leave(rows, (0, len(rows)), cutter()).computed.recallable

    assert [each.what for each in found] == [f"run c{number}" for number in range(20, 60)]


def test_everything_that_was_said_and_thought_is_archived() -> None:
    store = ManyArtifacts()
    digested = Digested(sha256="cd" * 32, original_bytes=9, rule="bounded")

    archive(
        (
            user("a"),
            Message(
                role="assistant",
                content=(ReasoningBlock(text="hm"), ReasoningBlock(text=""), TextBlock(text="b")),
                calls=(Call(id="c", name="run", arguments="{}"),),
            ),
            Message(role="tool", call_id="c", content="digest", meta=Meta(digested=digested)),
        ),
        store,
    )

    assert set(store.kept.values()) == {"a", "hm", "b", "{}"}

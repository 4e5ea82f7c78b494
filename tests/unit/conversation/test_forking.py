from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Digests,
    Header,
    InquiryRequest,
    InquiryResponse,
    Question,
    RequestContext,
    Revert,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.forking import Extract, TurnRange, extract, turn_numbers
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from logs import ask, call, end, log, respond, say, start, whole_turn

HEADER = Header(id="h", format=1, created_at="", nonce="n")
CONTEXT = RequestContext(id="x0", provider="script", model="m", renderer=1)
QUESTION = Question(id="q", text="Sure?", kind="boolean")


def turn(number: int) -> list[AnyEntry]:
    return [start(number), replace(ask(f"question {number}"), id=f"q{number}"), replace(say("yes"), id=f"a{number}")]


def closed(number: int, *, digests: Digests | None = None, rejected: tuple[str, ...] = ()) -> list[AnyEntry]:
    finished = CycleEnd(id=f"z{number}", attempt=1, finish="stop", digests=digests or Digests(), rejected=rejected)
    return [*turn(number), finished]


def fork(entries: Sequence[AnyEntry], first: int, last: int) -> Extract:
    compactions = [entry for entry in entries if isinstance(entry, Compaction)]
    return extract(entries, TurnRange(first=first, last=last), compactions)


def ids(entries: Sequence[AnyEntry]) -> list[str]:
    return [entry.id for entry in entries]


def test_entries_count_to_the_turn_that_began_before_them() -> None:
    entries = [HEADER, ConfigDelta(id="d", delta={}), *turn(0), Revert(id="r", entries=()), TurnStart(id="s"), *turn(1)]

    assert turn_numbers(entries) == [-1, -1, 0, 0, 0, 0, 1, 1, 1, 1]


def test_events_before_any_turn_are_of_the_first() -> None:
    assert turn_numbers([HEADER, ask("x"), start(0), ask("y")]) == [-1, 0, 1, 1]


def test_a_range_of_turns_is_copied_without_what_is_around_it() -> None:
    entries = [HEADER, *turn(0), *turn(1), Unknown(raw=b"{}", id="u"), *turn(2), *turn(3)]

    assert ids(fork(entries, 1, 2).entries) == ["t1", "q1", "a1", "u", "t2", "q2", "a2"]
    assert fork([*entries, Revert(id="r", entries=("t0",))], 0, 0).entries[-1].id == "r"
    assert ids(fork([HEADER, *turn(0), Revert(id="r", entries=("t0",)), *turn(1)], 1, 1).entries) == ["t1", "q1", "a1"]
    assert ids(fork(entries, 0, 0).entries) == ["t0", "q0", "a0"]


def test_a_delta_after_the_range_comes_along_only_where_no_turn_follows() -> None:
    deltas = [ConfigDelta(id=f"d{number}", delta={}) for number in range(3)]
    entries = [HEADER, deltas[0], *turn(0), deltas[1], Revert(id="r", entries=("d0",)), *turn(1), deltas[2]]

    assert ids(fork(entries, 0, 0).entries) == ["d0", "t0", "q0", "a0", "r"]
    assert ids(fork(entries, 0, 1).entries) == ["d0", "t0", "q0", "a0", "d1", "r", "t1", "q1", "a1", "d2"]
    assert fork(entries, 0, 1).before == ()


def test_deltas_in_force_before_the_range_are_told_apart() -> None:
    deltas = [ConfigDelta(id=f"d{number}", delta={"n": number}) for number in range(3)]
    entries = [HEADER, *turn(0), *deltas[:2], *turn(1), deltas[2], Revert(id="r", entries=("d0",))]

    found = fork(entries, 1, 1)

    assert found.before == (deltas[1],)
    assert ids(found.entries) == ["t1", "q1", "a1", "d2"]


def test_reverts_concern_what_was_copied_and_nothing_else() -> None:
    entries = [
        HEADER, *turn(0), *turn(1),
        Revert(id="r0", entries=("t0",)), Revert(id="r1", entries=("t0", "t1")), Revert(id="r2", entries=("r0", "r1")),
        *turn(2), Revert(id="r3", entries=("t2",)), Revert(id="r4", entries=("r3",)),
    ]  # fmt: skip

    found = [entry for entry in fork(entries, 1, 1).entries if isinstance(entry, Revert)]

    assert [(entry.id, entry.entries) for entry in found] == [("r1", ("t1",)), ("r2", ("r1",))]


def test_compactions_are_those_that_are_given_in_their_order() -> None:
    one, other = (Compaction(id=name, from_turn=0, to_turn=0) for name in ("c0", "c1"))
    entries = [HEADER, *turn(0), one, *turn(1), other]

    found = extract(entries, TurnRange(first=0, last=0), [None, replace(other, to_turn=5)])

    assert found.entries[-1] == replace(other, to_turn=5)
    assert "c0" not in ids(found.entries)


def test_the_context_in_force_comes_along_unless_the_first_turn_has_its_own() -> None:
    own = replace(CONTEXT, id="x1", model="other")
    plain = [HEADER, *turn(0), CONTEXT, *turn(1)]
    set_first = [HEADER, *turn(0), CONTEXT, start(1), ask("?"), own, say("yes")]
    set_late = [HEADER, *turn(0), CONTEXT, *turn(1), own]

    assert ids(fork(plain, 1, 1).entries) == ["t1", "x0", "q1", "a1"]
    assert [entry for entry in fork(set_first, 1, 1).entries if isinstance(entry, RequestContext)] == [own]
    assert [entry for entry in fork(set_late, 1, 1).entries if isinstance(entry, RequestContext)] == [CONTEXT, own]
    assert fork([HEADER, *turn(0), start(1), ask("?")], 1, 1).entries == (start(1), ask("?"))


def test_the_first_digests_are_written_out_where_what_they_build_on_stays_behind() -> None:
    entries = [
        HEADER,
        *closed(0, digests=Digests(messages=("m0", "m1"))),
        *closed(1, digests=Digests(kept=1, messages=("m2",))),
        *closed(2, digests=Digests(kept=2, messages=("m3",))),
    ]

    found = [entry.digests for entry in fork(entries, 1, 2).entries if isinstance(entry, CycleEnd)]
    from_start = [entry.digests for entry in fork(entries, 0, 1).entries if isinstance(entry, CycleEnd)]

    assert found == [Digests(messages=("m0", "m2")), Digests(kept=2, messages=("m3",))]
    assert from_start == [Digests(messages=("m0", "m1")), Digests(kept=1, messages=("m2",))]


def test_what_a_provider_rejected_stays_rejected_wherever_it_was_said() -> None:
    entries = [HEADER, *closed(0), *closed(1, rejected=("a0",)), *closed(2, rejected=("a0", "a1")), *turn(3)]

    def rejected(first: int, last: int) -> list[tuple[str, ...]]:
        return [entry.rejected for entry in fork(entries, first, last).entries if isinstance(entry, CycleEnd)]

    assert rejected(0, 0) == [("a0",)]
    assert rejected(0, 1) == [(), ("a0", "a1")]
    assert rejected(1, 2) == [(), ("a1",)]
    assert rejected(3, 3) == []


def test_answers_to_what_stays_behind_stay_behind() -> None:
    asked = InquiryRequest(id="i0", request="c0", question=QUESTION)
    late = [
        replace(asked, id="i1"),
        InquiryResponse(id="j1", request="i1", answer=True, answered_by="user"),
        replace(respond("c0"), id="s0"),
    ]
    entries = [HEADER, start(0), call("c0"), *turn(1), *late]

    assert ids(fork(entries, 1, 1).entries) == ["t1", "q1", "a1"]
    assert ids(fork(entries, 0, 1).entries)[-3:] == ["i1", "j1", "s0"]


def test_what_was_left_open_is_closed() -> None:
    found = fork([HEADER, start(0), ask("?"), call("c0"), *turn(1)], 0, 0).entries[-1]

    assert isinstance(found, ToolCallResponse)
    assert (found.id, found.request, found.is_error) == ("", "c0", True)


def delivery(identity: str, resource: Resource) -> ChatRequest:
    return ChatRequest(id=identity, content="?", resources=(resource,))


def test_snapshots_refer_to_the_first_copy_that_came_along() -> None:
    plain = Resource(uri="file:///a", text="A")
    marked = replace(plain, duplicate_of="q0")
    diff = Resource(uri="file:///a", text="B", formatted="@@", formatted_against="q0")
    shown = Resource(uri="file:///c", text="C", formatted="short")
    entries = [
        HEADER, start(0), delivery("q0", plain), start(1), delivery("q1", marked), start(2), delivery("q2", marked),
        call("c2"), end("tools"), ToolCallResponse(id="s2", request="c2", content=(ResourceBlock(resource=diff),)),
        start(3), delivery("q3", replace(plain, text="A!", duplicate_of="q0")), delivery("q4", shown),
    ]  # fmt: skip

    found = {entry.id: entry for entry in fork(entries, 1, 3).entries}

    assert found["q1"] == delivery("q1", plain)
    assert found["q2"] == delivery("q2", replace(plain, duplicate_of="q1"))
    assert found["s2"] == ToolCallResponse(
        id="s2", request="c2", content=(ResourceBlock(resource=Resource(uri="file:///a", text="B")),)
    )
    assert found["q3"] == delivery("q3", replace(plain, text="A!"))
    assert found["q4"] == delivery("q4", shown)
    assert fork(entries, 0, 3).entries == tuple(entries[1:])


def test_other_content_than_snapshots_stays_as_it_is() -> None:
    marked = Resource(uri="file:///a", text="A", duplicate_of="gone")
    entries = log(start(0), delivery("q0", marked), call("c0"), respond("c0", "text"), ChatResponse(message="x"))

    found = fork(entries, 0, 0).entries

    assert found[1] == delivery("q0", replace(marked, duplicate_of=None))
    response = found[3]
    assert isinstance(response, ToolCallResponse)
    assert response.content == (TextBlock(text="text"),)


def test_everything_of_a_whole_turn_comes_along() -> None:
    entries = log(*whole_turn(0), *whole_turn(1))

    assert fork([HEADER, *entries], 0, 1).entries == tuple(entries)

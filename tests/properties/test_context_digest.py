"""What holds for digests of results, whatever the transcript."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import transcripts
from artifacts import MemoryArtifacts
from choices import Choices, choices
from jp.context.budget import Budget, estimate_messages, size_of
from jp.context.digest import Digester, Digests, Occasion, digest_in_time, digest_results, exact_start
from jp.context.digest_lines import ToolRule
from jp.context.groups import index_groups, leading_systems, pending_group
from jp.context.redaction import redact
from jp.context.types import Facts, Message, Transcript, texts_of
from transcript_validator import complaints

RULES = {
    "run": ToolRule(kind="terminal", subject="env"),
    "search": ToolRule(kind="search", subject="path"),
    "fs_read_file": ToolRule(kind="read", subject="path"),
}
KINDS = ("terminal", "test", "read", "search", "list", "web", "write", "patch", "json", "agent", "other", "unheard of")
BODIES = (
    "src/a.py:12:def one(): pass\n" * 60,
    "FAILED tests/test_a.py::test_one - assert\n" * 40 + "1 failed in 0.1s\n",
    '[{"id": 1, "api_key": "' + transcripts.SECRET + '"}, ' + '{"id": 2}, ' * 90 + "3]",
    "+ added\n- removed\n" * 70,
    f"https://user:{transcripts.SECRET}@host/\n" + "prose " * 200,
)


def facts(drawn: Choices) -> Facts:
    return Facts(
        kind=drawn.pick(KINDS),
        path=drawn.pick(("", "src/a.py", f"src/{transcripts.SECRET}")),
        lines=drawn.pick(("", "1-40", "10-20")),
        exit_code=drawn.pick((None, 0, 1, 141)),
        first_error=drawn.pick(("", f"error: token={transcripts.SECRET}")),
    )


def recorded(messages: Transcript, drawn: Choices) -> Transcript:
    """A transcript whose tools recorded what they did, and whose bodies come again."""
    seen = [(facts(drawn), drawn.pick((None, drawn.pick(BODIES)))) for _ in range(drawn.pick((1, 2, 3, 4)))]
    rows: list[Message] = []
    for number, row in enumerate(messages):
        known, body = seen[number % len(seen)]
        if row.role == "tool" and not row.meta.verbatim:
            content = row.content if body is None else body
            rows.append(replace(row, content=content, meta=replace(row.meta, facts=known)))
        else:
            rows.append(row)
    return tuple(rows)


well_formed = st.builds(recorded, transcripts.transcripts(), choices(30))
either = st.builds(recorded, transcripts.any_transcripts(), choices(30))


def digest(messages: Transcript, store: MemoryArtifacts, start: int = 0, end: int = 10_000) -> Digests:
    return digest_results(messages, index_groups(messages), Digester(store, RULES), between=(start, end))


@given(either)
def test_it_never_inflates_and_every_digest_is_half_as_long_at_most(messages: Transcript) -> None:
    found = digest(messages, MemoryArtifacts())

    assert (found.messages is messages) == (not found.actions)
    assert found.reclaimed == estimate_messages(messages) - estimate_messages(found.messages) >= 0
    for action in found.actions:
        before, after = messages[action.position], found.messages[action.position]
        assert 2 * action.replacement_bytes <= action.original_bytes
        assert size_of(before) - size_of(after) == action.original_bytes - action.replacement_bytes


@given(either)
def test_doing_it_again_changes_nothing(messages: Transcript) -> None:
    store = MemoryArtifacts()
    once = digest(messages, store)

    again = digest(once.messages, store)

    assert again.messages is once.messages
    assert again.actions == ()


@given(well_formed)
def test_what_providers_take_they_take_afterwards(messages: Transcript) -> None:
    assert complaints(digest(messages, MemoryArtifacts()).messages) == []


@given(either, st.data())
def test_only_results_between_the_head_and_the_exact_end_change(messages: Transcript, data: st.DataObject) -> None:
    index = index_groups(messages)
    places = st.sampled_from([0, *(group.end for group in index.groups)])
    start, end = sorted((data.draw(places), data.draw(places)))

    found = digest(messages, MemoryArtifacts(), start, end)

    changed = {at for at, row in enumerate(messages) if row is not found.messages[at]}
    assert changed == {action.position for action in found.actions} <= set(range(start, end))
    assert all(messages[at].role == "tool" and not messages[at].meta.verbatim for at in changed)
    pending = pending_group(index)
    assert pending is None or changed.isdisjoint(range(index.groups[pending].start, len(messages)))


@given(either)
def test_what_comes_in_is_not_changed(messages: Transcript) -> None:
    before = msgspec.json.encode(messages)

    digest(messages, MemoryArtifacts())

    assert msgspec.json.encode(messages) == before


@given(either)
def test_no_secret_stands_in_anything_new(messages: Transcript) -> None:
    found = digest(messages, MemoryArtifacts())

    for action in found.actions:
        assert transcripts.SECRET not in "".join(texts_of(found.messages[action.position]))
    assert transcripts.SECRET not in repr(found.actions)


@given(either)
def test_every_replaced_text_is_recalled_byte_for_byte_and_its_handle_stands_in_the_digest(
    messages: Transcript,
) -> None:
    store = MemoryArtifacts()

    found = digest(messages, store)

    for action in found.actions:
        [text] = texts_of(found.messages[action.position])
        assert f"recall {', '.join(action.handles)}" in text
        recalled = {store.recall(handle) for handle in action.handles}
        assert set(texts_of(messages[action.position])) <= recalled


@given(either)
def test_lines_of_evidence_are_the_results_own_once_secrets_are_out(messages: Transcript) -> None:
    found = digest(messages, MemoryArtifacts())

    for action in found.actions:
        [text] = texts_of(found.messages[action.position])
        before = messages[action.position]
        recorded_error = before.meta.facts.first_error if before.meta.facts else ""
        known = redact("".join(texts_of(before))).text + redact(recorded_error).text
        assert all(line in known for line in text.splitlines()[1:])


@given(either, st.data())
def test_every_content_of_the_exact_end_is_still_there_in_full_and_every_other_in_full_or_by_handle(
    messages: Transcript, data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from([0, *(group.end for group in index_groups(messages).groups)]))
    store = MemoryArtifacts()

    found = digest(messages, store, 0, end)

    full = {text for row in found.messages if row.role == "tool" for text in texts_of(row)}
    assert {text for row in messages[end:] if row.role == "tool" for text in texts_of(row)} <= full
    gone = {text for row in messages if row.role == "tool" for text in texts_of(row)} - full
    assert gone <= set(store.kept.values())


@given(either)
def test_what_refers_to_another_result_refers_to_a_later_one_with_the_same_content(messages: Transcript) -> None:
    found = digest(messages, MemoryArtifacts())

    for action in (action for action in found.actions if action.rule == "duplicate"):
        later = [row for row in messages[action.position + 1 :] if row.role == "tool"]
        assert texts_of(messages[action.position]) in [texts_of(row) for row in later]


@given(well_formed, well_formed)
def test_what_comes_later_never_changes_what_is_digested(messages: Transcript, more: Transcript) -> None:
    settled = tuple(row for row in messages if not row.meta.pending)
    settled = settled if not complaints(settled) else ()
    store = MemoryArtifacts()
    once = digest(settled, store).messages

    longer = digest((*once, *more), store).messages

    for before, after in zip(once, longer, strict=False):
        assert after is before or before.meta.digested is None


@given(well_formed, st.data())
def test_below_the_threshold_a_longer_transcript_begins_with_what_a_shorter_one_became(
    messages: Transcript, data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from([0, *(group.end for group in index_groups(messages).groups)]))

    def run(rows: Transcript) -> Transcript:
        used = estimate_messages(rows)
        occasion = Occasion(budget=Budget(window=10_000_000), used=used)
        digester = Digester(MemoryArtifacts(), RULES)
        return digest_in_time(rows, index_groups(rows), digester, occasion, between=(0, len(rows))).digests.messages

    assert run(messages)[:end] == run(messages[:end])


@given(well_formed, st.integers(0, 60), st.integers(0, 5))
def test_the_newest_rounds_and_system_messages_are_never_in_reach(
    messages: Transcript, tail_start: int, rounds: int
) -> None:
    index = index_groups(messages)

    start = exact_start(messages, index, tail_start, rounds)

    done = [group.start for group in index.groups if group.kind == "round" and not group.pending]
    exact = [*done[max(len(done) - rounds, 0) :], *(group.start for group in index.groups if group.pending)]
    assert start == max(min([tail_start, len(messages), *exact]), leading_systems(messages))

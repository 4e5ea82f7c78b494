"""Summaries of any transcript, whatever the model answers, again and again."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import transcripts
from jp.context.anchors import is_real_user, latest_real_user
from jp.context.budget import Budget, estimate_messages, group_costs, tail_budget, threshold
from jp.context.estimate import estimate_tokens
from jp.context.evidence import Mentions
from jp.context.groups import index_groups, leading_systems
from jp.context.policy import PolicyState, SummaryCircumstances
from jp.context.summarizing import run, summarising, summary_limit
from jp.context.summary_schema import Decision, MendedError, StructuredSummary, SummaryError, SummaryReply, TouchedFiles
from jp.context.summary_source import Command, Ledger, Spoken
from jp.context.summary_text import (
    Provenance,
    Recallable,
    SummaryState,
    alternating,
    closing,
    escaped,
    is_summary,
    opening,
    parse_summary,
    render_summary,
    unescaped,
)
from jp.context.tail import TailLimits, select_tail_by_budget
from jp.context.types import Message, Transcript
from summaries import ACCOUNT, NONCE, TERMS, Played, answer, compact, cutter, ran, requirements_of, setup, user
from transcript_validator import complaints

either = transcripts.any_transcripts()
texts = st.text(max_size=40) | st.sampled_from((
    opening(NONCE),
    closing(NONCE),
    "[[\\summary:",
    "[[/\\\\SUMMARY:x",
    "a\n- b\n## Goal\n  c",
    "what: x\n\nwhy",
    "true",
    "3",
))
items = st.lists(texts, max_size=3).map(tuple)
accounts = st.builds(
    StructuredSummary,
    goal=texts,
    next_step=texts,
    requirements=items,
    decisions=st.lists(st.builds(Decision, what=texts, why=texts), max_size=2).map(tuple),
    done=items,
    errors_and_fixes=st.lists(st.builds(MendedError, error=texts, fix=texts), max_size=2).map(tuple),
    files=st.builds(TouchedFiles, read=items, modified=items),
    hypothesis=texts,
)
states = st.builds(
    SummaryState,
    account=accounts,
    spoken=st.builds(Spoken, first=texts, later=items, active=texts),
    ledger=st.builds(
        Ledger,
        modified=items,
        commands=st.lists(st.builds(Command, command=texts, outcome=texts), max_size=2).map(tuple),
    ),
    mentions=st.builds(Mentions, paths=items, errors=items),
    answers=items,
    inherited=texts,
    older_requirements=texts,
    whole_request=texts,
    recallable=st.lists(st.builds(Recallable, handle=texts, what=texts), max_size=2).map(tuple),
    provenance=st.builds(Provenance, is_local=st.booleans(), unsupported=st.integers(0, 9), updates=st.integers(0, 9)),
)
errors = st.sampled_from(("network", "auth", "malformed", "timeout", "empty", "no_provider"))
replies = accounts | errors.map(lambda kind: msgspec.convert({"kind": kind}, SummaryError))


@given(states)
def test_a_summary_reads_back_to_what_it_was_rendered_from(state: SummaryState) -> None:
    assert parse_summary(render_summary(state, NONCE), NONCE) == state


@given(texts | st.text(alphabet="[/\\sumaryY:S"))
def test_what_begins_a_marker_is_escaped_and_comes_back(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert "[[summary:" not in escaped(text).lower()
    assert "[[/summary:" not in escaped(text).lower()


@given(either, st.lists(st.tuples(transcripts.transcripts(), replies, st.integers(0, 3)), max_size=4))
def test_there_is_at_most_one_summary_after_any_number_of_compactions(
    messages: Transcript, later: list[tuple[Transcript, SummaryReply, int]]
) -> None:
    store = cutter()
    for added, reply, keep in later:
        messages = (*messages, *(row for row in added if row.role != "system" and not row.meta.pending))
        before = messages
        provider = Played(reply)
        found = compact(messages, keep, provider, setup(desk=store))
        messages = found.messages

        assert all(transcripts.SECRET not in request.prompt for request in provider.requests)
        if found.state is None:
            assert messages is before
            continue
        assert sum(map(is_summary, messages)) == 1
        assert complaints(messages) == []
        assert estimate_messages(messages) <= estimate_messages(before) * 8 // 10
        assert [row for row in messages if row.role == "system"] == [row for row in before if row.role == "system"]
        assert sum(map(is_real_user, messages)) <= sum(map(is_real_user, before))
        assert all(row in before for row in messages if not is_summary(row))
        text = "".join(str(row.content) for row in messages if is_summary(row))
        assert parse_summary(text, NONCE) == found.state
        assert transcripts.SECRET not in text


@given(transcripts.transcripts(), st.integers(0, 4))
def test_the_newest_request_stands_in_the_outcome_once(messages: Transcript, keep: int) -> None:
    request = user("This is the newest of all requests. " * 3)
    messages = (
        *messages[: leading_systems(messages)],
        user("first"),
        request,
        *ran("make", "out\n" * 2_000),
        *messages,
    )
    messages = tuple(row for row in messages if row is request or not is_real_user(row) or row.content == "first")

    found = compact(messages, keep, Played(ACCOUNT))

    if found.state is not None:
        told = "".join(str(row.content) for row in found.messages)
        assert told.count(str(request.content)) == 1
        assert found.state.spoken.active in {"", request.content}


@given(st.integers(0, 9_999), st.lists(st.booleans(), min_size=3, max_size=3))
def test_requirements_are_never_lost_whoever_folds(seed: int, locally: list[bool]) -> None:
    """Where there is no room for them, they are recalled by a handle."""
    store = cutter()
    messages: Transcript = ()
    wanted: list[str] = []
    for number, is_local in enumerate(locally):
        wanted += [] if is_local else [f"rule {seed}{number} no {item}" for item in range(20)]
        told = replace(ACCOUNT, requirements=tuple(wanted[-20:]))
        said = user(" ".join(wanted))
        messages = (*messages, said, *ran("make", f"{number} out\n" * 1_000), answer("done"))
        reply: SummaryReply = SummaryError(kind="malformed") if is_local else told
        found = compact(messages, 1, Played(reply), setup(desk=store))
        messages = found.messages
        assert found.state is not None
        assert set(wanted) <= set(requirements_of(found.state, store.artifacts))


def test_the_size_is_bounded_whatever_the_number_of_compactions() -> None:
    store = cutter()
    messages: Transcript = ()
    sizes: list[int] = []
    for number in range(12):
        rows = [row for n in range(5) for row in _noisy(f"{number}-{n}")]
        words = tuple(f"{name} of {number}: {'many words ' * 30}" for name in "abcdefghijkl")
        told = StructuredSummary(
            goal="g" * 900, next_step="n", requirements=words, done=words, open=words, constraints=words
        )
        found = compact((*messages, *rows), 1, Played(told), setup(replace(TERMS, limit=6_000), store))
        messages = found.messages
        sizes += [estimate_tokens(str(row.content)) for row in messages if is_summary(row)]

    assert len(sizes) == 12
    assert max(sizes) <= 6_000
    assert len(messages) == 2


def _noisy(name: str) -> Transcript:
    output = "".join(f"src/{name}/file{n}.py: error: {name} {n} is wrong, see #{n}\n" for n in range(80))
    return (user(f"do {name} " + "and more " * 400), *ran(f"make {name}", output), answer(f"{name} is done " * 40))


@given(transcripts.transcripts())
def test_a_summary_can_be_sent_where_sides_alternate(messages: Transcript) -> None:
    sent = alternating(messages)

    assert all(not is_summary(one) or other.role != "user" for one, other in pairwise(sent))
    assert alternating(sent) is sent
    assert latest_real_user(sent) is None or latest_real_user(messages) is not None


@given(
    st.sampled_from((8_000, 16_000, 40_000)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4_000), st.booleans()), min_size=5, max_size=40),
    errors,
)
def test_a_provider_that_always_fails_neither_loops_nor_exceeds_the_window(
    window: int, growth: list[tuple[int, int, bool]], kind: str
) -> None:
    """A host with a simulated clock that restarts at random points; what cannot be sent is not, and is not added."""
    host = _Host(window, Played(msgspec.convert({"kind": kind}, SummaryError)))
    for shape, size, restarts in growth:
        host.now += size
        if restarts:
            host.policy = msgspec.json.decode(msgspec.json.encode(host.policy), type=PolicyState)
        added = _growth(shape, size)
        messages = host.with_room((*host.messages, *added))
        if estimate_messages(messages) <= host.most:
            host.messages = messages
        else:
            assert estimate_messages(added) > host.most // 2


class _Host:
    def __init__(self, window: int, provider: Played) -> None:
        self._budget = Budget(window=window, reserved=window // 8)
        self._setup = setup(replace(TERMS, window=window, limit=summary_limit(window)), cutter())
        self._provider = provider
        self.most = window - self._budget.reserved
        self.messages: Transcript = (Message(role="system", content="You help."),)
        self.policy = PolicyState()
        self.now = 0.0

    def with_room(self, messages: Transcript) -> Transcript:
        """`messages`, or what a compaction makes of them where the trigger fires."""
        used = estimate_messages(messages)
        if used < threshold(self._budget):
            return messages
        limit = self.most if used > self.most else None
        at = SummaryCircumstances(now=self.now, configuration="one", used=used, limit=limit)
        calls = len(self._provider.requests)
        steps = summarising(messages, self._middle(messages), self._setup, policy=self.policy, at=at)
        found = run(steps, self._provider)
        self.policy = found.policy
        assert len(self._provider.requests) - calls == found.calls <= 2
        assert limit is None or found.status in {"fallback", "too_large"}
        if found.messages is not messages:
            assert complaints(found.messages) == []
            assert found.after < found.before
        return found.messages

    def _middle(self, messages: Transcript) -> tuple[int, int]:
        index = index_groups(messages)
        limits = TailLimits(budget=tail_budget(self._budget), must_shrink=True)
        head = leading_systems(messages)
        tail = select_tail_by_budget(index, group_costs(messages, index), limits, head_end=head)
        return head, index.groups[tail.start].start


def _growth(shape: int, size: int) -> Transcript:
    if shape == 0:
        return (user("word " * size), answer("I see"))
    if shape == 1:
        return (*ran("make", "line of output\n" * size), answer("done"))
    return (user("go on"), answer("words " * (size // 3)))

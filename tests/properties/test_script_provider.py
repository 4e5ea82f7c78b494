from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode

from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import AnyEntry
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantText, Thread, ToolCall, ToolResult, UserText, ViewEvent
from jp.provider.script.provider import Casting, ScriptProvider
from jp.provider.script.scenario import Call, IncrementalBody, Reply, Scenario, When, body_of, sections_of
from jp.turn.request import RequestSettings, ThreadBuilder
from streams import Blobs, streams

WORDS = st.sampled_from(["a", "b", "ab", "c"])

replies = st.builds(
    Reply,
    when=st.builds(When, contains=st.none() | WORDS, turn=st.none() | st.integers(0, 3)),
    times=st.none() | st.integers(1, 2),
    text=st.just("answer"),
    calls=st.sampled_from([(), (Call(name="read"),)]),
)


def thread(events: list[ViewEvent]) -> Thread:
    return Thread(model="m", system=("s",), tools=(), events=tuple(events))


def answer(reply: Reply, turn: int) -> list[ViewEvent]:
    """What a reply leaves in the conversation."""
    events: list[ViewEvent] = [AssistantText(text=reply.text or "", turn=turn)]
    for call in reply.calls:
        events.append(ToolCall(call_id="1", name=call.name, arguments={}, turn=turn, origin="e"))
        content = (TextBlock(text="result"),)
        events.append(ToolResult(call="e", call_id="1", name=call.name, content=content, turn=turn))
    return events


@given(st.lists(replies, min_size=1, max_size=4).map(tuple), st.lists(WORDS, min_size=1, max_size=6))
def test_uses_read_from_a_conversation_are_those_that_somebody_who_watched_it_has_counted(
    choices: tuple[Reply, ...], said: list[str]
) -> None:
    counted = [0] * len(choices)
    events: list[ViewEvent] = []

    for turn, text in enumerate(said):
        events.append(UserText(text=text, turn=turn))
        for _ in range(3):
            after_tool = isinstance(events[-1], ToolResult)
            expected = next(
                (
                    index
                    for index, reply in enumerate(choices)
                    if (reply.times is None or counted[index] < reply.times)
                    and reply.when.turn in {None, turn}
                    and (reply.when.contains is None or (not after_tool and reply.when.contains in text))
                ),
                None,
            )
            cue = Casting(Scenario(reply=choices), body_of(thread(events))).cue()

            assert (None if cue is None else cue.index) == expected
            if cue is None:
                break
            counted[cue.index] += 1
            events += answer(cue.reply, turn)
            if not cue.reply.calls:
                break


@given(st.lists(st.tuples(st.booleans(), WORDS, st.booleans()), max_size=12), st.data())
def test_a_longer_conversation_begins_with_the_same_request(
    steps: list[tuple[bool, str, bool]], data: st.DataObject
) -> None:
    events: list[ViewEvent] = []
    turn = 0
    for is_user, text, synthetic in steps:
        turn += is_user
        kind = UserText if is_user else AssistantText
        events.append(kind(text=text, turn=turn, synthetic=synthetic))
    count = data.draw(st.integers(0, len(events)))

    start, whole = sections_of(body_of(thread(events[:count]))), sections_of(body_of(thread(events)))

    sent = [block for message in start.messages for block in message]
    assert [block for message in whole.messages for block in message][: len(sent)] == sent


SETTINGS = RequestSettings(provider="script", model="m", renderer=1, system=("s",))


@given(streams(), st.lists(st.integers(0, 12), max_size=30), st.lists(replies, min_size=1, max_size=4).map(tuple))
def test_a_conversation_that_grows_is_played_as_one_that_is_read_at_once(
    entries: Sequence[AnyEntry], additions: list[int], choices: tuple[Reply, ...]
) -> None:
    scenario = Scenario(reply=choices)
    provider, threads = ScriptProvider(scenario, source="s"), ThreadBuilder(Blobs(), StatusLineFormatter())
    growing, known = IncrementalBody(), 0
    casting = Casting(scenario, growing.build(thread([])))

    for added in (*additions, len(entries)):
        known = min(known + added, len(entries))
        view = threads.build(entries[:known], SETTINGS, continuing=added % 2 == 1)
        body = body_of(view)
        request, new = provider.render(view), ScriptProvider(scenario, source="s").render(view)
        assert (encode(request.body), request.sections) == (encode(new.body), new.sections)
        assert encode(request.body) == encode(body)
        casting.go_on(growing.build(view))
        at_once = Casting(scenario, body)
        assert (casting.cue(), casting.explain()) == (at_once.cue(), at_once.explain())

from __future__ import annotations

from jp.compaction.projection import VisibleCopy, newest_copy
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, ToolCallPolicy, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from logs import LONG, call, end, log, start

URI = "file:///w/a.py"
A = Resource(uri=URI, text=LONG)
B = Resource(uri=URI, text="other " * 100)
OTHER = Resource(uri="file:///w/b.py", text=LONG)


def newest(*entries: AnyEntry) -> VisibleCopy | None:
    return newest_copy(URI, log(*entries), PlainStatusFormatter())


def attach(number: int, *resources: Resource) -> list[AnyEntry]:
    return [start(number), ChatRequest(id=f"q{number}", content="Look.", resources=resources)]


def read(*resources: Resource) -> list[AnyEntry]:
    blocks = (TextBlock(text="Here:"), *(ResourceBlock(resource=resource) for resource in resources))
    return [call("c"), end("tools"), ToolCallResponse(id="r", request="c", content=blocks)]


def test_the_newest_copy_is_what_was_attached_or_delivered_last() -> None:
    attached = VisibleCopy(resource=A, entry="q0", place="the attachment at turn 0")
    delivered = VisibleCopy(resource=B, entry="r", place="the result of tool call `call_0` in turn 0")

    assert newest() is None
    assert newest(*attach(0, OTHER)) is None
    assert newest(*attach(0, A, OTHER)) == attached
    assert newest(*attach(0, A), *read(OTHER)) == attached
    assert newest(*attach(0, A), *read(B)) == delivered


def test_what_only_refers_to_a_copy_and_what_is_compacted_are_none() -> None:
    again = Resource(uri=URI, text=LONG, duplicate_of="q0")
    strip = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", response=True))

    for entries in ([*attach(0, A), *read(again)], [*attach(0, A), *read(B), strip]):
        copy = newest(*entries)
        assert copy is not None
        assert copy.entry == "q0"

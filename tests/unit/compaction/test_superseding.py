from __future__ import annotations

from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, ToolCallPolicy, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock, TextBlock, checksum
from jp.conversation.thread import ToolResult, UserResource, UserText
from logs import LONG, call, end, log, start

URI = "file:///w/a.py"
A = Resource(uri=URI, text=LONG)
B = Resource(uri=URI, text="other " * 100)
C = Resource(uri=URI, text="third " * 100)


def again(resource: Resource) -> Resource:
    return Resource(uri=resource.uri, text=resource.text, duplicate_of="x")


def diff(resource: Resource, base: str) -> Resource:
    return Resource(uri=resource.uri, text=resource.text, formatted="@@", formatted_against=base)


def attach(number: int, *resources: Resource) -> list[AnyEntry]:
    return [start(number), ChatRequest(id=f"q{number}", content="", resources=resources)]


def read(identity: str, *resources: Resource) -> list[AnyEntry]:
    blocks = tuple(ResourceBlock(resource=resource) for resource in resources)
    return [call(identity), end("tools"), ToolCallResponse(id=f"r{identity}", request=identity, content=blocks)]


def superseded(first: int, last: int) -> Compaction:
    return Compaction(from_turn=first, to_turn=last, resources="superseded")


def note(resource: Resource, place: str) -> str:
    return f"[superseded] {resource.uri} (checksum: sha256:{checksum(resource)[:12]}): the newer copy is {place}."


def attachment(turn: int) -> str:
    return f"the attachment at turn {turn}"


def shown(*entries: AnyEntry) -> list[Resource | str]:
    """The snapshots of a view, or the first words in place of them."""
    found: list[Resource | str] = []
    for event in project(log(*entries), PlainStatusFormatter()).events:
        match event:
            case UserResource(resource=resource):
                found.append(resource)
            case UserText(text=text):
                found.append(text.partition(" It has not")[0])
            case ToolResult(content=(ResourceBlock(resource=resource), *_)):
                found.append(resource)
            case ToolResult(content=(TextBlock(text=text), *_)):
                found.append((text or "").partition(" It has not")[0])
            case _:
                pass
    return found


def refers(resource: Resource, place: str) -> str:
    return f"The content of {URI} is identical to {place} (checksum: sha256:{checksum(resource)[:12]})."


def test_older_copies_give_way_to_a_note_that_names_the_newest() -> None:
    entries = [*attach(0, A), *attach(1), *read("c1", B), *attach(2, C)]

    assert shown(*entries) == [A, B, C]
    assert shown(*entries, superseded(0, 2)) == [note(A, attachment(2)), note(B, attachment(2)), C]


def test_a_newer_copy_may_be_the_result_of_a_tool() -> None:
    entries = [*attach(0, A), *attach(1), *read("c1", B), superseded(0, 1)]

    assert shown(*entries) == [note(A, "the result of tool call `call_0` in turn 1"), B]


def test_only_covered_turns_are_touched() -> None:
    entries = [*attach(0, A), *attach(1, B), *attach(2, C), superseded(1, 2)]

    assert shown(*entries) == [A, note(B, attachment(2)), C]


def test_what_is_delivered_after_the_compaction_changes_nothing_before_it() -> None:
    entries = [*attach(0, A), *attach(1, B), superseded(0, 1), *attach(2, C)]

    assert shown(*entries) == [note(A, attachment(1)), B, C]


def test_a_compaction_that_saw_one_copy_supersedes_nothing() -> None:
    assert shown(*attach(0, A), superseded(0, 0), *attach(1, B)) == [A, B]
    assert shown(*attach(0, A), *attach(1), superseded(0, 0), *attach(2, B)) == [A, B]


def test_other_resources_are_left_alone() -> None:
    other = Resource(uri="file:///w/b.py", text=LONG)

    assert shown(*attach(0, other), *attach(1, A), *attach(2, B), superseded(0, 2)) == [
        other,
        note(A, attachment(2)),
        B,
    ]


def test_a_copy_that_is_not_shown_supersedes_nothing() -> None:
    strip = Compaction(from_turn=1, to_turn=1, tool_calls=ToolCallPolicy(policy="strip", response=True))

    assert shown(*attach(0, A), *attach(1), *read("c1", B), superseded(0, 1), strip) == [A, "[compacted] run: success"]


def test_a_copy_that_later_ones_only_refer_to_stays() -> None:
    entries = [*attach(0, A), *attach(1, again(A)), *attach(2, again(A)), superseded(0, 2)]

    assert shown(*entries) == [A, refers(A, attachment(0)), refers(A, attachment(0))]


def test_a_copy_whose_target_is_superseded_is_shown_in_full_and_supersedes_the_rest() -> None:
    entries = [*attach(0, A), *attach(1, B), *attach(2, again(A)), *attach(3, again(A)), superseded(0, 3)]

    assert shown(*entries) == [
        note(A, attachment(2)),
        note(B, attachment(2)),
        again(A),
        refers(A, attachment(2)),
    ]


def test_a_newest_copy_that_refers_to_one_outside_the_range_still_supersedes_what_lies_between() -> None:
    entries = [*attach(0, A), *attach(1, B), *attach(2, again(A)), superseded(1, 2)]

    assert shown(*entries) == [A, note(B, attachment(2)), refers(A, attachment(0))]


def test_the_base_of_the_newest_diff_stays() -> None:
    entries = [*attach(0, A), *attach(1, B), *attach(2, diff(C, "q1")), superseded(0, 2)]

    assert shown(*entries) == [note(A, attachment(1)), B, diff(C, "q1")]


def test_a_diff_without_its_base_supersedes_as_the_full_content_that_it_becomes() -> None:
    entries = [*attach(0, A), *attach(1, diff(B, "gone")), superseded(0, 1)]

    assert shown(*entries) == [note(A, attachment(1)), B]


def test_a_note_names_the_copy_that_an_overlay_elsewhere_left() -> None:
    entries = [
        *attach(0, A),
        *attach(1, B),
        superseded(0, 0),
        *attach(2, C),
        superseded(1, 1),
    ]

    assert shown(*entries) == [note(A, attachment(2)), note(B, attachment(2)), C]


def test_a_copy_that_is_shorter_than_its_note_stays() -> None:
    short = Resource(uri=URI, text="short")

    assert shown(*attach(0, short), *attach(1, B), superseded(0, 1)) == [short, B]


def test_a_note_names_a_short_copy_that_stays() -> None:
    short = Resource(uri=URI, text="short")
    entries = [*attach(0, A), *attach(1, short), superseded(0, 0), *attach(2, C), superseded(1, 1)]

    assert shown(*entries) == [note(A, attachment(1)), short, C]

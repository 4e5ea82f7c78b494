from __future__ import annotations

from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallResponse,
)
from jp.conversation.resource import Resource, ResourceBlock, TextBlock, checksum
from jp.conversation.thread import ToolResult, UserResource, UserText
from logs import LONG, call, end, log, start

URI = "file:///w/a.py"
A = Resource(uri=URI, text=LONG)
B = Resource(uri=URI, text="other " * 100)
DIGITS = checksum(A)[:12]
TO_ATTACHMENT = (
    f"The content of {URI} is identical to the attachment at turn 0 (checksum: sha256:{DIGITS}). "
    "It has not changed. Refer to that copy for the full content."
)
BACK_AGAIN = TO_ATTACHMENT.replace("It has not changed", "It was something else in between")
TO_RESULT = TO_ATTACHMENT.replace("the attachment at turn 0", "the result of tool call `call_0` in turn 0")


def again(resource: Resource, *, marked: str | None = "x") -> Resource:
    return Resource(uri=resource.uri, text=resource.text, duplicate_of=marked)


def diff(resource: Resource, base: str) -> Resource:
    return Resource(uri=resource.uri, text=resource.text, formatted="@@", formatted_against=base)


def attach(number: int, *resources: Resource) -> list[AnyEntry]:
    return [start(number), ChatRequest(id=f"q{number}", content="" if resources else "Look.", resources=resources)]


def read(identity: str, *resources: Resource) -> list[AnyEntry]:
    blocks = tuple(ResourceBlock(resource=resource) for resource in resources)
    return [call(identity), end("tools"), ToolCallResponse(id=f"r{identity}", request=identity, content=blocks)]


def shown(*entries: AnyEntry) -> list[Resource | str]:
    """The snapshots of a view, or the words in place of them."""
    found: list[Resource | str] = []
    for event in project(log(*entries), PlainStatusFormatter()).events:
        match event:
            case UserResource(resource=resource):
                found.append(resource)
            case UserText(text=text, synthetic=True):
                found.append(text)
            case ToolResult(content=blocks):
                for block in blocks:
                    if isinstance(block, ResourceBlock):
                        found.append(block.resource)
                    elif isinstance(block, TextBlock):
                        found.append(block.text or "")
            case _:
                pass
    return found


def test_a_duplicate_refers_to_the_attachment_that_stands_before_it() -> None:
    assert shown(*attach(0, A), *read("c1", again(A))) == [A, TO_ATTACHMENT]


def test_a_duplicate_refers_to_the_result_that_stands_before_it() -> None:
    assert shown(*attach(0), *read("c1", A), *attach(1, again(A))) == [A, TO_RESULT]


def test_a_reference_in_place_of_an_attachment_is_marked_as_not_the_users_words() -> None:
    events = project(log(*attach(0, A), *attach(1, again(A))), PlainStatusFormatter()).events

    assert events[1] == UserText(text=TO_ATTACHMENT, turn=1, origin="q1", synthetic=True)


def test_each_block_of_a_result_is_judged_by_itself() -> None:
    assert shown(*attach(0, A), *read("c1", again(A), B, B)) == [A, TO_ATTACHMENT, B, B]


def test_a_reference_says_where_the_content_was_another_in_between() -> None:
    entries = [*attach(0, A), *attach(1, B), *read("c1", again(A), again(A))]

    assert shown(*entries) == [A, B, BACK_AGAIN, TO_ATTACHMENT]
    assert shown(*attach(0, A), *attach(1, diff(B, "q0"), again(A)))[2] == BACK_AGAIN


def test_only_what_is_marked_becomes_a_reference() -> None:
    assert shown(*attach(0, A), *attach(1, A)) == [A, A]


def test_the_same_content_under_another_uri_and_other_content_under_the_same_are_no_copies() -> None:
    elsewhere = Resource(uri="file:///w/b.py", text=LONG, duplicate_of="x")

    assert shown(*attach(0, A), *attach(1, elsewhere)) == [A, elsewhere]
    assert shown(*attach(0, A), *attach(1, again(B))) == [A, again(B)]


def test_a_copy_in_the_blob_store_is_a_copy_of_the_same_text() -> None:
    stored = Resource(uri=URI, sha256=checksum(A), size=len(LONG), duplicate_of="x")

    assert shown(*attach(0, A), *attach(1, stored)) == [A, TO_ATTACHMENT]


def test_a_copy_in_another_form_is_no_copy_of_what_is_shown() -> None:
    bounded = Resource(uri=URI, text=LONG, formatted="head … tail")
    same_form = Resource(uri=URI, text=LONG, formatted="head … tail", duplicate_of="x")

    assert shown(*attach(0, bounded), *attach(1, again(A))) == [bounded, again(A)]
    assert shown(*attach(0, bounded), *attach(1, same_form)) == [bounded, TO_ATTACHMENT]


def bounded(resource: Resource, form: str = "head", *, marked: str | None = None) -> Resource:
    marker = f"[[cut:n0nce:{checksum(resource)[:8]}:+400]]"
    return Resource(
        uri=resource.uri, text=resource.text, formatted=f"{form}\n{marker} from offset 4", duplicate_of=marked
    )


def test_a_reference_to_a_copy_that_was_cut_names_the_handle_that_recalls_the_rest() -> None:
    to_cut = TO_ATTACHMENT.replace("the full content", f"what is shown of it; recall {DIGITS[:8]} for the rest")

    assert shown(*attach(0, bounded(A)), *attach(1, bounded(A, marked="x"))) == [bounded(A), to_cut]


def test_a_full_copy_is_a_copy_of_every_cut_one_and_none_of_them_of_a_full_one_or_of_one_that_is_cut_otherwise() -> (
    None
):
    cut, other = bounded(A, marked="x"), bounded(A, "other", marked="x")

    assert shown(*attach(0, A), *attach(1, cut)) == [A, TO_ATTACHMENT]
    assert shown(*attach(0, bounded(A)), *attach(1, again(A))) == [bounded(A), again(A)]
    assert shown(*attach(0, bounded(A)), *attach(1, other)) == [bounded(A), other]


def test_of_a_full_copy_and_one_that_is_cut_in_the_same_way_the_newer_is_named() -> None:
    entries = [*attach(0, A), *read("c1", bounded(A), bounded(A, marked="x")), *attach(1, A)]

    to_cut = TO_RESULT.replace("the full content", f"what is shown of it; recall {DIGITS[:8]} for the rest")
    assert shown(*entries)[2] == to_cut
    assert shown(*entries, *attach(2, bounded(A, marked="x")))[-1] == TO_ATTACHMENT.replace("turn 0", "turn 1")


def test_a_reference_names_the_newest_full_copy() -> None:
    entries = [*attach(0, A), *attach(1, A), *attach(2, again(A)), *attach(3, again(A))]

    to_turn_1 = TO_ATTACHMENT.replace("turn 0", "turn 1")
    assert shown(*entries) == [A, A, to_turn_1, to_turn_1]


def test_where_the_copy_is_compacted_away_a_duplicate_stands_for_itself_and_is_the_copy_for_later_ones() -> None:
    entries = [*attach(0), *read("c1", A), *attach(1, again(A)), *attach(2, again(A))]
    to_turn_1 = TO_ATTACHMENT.replace("turn 0", "turn 1")

    strip = Compaction(id="z", from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    omit = Compaction(id="z", from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="omit"))
    summary = Compaction(id="z", from_turn=0, to_turn=0, summary=SummaryPolicy(text="s"))

    assert shown(*entries, strip) == ["[compacted] run: success", again(A), to_turn_1]
    assert shown(*entries, omit) == [again(A), to_turn_1]
    assert shown(*entries, summary)[1:] == [again(A), to_turn_1]
    assert shown(*entries, Revert(entries=("t0",))) == [again(A), to_turn_1]
    assert shown(*entries, summary, Revert(entries=("z",))) == [A, TO_RESULT, TO_RESULT]


def test_a_copy_that_no_view_shows_is_no_copy() -> None:
    orphaned = [*read("c1", A), start(1), ChatRequest(content="now", resources=(again(A),))]

    assert shown(*orphaned) == [again(A)]


def test_a_diff_stays_one_while_its_base_can_be_read() -> None:
    entries = [*attach(0, A), *attach(1, diff(B, "q0"))]

    assert shown(*entries) == [A, diff(B, "q0")]
    assert shown(*entries, *attach(2, diff(A, "q1"))) == [A, diff(B, "q0"), diff(A, "q1")]
    assert shown(*attach(0, A), *attach(1, again(A)), *attach(2, diff(B, "q1"))) == [A, TO_ATTACHMENT, diff(B, "q1")]


def test_a_diff_becomes_the_full_content_where_its_base_is_hidden() -> None:
    summary = Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="s"))

    assert shown(*attach(0, A), *attach(1, diff(B, "q0")), *attach(2, diff(A, "q1")), summary)[1:] == [
        B,
        diff(A, "q1"),
    ]
    assert shown(*attach(0, A), *attach(1, diff(B, "gone"))) == [A, B]


def test_a_diff_is_no_copy_to_refer_to_until_it_is_the_full_content() -> None:
    diffed = [*attach(0, A), *attach(1, diff(B, "q0")), *attach(2, again(B))]
    full = [*attach(0, A), *attach(1, diff(B, "gone")), *attach(2, again(B))]

    assert shown(*diffed) == [A, diff(B, "q0"), again(B)]
    assert shown(*full) == [A, B, TO_ATTACHMENT.replace("turn 0", "turn 1").replace(DIGITS, checksum(B)[:12])]


def test_a_marked_diff_is_a_reference_where_a_full_copy_stands_before_it() -> None:
    marked = Resource(uri=URI, text=LONG, formatted="@@", formatted_against="q1", duplicate_of="q0")

    assert shown(*attach(0, A), *attach(1, B), *attach(2, marked)) == [A, B, BACK_AGAIN]

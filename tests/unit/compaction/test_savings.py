from __future__ import annotations

from jp.compaction.large_items import Saved, Savings, savings_of
from jp.compaction.status_lines import PlainStatusFormatter, reference
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    CycleEnd,
    Revert,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.resource import Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock, checksum
from logs import log, start

URI = "file:///w/a.py"
FULL = Resource(uri=URI, text="x" * 1_000)
AGAIN = Resource(uri=URI, text="x" * 1_000, duplicate_of="q0")
CUT = TextBlock(text="y" * 5_000, formatted="y" * 900)
DIFF = Resource(uri=URI, text="z" * 1_000, formatted="@@" * 50, formatted_against="q0")
SENTENCE = len(reference(URI, checksum(FULL), "the attachment at turn 0"))


def savings(*entries: AnyEntry) -> Savings:
    return savings_of(log(*entries), PlainStatusFormatter(), recall="recall")


def attach(number: int, *resources: Resource) -> list[AnyEntry]:
    return [start(number), ChatRequest(id=f"q{number}", content="Go.", resources=resources)]


def called(identity: str, *blocks: Block, name: str = "read") -> list[AnyEntry]:
    """A cycle that calls a tool, and its result."""
    return [
        ToolCallRequest(id=identity, call_id=identity, name=name, arguments={}),
        CycleEnd(attempt=1, finish="tools"),
        ToolCallResponse(id=f"r{identity}", request=identity, content=blocks),
    ]


def answered(count: int = 1) -> list[AnyEntry]:
    return [CycleEnd(attempt=number + 1, finish="error") for number in range(count)]


def test_without_anything_to_save_nothing_is_saved() -> None:
    assert savings() == Savings()
    assert savings(*attach(0, FULL), *called("c", TextBlock(text="short")), *answered()) == Savings()


def test_what_is_omitted_is_omitted_of_every_request_that_follows() -> None:
    entries = [*attach(0, FULL), *called("a", CUT, ResourceBlock(resource=AGAIN)), *answered(3)]

    each = Saved(bounds=4_100, references=1_000 - SENTENCE)
    assert savings(*entries) == Savings(
        each=each, sent=Saved(bounds=3 * each.bounds, references=3 * each.references), requests=3
    )


def test_a_reference_counts_with_the_form_that_would_have_stood_there_and_a_diff_with_the_content() -> None:
    form = "x" * 600 + f"[[cut:n0nce:{checksum(FULL)[:8]}:+400]]"
    cut = Resource(uri=URI, text=FULL.text, formatted=form)
    again = Resource(uri=URI, text=FULL.text, formatted=form, duplicate_of="q0")
    back = Resource(uri=URI, text=FULL.text, formatted="@@", formatted_against="r1", duplicate_of="q0")

    assert savings(*attach(0, FULL, DIFF)).each == Saved(diffs=900)
    saved = savings(*attach(0, cut), *attach(1, again)).each
    assert saved.bounds == 1_000 - len(form)
    assert saved.references == len(form) - len(
        reference(URI, checksum(FULL), "the attachment at turn 0", handle=checksum(FULL)[:8])
    )
    assert savings(*attach(0, FULL), *attach(1, DIFF), *attach(2, back)).each.references == 1_000 - len(
        reference(URI, checksum(FULL), "the attachment at turn 0", has_changed=True)
    )


def test_what_is_recalled_is_counted_against_what_was_omitted() -> None:
    entries = [*attach(0), *called("a", CUT), *called("b", TextBlock(text="y" * 300), name="recall"), *answered()]

    found = savings(*entries)

    assert found.each == Saved(bounds=4_100, recalled=300)
    assert found.sent == Saved(bounds=8_200, recalled=300)
    assert found.sent.total == 7_900


def test_what_a_compaction_takes_away_saves_nothing_from_there_on() -> None:
    strip = Compaction(id="z", from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    entries = [*attach(0), *called("a", CUT), *answered(2), strip, *attach(1), *answered()]

    assert savings(*entries).sent == Saved(bounds=8_200)
    assert savings(*entries).each == Saved()
    assert savings(*entries, Revert(entries=("z",)), *answered()).sent == Saved(bounds=12_300)


def test_notes_on_superseded_copies_and_what_is_no_text_do_not_count() -> None:
    newer = Resource(uri=URI, text="n" * 1_000)
    superseding = Compaction(from_turn=0, to_turn=1, resources="superseded")
    media: tuple[Block, ...] = (
        ImageBlock(mime_type="image/png", blob=b"1" * 9_000, formatted="too large"),
        ResourceBlock(resource=Resource(uri="file:///w/b.png", blob=b"1" * 9_000, formatted="too large")),
        ResourceBlock(resource=Resource(uri="file:///w/c.png", sha256="ab" * 32, size=9_000, formatted="too large")),
        ResourceLink(uri="https://example.org/"),
    )

    assert savings(*attach(0, FULL), *attach(1, newer), superseding).each == Saved()
    assert savings(*attach(0), *called("a", *media), *called("b", *media, name="recall")).each == Saved()

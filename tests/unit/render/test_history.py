from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Facts,
    Header,
    InquiryRequest,
    InquiryResponse,
    Question,
    RequestContext,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.resource import (
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    content_of,
)
from jp.errors import StorageError
from jp.render.history import json_history, pretty_history, text_history
from jp.render.theme import Look
from jp.render.transcript import Extent

C = TypeVar("C", bound=Carrier)
AT = "2026-01-02T03:04:05Z"


def load(carrier: C) -> C:
    """Nothing is stored elsewhere."""
    return carrier


def unread(carrier: C) -> C:
    raise AssertionError(content_of(carrier))


def text(entries: Sequence[AnyEntry], extent: Extent | None = None) -> str:
    return "".join(text_history(entries, load=load, extent=extent or Extent()))


def result(*content: Block, is_error: bool = False) -> list[AnyEntry]:
    return [
        TurnStart(id="t"),
        ToolCallRequest(id="c", call_id="x", name="read", arguments={"path": "p" * 80}),
        ToolCallResponse(id="r", request="c", content=content, is_error=is_error, duration_ms=5),
    ]


CONVERSATION: list[AnyEntry] = [
    Header(id="h", format=1, created_at=AT, nonce="n"),
    TurnStart(id="t0"),
    ChatRequest(
        id="r0",
        at=AT,
        content="What is\n  this?",
        author="Ann",
        resources=(
            Resource(uri="file:///a.py", mime_type="text/x-python", name="a", text="print(1)\nprint(2)\n"),
            Resource(uri="file:///b.png", mime_type="image/png", blob=b"abc"),
            Resource(uri="file:///c.txt", sha256="0" * 64, size=4000, chars=4000, lines=100),
            Resource(uri="file:///d.bin", sha256="0" * 64, size=4000),
        ),
    ),
    RequestContext(id="x0", provider="anthropic", model="claude", renderer=1),
    ChatResponse(id="a0", reasoning="Let me\n\nthink."),
    ChatResponse(id="a1", message="I **look**."),
    ToolCallRequest(id="c0", call_id="x", name="read", arguments={"path": "a.py"}),
    CycleEnd(id="e0", attempt=1, finish="tools"),
    ToolCallResponse(
        id="q0",
        request="c0",
        content=(TextBlock(text="\n".join(f"line {number}" for number in range(12))),),
        facts=Facts(path="a.py"),
    ),
    ChatResponse(id="a2", message="It prints.\n\n```python\nprint(1)\n```\n"),
    CycleEnd(id="e1", attempt=1, finish="stop"),
    TurnStart(id="t1"),
    ChatRequest(id="r1", content="Again?"),
    ChatResponse(id="a3", message="No."),
]


def test_a_conversation_as_text_is_what_is_stored() -> None:
    assert (
        text(CONVERSATION)
        == """\
=== turn 0, user, Ann, 2026-01-02T03:04:05Z
What is
  this?

    attached file:///a.py (a, text/x-python, 2 lines, 18 B, about 4 tokens)
    attached file:///b.png (image/png, 3 B)
    attached file:///c.txt (100 lines, 3.9 KiB, about 1,000 tokens)
    attached file:///d.bin (3.9 KiB)

=== turn 0, assistant, anthropic/claude
    Let me

    think.

I **look**.

    call read(path="a.py")
    result read: a.py, 12 lines, 85 B
        line 0
        line 1
        line 2
        line 3
        line 4
        line 5
        line 6
        line 7
        line 8
        line 9
        (2 more lines)

It prints.

```python
print(1)
```

=== turn 1, user
Again?

=== turn 1, assistant, anthropic/claude
No.
"""
    )


def test_a_conversation_on_a_terminal_is_markdown_in_colors() -> None:
    look = Look(width=60, color=True)

    shown = "".join(pretty_history(CONVERSATION[:11], load=load, look=look, extent=Extent(tool_lines=1)))

    assert shown == (
        "\x1b[1m── turn 0, user, Ann, 2026-01-02T03:04:05Z ──\x1b[0m\n"
        "What is\n"
        "  this?\n"
        "\n"
        "    \x1b[2mattached file:///a.py (a, text/x-python, 2 lines, 18 B, about 4 tokens)\x1b[0m\n"
        "    \x1b[2mattached file:///b.png (image/png, 3 B)\x1b[0m\n"
        "    \x1b[2mattached file:///c.txt (100 lines, 3.9 KiB, about 1,000 tokens)\x1b[0m\n"
        "    \x1b[2mattached file:///d.bin (3.9 KiB)\x1b[0m\n"
        "\n"
        "\x1b[1m── turn 0, assistant, anthropic/claude ──\x1b[0m\n"
        "\x1b[2mLet me\x1b[0m\n"
        "\n"
        "\x1b[2mthink.\x1b[0m\n"
        "\n"
        "I \x1b[1mlook\x1b[0m.\n"
        "\n"
        '    \x1b[2mcall read(path="a.py")\x1b[0m\n'
        "    \x1b[2mresult read: a.py, 12 lines, 85 B\x1b[0m\n"
        "        line 0\n"
        "        \x1b[2m(11 more lines)\x1b[0m\n"
        "\n"
        "It prints.\n"
        "\n"
        "\x1b[2m```python\x1b[0m\n"
        "\x1b[36mprint\x1b[0m(\x1b[36m1\x1b[0m)\n"
        "\x1b[2m```\x1b[0m\n"
    )


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert "".join(pretty_history(CONVERSATION, load=load, look=Look(unicode=False))).isascii()


def test_turns_can_be_chosen() -> None:
    extent = Extent(turns={1})

    assert text(CONVERSATION, extent).startswith("=== turn 1, user\n")
    assert len(list(json_history(CONVERSATION, load=load))) == len(CONVERSATION)
    assert len(list(json_history(CONVERSATION, load=load, turns={1}))) == 3


@pytest.mark.parametrize(
    ("extent", "missing"),
    [
        (Extent(reasoning=False), "think"),
        (Extent(tools=False), "read"),
        (Extent(tool_lines=0), "line 0"),
    ],
)
def test_parts_can_be_omitted(extent: Extent, missing: str) -> None:
    assert missing in text(CONVERSATION)
    assert missing not in text(CONVERSATION, extent)


def test_everything_that_is_stored_can_be_shown() -> None:
    extent = Extent(tool_lines=None, attachment_lines=None)

    shown = text([*CONVERSATION, *result(TextBlock(text="x"))], extent)

    assert "        print(1)\n        print(2)\n" in shown
    assert "        line 11\n" in shown
    assert "p" * 80 in shown
    assert "p" * 80 not in text(result(TextBlock(text="x")))


def test_only_what_is_shown_is_read() -> None:
    stored = Resource(uri="file:///a", sha256="0" * 64, size=4000, chars=4000, lines=9)
    entries = [TurnStart(), ChatRequest(content="c", resources=(stored,))]

    assert "".join(text_history(entries, load=unread)).endswith(
        "attached file:///a (9 lines, 3.9 KiB, about 1,000 tokens)\n"
    )


def test_content_that_is_missing_is_said_where_it_is_missed() -> None:
    def broken(carrier: C) -> C:
        raise StorageError("blob '0000' is missing")

    shown = text_history(result(TextBlock(sha256="0" * 64, size=5000, chars=5000)), load=broken)

    assert "".join(shown).endswith("    blob '0000' is missing\n")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (ImageBlock(mime_type="image/png", blob=b"abc"), "    result read: 3 B, 5 ms\n    image/png, 3 B\n"),
        (ResourceLink(uri="file:///a"), "    result read: nothing, 5 ms\n    link file:///a\n"),
        (
            ResourceBlock(resource=Resource(uri="file:///a", text="b\n")),
            "    result read: 1 line, 2 B, 5 ms\n    resource file:///a (1 line, 2 B, about 0 tokens)\n        b\n",
        ),
        (
            ResourceBlock(resource=Resource(uri="file:///a", blob=b"b")),
            "    result read: 1 B, 5 ms\n    resource file:///a (1 B)\n",
        ),
        (TextBlock(text=""), "    result read: nothing, 5 ms\n"),
    ],
    ids=["image", "link", "resource", "binary", "nothing"],
)
def test_every_kind_of_content_has_its_line(content: Block, shown: str) -> None:
    assert text(result(content)).endswith(shown)


def test_failures_are_shown_as_such() -> None:
    entries = result(TextBlock(text="no such file"), is_error=True)

    shown = "".join(pretty_history(entries, load=load, look=Look(color=True)))

    assert "    \x1b[31mresult read failed: no such file\x1b[0m\n" in shown


def test_what_a_failure_says_is_said_once() -> None:
    one, more = (text(result(TextBlock(text=said), is_error=True)) for said in ("no such file\n", "no such file\ngone"))

    assert one.endswith("\n    result read failed: no such file\n")
    assert more.endswith("\n    result read failed: no such file\n        no such file\n        gone\n")


def test_the_colors_of_a_tool_end_with_its_line() -> None:
    entries = result(TextBlock(text="\x1b[31mred\nand \x1b[2Jon"))

    shown = "".join(pretty_history(entries, load=load, look=Look(color=True)))

    assert "        \x1b[31mred\x1b[0m\n        and on\n" in shown
    assert "\x1b" not in text(entries)


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        ([ChatRequest(content="c", schema={"type": "object"})], 'the answer has to fit {"type":"object"}'),
        ([ChatResponse(reasoning="")], "reasoning that is not shown"),
        ([CycleEnd(attempt=2, finish="error", error="timeout")], "attempt 2 failed: timeout"),
        ([CycleEnd(attempt=1, finish="error")], "attempt 1 failed: no reason is known"),
        ([CycleEnd(attempt=1, finish="length")], "the answer was cut: it reached the longest that the model may give"),
        ([CycleEnd(attempt=1, finish="refused")], "the model refused to answer"),
        ([CycleEnd(attempt=1, finish="cancelled")], "the answer was stopped"),
        ([ToolCallResponse(request="gone", content=())], "result a call that is not in the log: nothing"),
        (
            [InquiryRequest(request="c", question=Question(id="q", text="Which?", kind="select", options=("a", "b")))],
            "question Which? (a, b)",
        ),
        ([InquiryRequest(request="c", question=Question(id="q", text="Why?", kind="text"))], "question Why?"),
        ([InquiryResponse(request="q", answer={"a": 1}, answered_by="user")], 'answer {"a":1}, by user'),
        ([ConfigDelta(delta={"a": 1})], 'configuration {"a":1}'),
        ([Compaction(from_turn=0, to_turn=3, reasoning="strip")], "compacted turns 0 to 3: reasoning"),
        (
            [Compaction(from_turn=0, to_turn=3, tool_calls=ToolCallPolicy(policy="omit"), resources="superseded")],
            "compacted turns 0 to 3: tools omit, resources superseded",
        ),
        ([Revert(entries=("a", "b"))], "undone: 2 changes"),
        ([Unknown(raw=b"{}", type="new\x1b")], "an entry of type 'new\\x1b', which this version does not know"),
    ],
    ids=str,
)
def test_every_kind_of_entry_has_its_line(entries: list[AnyEntry], line: str) -> None:
    assert f"    {line}\n" in text([TurnStart(), *entries])


def test_a_summary_is_shown_with_its_compaction() -> None:
    entry = Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="It was\nlong."))

    assert text([entry]) == "    compacted turns 0 to 0: summary\n\n    It was\n    long.\n"


def test_structured_output_is_shown_as_json() -> None:
    entries = [TurnStart(), ChatResponse(data={"a": [1]})]

    assert text(entries).endswith('{\n  "a": [\n    1\n  ]\n}\n')
    assert "".join(pretty_history(entries, load=load, look=Look())).endswith(
        '```json\n{\n  "a": [\n    1\n  ]\n}\n```\n'
    )


def test_structured_output_that_came_in_words_is_shown_with_them() -> None:
    entries = [TurnStart(), ChatResponse(data={"a": 1}, text='Here:\n```json\n{"a": 1}\n```')]

    assert '\nHere:\n```json\n{"a": 1}\n```\n' in "".join(text_history(entries, load=load))


def test_a_turn_that_was_undone_says_so() -> None:
    entries = [TurnStart(id="t0"), ChatRequest(id="r", content="c"), Revert(id="v", entries=("t0",))]

    assert text(entries) == "=== turn 0, user, undone\nc\n\n    undone: 1 change\n"


def test_whoever_speaks_has_a_heading() -> None:
    entries = [
        TurnStart(),
        *[ChatRequest(content="one"), ChatResponse(message="two")],
        *[ChatRequest(content="three"), ChatResponse(message="four")],
    ]

    assert text(entries).count("assistant") == text(entries).count("user") == 2


def test_nothing_that_is_stored_steers_the_terminal() -> None:
    evil = "\x1b[2J\x9b\u202eevil"
    entries = [
        TurnStart(),
        ChatRequest(content=evil, author=evil, resources=(Resource(uri=evil, mime_type=evil, text=evil),)),
        RequestContext(provider=evil, model=evil, renderer=1),
        ChatResponse(message=evil, reasoning=evil),
        ToolCallRequest(id="c", call_id="x", name=evil, arguments={evil: evil}),
        ToolCallResponse(request="c", content=(TextBlock(text=evil), ResourceLink(uri=evil)), is_error=True),
    ]
    extent = Extent(attachment_lines=None)

    shown = text(entries, extent) + "".join(pretty_history(entries, load=load, look=Look(), extent=extent))

    assert all(character.isprintable() or character == "\n" for character in shown)


def test_an_empty_conversation_is_nothing() -> None:
    assert text([]) == ""

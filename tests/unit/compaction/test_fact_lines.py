from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from jp.compaction.fact_lines import KnownArtifacts, StatusLineFormatter
from jp.compaction.log_contents import Leaf, contents_in, handles_of
from jp.context.markers import contains_marker
from jp.conversation.entries import AnyEntry, Facts, Header, JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import (
    INTERRUPTED_CONTENT,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    checksum,
)

NONCE = "5eed5eed5eed5eed"
HEADER = Header(id="h", format=1, created_at="", nonce=NONCE)
LONG = "a line of output\n" * 40
ALIKE = ("content number 54179", "content number 72784")
"""Two texts whose checksums begin with the same eight digits."""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def stored(size: int, *, name: str = "x", lines: int | None = 9) -> TextBlock:
    return TextBlock(sha256=sha(name), size=size, chars=size, lines=lines)


def call(arguments: JsonObject | str = "", name: str = "run") -> ToolCallRequest:
    return ToolCallRequest(id="c", call_id="x", name=name, arguments=arguments)


def line_for(*blocks: Block, facts: Facts | None = None, is_error: bool = False) -> str | None:
    response = ToolCallResponse(request="c", content=blocks, facts=facts, is_error=is_error)
    return StatusLineFormatter().of((HEADER, call(), response)).digest(call(), response, None)


def cut(arguments: JsonObject | str, header: Header = HEADER) -> JsonObject | str:
    request = call(arguments)
    return StatusLineFormatter().of((header, request)).arguments(request)


def test_a_stripped_response_leaves_how_it_ended_and_its_handle_and_a_digest_its_evidence_too() -> None:
    facts = Facts(kind="test", exit_code=1, first_error="E  assert 1 == 2", evidence=("E  assert 1 == 2", "2 failed"))
    response = ToolCallResponse(request="c", content=(stored(9000),), facts=facts, is_error=True)
    lines = StatusLineFormatter().of((HEADER, call(), response))

    assert lines.response(call(), response) == f"[compacted] run: error; recall {sha('x')[:8]}"
    assert lines.digest(call(), response, None) == (
        f"[compacted] run: error; exit 1; 9 lines, 9000 bytes; E assert 1 == 2; recall {sha('x')[:8]}\n"
        "E  assert 1 == 2\n2 failed"
    )


def test_an_overlay_has_the_evidence_of_a_response_that_was_recorded_without_it() -> None:
    bare = ToolCallResponse(request="c", content=(stored(9000),))
    told = replace(bare, facts=Facts(evidence=("its own",)))
    seen = Facts(exit_code=3, evidence=("no such file",))
    lines = StatusLineFormatter().of((HEADER, call(), bare))

    assert lines.digest(call(), bare, seen) == (
        f"[compacted] run: success; exit 3; 9 lines, 9000 bytes; recall {sha('x')[:8]}\nno such file"
    )
    assert (lines.digest(call(), told, None) or "").endswith("\nits own")
    assert (lines.digest(call(), told, seen) or "").endswith("\nno such file")


def test_evidence_goes_where_there_is_no_room_for_it() -> None:
    facts = Facts(evidence=("x" * 30, "y" * 200, "z" * 20))

    line = line_for(stored(150), facts=facts) or ""

    assert len(line) < 150
    assert line.split("\n")[1:] == ["x" * 30, "z" * 20]


def test_everything_that_is_known_of_a_response_stands_in_its_line() -> None:
    facts = Facts(kind="terminal", path="src/a.py", lines="10-20", exit_code=2, matches=3, first_error="Error:\n no")

    assert line_for(stored(9000), facts=facts, is_error=True) == (
        "[compacted] run: error; src/a.py; lines 10-20; exit 2; 3 matches; 9 lines, 9000 bytes; Error: no; "
        f"recall {sha('x')[:8]}"
    )


def test_a_page_is_told_by_its_address_its_title_and_its_status() -> None:
    facts = Facts(kind="web", url="https://a.test/?token=hunter2-XYZ9", title="How\nto", status=404)

    assert line_for(stored(9000), facts=facts, is_error=True) == (
        "[compacted] run: error; https://a.test/?token=[redacted:token]; How to; HTTP 404; 9 lines, 9000 bytes; "
        f"recall {sha('x')[:8]}"
    )


def test_some_lines_are_told_with_how_many_there_are() -> None:
    line = line_for(stored(9000), facts=Facts(path="a.py", lines="10-20", total_lines=1_400))

    assert line is not None
    assert "; a.py; lines 10-20 of 1400; " in line


@pytest.mark.parametrize(
    ("blocks", "known"),
    [
        ((TextBlock(text=LONG),), f"40 lines, 680 bytes; recall {sha(LONG)[:8]}"),
        ((TextBlock(text=LONG + "end"),), f"41 lines, 683 bytes; recall {sha(LONG + 'end')[:8]}"),
        ((stored(500, lines=None),), f"500 bytes; recall {sha('x')[:8]}"),
        ((ResourceBlock(resource=Resource(uri="a:b", text=LONG)),), f"40 lines, 680 bytes; recall {sha(LONG)[:8]}"),
        (
            (ResourceBlock(resource=Resource(uri="a:b", text=LONG, formatted="@@" * 99)),),
            f"680 bytes; recall {sha(LONG)[:8]}",
        ),
        (
            (ImageBlock(mime_type="image/png", blob=b"p" * 700),),
            f"700 bytes; recall {hashlib.sha256(b'p' * 700).hexdigest()[:8]}",
        ),
        ((TextBlock(text=""), stored(300), TextBlock(text="")), f"9 lines, 300 bytes; recall {sha('x')[:8]}"),
        (
            (stored(300, name="small"), stored(900, name="large"), stored(300, name="small")),
            f"27 lines, 1500 bytes; recall {sha('large')[:8]}, {sha('small')[:8]}",
        ),
        ((TextBlock(text="x" * 90), ResourceLink(uri="a:b")), f"93 bytes; recall {sha('x' * 90)[:8]}"),
        ((ResourceLink(uri="a:" + "b" * 90),), "92 bytes"),
        ((TextBlock(sha256="nothing", size=90),), "90 bytes"),
        ((TextBlock(sha256=sha("x"), size=42),), f"recall {sha('x')[:8]}"),
    ],
    ids=[
        "text",
        "text without a last line feed",
        "lines that were not counted",
        "resource",
        "shown in another form",
        "picture",
        "blank blocks",
        "several, the largest first",
        "a link has no content",
        "nothing but a link",
        "a damaged checksum",
        "room for the handle alone",
    ],
)
def test_a_line_says_how_much_there_was_and_by_what_it_is_recalled(blocks: tuple[Block, ...], known: str) -> None:
    assert line_for(*blocks) == f"[compacted] run: success; {known}"


def test_of_many_blocks_the_largest_are_named_as_there_is_room() -> None:
    blocks = [stored(900 + number, name=str(number)) for number in range(20)]
    handles = [sha(str(number))[:8] for number in range(19, 11, -1)]
    few = [TextBlock(text="a" * 24), TextBlock(text="b" * 22)]

    assert (line_for(*blocks) or "").endswith(f"; recall {', '.join(handles)}")
    assert line_for(*few) == f"[compacted] run: success; recall {sha('a' * 24)[:8]}"


@pytest.mark.parametrize("size", [10, 24, 41])
def test_what_is_as_short_as_a_line_with_its_handle_stays(size: int) -> None:
    assert line_for(TextBlock(text="x" * size)) is None


def test_words_that_no_tool_said_have_no_handle() -> None:
    response = ToolCallResponse(request="c", content=INTERRUPTED_CONTENT, is_error=True)

    line = StatusLineFormatter().of((HEADER, call())).digest(call(), response, None)

    assert line is not None
    assert "recall" not in line


def test_of_arguments_the_short_values_stay_and_long_ones_are_cut_around_a_handle() -> None:
    text = "0123456789" * 100
    left = cut({"path": "a.py", "deep": [{"content": text}], "count": 10**30, "flag": None})

    assert isinstance(left, dict)
    shorter = left["deep"][0]["content"]
    assert {**left, "deep": 0} == {"path": "a.py", "deep": 0, "count": 10**30, "flag": None}
    assert list(left) == ["path", "deep", "count", "flag"]
    assert f"[[cut:{NONCE}:{sha(text)[:8]}:+" in shorter
    assert len(shorter) == 400
    assert shorter.startswith("0123456789")
    assert shorter.endswith("0123456789")


def test_arguments_that_are_no_object_are_cut_as_a_text() -> None:
    text = '{"path": "' + "a" * 600
    left = cut(text)

    assert isinstance(left, str)
    assert len(left) == 400
    assert sha(text)[:8] in left
    assert cut('{"path') == '{"path'


def test_short_arguments_are_the_very_same() -> None:
    arguments: JsonObject = {"path": "a.py", "lines": [1, 2]}

    assert cut(arguments) is arguments


@pytest.mark.parametrize("nonce", ["", "n", "white space"])
def test_a_log_without_a_nonce_that_can_be_used_is_shown_with_another(nonce: str) -> None:
    left = cut({"content": "x" * 900}, Header(id="h", format=1, created_at="", nonce=nonce))

    assert contains_marker(encode(left).decode(), "0" * 16)
    assert StatusLineFormatter().of(()).arguments(call("x" * 900)) != "x" * 900


def test_a_handle_is_longer_where_an_earlier_content_begins_alike() -> None:
    first, second = (TextBlock(text=text) for text in ALIKE)
    responses = [ToolCallResponse(request="c", content=(block, stored(900))) for block in (first, second)]
    digits = [sha(text) for text in ALIKE]

    assert digits[0][:8] == digits[1][:8]
    assert handles_of(responses)[digits[0]] == digits[0][:8]
    assert handles_of(responses)[digits[1]] == digits[1][:9]
    assert handles_of(reversed(responses))[digits[1]] == digits[1][:8]


def test_what_was_said_of_a_log_holds_while_it_only_grows() -> None:
    text = "y" * 900
    request, response = call({"content": text}), ToolCallResponse(request="c", content=(TextBlock(text=LONG),))
    lines = StatusLineFormatter()
    before = lines.of([HEADER, request, response])
    other = Header(id="o", format=1, created_at="", nonce="another-nonce")

    def said(entries: Sequence[AnyEntry]) -> tuple[object, object]:
        found = lines.of(entries)
        return found.arguments(request), found.digest(request, response, None)

    first = (before.arguments(request), before.digest(request, response, None))
    again = said([HEADER, request, response, ToolCallResponse(request="c", content=())])
    shorter = said([HEADER, request])
    said([HEADER, request, response])
    elsewhere = said([other, request, response, ToolCallResponse(request="c", content=()), call()])

    assert again[0] is first[0]
    assert again[1] is first[1]
    assert "another-nonce" in str(elsewhere[0])
    assert shorter == (first[0], "[compacted] run: success; 40 lines, 680 bytes")
    assert before.digest(call(name="other"), response, None) == (first[1] or "").replace("run", "other")


def test_what_stands_in_the_log_is_known_by_its_handle_as_soon_as_it_was_met() -> None:
    artifacts = KnownArtifacts({sha("a"): "12345678"})

    assert artifacts.recall("12345678") is None
    assert [artifacts.keep("a"), artifacts.keep("b")] == ["12345678", sha("b")]
    assert [artifacts.recall("12345678"), artifacts.recall(sha("b"))] == ["a", "b"]


def test_the_contents_of_a_call_are_its_strings_in_their_order_and_a_response_has_its_blocks() -> None:
    request = call({"a": "one", "b": ["two", {"c": "three", "one": 4}], "d": True})
    damaged = ToolCallResponse(request="c", content=(TextBlock(sha256="ab", size=1), TextBlock(text=LONG)))

    assert [content for _, content in contents_in(request)] == [Leaf("one"), Leaf("two"), Leaf("three")]
    assert list(contents_in(call("no object"))) == [(sha("no object"), Leaf("no object"))]
    assert [sha256 for sha256, _ in contents_in(damaged)] == [checksum(TextBlock(text=LONG))]

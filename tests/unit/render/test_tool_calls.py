from __future__ import annotations

import pytest

from jp.conversation.entries import Facts, JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock, checksum
from jp.render.tool_calls import arguments_text, call_text, result_text

CALL = ToolCallRequest(id="c", call_id="x", name="fs_read", arguments={})


def result(*content: Block, is_error: bool = False, facts: Facts | None = None, duration_ms: int | None = None) -> str:
    response = ToolCallResponse(request="c", content=content, is_error=is_error, facts=facts, duration_ms=duration_ms)
    return result_text(CALL, response, turn_of={"earlier": 3}.get)


def handle(piece: str) -> str:
    return checksum(TextBlock(text=piece * 900))[:8]


def cut(piece: str) -> TextBlock:
    return TextBlock(text=piece * 900, formatted=f"x[[cut:n0nce:{handle(piece)}:+899]]")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "fs_read()"),
        ({"path": "a.py", "lines": [1, 20], "deep": None}, 'fs_read(path="a.py", lines=[1,20], deep=null)'),
        ({"text": "a\nb\x1b[2J\x9b"}, 'fs_read(text="a\\nb\\u001b[2J⟨U+009B⟩")'),
        ({"text": "x" * 100}, f'fs_read(text="{"x" * 58}…)'),
        ("{not json\n", "fs_read({not json⟨newline⟩)"),
    ],
)
def test_a_call_is_one_line_with_short_arguments(arguments: JsonObject | str, text: str) -> None:
    assert call_text(ToolCallRequest(call_id="x", name="fs_read\x1b[0m", arguments=arguments)) == text


def test_arguments_can_be_whole() -> None:
    assert arguments_text({"text": "x" * 100}, is_whole=True) == f'text="{"x" * 100}"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (result(TextBlock(text="a\nb\n"), duration_ms=15), "fs_read: 2 lines, 4 B, 15 ms"),
        (result(TextBlock(sha256="0" * 64, size=9000, chars=9000, lines=120)), "fs_read: 120 lines, 8.8 KiB"),
        (result(TextBlock(text="a"), ImageBlock(mime_type="image/png", blob=b"abc")), "fs_read: 4 B"),
        (result(ImageBlock(mime_type="image/png", sha256="0" * 64, size=2048)), "fs_read: 2.0 KiB"),
        (
            result(TextBlock(text="x"), facts=Facts(path="a.py", lines="1-2", exit_code=0, matches=1)),
            "fs_read: a.py lines 1-2, exit code 0, 1 match, 1 line, 1 B",
        ),
        (
            result(TextBlock(text="x"), facts=Facts(path="a\x1b[2J", matches=1234)),
            "fs_read: a, 1,234 matches, 1 line, 1 B",
        ),
        (
            result(TextBlock(text="x"), facts=Facts(url="https://a.test/\x1b[2J", title="T", status=200)),
            "fs_read: https://a.test/, 1 line, 1 B",
        ),
        (
            result(ResourceBlock(resource=Resource(uri="file:///a", text="x", duplicate_of="earlier"))),
            "fs_read: 1 line, 1 B, unchanged since turn 3",
        ),
        (
            result(ResourceBlock(resource=Resource(uri="file:///a", text="x", duplicate_of="unknown"))),
            "fs_read: 1 line, 1 B, unchanged",
        ),
        (result(ResourceBlock(resource=Resource(uri="file:///a", text="x"))), "fs_read: 1 line, 1 B"),
        (result(cut("x\n")), f"fs_read: 900 lines, 1.8 KiB, cut to 28 B: recall {handle('x' + chr(10))}"),
        (
            result(*(cut(letter) for letter in "abcde"), TextBlock(text="")),
            f"fs_read: 5 lines, 4.4 KiB, cut to 140 B: recall {', '.join(map(handle, 'abc'))} and 2 more",
        ),
        (
            result(
                ResourceBlock(resource=Resource(uri="u", text="x" * 90, formatted="@@", formatted_against="earlier"))
            ),
            "fs_read: 1 line, 90 B, changed since turn 3, a diff of 2 B",
        ),
        (
            result(
                ResourceBlock(resource=Resource(uri="u", text="x" * 90, formatted="@@", formatted_against="unknown"))
            ),
            "fs_read: 1 line, 90 B, changed, a diff of 2 B",
        ),
        (result(TextBlock(text="\n no such file\x07\nmore"), is_error=True), "fs_read failed: no such file"),
        (result(TextBlock(text="x"), is_error=True, facts=Facts(first_error="E1")), "fs_read failed: E1"),
        (result(cut("x\n"), is_error=True), f"fs_read failed: x[[cut:n0nce:{handle('x' + chr(10))}:+899]]"),
        (
            result(TextBlock(text="<exit_code>2</exit_code>"), is_error=True, facts=Facts(exit_code=2)),
            "fs_read failed: exit code 2, 1 line, 24 B",
        ),
        (result(TextBlock(sha256="0" * 64, size=9000, lines=120), is_error=True), "fs_read failed: 120 lines, 8.8 KiB"),
        (result(ImageBlock(mime_type="image/png", blob=b""), is_error=True), "fs_read failed: nothing"),
    ],
)
def test_a_result_says_how_much_came_and_what_is_known_of_it(text: str, expected: str) -> None:
    assert text == expected


def test_that_nothing_came_is_said() -> None:
    found = {result(), result(TextBlock(text="")), result(ResourceLink(uri="file:///a"))}

    assert found == {"fs_read: nothing"}


def test_without_turns_what_is_unchanged_is_only_that() -> None:
    content = (ResourceBlock(resource=Resource(uri="file:///a", text="x", duplicate_of="earlier")),)

    assert result_text(CALL, ToolCallResponse(request="c", content=content)) == "fs_read: 1 line, 1 B, unchanged"

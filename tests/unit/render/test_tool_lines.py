from __future__ import annotations

from typing import Literal

import pytest

from jp.config.entries import ToolStyleConfig
from jp.conversation.entries import Facts, Question, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, TextBlock
from jp.render.tool_calls import ToolLine, ToolLines
from jp.tool.base import Answer, Inquired, Progressed
from jp.turn.ports import CallAnswered, CallMade

READ = ToolCallRequest(id="e1", call_id="x", name="read", arguments={"path": "a.py"})
TEXT = "\x1b[31mred\x1b[0m\nplain\x1b[2J\nlast"


def lines_with(style: ToolStyleConfig | None = None, *, color: bool = False) -> ToolLines:
    return ToolLines(unicode=True, color=color, style_of=lambda _: style or ToolStyleConfig(), turn_of=None)


def made(number: int) -> CallMade:
    return CallMade(call=ToolCallRequest(id=f"e{number}", call_id="x", name=f"tool{number}", arguments={}))


def answered(call: ToolCallRequest = READ, text: str = TEXT) -> CallAnswered:
    return CallAnswered(call=call, response=ToolCallResponse(request=call.id, content=(TextBlock(text=text),)))


def results(style: ToolStyleConfig, *, color: bool = False) -> list[str]:
    return [line.text for line in lines_with(style, color=color).lines(answered())[1:]]


def test_a_call_has_a_line_for_each_thing_that_happens_to_it() -> None:
    lines = lines_with()
    question = Question(id="q", text="Overwrite\nit?", kind="boolean")

    assert lines.lines(CallMade(call=READ)) == [ToolLine(text='→ read(path="a.py")')]
    assert lines.lines(Progressed(call=READ, text="half")) == []
    assert lines.lines(Inquired(call=READ, question=question, answer=Answer(value=True, by="assistant"))) == [
        ToolLine(text="? read: Overwrite it? true (the model)")
    ]
    failed = ToolCallResponse(request="e1", content=(TextBlock(text="no"),), is_error=True)
    assert lines.lines(CallAnswered(call=READ, response=failed)) == [ToolLine(text="← read failed: no", kind="failure")]


def test_calls_of_a_hidden_tool_have_none() -> None:
    lines = lines_with(ToolStyleConfig(hidden=True))

    assert lines.lines(CallMade(call=READ)) == []
    assert lines.awaited == "running read"
    assert lines.lines(answered()) == []
    assert lines.awaited == ""


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, []),
        ("off", []),
        (2, ["  red", "  plain", "  (1 line more)"]),
        (3, ["  red", "  plain", "  last"]),
        ("full", ["  red", "  plain", "  last"]),
    ],
)
def test_so_much_of_a_result_is_shown_as_is_wanted(
    wanted: Literal["full", "off"] | int | None, expected: list[str]
) -> None:
    assert results(ToolStyleConfig(inline_results=wanted)) == expected


def test_colors_of_a_result_stay_where_colors_are_shown_and_end_with_the_line() -> None:
    shown = results(ToolStyleConfig(inline_results="full"), color=True)

    assert shown == ["  \x1b[31mred\x1b[0m", "  plain", "  last"]


def test_a_failure_of_one_line_is_not_said_twice() -> None:
    failed = ToolCallResponse(request="e1", content=(TextBlock(text="no such file"),), is_error=True)

    shown = lines_with(ToolStyleConfig(inline_results="full")).lines(CallAnswered(call=READ, response=failed))

    assert [line.text for line in shown] == ["← read failed: no such file"]


def test_the_only_line_of_a_command_that_failed_is_shown() -> None:
    failed = ToolCallResponse(request="e1", content=(TextBlock(text="boom"),), is_error=True, facts=Facts(exit_code=2))

    shown = lines_with(ToolStyleConfig(inline_results="full")).lines(CallAnswered(call=READ, response=failed))

    assert [line.text for line in shown] == ["← read failed: exit code 2, 1 line, 4 B", "  boom"]


def test_of_a_result_that_was_there_before_or_is_no_text_nothing_is_shown() -> None:
    content = (
        ResourceBlock(resource=Resource(uri="file:///a", text="new")),
        ResourceBlock(resource=Resource(uri="file:///b", text="old", duplicate_of="e0")),
        ImageBlock(mime_type="image/png", blob=b"png"),
    )
    event = CallAnswered(call=READ, response=ToolCallResponse(request="e1", content=content))

    shown = lines_with(ToolStyleConfig(inline_results="full")).lines(event)

    assert [line.text for line in shown[1:]] == ["  new"]


def test_what_is_waited_for_are_the_calls_that_run_and_how_far_the_latest_is() -> None:
    lines = lines_with()
    for number in range(6):
        lines.lines(made(number))

    assert lines.awaited == "running tool0, tool1, tool2, tool3 and 2 more"
    lines.lines(Progressed(call=made(1).call, text="3 of 4"))
    assert lines.awaited == "tool1: 3 of 4"
    lines.lines(answered(made(1).call))
    assert lines.awaited == "running tool0, tool2, tool3, tool4 and 1 more"
    for number in (0, 2, 3, 4, 5):
        lines.lines(answered(made(number).call))
    assert lines.awaited == ""

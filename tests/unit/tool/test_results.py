from __future__ import annotations

from jp.conversation.entries import Facts
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, TextBlock
from jp.tool.base import ToolOutput, text_of, with_text

IMAGE = ImageBlock(mime_type="image/png", blob=b"png")
PICTURE = ResourceBlock(resource=Resource(uri="file:///a.png", blob=b"png"))
OUTPUT = ToolOutput(
    content=(TextBlock(text="one\n"), IMAGE, ResourceBlock(resource=Resource(uri="file:///a", text="two")), PICTURE),
    is_error=True,
    facts=Facts(path="a"),
)


def test_the_text_of_a_result_is_that_of_its_parts() -> None:
    assert text_of(OUTPUT) == "one\n\n\ntwo"
    assert text_of(ToolOutput(content=(IMAGE,))) == ""


def test_another_text_takes_the_place_of_all_of_it_and_what_is_no_text_stays() -> None:
    changed = with_text(OUTPUT, "three")

    assert changed == ToolOutput(content=(TextBlock(text="three"), IMAGE, PICTURE), is_error=True)
    assert with_text(OUTPUT, text_of(OUTPUT)) is OUTPUT

from __future__ import annotations

import pytest

from jp.compaction.status_lines import PlainStatusFormatter, shown_size, stripped_arguments, stripped_content
from jp.conversation.entries import JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import AudioBlock, Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock

STAND_INS = PlainStatusFormatter()
STATUS = (TextBlock(text="[compacted] run: success"),)
SIZE = len("[compacted] run: success")
NOTHING: JsonObject = {}


def call(arguments: JsonObject | str) -> ToolCallRequest:
    return ToolCallRequest(call_id="x", name="run", arguments=arguments)


@pytest.mark.parametrize("arguments", [{"a": 1}, "{nonsense", '{"'])
def test_arguments_give_way_to_a_shorter_stand_in(arguments: JsonObject | str) -> None:
    assert stripped_arguments(call(arguments), STAND_INS) == ({} if arguments != '{"' else None)


def test_empty_arguments_stay() -> None:
    assert stripped_arguments(call(NOTHING), STAND_INS) is None


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(text="x" * (SIZE + 1)),
        TextBlock(text="ä" * (SIZE // 2 + 1)),
        TextBlock(sha256="ab" * 32, size=SIZE + 1),
        ImageBlock(mime_type="image/png", blob=b"x" * (SIZE + 1)),
        AudioBlock(mime_type="audio/wav", sha256="ab" * 32, size=SIZE + 1),
        ResourceBlock(resource=Resource(uri="a:b", text="x" * (SIZE + 1))),
        ResourceBlock(resource=Resource(uri="a:b", text="x", formatted="x" * (SIZE + 1))),
        TextBlock(text="x", formatted="x" * (SIZE + 1)),
        ResourceLink(uri="x:" + "y" * SIZE),
    ],
    ids=[
        "text",
        "bytes, not characters",
        "stored",
        "image",
        "audio",
        "resource",
        "formatted",
        "formatted text",
        "link",
    ],
)
def test_content_gives_way_to_a_shorter_stand_in(block: Block) -> None:
    response = ToolCallResponse(request="c", content=(block,))

    assert stripped_content(call(NOTHING), response, STAND_INS) == STATUS


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(text="x" * SIZE),
        TextBlock(sha256="ab" * 32, size=SIZE),
        ResourceBlock(resource=Resource(uri="a:b", text="x" * 99, formatted="x" * SIZE)),
        ImageBlock(mime_type="image/png", blob=b"x" * 99, formatted="x" * SIZE),
    ],
    ids=["text", "stored", "formatted", "formatted image"],
)
def test_content_that_is_not_longer_than_its_stand_in_stays(block: Block) -> None:
    response = ToolCallResponse(request="c", content=(block,))

    assert stripped_content(call(NOTHING), response, STAND_INS) == (block,)
    assert stripped_content(call(NOTHING), ToolCallResponse(request="c", content=()), STAND_INS) == ()


def test_all_blocks_together_give_way_to_one_stand_in() -> None:
    response = ToolCallResponse(request="c", content=(TextBlock(text="x" * SIZE), TextBlock(text="x")))

    assert stripped_content(call(NOTHING), response, STAND_INS) == STATUS


def test_a_snapshot_counts_as_what_is_shown_of_it() -> None:
    assert shown_size(Resource(uri="a:b", text="ä")) == 2
    assert shown_size(Resource(uri="a:b", text="long", formatted="")) == 0

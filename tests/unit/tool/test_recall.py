from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from doubles import InlineStream
from jp.app.query.sources import LogAddresses, RecalledContents
from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.context.markers import checksum_of
from jp.conversation.entries import Header, JsonObject, ToolCallRequest, ToolCallResponse, TurnStart
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, TextBlock, checksum
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.context_tools import Recall
from jp.tool.delivery import BOUND, OrdinaryDelivery

LINES = "".join(f"line {number} ✓\n" for number in range(1_500))
TEXT, PICTURE = TextBlock(text=LINES), ImageBlock(mime_type="image/png", blob=b"\x89PNG")
FILE = Resource(uri="file:///w/a", text="all of a file\n" * 40)
TOOL = Recall(RecalledContents())


STREAM = InlineStream(
    Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n0nce"),
    TurnStart(id="t0"),
    ToolCallRequest(id="c0", call_id="call_0", name="write", arguments={"content": "\ud800 half"}),
    ToolCallResponse(id="r0", request="c0", content=(TEXT, PICTURE, ResourceBlock(resource=FILE), TextBlock(text=""))),
)


def recall(arguments: JsonObject, *, stream: InlineStream = STREAM, max_bytes: int | None = None) -> ToolOutput:
    invocation = ToolInvocation(
        arguments=arguments, root=Path(), settings=ToolConfig(max_bytes=max_bytes), stream=stream
    )
    return anyio.run(TOOL.run, invocation)


def texts(output: ToolOutput) -> list[str]:
    return [block.text or "" for block in output.content if isinstance(block, TextBlock)]


@pytest.mark.parametrize("max_bytes", [None, 1_000, 1])
def test_pages_in_their_order_are_the_content_and_each_says_where_the_next_begins(max_bytes: int | None) -> None:
    handle = checksum(TEXT)[:8]
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        output = recall({"handle": handle, "offset": offset}, max_bytes=max_bytes)
        page, note = texts(output)
        assert len(page.encode()) + len(note) <= max(max_bytes or BOUND, 400)
        pages.append(page)
        more = re.search(r"go on with offset (\d+)\]$", note)
        offset = int(more[1]) if more else None
        assert more or note.endswith("; this is the end]")

    assert "".join(pages) == LINES


def test_no_page_is_cut_when_it_is_delivered() -> None:
    settings = ToolConfig(max_bytes=1)
    output = recall({"handle": checksum(TEXT)[:8]}, max_bytes=1)

    delivery = OrdinaryDelivery(DeduplicationConfig(), LogAddresses())

    assert delivery(ConfiguredTool(tool=TOOL, settings=settings), output, STREAM.entries) == output


def test_a_page_may_have_fewer_lines() -> None:
    first, note = texts(recall({"handle": checksum(TEXT)[:8], "lines": 2}))

    assert first == "line 0 ✓\nline 1 ✓\n"
    assert note == f"[bytes 0 to 22 of {len(LINES.encode())} of {checksum(TEXT)[:8]}; go on with offset 22]"


def test_a_whole_marker_says_its_handle() -> None:
    marker = f"[[cut:n0nce:{checksum(TEXT)[:8]}:+300]] from offset 9"

    assert texts(recall({"handle": marker, "lines": 1}))[0] == "line 0 ✓\n"


def test_what_is_recalled_of_a_resource_says_of_which_and_is_no_delivery_of_it() -> None:
    output = recall({"handle": f"sha256:{checksum(FILE)}"})

    assert texts(output)[0] == FILE.text
    assert output.facts is not None
    assert (output.facts.kind, output.facts.path) == ("read", FILE.uri)


def test_a_string_that_no_file_takes_is_recalled_as_far_as_it_can_be_told() -> None:
    (stored,) = [entry for entry in STREAM.entries if isinstance(entry, ToolCallRequest)]
    assert not isinstance(stored.arguments, str)
    output = recall({"handle": checksum_of(stored.arguments["content"])[:8]})

    assert texts(output)[0].endswith(" half")


def test_empty_content_is_all_there_is() -> None:
    assert texts(recall({"handle": checksum(TextBlock(text=""))[:8]})) == [
        "[bytes 0 to 0 of 0 of e3b0c442; this is the end]"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"handle": "no handle"}, "'no handle' is no handle. A handle is in [[cut:"),
        ({"handle": "0123abcd"}, "nothing in this conversation has the handle '0123abcd'. A handle is in"),
        ({"handle": checksum(PICTURE)[:8]}, "is binary content (image/png) of 4 bytes, which is no text: the user can"),
        ({"handle": checksum(TEXT)[:8], "offset": len(LINES.encode())}, "has 19890 bytes, counted from 0."),
        ({"handle": checksum(TEXT)[:8], "offset": -1}, "offset is -1, but"),
        ({"handle": checksum(TEXT)[:8], "lines": 0}, "lines is 0, but a page has at least 1."),
    ],
)
def test_what_cannot_be_recalled_is_an_error_that_the_model_can_act_on(arguments: JsonObject, said: str) -> None:
    output = recall(arguments)

    assert output.is_error
    assert said in texts(output)[0]


def test_a_handle_of_another_conversation_names_nothing() -> None:
    other = InlineStream(*STREAM.entries[:2])

    assert "nothing in this conversation" in texts(recall({"handle": checksum(TEXT)[:8]}, stream=other))[0]


def test_a_beginning_of_several_handles_says_which_they_are() -> None:
    digest = checksum(TEXT)
    twin = digest[:9] + ("0" if digest[9] != "0" else "1") + digest[10:]
    stream = InlineStream(
        *STREAM.entries, ToolCallResponse(request="c0", content=(TextBlock(sha256=twin, size=1, chars=1),))
    )

    assert not recall({"handle": digest[:8]}, stream=stream).is_error
    assert f"write more digits: {digest[:10]}, {twin[:10]}" in texts(recall({"handle": digest[:9]}, stream=stream))[0]

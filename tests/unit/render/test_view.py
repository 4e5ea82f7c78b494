from __future__ import annotations

from jp.compaction.projection import Projection, TurnOrigin
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.conversation.thread import ToolResult, UserResource
from jp.render.transcript import Extent, Output, view_parts
from jp.turn.request import InlineLoader


def test_what_was_cut_is_shown_as_the_model_is_shown_it() -> None:
    attached = Resource(uri="file:///w/a", text="all of it", formatted="@@ attached")
    returned = Resource(uri="file:///w/b", text="all of it", formatted="head of a file")
    blocks = (TextBlock(text="all of it", formatted="head of a text"), ResourceBlock(resource=returned))
    result = ToolResult(call="c", call_id="c", name="read", content=blocks, turn=0, origin="r")
    view = Projection(events=(UserResource(resource=attached, turn=0), result), origins=((TurnOrigin(0), 0),))

    parts = view_parts(view, load=InlineLoader().load, extent=Extent(attachment_lines=None))

    shown = [line for part in parts if isinstance(part, Output) for line in part.lines]
    assert shown == ["@@ attached", "head of a text", "head of a file"]

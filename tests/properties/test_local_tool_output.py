"""What a tool prints, whatever it is, is a result, a question or just text."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.entries import Question
from jp.conversation.resource import ImageBlock, ResourceBlock, TextBlock
from jp.tool.execution import Returned, read_output

TEXT = st.sampled_from(["", "a", "YQ==", "a:b", "image/png"])


def members(**values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """An object with some of these members."""
    return st.fixed_dictionaries({}, optional=values)


RESOURCES = members(uri=TEXT, text=TEXT, blob=TEXT, formatted=TEXT, duplicate_of=TEXT, **{"$blob": TEXT})
BLOCKS = members(
    type=st.sampled_from(["text", "image", "audio", "resource", "resource_link", "question"]),
    text=TEXT,
    data=TEXT,
    mimeType=TEXT,
    resource=RESOURCES,
    uri=TEXT,
    id=TEXT,
    kind=st.sampled_from(["boolean", "select", "text"]),
    options=st.lists(TEXT, max_size=2),
    **{"$blob": TEXT},
)
PRINTED = members(content=st.lists(BLOCKS, max_size=2) | TEXT, isError=st.booleans(), type=TEXT)


@given(PRINTED)
def test_whatever_is_printed_is_understood_or_left_as_it_is(printed: dict[str, object]) -> None:
    found = read_output(msgspec.json.encode(printed).decode())

    match found:
        case Returned(content=content):
            for block in content:
                match block:
                    case TextBlock():
                        assert block.text is not None
                        assert block.sha256 is None
                    case ResourceBlock(resource=resource):
                        assert (resource.text is None) != (resource.blob is None)
                        assert resource.sha256 is None
                        assert resource.duplicate_of is None
                    case ImageBlock():
                        assert block.blob is not None
                        assert block.sha256 is None
                    case _:
                        pass
        case Question():
            assert (found.kind == "select") == bool(found.options) or found.kind == "boolean"
        case None:
            pass


@given(st.text())
def test_any_text_may_be_printed(text: str) -> None:
    assert read_output(text) is None or text.lstrip().startswith("{")

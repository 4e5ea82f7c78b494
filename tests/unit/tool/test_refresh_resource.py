from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jp.config.entries import ToolConfig
from jp.conversation.entries import AnyEntry, ChatRequest, Facts, Revert, ToolCallResponse, TurnStart
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.errors import JpError
from jp.tool.base import NoStream, Stream, ToolInvocation, ToolOutput
from jp.tool.context_tools import KnownCopy, RefreshResource, attached_uris

URI = "file:///w/a.py"
LINES = "".join(f"line {number}\n" for number in range(400))
CHANGED = LINES.replace("line 9\n", "line nine\n")
ATTACHED: tuple[AnyEntry, ...] = (
    TurnStart(id="t0"),
    ChatRequest(id="q0", content="", resources=(Resource(uri=URI, text=LINES),)),
)


class Log(NoStream):
    def __init__(self, entries: tuple[AnyEntry, ...]) -> None:
        self._entries = entries

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        return self._entries


class Source:
    """Has one resource, and knows one copy of it."""

    def __init__(self, now: Resource | JpError, copy: KnownCopy | None = None) -> None:
        self._now = now
        self._copy = copy

    async def resolve(self, uri: str, stream: Stream) -> Resource:
        assert any(uri in str(entry) for entry in stream.entries)
        if isinstance(self._now, JpError):
            raise self._now
        return self._now

    def newest_copy(self, uri: str, stream: Stream) -> KnownCopy | None:
        assert any(uri in str(entry) for entry in stream.entries)
        return self._copy


COPY = KnownCopy(text=LINES, entry="q0", place="the attachment at turn 0")


def refresh(
    source: Source, uri: str = URI, entries: tuple[AnyEntry, ...] = ATTACHED, max_bytes: int | None = None
) -> ToolOutput:
    invocation = ToolInvocation(
        arguments={"uri": uri}, root=Path(), settings=ToolConfig(max_bytes=max_bytes), stream=Log(entries)
    )
    return anyio.run(RefreshResource(source).run, invocation)


def resource_of(output: ToolOutput) -> Resource:
    (block,) = output.content
    assert isinstance(block, ResourceBlock)
    return block.resource


def test_what_has_changed_little_is_a_diff_against_the_newest_copy_that_can_be_seen() -> None:
    resource = resource_of(refresh(Source(Resource(uri=URI, text=CHANGED), COPY)))

    assert resource.text == CHANGED
    assert resource.formatted_against == "q0"
    assert resource.formatted is not None
    assert "-line 9\n+line nine\n" in resource.formatted
    assert len(resource.formatted) < len(CHANGED) / 2


@pytest.mark.parametrize(
    ("now", "copy"),
    [
        (Resource(uri=URI, text=LINES), COPY),
        (Resource(uri=URI, text=LINES.replace("line", "LINE")), COPY),
        (Resource(uri=URI, text=CHANGED), None),
        (Resource(uri=URI, blob=b"\0"), COPY),
    ],
    ids=["unchanged", "changed throughout", "no copy", "binary"],
)
def test_everything_else_comes_as_it_is(now: Resource, copy: KnownCopy | None) -> None:
    output = refresh(Source(now, copy))

    assert resource_of(output) is now
    assert not output.is_error


def test_a_diff_that_would_be_cut_is_none() -> None:
    now = Resource(uri=URI, text=CHANGED)

    assert resource_of(refresh(Source(now, COPY), max_bytes=200)) is now


def test_what_is_read_is_said_by_its_name() -> None:
    output = refresh(Source(Resource(uri=URI, name="a.py", text=LINES)))

    assert output.facts is not None
    assert (output.facts.kind, output.facts.path) == ("read", "a.py")


@pytest.mark.parametrize(
    ("uri", "facts"),
    [
        ("https://a.test/b", Facts(kind="web", url="https://a.test/b", title="T")),
        (URI, Facts(kind="read", path=URI, title="T")),
    ],
)
def test_a_page_is_said_by_its_address_and_its_title(uri: str, facts: Facts) -> None:
    now = Resource(uri=uri, title="T", text="x")
    attached = (TurnStart(id="t0"), ChatRequest(id="q0", content="", resources=(now,)))

    assert refresh(Source(now), uri, attached).facts == facts


def test_what_cannot_be_read_fails() -> None:
    with pytest.raises(JpError, match="there is no file"):
        refresh(Source(JpError("there is no file 'a.py'")))


@pytest.mark.parametrize("uri", ["file:///w/b.py", "file:///w/./a.py", "a.py", URI + "#L1-2", "", "cmd://id"])
def test_what_is_not_attached_is_refused_with_what_is(uri: str) -> None:
    output = refresh(Source(JpError("must not be asked")), uri)

    assert output.is_error
    (block,) = output.content
    assert block == TextBlock(text=f"{uri!r} is not attached to this conversation. These are: {URI}.")


def test_what_a_tool_named_or_delivered_is_not_attached_and_neither_is_what_was_undone() -> None:
    other = ResourceBlock(resource=Resource(uri="file:///w/b.py", text="b"))
    entries = (*ATTACHED, ToolCallResponse(request="c", content=(other,)))

    assert attached_uris(entries) == (URI,)
    assert attached_uris((*entries, TurnStart(id="t1"), *ATTACHED[1:])) == (URI,)
    undone = (*entries, Revert(entries=("t0",)))
    assert attached_uris(undone) == ()
    assert refresh(Source(JpError("no")), entries=undone).content == (
        TextBlock(text="Nothing is attached to this conversation."),
    )


def test_of_very_many_attachments_the_newest_are_named() -> None:
    resources = tuple(Resource(uri=f"file:///w/{number}", text="x") for number in range(30))
    entries = (TurnStart(id="t0"), ChatRequest(content="", resources=resources))

    (block,) = refresh(Source(JpError("no")), entries=entries).content

    assert isinstance(block, TextBlock)
    assert block.text is not None
    assert block.text.endswith("file:///w/11, file:///w/10 and 10 more.")
    assert "These are: file:///w/29, " in block.text

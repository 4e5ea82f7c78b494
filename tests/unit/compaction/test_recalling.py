from __future__ import annotations

import hashlib

import pytest

from jp.compaction.log_contents import Leaf, find_content
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Header,
    Payload,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, TextBlock
from jp.errors import UsageError

ALIKE = ("content number 54179", "content number 72784")
PICTURE = ImageBlock(mime_type="image/png", blob=b"\x89PNG")
ENTRIES: tuple[AnyEntry, ...] = (
    Header(format=1, created_at="", nonce="n"),
    ChatRequest(content="?", resources=(Resource(uri="file:///a", sha256="ab" * 32, size=9000),)),
    RequestContext(provider="p", model="m", renderer=1, system=(Payload(text="Be brief."),)),
    ToolCallRequest(call_id="x", name="run", arguments={"command": "make", "deep": [{"text": ALIKE[0]}]}),
    ToolCallResponse(request="c", content=(TextBlock(text=ALIKE[1]), ResourceBlock(resource=Resource(uri="a:b")))),
    ToolCallResponse(request="c", content=(PICTURE, TextBlock(text="make"))),
)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


@pytest.mark.parametrize(
    ("wanted", "content"),
    [
        ("ab" * 4, Resource(uri="file:///a", sha256="ab" * 32, size=9000)),
        ("ab" * 32, Resource(uri="file:///a", sha256="ab" * 32, size=9000)),
        (f" SHA256:{'AB' * 6} ", Resource(uri="file:///a", sha256="ab" * 32, size=9000)),
        (sha("Be brief.")[:8], Payload(text="Be brief.")),
        (sha("make")[:10], Leaf("make")),
        (sha(ALIKE[0])[:8], Leaf(ALIKE[0])),
        (sha(ALIKE[1])[:9], TextBlock(text=ALIKE[1])),
        (sha("")[:8], Resource(uri="a:b")),
        (sha(b"\x89PNG")[:8], PICTURE),
    ],
)
def test_any_content_of_a_log_is_found_by_the_beginning_of_its_checksum(wanted: str, content: object) -> None:
    assert find_content(wanted, ENTRIES).content == content


def test_what_is_found_has_the_handle_that_stand_ins_say() -> None:
    found = [find_content(sha(text), ENTRIES) for text in ALIKE]

    assert [one.handle for one in found] == [sha(ALIKE[0])[:8], sha(ALIKE[1])[:9]]
    assert [one.sha256 for one in found] == [sha(text) for text in ALIKE]


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        ("abababa", None, "'abababa' is no handle"),
        ("the lexer", None, "'the lexer' is no handle"),
        ("", None, "'' is no handle"),
        ("a" * 65, None, f"'{'a' * 65}' is no handle"),
        ("cdcdcdcd", "unknown_handle", "nothing in this conversation has the handle 'cdcdcdcd'"),
    ],
)
def test_what_names_nothing_is_an_error(wanted: str, kind: str | None, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_content(wanted, ENTRIES)

    assert (caught.value.message, getattr(caught.value, "kind", None)) == (message, kind)
    assert caught.value.hint


def test_a_beginning_of_several_is_an_error_that_says_which() -> None:
    checksums = [f"{'ab' * 4}{'c' * 4}{end}{'0' * 51}" for end in "123"]
    entries = [ToolCallResponse(request="c", content=(TextBlock(sha256=one, size=1),)) for one in checksums]

    with pytest.raises(UsageError) as caught:
        find_content("abababab" + "cc", entries)

    assert getattr(caught.value, "kind", None) == "ambiguous_handle"
    assert caught.value.message == "3 contents of this conversation have handles that begin with 'ababababcc'"
    assert caught.value.hint == "write more digits: ababababcccc1, ababababcccc2, ababababcccc3"
    assert find_content("abababab", entries).sha256 == checksums[0]

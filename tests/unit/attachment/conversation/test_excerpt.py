from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from jp.attachment.conversation import CONTENTS, Content, Excerpt, entries, fenced, markdown
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    InquiryRequest,
    InquiryResponse,
    Question,
    RequestContext,
    ToolCallResponse,
)
from jp.conversation.resource import ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import C
from jp.conversation.turns import turns_of
from logs import ask, call, end, log, respond, say, start, think

FILE = Resource(uri="file:///a.py", mime_type="text/x-python", text="x = 1\n")


def load(carrier: C) -> C:
    """What the blob store would give: its own address, as text."""
    return carrier if carrier.sha256 is None else replace(carrier, text=f"blob {carrier.sha256}", sha256=None)


def excerpt(stream: Sequence[AnyEntry], *contents: Content) -> Excerpt:
    return Excerpt(turns=turns_of(log(*stream)), contents=contents, load=load)


def shown(stream: Sequence[AnyEntry], *contents: Content) -> str:
    return "".join(markdown(excerpt(stream, *contents)))


EVERYTHING = [
    start(0),
    ChatRequest(content="\nwhat is this?\n", author="Ada", resources=(FILE, replace(FILE, name="b.py"))),
    think("hm"),
    think("  "),
    say("I look."),
    call("c0", "fs_read_file"),
    end("tools"),
    respond("c0", "x = 1\n"),
    say("A module."),
    end(),
    start(1),
    ask("and now?"),
    ChatResponse(data={"answer": 42}),
    end(),
]


def test_everything_of_a_turn_is_readable() -> None:
    assert shown(EVERYTHING, *CONTENTS) == snapshot("""\

## Turn 0

### User: Ada

what is this?

Attached: `file:///a.py`, `b.py`

### Reasoning

hm

### Assistant

I look.

### Call of `fs_read_file`

```json
{
  "command": "make test"
}
```

### Result of `fs_read_file`

```
x = 1
```

### Assistant

A module.

## Turn 1

### User

and now?

### Assistant

```json
{
  "answer": 42
}
```
""")


@pytest.mark.parametrize(
    ("contents", "there"),
    [
        (("user",), {"what is this?"}),
        (("assistant",), {"I look.", "A module.", "42"}),
        (("reasoning",), {"hm\n"}),
        (("tools",), {"make test", "x = 1"}),
    ],
)
def test_only_what_is_selected_is_there(contents: tuple[Content, ...], there: set[str]) -> None:
    text = shown(EVERYTHING, *contents)

    everything = {"what is this?", "I look.", "A module.", "42", "hm\n", "make test", "x = 1"}
    assert {piece for piece in everything if piece in text} == there


def test_a_turn_without_what_is_selected_has_no_heading() -> None:
    assert shown(EVERYTHING, "reasoning") == "\n## Turn 0\n\n### Reasoning\n\nhm\n"
    assert shown([start(0), ask("x")], "assistant") == ""


def test_a_message_that_was_cut_is_joined_to_what_continues_it() -> None:
    cut = [start(0), ask("x"), say("Hel"), end("error"), think("on"), say("lo, "), end("length", attempt=2), say("you")]

    assert shown([*cut, end()], "assistant") == "\n## Turn 0\n\n### Assistant\n\nHello, you\n"
    assert shown([*cut, end()], "assistant", "reasoning") == (
        "\n## Turn 0\n\n### Reasoning\n\non\n\n### Assistant\n\nHello, you\n"
    )


def test_messages_that_are_whole_stay_apart() -> None:
    stream = [start(0), ask("x"), say("one"), say("  "), say("two"), end(), ask("y"), say("three"), end()]

    assert shown(stream, "assistant", "user") == (
        "\n## Turn 0\n\n### User\n\nx\n\n### Assistant\n\none\n\ntwo\n\n### User\n\ny\n\n### Assistant\n\nthree\n"
    )


def test_what_was_refused_or_never_ran_is_omitted() -> None:
    stream = [start(0), ask("x"), say("no"), call("c"), end("refused")]
    failed = [start(0), ask("x"), call("c"), end("error"), say("yes"), end(attempt=2)]

    assert shown(stream, *CONTENTS) == "\n## Turn 0\n\n### User\n\nx\n"
    assert shown(failed, "assistant", "tools") == "\n## Turn 0\n\n### Assistant\n\nyes\n"


def test_a_turn_that_is_still_open_shows_what_is_there() -> None:
    assert shown([start(0), ask("x"), say("so far")], "assistant") == "\n## Turn 0\n\n### Assistant\n\nso far\n"


def test_whatever_a_tool_brings_is_shown() -> None:
    stored = Resource(uri="file:///big.txt", sha256="5" * 8, size=9000, chars=9000, lines=1)
    blocks = (
        TextBlock(text="a ``` b"),
        ResourceBlock(resource=FILE),
        ResourceBlock(resource=FILE),
        ResourceBlock(resource=stored),
        ResourceBlock(resource=Resource(uri="file:///p.png", mime_type="image/png", sha256="6" * 8, size=5000)),
        ResourceBlock(resource=Resource(uri="file:///q.bin", blob=b"123")),
        ImageBlock(mime_type="image/png", blob=b"1234"),
        ResourceLink(uri="file:///a`b"),
    )
    stream = [start(0), call("c", "odd `name`"), end("tools"), ToolCallResponse(request="c", content=blocks)]

    assert shown([*stream, respond("gone", "lost", is_error=True)], "tools") == snapshot("""\

## Turn 0

### Call of `` odd `name` ``

```json
{
  "command": "make test"
}
```

### Result of `` odd `name` ``

````
a ``` b
````

`file:///a.py`

```
x = 1
```

`file:///a.py`, unchanged: it stands above

`file:///big.txt`

```
blob 55555555
```

`file:///p.png`

(image/png, 5,000 bytes)

`file:///q.bin`

(binary, 3 bytes)

(image/png, 4 bytes)

Link: `` file:///a`b ``

### Error of `a tool`

```
lost
```
""")


def test_arguments_that_are_no_object_are_shown_as_they_came() -> None:
    stream = [start(0), replace(call("c"), arguments='{"a": '), end("tools")]

    assert '```json\n{"a": \n```' in shown(stream, "tools")


@pytest.mark.parametrize("text", ["", "`", "```", "````\n```````", "a\n"])
def test_a_fence_is_longer_than_whatever_it_holds(text: str) -> None:
    first, *_, last = fenced(text).splitlines()

    assert first == last
    assert set(first) == {"`"}
    assert len(first) >= 3
    assert first not in text


def test_entries_come_as_they_are_stored_without_what_belongs_to_a_provider() -> None:
    stream = [
        *EVERYTHING[:10],
        RequestContext(provider="p", model="m", renderer=1),
        InquiryRequest(request="c0", question=Question(id="q", text="sure?", kind="boolean")),
        InquiryResponse(request="q", answer=True, answered_by="user"),
        say("signed", signature="opaque"),
        call("c1", signature="opaque"),
        ToolCallResponse(request="c1", content=(TextBlock(sha256="7" * 8, size=9000, chars=9000, lines=1),)),
    ]
    everything = [json.loads(line) for line in entries(excerpt(stream, *CONTENTS))]

    assert [line["type"] for line in everything] == [
        "turn_start",
        "chat_request",
        "chat_response",
        "chat_response",
        "chat_response",
        "tool_call_request",
        "cycle_end",
        "tool_call_response",
        "chat_response",
        "cycle_end",
        "request_context",
        "inquiry_request",
        "inquiry_response",
        "chat_response",
        "tool_call_request",
        "tool_call_response",
    ]
    assert "opaque" not in json.dumps(everything)
    assert everything[-1]["content"] == [
        {"type": "text", "text": "blob 77777777", "size": 9000, "chars": 9000, "lines": 1}
    ]


@pytest.mark.parametrize(
    ("content", "types"),
    [
        ("user", {"chat_request"}),
        ("assistant", {"chat_response"}),
        ("reasoning", {"chat_response"}),
        ("tools", {"tool_call_request", "tool_call_response"}),
    ],
)
def test_of_the_entries_only_what_is_selected_comes(content: Content, types: set[str]) -> None:
    lines = [msgspec.json.decode(line) for line in entries(excerpt(EVERYTHING, content))]

    assert {line["type"] for line in lines} == types
    assert all(("reasoning" in line) == (content == "reasoning") for line in lines)

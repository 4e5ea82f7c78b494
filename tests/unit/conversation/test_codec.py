from __future__ import annotations

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Digests,
    Facts,
    Header,
    InquiryRequest,
    InquiryResponse,
    MalformedEntryError,
    Question,
    RequestContext,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    ToolOverride,
    TurnStart,
    Unknown,
    UnwritableEntryError,
    Usage,
    decode,
    encode,
)
from jp.conversation.resource import (
    Annotations,
    AudioBlock,
    ImageBlock,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)

AT = "2026-11-20T12:00:00Z"

LINES: list[tuple[AnyEntry, bytes]] = [
    (
        Header(id="0", at=AT, format=1, created_at=AT, nonce="n"),
        b'{"type":"header","id":"0","at":"2026-11-20T12:00:00Z","format":1,"created_at":"2026-11-20T12:00:00Z","nonce":"n"}',
    ),
    (TurnStart(id="1", at=AT), b'{"type":"turn_start","id":"1","at":"2026-11-20T12:00:00Z"}'),
    (
        ChatRequest(
            id="2",
            content="Look at \u00e4.",
            resources=(
                Resource(
                    uri="file:///a",
                    mime_type="text/plain",
                    annotations=Annotations(audience=("user",), priority=0.5, last_modified=AT),
                    name="a",
                    sha256="ab",
                    size=5000,
                    chars=4000,
                    lines=7,
                ),
                Resource(uri="file:///b", blob=b"\x00\xff", formatted="b", duplicate_of="1"),
            ),
            attachments=("file:a",),
            schema={"type": "object"},
            author="Ada",
        ),
        '{"type":"chat_request","id":"2","content":"Look at ä.","resources":[{"uri":"file:///a","mimeType":"text/plain",'
        '"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-11-20T12:00:00Z"},"name":"a","$blob":"ab",'
        '"size":5000,"chars":4000,"lines":7},{"uri":"file:///b","formatted":"b","duplicate_of":"1","blob":"AP8="}],'
        '"attachments":["file:a"],"schema":{"type":"object"},"author":"Ada"}'.encode(),
    ),
    (
        RequestContext(
            id="3",
            provider="anthropic",
            model="m",
            renderer=1,
            system=(Payload(text="Be brief."),),
            tools=Payload(sha256="cd", size=9),
            parameters={"cache": "short"},
        ),
        (
            b'{"type":"request_context","id":"3","provider":"anthropic","model":"m","renderer":1,'
            b'"system":[{"text":"Be brief."}],"tools":{"$blob":"cd","size":9},"parameters":{"cache":"short"}}'
        ),
    ),
    (ChatResponse(id="4", message="yes"), b'{"type":"chat_response","id":"4","message":"yes"}'),
    (
        ChatResponse(id="4", reasoning="", metadata={"signature": "s"}),
        b'{"type":"chat_response","id":"4","reasoning":"","metadata":{"signature":"s"}}',
    ),
    (ChatResponse(id="4", data=None), b'{"type":"chat_response","id":"4","data":null}'),
    (ChatResponse(id="4", data={"n": 10**30}), b'{"type":"chat_response","id":"4","data":{"n":1' + b"0" * 30 + b"}}"),
    (
        ToolCallRequest(id="5", call_id="c", name="run", arguments={"b": 1, "a": [None]}),
        b'{"type":"tool_call_request","id":"5","call_id":"c","name":"run","arguments":{"b":1,"a":[null]}}',
    ),
    (
        ToolCallRequest(id="5", call_id="c", name="run", arguments='{"b'),
        b'{"type":"tool_call_request","id":"5","call_id":"c","name":"run","arguments":"{\\"b"}',
    ),
    (
        ToolCallResponse(
            id="6",
            request="5",
            content=(
                TextBlock(text="ok"),
                ResourceBlock(resource=Resource(uri="file:///a", text="t")),
                ImageBlock(mime_type="image/png", blob=b"\x00"),
                AudioBlock(mime_type="audio/wav", sha256="ef", size=2),
                ResourceLink(uri="https://example.org/", name="x"),
            ),
            is_error=True,
            duration_ms=3,
            facts=Facts(kind="run", exit_code=2, first_error="boom"),
        ),
        (
            b'{"type":"tool_call_response","id":"6","request":"5","content":[{"type":"text","text":"ok"},'
            b'{"type":"resource","resource":{"uri":"file:///a","text":"t"}},'
            b'{"type":"image","mimeType":"image/png","data":"AA=="},'
            b'{"type":"audio","mimeType":"audio/wav","$blob":"ef","size":2},'
            b'{"type":"resource_link","uri":"https://example.org/","name":"x"}],'
            b'"is_error":true,"duration_ms":3,"facts":{"kind":"run","exit_code":2,"first_error":"boom"}}'
        ),
    ),
    (
        ToolCallResponse(
            id="6",
            request="5",
            content=(),
            facts=Facts(kind="web", url="https://a.test/", title="A", status=200, lines="1-2", total_lines=3),
        ),
        (
            b'{"type":"tool_call_response","id":"6","request":"5","content":[],"facts":{"kind":"web",'
            b'"url":"https://a.test/","title":"A","status":200,"lines":"1-2","total_lines":3}}'
        ),
    ),
    (
        InquiryRequest(id="7", request="5", question=Question(id="q", text="Sure?", kind="boolean", default=True)),
        (
            b'{"type":"inquiry_request","id":"7","request":"5",'
            b'"question":{"id":"q","text":"Sure?","kind":"boolean","default":true}}'
        ),
    ),
    (
        InquiryResponse(id="8", request="7", answer=False, answered_by="user"),
        b'{"type":"inquiry_response","id":"8","request":"7","answer":false,"answered_by":"user"}',
    ),
    (
        CycleEnd(id="9", attempt=1, finish="tools", usage=Usage(input=3), digests=Digests(system="s", messages=("m",))),
        (
            b'{"type":"cycle_end","id":"9","attempt":1,"finish":"tools","usage":{"input":3},'
            b'"digests":{"system":"s","messages":["m"]}}'
        ),
    ),
    (ConfigDelta(id="10", delta={"a": {"b": 1}}), b'{"type":"config_delta","id":"10","delta":{"a":{"b":1}}}'),
    (
        Compaction(
            id="11",
            from_turn=0,
            to_turn=7,
            from_id="1",
            to_id="2",
            to_cycle=4,
            source="auto",
            summary=SummaryPolicy(text="s", model="m"),
            reasoning="strip",
            tool_calls=ToolCallPolicy(policy="strip", request=True, response=True),
            tool_overrides={"fs_read_file": ToolOverride(request="keep", response="strip")},
            resources="superseded",
        ),
        (
            b'{"type":"compaction","id":"11","from_turn":0,"to_turn":7,"from_id":"1","to_id":"2","to_cycle":4,"source":"auto",'
            b'"summary":{"text":"s","model":"m"},"reasoning":"strip",'
            b'"tool_calls":{"policy":"strip","request":true,"response":true},'
            b'"tool_overrides":{"fs_read_file":{"request":"keep","response":"strip"}},"resources":"superseded"}'
        ),
    ),
    (Compaction(from_turn=0, to_turn=0), b'{"type":"compaction","from_turn":0,"to_turn":0}'),
    (Revert(id="12", entries=("11",)), b'{"type":"revert","id":"12","entries":["11"]}'),
]


@pytest.mark.parametrize(("entry", "line"), LINES)
def test_an_entry_is_a_line_of_the_documented_form(entry: AnyEntry, line: bytes) -> None:
    assert encode(entry) == line
    assert decode(line) == entry


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"note","id":"u","at":"now","x":{"y":1.0}}', ("note", "u", "now")),
        (b' {"type": "note" } ', ("note", "", "")),
        (b'{"type":"turn_start","id":5}', ("turn_start", "", "")),
        (b'{"type":7,"id":["a"],"at":null}', ("", "", "")),
        (b'{"type":"compaction","from_turn":"0","to_turn":1}', ("compaction", "", "")),
        (b'{"id":"u"}', ("", "u", "")),
        (b"{}", ("", "", "")),
        (b'{"type":"chat_request","content":"x","resources":[{"uri":"a","blob":"?"}]}', ("chat_request", "", "")),
    ],
)
def test_an_object_that_is_no_entry_of_this_version_is_kept_byte_for_byte(
    line: bytes, expected: tuple[str, str, str]
) -> None:
    entry = decode(line)

    assert isinstance(entry, Unknown)
    assert (entry.type, entry.id, entry.at) == expected
    assert encode(entry) == line


def test_unknown_fields_of_a_known_entry_do_not_hide_it() -> None:
    assert decode(b'{"type":"turn_start","id":"1","mood":"good"}') == TurnStart(id="1")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"nothing",
        b"[]",
        b"null",
        b'"text"',
        b'{"type":"turn_start"',
        b'{"type":"note","x":',
        b'{"type":"turn_start"}{}',
        b'{"type":"turn_start","id":"\xff"}',
        b'{"type":"note","id":"\xff"}',
        b'{"type":"chat_response","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"note","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(13),
)
def test_what_is_no_object_is_an_error(line: bytes) -> None:
    with pytest.raises(MalformedEntryError, match=r"not (JSON|an entry)"):
        decode(line)


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "entry",
    [ChatRequest(content="bad \udcff byte"), ChatResponse(data=nested(100_000))],
    ids=["surrogate", "nesting"],
)
def test_what_json_cannot_hold_is_an_error_in_words(entry: AnyEntry) -> None:
    with pytest.raises(UnwritableEntryError, match="cannot be written"):
        encode(entry)

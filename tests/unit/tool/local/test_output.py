from __future__ import annotations

import pytest

from jp.conversation.entries import Question
from jp.conversation.resource import (
    Annotations,
    AudioBlock,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.tool.execution import Returned, read_output

QUESTION = Question(id="sure", text="Sure?", kind="boolean", default=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text",
        "[1]",
        "{",
        '{"content": "a file\'s, as an API has it"}',
        '{"content": [1, 2]}',
        '{"content": [{"type": "text"}]}',
        '{"content": [{"type": "hologram", "text": "a"}]}',
        '{"content": [{"type": "image", "mimeType": "image/png"}]}',
        '{"content": [{"type": "image", "mimeType": "image/png", "data": "no base64!"}]}',
        '{"content": [{"type": "resource", "resource": {"uri": "a:b"}}]}',
        '{"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "a", "blob": "YQ=="}}]}',
        '{"content": [{"type": "text", "$blob": "00", "size": 1}]}',
        '{"type": "success"}',
        '{"type": "other", "content": "x"}',
        '{"type": "success", "content": "x"} and more',
        '{"a":' * 5000 + "1" + "}" * 5000,
    ],
)
def test_what_has_none_of_the_forms_is_just_text(text: str) -> None:
    assert read_output(text) is None


def test_blocks_are_what_mcp_says() -> None:
    text = """
    {"content": [
        {"type": "text", "text": "a"},
        {"type": "image", "mimeType": "image/png", "data": "YQ=="},
        {"type": "audio", "mimeType": "audio/wav", "data": "YQ=="},
        {"type": "resource", "resource": {"uri": "x:y", "mimeType": "text/x", "text": "t",
            "annotations": {"lastModified": "2026-01-02T03:04:05Z"}}},
        {"type": "resource", "resource": {"uri": "x:z", "blob": "YQ=="}},
        {"type": "resource_link", "uri": "x:l", "name": "l"}
    ], "isError": true, "structuredContent": {}}
    """

    assert read_output(text) == Returned(
        content=(
            TextBlock(text="a"),
            ImageBlock(mime_type="image/png", blob=b"a"),
            AudioBlock(mime_type="audio/wav", blob=b"a"),
            ResourceBlock(
                resource=Resource(
                    uri="x:y",
                    mime_type="text/x",
                    text="t",
                    annotations=Annotations(last_modified="2026-01-02T03:04:05Z"),
                )
            ),
            ResourceBlock(resource=Resource(uri="x:z", blob=b"a")),
            ResourceLink(uri="x:l", name="l"),
        ),
        is_error=True,
    )
    assert read_output('{"content": []}') == Returned(content=(), is_error=None)


def test_a_tool_cannot_say_what_jp_itself_keeps_of_content() -> None:
    text = (
        '{"content": [{"type": "text", "text": "a", "$blob": "00"}, {"type": "resource", "resource": '
        '{"uri": "x:y", "text": "t", "$blob": "00", "duplicate_of": "e1", "formatted_against": "e1"}}]}'
    )

    assert read_output(text) == Returned(
        content=(TextBlock(text="a"), ResourceBlock(resource=Resource(uri="x:y", text="t")))
    )


@pytest.mark.parametrize(
    ("text", "content", "is_error"),
    [
        ('{"type": "success", "content": "done"}', "done", False),
        ('{"type": "error", "message": "no", "trace": ["a", "b"], "transient": false}', "no\na\nb", True),
        ('{"type": "error", "message": "no"}\n', "no", True),
    ],
)
def test_an_outcome_of_the_original_is_a_result(text: str, content: str, *, is_error: bool) -> None:
    assert read_output(text) == Returned(content=(TextBlock(text=content),), is_error=is_error)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('{"id": "sure", "text": "Sure?", "answer_type": "Boolean", "default": true}', QUESTION),
        (
            '{"id": "n", "text": "Name?", "pre_amble": "- a\\n+ b", "answer_type": "Text"}',
            Question(id="n", text="- a\n+ b\nName?", kind="text"),
        ),
        (
            '{"id": "w", "text": "Which?", "answer_type": {"Select": {"options": ["a", "b"]}}}',
            Question(id="w", text="Which?", kind="select", options=("a", "b")),
        ),
    ],
)
def test_an_outcome_of_the_original_may_ask(question: str, expected: Question) -> None:
    assert read_output(f'{{"type": "needs_input", "question": {question}}}') == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ('{"type": "question", "id": "sure", "text": "Sure?", "kind": "boolean", "default": true}', QUESTION),
        (
            '{"type": "question", "id": "w", "text": "Which?", "options": ["a", "b"]}',
            Question(id="w", text="Which?", kind="select", options=("a", "b")),
        ),
        ('{"type": "question", "id": "n", "text": "Name?"}', Question(id="n", text="Name?", kind="text")),
        ('{"type": "question", "id": "n", "text": "?", "kind": "select"}', Question(id="n", text="?", kind="text")),
    ],
)
def test_a_block_may_ask(block: str, expected: Question) -> None:
    assert read_output(f'{{"content": [{{"type": "text", "text": "so far"}}, {block}]}}') == expected

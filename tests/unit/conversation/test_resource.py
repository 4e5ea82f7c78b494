from __future__ import annotations

import hashlib

import pytest

from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Carrier,
    Content,
    ImageBlock,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    as_shown,
    checksum,
    content_of,
    raw_bytes,
    resource_as_shown,
    size_in_bytes,
)

SHA = "ab" * 32


@pytest.mark.parametrize(
    ("carrier", "expected"),
    [
        (Payload(text="x"), TextContent("x")),
        (TextBlock(text="x"), TextContent("x")),
        (Resource(uri="a:b", text="x"), TextContent("x")),
        (Resource(uri="a:b", blob=b"x"), BinaryContent(b"x")),
        (ImageBlock(mime_type="image/png", blob=b"x"), BinaryContent(b"x")),
        (Payload(sha256=SHA, size=3, chars=2, lines=1), StoredContent(sha256=SHA, size=3, chars=2, lines=1)),
        (Resource(uri="a:b", sha256=SHA, size=3), StoredContent(sha256=SHA, size=3)),
        (AudioBlock(mime_type="audio/wav", sha256=SHA), StoredContent(sha256=SHA, size=0)),
        (Resource(uri="a:b", sha256=SHA, size=3, text="x"), StoredContent(sha256=SHA, size=3)),
        (Resource(uri="a:b"), TextContent("")),
        (Payload(), TextContent("")),
        (ImageBlock(mime_type="image/png"), TextContent("")),
    ],
    ids=range(12),
)
def test_content_is_read_in_whatever_form_it_stands(carrier: Carrier, expected: Content) -> None:
    assert content_of(carrier) == expected


def test_identity_and_size_are_those_of_the_raw_content() -> None:
    raw = "ä\n".encode()
    forms: list[Carrier] = [
        Resource(uri="a:b", text="ä\n", formatted="else"),
        Resource(uri="a:b", blob=raw),
        Resource(uri="a:b", sha256=hashlib.sha256(raw).hexdigest(), size=3),
    ]

    assert {checksum(form) for form in forms} == {hashlib.sha256(raw).hexdigest()}
    assert {size_in_bytes(form) for form in forms} == {3}
    assert raw_bytes(TextContent("ä\n")) == raw_bytes(BinaryContent(raw)) == raw


def test_what_is_formatted_is_what_a_model_is_shown_in_place_of_the_content() -> None:
    resource = Resource(uri="u:1", name="n", mime_type="text/plain", sha256="ab" * 32, size=9, formatted="@@")
    plain = Resource(uri="u:1", text="x")
    link = ResourceLink(uri="u:2")

    assert resource_as_shown(plain) is plain
    assert resource_as_shown(resource) == Resource(uri="u:1", name="n", text="@@")
    assert as_shown(ResourceBlock(resource=resource)) == ResourceBlock(resource=resource_as_shown(resource))
    assert as_shown(TextBlock(text="all", formatted="")) == TextBlock(text="")
    assert as_shown(ImageBlock(mime_type="image/png", blob=b"x", formatted="too large")) == TextBlock(text="too large")
    for block in (ResourceBlock(resource=plain), TextBlock(text="x"), AudioBlock(mime_type="a/b", blob=b"x"), link):
        assert as_shown(block) is block

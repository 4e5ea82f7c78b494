from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.provider.anthropic.messages import attachment_blocks, result_content
from jp.provider.errors import ProviderError

PNG = b"\x89PNG"


def attached(resource: Resource) -> list[JsonObject]:
    return attachment_blocks(resource, is_new=True)


def words(*content: Block, is_error: bool = False) -> list[object]:
    return [block.get("text") for block in result_content(content, is_error=is_error)]


def test_an_attached_text_is_a_document_that_says_where_it_is_from() -> None:
    resource = Resource(uri="file:///w/a.py", name="a.py", description="a script", text="x = 1\n")

    assert attached(resource) == [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "x = 1\n"},
            "title": "a.py",
            "context": "uri: file:///w/a.py\na script",
        }
    ]


def test_a_document_without_a_name_is_called_by_its_uri() -> None:
    (block,) = attached(Resource(uri="file:///w/a.py", text="x"))

    assert block["title"] == "file:///w/a.py"
    assert "context" not in block


def test_a_title_wins_and_is_bounded() -> None:
    (block,) = attached(Resource(uri="u:1", name="n", title="t" * 600, text="x"))

    assert block["title"] == "t" * 500


def test_what_is_formatted_stands_for_the_content() -> None:
    (block,) = attached(Resource(uri="u:1", mime_type="application/x-foo", blob=b"\0", formatted="as text"))

    assert block["source"]["data"] == "as text"


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_said_to_be_empty(text: str) -> None:
    assert attached(Resource(uri="u:1", name="a", text=text)) == [
        {"type": "text", "text": "a (u:1) is attached and empty."}
    ]


def test_a_pdf_is_a_document() -> None:
    (block,) = attached(Resource(uri="u:1", name="a.pdf", mime_type="application/pdf", blob=b"%PDF"))

    assert block["type"] == "document"
    assert block["source"] == {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    assert block["title"] == "a.pdf"


@pytest.mark.parametrize(
    ("mime_type", "sent"),
    [("image/png", "image/png"), ("image/jpg", "image/jpeg"), ("IMAGE/GIF; x=1", "image/gif"), ("image/webp",) * 2],
)
def test_a_picture_is_preceded_by_its_name(mime_type: str, sent: str) -> None:
    label, block = attached(Resource(uri="u:1", name="a.png", mime_type=mime_type, blob=PNG))

    assert label == {"type": "text", "text": "a.png (u:1):"}
    assert block == {"type": "image", "source": {"type": "base64", "media_type": sent, "data": "iVBORw=="}}


@pytest.mark.parametrize("mime_type", ["application/zip", "image/bmp", None])
def test_other_attachments_are_refused_by_name(mime_type: str | None) -> None:
    with pytest.raises(ProviderError, match=r"'file:///a\.bin' is ") as caught:
        attached(Resource(uri="file:///a.bin", mime_type=mime_type, blob=b"\0"))

    assert caught.value.kind == "unsupported"
    assert "ask again without it" in caught.value.hint


def test_what_was_attached_before_leaves_a_note_where_it_cannot_be_sent() -> None:
    resource = Resource(uri="file:///a.bin", mime_type="application/zip", blob=b"PK")

    assert attachment_blocks(resource, is_new=False) == [
        {"type": "text", "text": "[file:///a.bin: application/zip, 2 bytes, cannot be shown to this model]"}
    ]


def test_content_that_was_not_read_is_an_error() -> None:
    with pytest.raises(ProviderError, match="'u:1' has not been read"):
        attached(Resource(uri="u:1", sha256="0" * 64, size=1))


def test_a_text_result_is_a_text_block() -> None:
    assert result_content((TextBlock(text="done"),), is_error=False) == [{"type": "text", "text": "done"}]


def test_a_resource_that_stands_alone_is_bare() -> None:
    assert words(ResourceBlock(resource=Resource(uri="u:1", text="x"))) == ["x"]
    assert words(ResourceBlock(resource=Resource(uri="u:1", text="x", formatted="diff"))) == ["diff"]


def test_a_resource_among_others_says_which_one_it_is() -> None:
    assert words(TextBlock(text="two files"), ResourceBlock(resource=Resource(uri="u:1", text="x"))) == [
        "two files",
        '<resource uri="u:1">\nx\n</resource>',
    ]


def test_pictures_and_pdfs_are_shown() -> None:
    picture = ResourceBlock(resource=Resource(uri="u:1", mime_type="image/png", blob=PNG))
    pdf = ResourceBlock(resource=Resource(uri="u:2", mime_type="application/pdf", blob=b"%PDF"))

    assert [block["type"] for block in result_content((picture,), is_error=False)] == ["image"]
    assert [
        block["type"] for block in result_content((ImageBlock(mime_type="image/png", blob=PNG),), is_error=False)
    ] == ["image"]
    assert [block["type"] for block in result_content((picture, pdf), is_error=False)] == [
        "text",
        "image",
        "text",
        "document",
    ]


def test_what_cannot_be_shown_leaves_a_note() -> None:
    archive = ResourceBlock(resource=Resource(uri="u:1", mime_type="application/zip", blob=b"PK"))

    assert words(archive) == ["[u:1: application/zip, 2 bytes, cannot be shown to this model]"]
    assert words(AudioBlock(mime_type="audio/wav", blob=b"RIFF")) == [
        "[content: audio/wav, 4 bytes, cannot be shown to this model]"
    ]
    assert words(ImageBlock(mime_type="image/png")) == ["[content: image/png, 0 bytes, cannot be shown to this model]"]


def test_a_link_names_what_it_points_to() -> None:
    assert words(ResourceLink(uri="u:1", name="n"), ResourceLink(uri="u:2")) == ["[resource n: u:1]", "[resource u:2]"]


def test_empty_text_is_omitted() -> None:
    assert result_content((TextBlock(text=" \n"), TextBlock(text="x")), is_error=False) == [
        {"type": "text", "text": "x"}
    ]
    assert result_content((TextBlock(text=""),), is_error=False) == []


def test_an_error_is_always_explained_and_in_words_only() -> None:
    assert words(TextBlock(text=""), is_error=True) == ["The tool failed without saying why."]
    assert words(TextBlock(text="broken"), ImageBlock(mime_type="image/png", blob=PNG), is_error=True) == [
        "broken",
        "[image]",
    ]

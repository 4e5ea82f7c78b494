from __future__ import annotations

import pytest

from jp.conversation.resource import AudioBlock, Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.provider.transcript import ContentPart, Media, TextPart, attachment, media_type_of, result

PNG = b"\x89PNG"


def words(blocks: tuple[Block, ...], *, is_error: bool) -> str:
    return "\n".join(piece.text for piece in result(blocks, takes=(), is_error=is_error) if isinstance(piece, TextPart))


def attached(resource: Resource) -> list[ContentPart] | None:
    shown = attachment(resource, takes={"image/png"})
    return None if shown is None else list(shown)


def test_attached_text_stands_between_tags_that_name_it() -> None:
    resource = Resource(uri="file:///a%22b", text="1 < 2", title='say "<hi>" & go', description="two\nlines")

    assert attached(resource) == [
        TextPart(
            '<attachment uri="file:///a%22b" title="say &quot;&lt;hi&gt;&quot; &amp; go" '
            'description="two&#10;lines">\n1 < 2\n</attachment>'
        )
    ]


def test_what_is_attached_and_empty_is_said_to_be_empty() -> None:
    assert attached(Resource(uri="u:a", text=" \n")) == [TextPart("u:a (u:a) is attached and empty.")]


def test_an_attached_image_has_its_name_before_it() -> None:
    shown = attached(Resource(uri="u:a", name="a.png", blob=PNG, mime_type="image/PNG; q=1"))

    media = Media(data=PNG, media_type="image/png", name="a.png")
    assert shown == [TextPart("a.png (u:a):"), media]
    assert media.data_url == "data:image/png;base64,iVBORw=="


def test_an_attachment_of_another_type_is_not_shown() -> None:
    assert attached(Resource(uri="u:a", blob=b"\x00\x01", mime_type="application/zip")) is None


def test_media_types_have_one_spelling() -> None:
    assert [media_type_of(each) for each in ("image/JPG", " image/jpeg ;x=y", None)] == ["image/jpeg", "image/jpeg", ""]


@pytest.mark.parametrize(
    ("takes", "second"),
    [
        ({"image/png"}, Media(data=PNG, media_type="image/png", name="content")),
        (set[str](), TextPart("[content: image/png, 4 bytes, cannot be shown to this model]")),
    ],
)
def test_a_result_has_notes_in_place_of_what_is_not_taken(takes: set[str], second: ContentPart) -> None:
    blocks = (TextBlock(text="see"), ImageBlock(blob=PNG, mime_type="image/png"))

    assert result(blocks, takes=takes, is_error=False) == [TextPart("see"), second]


def test_what_is_formatted_stands_for_the_content_of_a_result_which_need_not_be_at_hand() -> None:
    blocks = (
        TextBlock(sha256="ab" * 32, size=90_000, formatted="head and tail"),
        ImageBlock(mime_type="image/png", sha256="cd" * 32, size=9, formatted="too large"),
        AudioBlock(mime_type="audio/wav", blob=b"RIFF", formatted=""),
    )

    assert result(blocks, takes={"image/png"}, is_error=False) == [TextPart("head and tail"), TextPart("too large")]


def test_a_result_in_words_says_which_resource_it_shows_and_that_it_failed() -> None:
    blocks = (
        ResourceBlock(resource=Resource(uri="u:a", text="x")),
        ResourceLink(uri="u:b", name="b"),
        ImageBlock(blob=PNG, mime_type="image/png"),
    )

    assert words(blocks, is_error=True) == (
        '<resource uri="u:a">\nx\n</resource>\n[resource b: u:b]\n'
        "[content: image/png, 4 bytes, cannot be shown to this model]"
    )
    assert words((), is_error=True) == "The tool failed without saying why."
    assert words((), is_error=False) == ""

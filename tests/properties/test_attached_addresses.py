"""The addresses, commands and bodies of the web that are attached: whatever anybody writes or serves."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from jp.attachment.base import AttachmentError
from jp.attachment.command import CommandLine, parse_command
from jp.attachment.media import BoundError, Unpacker, UnsupportedMedia, interpret, parse_content_type
from jp.attachment.web_address import RedirectError, parse_address, redirected
from jp.attachment.web_page import PageTooLongError, read_page

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.just("\udcff"), max_size=8)
PARTS = st.text("aZ0.-_~%/:@?#&=+!'()[]{}<>\\ \"\n\u00fc\u212b", max_size=12)
TAGS = [
    "<p>", "</p>", "<div>", "</div>", "<ul>", "<li>", "</li>", "<table>", "<tr>", "<td>", "<th>", "<pre>",
    "<code>", "<blockquote>", "<b>", "</b>", "<br>", "<h1>", "<a>", "<!--", "-->", "<![CDATA[", "]]>", "<!x", "<?",
    "?>", "&amp;", "&#xD800;", "&#", "<", ">", "<a/href=x>", "<img/src=x/alt=y>", "<main>", "<nav>", "<svg>",
    "<title>", "<li/value=z>", "<ol/start=x>", "<td/colspan=5>", "<base/href=//[>", "text",
]  # fmt: skip
MARKUP = st.lists(st.sampled_from(TAGS), max_size=40).map("".join)


@given(scheme=st.sampled_from(["http", "https", "HTTPS"]), authority=PARTS, rest=PARTS)
@example(scheme="http", authority="u:s3cret@h", rest="/")
@example(scheme="http", authority="u:s3/cret@h", rest="/")
def test_an_address_is_spelled_once_or_refused(scheme: str, authority: str, rest: str) -> None:
    try:
        address = parse_address(f"{scheme}://{authority}{rest}")
    except AttachmentError:
        return

    assert parse_address(address.text).text == address.text
    assert address.text.encode("ascii", "ignore").decode().isprintable()
    assert "#" not in address.text
    assert "@" not in address.origin


@given(location=PARTS | PARTS.map(lambda text: f"http://{text}") | PARTS.map(lambda text: f"//{text}"))
def test_a_redirect_leads_to_an_address_or_is_refused(location: str) -> None:
    try:
        target = redirected(parse_address("https://me:pw@example.org/a/b?c"), location)
    except RedirectError:
        return

    assert target.scheme == "https"
    assert target.credentials == ""
    assert parse_address(target.text) == target


@given(program=WORDS.filter(lambda word: word.strip("/")), arguments=st.lists(WORDS, max_size=4), description=WORDS)
def test_a_command_survives_its_spelling(program: str, arguments: list[str], description: str) -> None:
    command = CommandLine(program=program, arguments=tuple(arguments), description=description.strip())

    assert parse_command(command.declared) == command
    assert parse_command(command.uri) == CommandLine(program=program, arguments=tuple(arguments))
    assert command.declared.isascii()


@given(text=WORDS)
def test_what_is_typed_as_a_command_is_one_or_refused(text: str) -> None:
    try:
        command = parse_command(f"cmd:{text}")
    except AttachmentError:
        return

    assert parse_command(command.declared) == command


@given(
    data=st.binary(max_size=2000),
    form=st.sampled_from(["", "gzip", "deflate"]),
    cuts=st.lists(st.integers(0, 2000), max_size=5),
    bound=st.integers(1, 2000),
)
def test_a_body_is_unpacked_up_to_the_bound(data: bytes, form: str, cuts: list[int], bound: int) -> None:
    packed = {"": data, "gzip": gzip.compress(data), "deflate": zlib.compress(data)}[form]
    marks = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    unpacker = Unpacker(form, bound)
    unpacked = b""
    try:
        for start, end in pairwise(marks):
            unpacked += unpacker.feed(packed[start:end])
        unpacker.close()
    except BoundError:
        assert max(len(data), len(packed)) > bound
    else:
        assert unpacked == data
    assert len(unpacked) <= bound


@given(
    body=st.binary(max_size=200), header=PARTS | st.sampled_from(["text/html", "text/plain; charset=utf-16", "", "x/y"])
)
def test_every_body_is_something(body: bytes, header: str) -> None:
    media = interpret(body, parse_content_type(header), "name.txt")

    if isinstance(media, UnsupportedMedia):
        assert media.reason
        assert media.hint
    else:
        assert media.mime_type


@given(html=MARKUP)
def test_every_page_is_read(html: str) -> None:
    try:
        page = read_page(html, "https://example.org/a", max_chars=5_000, check=lambda: None)
    except PageTooLongError:
        return

    assert page.text == page.text.strip()
    page.text.encode()
    page.title.encode()

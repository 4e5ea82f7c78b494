"""No text of a conversation becomes markup of its exported page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jp.app.export import (
    AttachmentPart,
    CompactionPart,
    ExportedConversation,
    ExportedTurn,
    MessagePart,
    NotePart,
    ReasoningPart,
    RequestPart,
    TextPart,
    ToolPart,
)
from jp.render.page import page

HOSTILE = (
    *("<script>alert(1)</script>", "</pre></details>", "</title>", "</style>", "<img src=x onerror=alert(1)>", "<!--"),
    *('"><b onclick="x', "' onload='x", "{{ 7 * 7 }}", "{% raw %}", "![x](https://example.org/x.png)", "]]>", "\0"),
    *("[x](javascript:alert(1))", "<javascript:alert(1)>", "[x](data:text/html,x)", "[x]: javascript:x\n\n[x]", "&lt;"),
    *('[x](https://example.org "\\" onclick=x")', '```"><script>\nx\n```', '<https://example.org/"onclick=x>'),
)
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)), max_size=4).map("".join)
OF_MARKDOWN = frozenset((
    *("p", "a", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
))


class Page(HTMLParser):
    """The tags of a page, those of answers apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.of_answers: list[tuple[str, dict[str, str | None]]] = []
        self._is_answer = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_answer and tag != "h3":
            self.of_answers.append((tag, dict(attrs)))
        else:
            self.tags.append((tag, tuple(name for name, _ in attrs)))
        self._is_answer = self._is_answer or dict(attrs).get("class") == "assistant"

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_answer = False

    def handle_comment(self, data: str) -> None:
        self.tags.append((f"comment {data}", ()))


def page_of(text: str, answer: str) -> Page:
    attachment = AttachmentPart(uri=text, name=text, mime_type=text, text=text)
    turn = ExportedTurn(
        number=0,
        is_undone=False,
        parts=(
            RequestPart(text=text, author=text),
            attachment,
            AttachmentPart(uri=text, mime_type=text, data=b"x"),
            ReasoningPart(text=text),
            ToolPart(name=text, arguments=text, has_result=True, result=(TextPart(text=text), attachment)),
            MessagePart(text=text, model=text, is_data=True),
            NotePart(text=text),
            CompactionPart(from_turn=0, to_turn=0, source=text, summary=text),
            MessagePart(text=answer, model=text),
        ),
        context={"user": 3},
    )
    document: dict[str, Any] = msgspec.to_builtins(
        ExportedConversation(
            schema=1,
            id="jp-c1",
            title=text,
            created_at=text,
            labels={text: text},
            models=(text,),
            redacted=True,
            turns=(turn,),
        ),
        builtin_types=(bytes,),
    )
    return Page(page(document))


@given(text=TEXTS)
def test_text_changes_no_tag_of_the_page(text: str) -> None:
    assert page_of(f"x{text}", "x").tags == page_of("x", "x").tags


@given(answer=TEXTS)
def test_answers_have_only_the_tags_of_markdown_and_links_to_the_web(answer: str) -> None:
    found = page_of("x", answer)
    assert found.tags == page_of("x", "x").tags
    for tag, attributes in found.of_answers:
        assert tag in OF_MARKDOWN
        assert attributes.keys() <= {"href", "title", "class", "start", "style"}
        assert (attributes.get("href") or "https://").lower().startswith(("https://", "http://", "mailto:"))

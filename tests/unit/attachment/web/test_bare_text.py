from __future__ import annotations

import pytest

from jp.attachment.web_page import PlainText


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("a  <b>b</b>c\n d", "a bc d"),
        ("<p>a<p>b<br>c", "a\nb\nc"),
        ("a &lt;b&gt; &amp;amp; 1 < 2 <3", "a <b> &amp; 1 < 2 <3"),
        ("a<script>if (1 < 2) '</p>'</SCRIPT >b", "a\nb"),
        ("a<style>b</style><noscript>c</noscript>d", "a\nd"),
        ("a<script>b", "a"),
        ("a</script>b", "a\nb"),
        ("a<!-- <p>b --> c<!---->d<!-->e<!-- f", "a cde"),
        ("<!doctype html><?xml x?>a</>b", "a\nb"),
        ("<a title='1 > 0' b=\"x>y\" c=d>e</a>", "e"),
        ("<a title='1 <b>c", "c"),
        ("a<p", "a"),
        ("<![foo[a", "<![foo[a"),
    ],
)
def test_what_is_left_without_markup(html: str, text: str) -> None:
    assert PlainText(html).read(lambda: None) == text


@pytest.mark.parametrize(
    ("html", "title"),
    [("<title> a&amp;\n b</title><title>c</title>", "a& b"), ("<title>a", "a"), ("<p>a", "")],
)
def test_the_title_is_no_text(html: str, title: str) -> None:
    page = PlainText(html)

    assert "c" not in page.read(lambda: None)
    assert page.title == title

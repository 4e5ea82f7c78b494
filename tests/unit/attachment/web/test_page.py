from __future__ import annotations

from inspect import cleandoc

import pytest

from jp.attachment import web_page as pages
from jp.attachment.web_page import Page, PageTooLongError, read_page

URL = "https://example.org/docs/page?x=1"


def read(html: str, *, max_chars: int = 10**6) -> Page:
    return read_page(html, URL, max_chars=max_chars, check=lambda: None)


PAGE = """<!DOCTYPE html>
<html><head><title> The
  guide </title><script>evil()</script><style>p {}</style></head>
<body>
<nav><a href="/">Home</a></nav>
<header>The site</header>
<main>
<header><h1>Guide<a class="headerlink" href="#guide">¶</a></h1></header>
<p>Read <a href="other page.html">the other</a>, <a href="#below">below</a> and
<a href="javascript:x()">not this</a>. A snake_case name, 2 * 3.
<p>Or <a href="https://example.org/auto">https://example.org/auto</a>.
<aside>A note.</aside>
<ul><li>one<li>two<ol><li>inner<li>last</ol></ul>
<pre class="highlight-source-py"><code>def f():
    return "&lt;x&gt;"


f()</code></pre>
<table><tr><th>A<th>B<tr><td>1<td>2</table>
<button>Copy</button><img src="/i (1).png" alt="A picture"><img src="data:image/png;base64,AAAA" alt="inline">
</main>
<footer>Imprint</footer>
</body></html>"""


def test_a_page_is_what_a_person_reads_of_it() -> None:
    page = read(PAGE)

    assert page.title == "The guide"
    assert page.text == cleandoc(
        """
        # Guide

        Read [the other](https://example.org/docs/other%20page.html), below and
        not this. A snake_case name, 2 * 3.

        Or <https://example.org/auto>.
        A note.

        - one
        - two
          1. inner
          2. last

        ```py
        def f():
            return "<x>"


        f()
        ```

        | A | B |
        | --- | --- |
        | 1 | 2 |

        ![A picture](https://example.org/i%20%281%29.png)inline
        """
    )


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<nav>only this</nav>", "only this"),
        ("<body><header>top</header><p>text</p><footer>end</footer><aside>ad</aside></body>", "text"),
        ("<article><header>top</header><p>text</p></article><div role=navigation>menu</div>", "top\n\ntext"),
        ("<main><p>x</p></main><p>" + "the real text " * 20 + "</p>", "x\n\n" + "the real text " * 20),
        ("<div role=main>read this</div><p>and not</p>", "read this"),
        ("<article>one</article><article>two</article>", "one\n\ntwo"),
        ("<p>a<span hidden>b</span><span aria-hidden=true>c</span>d</p>", "ad"),
        ("<title>t</title>text", "text"),
        ("just text", "just text"),
        ("", ""),
        ("<?xml version='1.0'?><p>x", "x"),
        ("<p>a <?php b ?></p>", "a <?php b ?>"),
        ("/etc/passwd", "/etc/passwd"),
        ("<base href='/other/'><a href=x>l</a>", "[l](https://example.org/other/x)"),
        ("<base href='https://['><a href=x>l</a>", "[l](https://example.org/docs/x)"),
        ("<a href='https://['>l</a>", "l"),
        ("<a href='mailto:a@b.c'>l</a>", "[l](mailto:a@b.c)"),
        ("<pre><code class='language-C++ x'>a</code></pre>", "```c++\na\n```"),
        ("<div class='highlight lang-sh'><pre>a</pre></div>", "```sh\na\n```"),
        ("<pre>a</pre>", "```\na\n```"),
        ("<table><tr><th>a|b<tr><td>2|3<code>|</code></table>", "| a\\|b |\n| --- |\n| 2\\|3`\\|` |"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n:   b\n\nc\n:   d"),
    ],
)
def test_what_is_read_of_a_page(html: str, text: str) -> None:
    assert read(html).text == text.strip()


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<h1>A  <b>b</b></h1>", "A b"),
        ("<title></title>", ""),
        ("<title>" + "x" * 300 + "</title>", "x" * 200 + "…"),
        ("<p>no</p>", ""),
    ],
)
def test_a_page_has_a_title(html: str, title: str) -> None:
    assert read(html).title == title


@pytest.mark.parametrize("tag", ["div", "span", "ul><li", "blockquote", "table><tr><td", "b"])
def test_a_page_that_is_nested_too_deeply_is_its_text(tag: str) -> None:
    page = read(f"<title>t</title><script>evil()</script><{tag}>" + f"<{tag}>" * 1000 + "deep")

    assert page == Page(text="deep", title="t", is_plain=True)


def test_paragraphs_that_nobody_ended_are_not_nested() -> None:
    page = read("<p>x" * 1000)

    assert not page.is_plain
    assert page.text == "\n\n".join("x" * 1000)


@pytest.mark.parametrize("html", ["<ol start='½'><li>a</ol>", "<ol start='" + "9" * 5000 + "'><li>a</ol>"])
def test_a_page_that_no_library_understands_is_its_text(html: str) -> None:
    assert "a" in read(html).text


@pytest.mark.parametrize("html", ["<![foo[a", "<!a", "<!-- a"])
def test_markup_that_never_ends_is_a_comment_as_in_a_browser(html: str) -> None:
    assert read(html).text == ""


@pytest.mark.parametrize(
    "html", ["<b>" * 40_000 + "</i>" * 40_000, "<a " + "\n" * 4_000_000, "<ul>" * 45_000, "<a " * 90_000]
)
def test_a_page_that_is_made_to_take_long_is_read_within_its_time(html: str) -> None:
    # The parser would take quadratic time for the first two; the deadline of the tree would make them plain, too late.
    assert read(html).text == ""


def test_marks_that_repeat_on_every_line_are_bounded() -> None:
    html = "<blockquote>" * 100 + "<br>x" * 300

    assert len(read(html).text) > 50_000
    with pytest.raises(PageTooLongError):
        read(html, max_chars=20_000)


@pytest.mark.parametrize("html", ["<p>x", "x", "</p>", "<!-- c -->"])
def test_reading_can_be_left(html: str) -> None:
    class LeftError(Exception):
        pass

    def leave() -> None:
        raise LeftError

    with pytest.raises(LeftError):
        read_page(html, URL, max_chars=100, check=leave)


def test_a_page_with_too_much_markup_is_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_TAGS", 500)
    page = read("<title>t</title><style>a</style>" + "<p>x" * 1000)

    assert page == Page(text="\n".join("x" * 1000), title="t", is_plain=True)


def test_a_page_whose_tree_takes_too_long_is_its_text() -> None:
    page = read_page("<title>t</title><p><b>x</b>", URL, max_chars=100, check=lambda: None, tree_secs=0)

    assert page == Page(text="x", title="t", is_plain=True)


def test_reading_bare_text_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_TAGS", 500)

    class LeftError(Exception):
        pass

    def leave() -> None:
        raise LeftError

    with pytest.raises(LeftError):
        read_page("<p>" * 1000, URL, max_chars=100, check=leave)

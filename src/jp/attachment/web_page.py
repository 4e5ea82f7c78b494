"""Web pages as Markdown, without what surrounds the text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any, Protocol, cast
from urllib.parse import urljoin

import msgspec
from bs4 import BeautifulSoup, Tag
from bs4.builder._lxml import LXMLTreeBuilder
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter  # noqa: TID253 - this module is only imported where there is a page

_MARKUP = re.compile(
    r"<(?:(?P<comment>!--)"
    r"|(?P<end>/?)(?P<name>[A-Za-z][^\s/<>]*+)(?:[^<>\"'=]++|=\s*+(?:\"[^\"<]*\"|'[^'<]*')?|[\"'])*+>?"
    r"|[!?/][^<>]*+>)"
)
"""A tag, a declaration or the start of a comment. No value of an attribute is looked for beyond the next `<`."""

_COMMENT_END = re.compile(r"--!?>")
_UNREAD = {
    name: re.compile(rf"</{name}(?=[\s/>])[^<>]*+>?", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "noscript", "iframe", "template", "xmp")
}
"""Elements whose text is not read, and their end tags. Without one, the rest is hidden, as in a browser."""

_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
    "wbr",
})  # fmt: skip
"""Elements that do not break a line."""


class PlainText:
    """One page. `title` is what its first `title` holds."""

    def __init__(self, html: str) -> None:
        """Nothing is read before `read`."""
        self.title = ""
        self._html = html
        self._lines: list[str] = []
        self._line: list[str] = []

    def read(self, check: Callable[[], None]) -> str:
        """Return the text, one block a line, white space collapsed. `check` is called now and then; it may raise."""
        html, here = self._html, 0
        while (markup := _MARKUP.search(html, here)) is not None:
            check()
            self._add(html[here : markup.start()])
            here = self._after(markup)
        self._add(html[here:])
        self._break()
        return "\n".join(self._lines)

    def _after(self, markup: re.Match[str]) -> int:
        """Return where reading goes on behind `markup`."""
        if markup["comment"]:
            # `<!-->` is a whole one.
            return _end(_COMMENT_END.search(self._html, markup.end() - len("--")), self._html)
        name = (markup["name"] or "").lower()
        if name not in _INLINE:
            self._break()
        if markup["end"] or name not in _UNREAD:
            return markup.end()
        closing = _UNREAD[name].search(self._html, markup.end())
        if name == "title" and not self.title:
            text = self._html[markup.end() : len(self._html) if closing is None else closing.start()]
            self.title = " ".join(unescape(text).split())
        return _end(closing, self._html)

    def _add(self, text: str) -> None:
        if text:
            self._line.append(text)

    def _break(self) -> None:
        line = " ".join(unescape("".join(self._line)).split())
        self._line.clear()
        if line:
            self._lines.append(line)


def _end(match: re.Match[str] | None, html: str) -> int:
    return len(html) if match is None else match.end()


Check = Callable[[], None]
"""Called now and then; what it raises ends the work."""

_NEVER_READ = frozenset({
    "script", "style", "template", "noscript", "iframe", "object", "embed", "canvas", "svg", "math", "dialog",
    "button", "input", "select", "textarea", "audio", "video", "map", "title", "meta", "link", "base",
})  # fmt: skip
_NAVIGATION_ROLES = frozenset({"navigation", "search", "menu", "menubar", "toolbar"})
_SURROUNDINGS = frozenset({"header", "footer", "aside"})
_SURROUNDING_ROLES = frozenset({"banner", "contentinfo", "complementary"})
_CONTENT = ["main", "article", "section", "figure", "blockquote", "table", "li"]
"""Inside of these a header, a footer or an aside belongs to what is read."""

_ANCHOR_SIGNS = frozenset({"", "#", "¶", "§", "🔗"})
_LEAST_SHARE = 4
"""The marked main part must hold at least a quarter of the page's text."""

TREE_SECS = 10.0
"""Seconds that a tree and its Markdown may take."""

MOST_TAGS = 100_000
_MOST_CHARS = 20_000_000
"""A page with more is read as bare text: its tree takes a kilobyte for each tag."""

_PIECE = 16 * 1024
_DEEPEST = 500
"""Levels of a tree. Python's recursion has a limit, and the parser looks through all open elements for an end tag."""

_LONGEST_TITLE = 200
_XML_DECLARATION = re.compile(r"\s*+<\?xml[^>]*+>")
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|brush:)-?\s?([A-Za-z0-9+#_-]+)")
_IN_PARENTHESES = {ord(" "): "%20", ord("("): "%28", ord(")"): "%29", ord("\n"): "", ord("\r"): "", ord("\t"): ""}


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page as it is read. `is_plain` says that only its bare text could be had: markup too deep or too much."""

    text: str
    title: str = ""
    is_plain: bool = False


class PageTooLongError(Exception):
    """As Markdown, it has more characters than allowed: nested quotes and lists repeat their marks on every line."""


class _TooMuchError(Exception):
    """The tree is too deep, or takes too long."""


class _Builder(LXMLTreeBuilder):
    """Feeds the parser in pieces: what `check` raises ends only the current one."""

    def feed(self, markup: str | bytes) -> None:
        parser = cast("_Parser", cast("_Parsing", self).parser_for(None))
        try:
            for start in range(0, len(markup), _PIECE):
                parser.feed(markup[start : start + _PIECE])
            parser.close()
        except SyntaxError as error:
            raise ParserRejectedMarkup(str(error)) from None


class _Soup(BeautifulSoup):
    """A tree of a page. `check` is called for each tag and each text."""

    def __init__(self, html: str, check: Check) -> None:
        self._check = check
        super().__init__(html, builder=_Builder(), element_classes={Tag: _Element})

    def handle_starttag(self, name: str, *arguments: Any, **named: Any) -> Tag | None:
        self._check()
        if len(self.tagStack) > _DEEPEST:
            raise _TooMuchError
        return super().handle_starttag(name, *arguments, **named)

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        self._check()
        super().handle_endtag(name, nsprefix)

    def handle_data(self, data: str) -> None:
        self._check()
        super().handle_data(data)


class _Element(Tag):
    """An element that finds a parent by its name without the machinery for anything else: it is asked for by each."""

    def find_parent(self, name: Any = None, attrs: Any = None, **named: Any) -> Tag | None:
        if attrs or named or not isinstance(name, str):
            return super().find_parent(name, attrs or {}, **named)
        return next((parent for parent in self.parents if parent.name == name), None)


class _Parsing(Protocol):
    def parser_for(self, encoding: str | None) -> object: ...


class _Parser(Protocol):
    def feed(self, data: str | bytes) -> None: ...

    def close(self) -> None: ...


class _Converting(Protocol):
    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str: ...

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str: ...

    def convert_th(self, el: Tag, text: str, parent_tags: set[str]) -> str: ...


class _Converter(MarkdownConverter):
    """Markdown that can be left while it is made, and that stays within a bound."""

    def __init__(self, max_chars: int, check: Check) -> None:
        super().__init__(
            heading_style=ATX,
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            table_infer_header=True,
            code_language_callback=_language,
        )
        self._max_chars = max_chars
        self._check = check

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a cell. A bar in it would begin another one, even where it is code."""
        return cast("_Converting", super()).convert_td(el, text.replace("|", r"\|"), parent_tags)

    def convert_th(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a cell of a head, likewise."""
        return cast("_Converting", super()).convert_th(el, text.replace("|", r"\|"), parent_tags)

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        self._check()
        text = cast("_Converting", super()).process_tag(node, parent_tags=parent_tags)
        if len(text) > self._max_chars:
            raise PageTooLongError
        return text


def read_page(html: str, url: str, *, max_chars: int, check: Check, tree_secs: float = TREE_SECS) -> Page:
    """Return a page that came from `url` as Markdown with absolute links.

    A page that is too large or too deep for a tree, or has none after `tree_secs`, is returned as bare text: that
    takes a second for 4 MB.

    Raises:
        PageTooLongError: the text has more than `max_chars` characters.
    """
    if len(html) > _MOST_CHARS or html.count("<") > MOST_TAGS:
        return _bare(html, check)
    end = time.monotonic() + tree_secs

    def check_time() -> None:
        check()
        if time.monotonic() >= end:
            raise _TooMuchError

    try:
        return _structured(html, url, max_chars, check_time)
    except (ParserRejectedMarkup, RecursionError, _TooMuchError):
        return _bare(html, check)


def _bare(html: str, check: Check) -> Page:
    page = PlainText(html)
    text = page.read(check)
    return Page(text=text, title=_shortened(page.title), is_plain=True)


def _structured(html: str, url: str, max_chars: int, check: Check) -> Page:
    # A processing instruction is a comment to browsers, and a reason to warn for the parser.
    declaration = _XML_DECLARATION.match(html)
    markup = html[declaration.end() if declaration else 0 :].replace("<?", "&lt;?")
    soup = _Soup(markup, check)
    title, base = _title(soup), _base(soup, url)
    root = _readable(soup, check)
    if not _holds_text(root):
        root = _without(_Soup(markup, check), _is_never_read, check)
    _make_absolute(root, base, check)
    try:
        return Page(text=_Converter(max_chars, check).convert_soup(root).strip(), title=title)
    except (RecursionError, ValueError, TypeError, AttributeError, AssertionError):
        return Page(text=root.get_text("\n", strip=True), title=title, is_plain=True)


def _tags(root: Tag) -> Iterator[Tag]:
    """Return all below `root`, in the order of the page. `find_all` takes five times as long."""
    return (node for node in root.descendants if isinstance(node, Tag))


def _named(root: Tag, *names: str) -> Iterator[Tag]:
    return (tag for tag in _tags(root) if tag.name in names)


def _title(soup: BeautifulSoup) -> str:
    found = next(_named(soup, "title"), None) or next(_named(soup, "h1"), None)
    return "" if found is None else _shortened(" ".join(found.get_text(" ").split()))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else f"{text[:_LONGEST_TITLE]}…"


def _base(soup: BeautifulSoup, url: str) -> str:
    found = next((tag for tag in _named(soup, "base") if tag.has_attr("href")), None)
    return url if found is None else _joined(url, _attribute(found, "href")) or url


def _readable(soup: BeautifulSoup, check: Check) -> Tag:
    """Return the part of a page that is read, with everything else taken out of it."""
    whole = _without(soup.body or soup, _is_never_read, check)
    parts = list(_named(whole, "main", "article"))
    mains = [part for part in parts if part.name == "main"] or [
        tag for tag in _tags(whole) if tag.get("role") == "main"
    ]
    chosen = mains or parts
    size = _text_size(whole)
    root = chosen[0] if len(chosen) == 1 and _text_size(chosen[0]) * _LEAST_SHARE >= size else whole
    return _without(root, _surrounds, check)


def _without(root: Tag, is_unwanted: Callable[[Tag], bool], check: Check) -> Tag:
    unwanted: list[Tag] = []
    for tag in _tags(root):
        check()
        if is_unwanted(tag):
            unwanted.append(tag)
    for tag in unwanted:
        check()
        tag.extract()
    return root


def _is_never_read(tag: Tag) -> bool:
    return tag.name in _NEVER_READ or tag.has_attr("hidden") or tag.get("aria-hidden") == "true"


def _surrounds(tag: Tag) -> bool:
    role = tag.get("role")
    if tag.name == "nav" or role in _NAVIGATION_ROLES:
        return True
    if tag.name == "a":
        return _attribute(tag, "href").startswith("#") and tag.get_text().strip() in _ANCHOR_SIGNS
    return (tag.name in _SURROUNDINGS or role in _SURROUNDING_ROLES) and tag.find_parent(_CONTENT) is None


def _text_size(tag: Tag) -> int:
    return sum(map(len, tag.stripped_strings))


def _holds_text(tag: Tag) -> bool:
    return next(tag.stripped_strings, None) is not None or next(_named(tag, "img"), None) is not None


def _make_absolute(root: Tag, base: str, check: Check) -> None:
    """Links as they work anywhere; what leads nowhere from elsewhere becomes its text."""
    for tag in list(_named(root, "a", "img")):
        check()
        name = "href" if tag.name == "a" else "src"
        target = _attribute(tag, name).strip()
        address = "" if target.startswith("#") else _joined(base, target)
        if address:
            tag[name] = address
        elif tag.name == "a":
            del tag[name]
        else:
            tag.replace_with(_attribute(tag, "alt"))


def _joined(base: str, target: str) -> str:
    """`target` as an absolute address; empty where there is none that a reader could follow."""
    try:
        address = urljoin(base, target).translate(_IN_PARENTHESES)
    except ValueError:
        return ""
    return address if address.lower().startswith(("http://", "https://", "mailto:")) else ""


def _attribute(tag: Tag, name: str) -> str:
    value = tag.get(name)
    return value if isinstance(value, str) else ""


def _language(pre: Tag) -> str:
    """Return the language of a block of code, as highlighters note it on it, in it or around it."""
    for tag in (pre, pre.find("code"), pre.parent):
        classes = None if tag is None else tag.get("class")
        match = _LANGUAGE.search(" ".join(classes) if isinstance(classes, list) else classes or "")
        if match is not None:
            return match[1].lower()
    return ""

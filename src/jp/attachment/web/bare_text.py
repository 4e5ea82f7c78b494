"""A page's text without its markup, in one pass whose time grows with the page's length alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

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
"""What holds text that is not read, and where it ends. What never ends hides the rest, as it does in a browser."""

_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
    "wbr",
})  # fmt: skip
"""What does not break a line."""


class BareText:
    """One page. `title` is what its first `title` holds."""

    def __init__(self, html: str) -> None:
        """Nothing is read before `read`."""
        self.title = ""
        self._html = html
        self._lines: list[str] = []
        self._line: list[str] = []

    def read(self, check: Callable[[], None]) -> str:
        """The text, one block a line, white space collapsed. `check` is called now and then; it may raise."""
        html, here = self._html, 0
        while (markup := _MARKUP.search(html, here)) is not None:
            check()
            self._add(html[here : markup.start()])
            here = self._after(markup)
        self._add(html[here:])
        self._break()
        return "\n".join(self._lines)

    def _after(self, markup: re.Match[str]) -> int:
        """Where reading goes on behind `markup`."""
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

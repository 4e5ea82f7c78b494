"""End tags that HTML lets authors omit (HTML Standard §13.1.2.4). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav", "ol", "p", "pre",
    "section", "table", "ul",
})  # fmt: skip
_ROWS = frozenset({"thead", "tbody", "tfoot"})

_RULES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr"}), _ROWS | {"table"}),
    "td": (frozenset({"td", "th"}), _ROWS | {"table", "tr"}),
    "th": (frozenset({"td", "th"}), _ROWS | {"table", "tr"}),
    **{name: (_ROWS, frozenset({"table"})) for name in _ROWS},
    **{name: (frozenset({"p"}), (_BLOCKS - {"p"}) | {"li", "dd", "dt", "td", "th", "body"}) for name in _BLOCKS},
}
"""For the start of an element, which open ones it ends, and which hide them."""

_FARTHEST = 24


def ended_by(name: str, around: Iterable[str]) -> str | None:
    """Which open element the start of a `name` ends. `around` are the open ones, the innermost first."""
    rule = _RULES.get(name)
    if rule is None:
        return None
    ended, hiding = rule
    for outer in islice(around, _FARTHEST):
        if outer in ended:
            return outer
        if outer in hiding:
            return None
    return None

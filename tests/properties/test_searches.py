"""Two programs search alike, whatever is searched for."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jp.tool.files.errors import FileAccessError
from jp.tool.files.installed import installed_ripgrep
from jp.tool.files.matching import LineMatcher
from jp.tool.files.search_dialect import Expression, expression_of

PLAIN = "ab_ -.{}[]()\\^$|*+?AZ09kKIi&~#</"
ODD = "\t\r\x0b\x1c\x7f\x85\xa0éÉßẞ\u0131İ\u017f\u212a²ⅷ‿\u0301\u200d\u2028Ⓐ\u0663中😀\ufeff"
CHARACTERS = st.sampled_from(PLAIN + ODD)
CLASSES = st.sampled_from([r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", "a-z", "A-Z", "[:alpha:]", r"\x00-\x1f", "é-ü"])


def bracketed(sign: str, items: list[str]) -> str:
    return f"[{sign}{''.join(items)}]"


def grouped(kind: str, one: str, other: str) -> str:
    return f"({kind}{one}|{other})"


SETS = st.builds(
    bracketed,
    st.sampled_from(["", "^"]),
    st.lists(
        st.one_of(CLASSES, CHARACTERS.map(lambda char: f"\\{char}" if char in "\\]^-[" else char)),
        min_size=1,
        max_size=3,
    ),
)
ATOMS = st.one_of(
    CHARACTERS.map(lambda char: f"\\{char}" if char in "\\.+*?()|[]{}^$" else char),
    st.sampled_from([".", r"\w", r"\W", r"\s", r"\d", r"\b", r"\B", "^", "$"]),
    SETS,
)
REPETITIONS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{,2}"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeated = st.builds(str.__add__, parts, REPETITIONS)
    return st.lists(repeated, min_size=1, max_size=4).map("".join)


PATTERNS = st.builds(
    str.__add__,
    st.sampled_from(["", "", "(?i)"]),
    joined(
        st.recursive(
            ATOMS,
            lambda inner: st.builds(
                grouped,
                st.sampled_from(["", "?:", "?i:", "?P<n>"]),
                joined(inner),
                joined(inner),
            ),
            max_leaves=4,
        )
    ),
)
TEXTS = st.lists(st.text(CHARACTERS, max_size=6), max_size=60).map(
    lambda lines: "".join(f"{line}\n" for line in lines).replace("\r\n", "\n")
)


def expression(pattern: str) -> Expression | None:
    try:
        return expression_of(pattern)
    except FileAccessError:
        return None


@pytest.mark.skipif(installed_ripgrep() is None, reason="ripgrep is not installed, so there is nothing to compare with")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(PATTERNS.map(expression).filter(bool), TEXTS)
def test_ripgrep_and_python_find_the_same_lines(read: Expression, text: str) -> None:
    async def search(ripgrep: str | None) -> list[int]:
        return list(await LineMatcher(read, ripgrep=ripgrep).lines(text))

    assert anyio.run(search, installed_ripgrep()) == anyio.run(search, None)

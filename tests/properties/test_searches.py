"""Two programs search alike, whatever is searched for."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from file_calls import call
from jp.tool.files.grep_files import GrepFiles, installed_ripgrep
from jp.tool.files.search_dialect import expression_of
from jp.tool.files.territory import FileAccessError
from plain_names import PlainNames

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
LINES = st.builds(str.__add__, st.text(CHARACTERS, max_size=6), st.sampled_from(["\n", "\n", "\r\n", ""]))
FILES = st.one_of(
    st.lists(LINES, max_size=30).map(lambda lines: "".join(lines).encode()),
    st.binary(max_size=20).map(lambda data: b"a\n" + data),
)


def has_meaning(pattern: str) -> bool:
    try:
        expression_of(pattern)
    except FileAccessError:
        return False
    return True


@pytest.mark.skipif(installed_ripgrep() is None, reason="ripgrep is not installed, so there is nothing to compare with")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(PATTERNS.filter(has_meaning), st.lists(FILES, max_size=4), st.integers(0, 2))
def test_ripgrep_and_python_find_the_same(pattern: str, files: list[bytes], context: int) -> None:
    with TemporaryDirectory() as name:
        for number, data in enumerate(files):
            Path(name, f"file{number}").write_bytes(data)

        by_ripgrep = call(GrepFiles(PlainNames()), Path(name), pattern=pattern, context=context)
        by_python = call(GrepFiles(PlainNames(), ripgrep=no_ripgrep), Path(name), pattern=pattern, context=context)

    assert by_ripgrep == by_python


def no_ripgrep() -> None:
    return None

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.evidence import classified, mentions_in, words_in

WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|\\…]+")
ERROR = re.compile(r"(?i)\b(?:\w*error|\w*exception|failed|failure|fatal|panic|panicked|traceback)\b")
WORDS = (
    *(
        "/a",
        "a/b.py:7:",
        "and/or",
        "é/ü/x",
        "#7",
        "AB-12!",
        "3f2a9bc",
        "deadbee",
        "1234567",
        "https://a.b/c",
        "http:/",
        "x",
    ),
    *(
        "panic",
        "pan\u0131c",
        "fa\u0130led",
        "ERROR",
        "my_error",
        "errors",
        "Exception",
        "fatal",
        "traceback",
        "failure",
    ),
    *("except", "ion", "tracebac", "\u212a", "~", ".", "\ud800"),
)
BETWEEN = (*" \t\n\r\x0b\x1c\x85\xa0\u2028\u3000", *"\"'`<>()[]{},;|\\…", "", ":", ".")
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN)), max_size=8).map(
    lambda pairs: "".join(word + between for word, between in pairs)
)


@given(texts)
def test_words_are_what_one_pattern_would_find(text: str) -> None:
    assert words_in(text) == WORD.findall(text)


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("before", ["", "é "])
def test_every_word_is_looked_at_and_every_line_that_tells_of_an_error(before: str, between: str) -> None:
    said = [f"{before}{word}{between}{other}" for word, other in zip(WORDS, (*WORDS[7:], *WORDS[:7]), strict=True)]
    words = [classified(word) for text in said for word in WORD.findall(text)]
    lines = [line.strip() for text in said[1::2] for line in text.splitlines() if ERROR.search(line)]

    found = mentions_in(said[::2], outputs=said[1::2])

    assert set(found.errors) == set(filter(None, lines))
    assert set(found.paths) == {value for kind, value in words if kind == "paths"}
    assert set(found.urls) == {value for kind, value in words if kind == "urls"}
    assert set(found.issues) == {value for kind, value in words if kind == "issues"}
    assert set(found.commits) == {value for kind, value in words if kind == "commits"}


@given(texts, texts)
def test_what_stands_more_often_comes_first(once: str, twice: str) -> None:
    found = mentions_in([once, twice, twice])
    counts = [classified(word)[1] for text in (once, twice, twice) for word in WORD.findall(text)]

    for names in (found.paths, found.urls, found.issues, found.commits):
        assert [counts.count(name) for name in names] == sorted(map(counts.count, names), reverse=True)

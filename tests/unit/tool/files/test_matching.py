from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.tool.files import changes
from jp.tool.files.changes import Edit, LineMatcher, Match, in_thread, matches_of
from jp.tool.files.territory import FileAccessError

HOPELESS = "a" * 80 + "b"
"""`(a|aa)+$` does not match it, which takes exponential time."""


def found(old: str, text: str, seconds: float = 20) -> list[Match]:
    return matches_of(Edit(number=1, old=old, new=""), text, seconds=seconds)


def test_every_match_has_its_groups() -> None:
    assert found(r"^(?P<key>\w+)=(\d)?", "a=1\nü=\n") == [
        Match(0, 3, {"0": "a=1", "1": "a", "2": "1", "key": "a"}),
        Match(4, 6, {"0": "ü=", "1": "ü", "2": None, "key": "ü"}),
    ]


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("(", "missing \\)"),
        ("a" * 2_001, "it has more than 2,000 characters"),
        ("a{99999999999}", "it repeats too much"),
        ("((((a{1000}){1000}){1000}){1000})", "it repeats too much"),
        ("(?:a{,2}b{999}){999,}", "it repeats too much"),
    ],
)
def test_a_malformed_expression_is_refused(old: str, why: str) -> None:
    with pytest.raises(FileAccessError, match=f"pattern 1: the expression 'old' is malformed: {why}"):
        found(old, "text")


def test_an_expression_that_matches_too_often_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_MATCHES", 3)

    assert len(found("a", "aaa")) == 3
    with pytest.raises(FileAccessError, match="matches more than 3 times"):
        found("a", "aaaa")


def test_an_expression_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(FileAccessError, match=r"the expression took longer than 0\.05 seconds, so it was stopped"):
        found("(a|aa)+$", HOPELESS, seconds=0.05)


def test_a_search_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(FileAccessError, match=r"took longer than 0\.05 seconds, so it was stopped; make it simpler"):
        LineMatcher("(a|aa)+$").lines([HOPELESS], seconds=0.05)


def test_a_line_is_searched_up_to_its_millionth_character() -> None:
    assert LineMatcher("b").lines(["a" * 999_999 + "b", "a" * 1_000_000 + "b"]) == [1]


def test_an_expression_that_needs_too_much_memory_is_stopped() -> None:
    with pytest.raises(FileAccessError, match="the expression took too much memory, so it was stopped"):
        found("((a|b)+)*[cd]", "ab" * 5_000_000)


def test_many_lines_share_one_limit() -> None:
    with pytest.raises(FileAccessError, match="so it was stopped"):
        LineMatcher("a").lines(["a"], seconds=0)


def test_a_search_can_be_canceled() -> None:
    async def cancel() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await in_thread(LineMatcher("(a|aa)+$").lines, [HOPELESS], seconds=1)
        return scope.cancelled_caught

    assert anyio.run(cancel)


@pytest.mark.parametrize(
    ("pattern", "lines", "numbers"),
    [
        (r"def \w+\(", ["def one(", "  def über(", "def (", "define one("], [1, 2]),
        (r"^\s*$", ["", " \u3000", "x"], [1, 2]),
        (r"\bone\b", ["one", "(one)", "bone", "one_two"], [1, 2]),
        (r"(?i)straSSe|É", ["STRASSE", "é", "strasze"], [1, 2]),
        (r"(?P<year>\d{4})-(?<month>\d+)(?:x|)", ["2026-1", "26-1"], [1]),
        (r"if (x) {", ["if x {", "if (x) "], [1]),
        (r"{}|${name}", ["{}", "{", "${name}"], [1]),
        (r"\${e}", ["${e}", "$"], [1]),
        (r"(?:teh){e<=1}", ["(?:teh){e<=1}", "the", "teh{e<=1}"], [3]),
        (r"a{2}b{1,}c{,2}d{1,2}$", ["aabd", "aabbbccdd", "abd", "aabcccd"], [1, 2]),
        (r"[[:alpha:]]{2}\p{Lu}", ["abÜ", "abü"], [1]),
        (r"a(?!\s)$|x(?=\Z)", ["a", "a ", "x"], [1, 3]),
        (r"a++$(?<=a)", ["aa", "ba", "ab"], [1, 2]),
        (r"[^\n]b", ["ab", "b"], [1]),
        (r"\\n", ["a\\nb", "n"], [1]),
        ("a|^b|c$", ["xa", "b", "xc", "xb", "cx"], [1, 2, 3]),
    ],
)
def test_an_expression_is_one_of_python_in_which_other_braces_are_text(
    pattern: str, lines: list[str], numbers: list[int]
) -> None:
    assert LineMatcher(pattern).lines(lines) == numbers


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "'pattern' is empty"),
        ("(a", "'pattern' cannot be searched for: missing )"),
        ("a\\nb", "'pattern' cannot be searched for: a line has no line feed"),
        ("a\nb", "'pattern' cannot be searched for: a line has no line feed"),
        ("a" * 2_001, "'pattern' cannot be searched for: it has more than 2,000 characters"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(FileAccessError) as caught:
        LineMatcher(pattern)

    assert caught.value.message.startswith(why)


PARTS = st.sampled_from([
    *("a", "b", ".", r"\w", r"\W", r"\s", r"\S", "[^a]", "[ab]", "^", "$", r"\b", r"\B", "(?:a|b)", "(?:b|)", "(?i)a"),
    *("(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?>a+)", r"\Z", r"\A", "a*+", r"\s++"),
])
PATTERNS = st.lists(
    st.builds(str.__add__, PARTS, st.sampled_from(["", "", "*", "+", "?", "{2}"])), min_size=1, max_size=4
).map("".join)


@given(PATTERNS, st.lists(st.text("ab A_", max_size=4), max_size=5))
def test_a_line_matches_whatever_is_around_it(pattern: str, lines: list[str]) -> None:
    try:
        matcher = LineMatcher(pattern)
    except FileAccessError:
        return

    alone = [number for number, line in enumerate(lines, 1) if matcher.lines([line])]

    assert matcher.lines(lines) == alone

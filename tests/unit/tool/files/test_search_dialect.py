from __future__ import annotations

import re

import pytest

from jp.tool.files.search_dialect import expression_of
from jp.tool.files.territory import FileAccessError


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        (r"def \w+\(", ["def one(", "  def über("], ["def (", "define one("]),
        (r"a.c", ["abc", "a\rc"], ["ac"]),
        (r"^\s*$", ["", " \u3000"], ["x", "\x1c"]),
        (r"\S", ["x", "\x1c"], [" \t"]),
        (r"\bone\b", ["one", "(one)", "one-two"], ["bone", "one_two", "one\u0301", "onⓔone"]),
        (r"\Bone", ["bone"], ["one", " one"]),
        (r"[\W]", ["a b"], ["a_b"]),
        (r"\d\D", ["1a", "٣x"], ["12"]),
        (r"[^\d]", ["a"], ["1"]),
        (r"[\S]", ["a"], [" "]),
        (r"(?i)straSSe|É", ["STRASSE", "é"], ["strasze"]),
        (r"(?i)[a-c]x", ["BX"], ["dx"]),
        (r"(?i)a(?-i)b|c", ["Ab", "c"], ["AB", "C"]),
        (r"a(?i:b)c", ["aBc"], ["aBC", "Abc"]),
        (r"(?ims)a", ["A"], ["b"]),
        (r"(?P<year>\d{4})-(?<month>\d+)(?:x|)", ["2026-1"], ["26-1"]),
        (r"a{2}b{1,}c{,2}d{1,2}$", ["aabd", "aabbbccdd"], ["abd", "aabcccd"]),
        (r"if (x) {", ["if x {"], ["if (x) "]),
        (r"{}", ["{}"], ["{"]),
        (r"a+?b*?c??$", ["aab"], ["b"]),
        (r"[]a-]x", ["]x", "ax", "-x"], ["bx"]),
        (r"[^]]", ["a"], ["]"]),
        (r"[[]", ["["], ["]"]),
        (r"[a&&b~~-]", ["&", "~", "-"], ["c"]),
        (r"[[:alpha:][:^space:]]", ["a", "1"], [" "]),
        (r"[\x41-\u{43}]\x{1F600}\u0041\U00000042", ["B😀AB"], ["D😀AB"]),
        (r"\t\x1b\x7f[\x00-\x1f]", ["\t\x1b\x7f\x01"], ["\t\x1b\x7f "]),
        (r"[^\n]b[a\n]", ["aba"], ["ba"]),
        (r"\.\/\-\ \"\#\~", ['./- "#~'], ['x/- "#~']),
        (r"a|^b|c$", ["xa", "b", "xc"], ["xb", "cx"]),
        ("\\[\\]\\\\", ["[]\\"], ["[]"]),
    ],
)
def test_an_expression_finds_what_it_says(pattern: str, found: list[str], not_found: list[str]) -> None:
    expression = re.compile(expression_of(pattern).for_python())

    assert [line for line in (*found, *not_found) if expression.search(line)] == found


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (r"\w+\s[\d_]\b\B", r"[\w]+[\s][_\d]\b\B"),
        (r"(?i)ab1", "[Aa][Bb]1"),
        (r"(?P<n>a){,2}[^\x00-\x1f]", r"(?:a){0,2}[^\x00-\x09\x0b-\x1f]"),
        (r"a{2,}?[^\n]", "a{2,}."),
        (r"[\W\S\D]", r"[\W\S\D]"),
    ],
)
def test_ripgrep_is_told_the_same(pattern: str, told: str) -> None:
    assert expression_of(pattern).for_ripgrep() == told


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "'(?=' is none of (…), (?:…), (?P<name>…), (?i)"),
        ("(?<!a)b", "'(?<' is none of"),
        ("(?x)a", "'(?x' is none of"),
        (r"(a)\1", r"'\1' means nothing here"),
        (r"\Aa", r"'\A' means nothing here"),
        (r"\p{L}", r"'\p' means nothing here"),
        (r"\<a", r"'\<' means nothing here"),
        (r"[\b]", r"'\b' means nothing here"),
        ("[a\\", r"'\b' means nothing here"),
        ("a\\", "it ends with a single '\\'"),
        ("(a", "a '(' is not closed"),
        ("a)", "a ')' closes nothing; the character is written '\\)'"),
        ("[a", "a '[' is not closed; the character is written '\\['"),
        ("[z-a]", "the range that begins with 'z' has no end"),
        (r"[a-\d]", "the range that begins with 'a' has no end"),
        ("[[:word:][:nonsense:]]", "'[:nonsense:]' is no class; these are: alnum, alpha"),
        ("*a", "there is nothing that '*' could repeat"),
        ("^+", "there is nothing that '+' could repeat"),
        (r"\b?", "there is nothing that '?' could repeat"),
        ("a++", "there is nothing that '+' could repeat"),
        ("a{2}{3}", "there is nothing that '{3}' could repeat"),
        ("(|{2})", "there is nothing that '{2}' could repeat"),
        ("a{3,2}", "'{3,2}' ends before it begins"),
        ("a{1001}", "it repeats something more than 1,000 times"),
        ("(a{40}b){,30}", "it repeats something more than 1,000 times"),
        (r"a\nb", "a search looks at one line at a time, and a line has no line feed"),
        ("a\nb", "a search looks at one line at a time"),
        (r"[\n]", "a search looks at one line at a time"),
        (r"(?i)[\x00-\x{10ffff}]", "a range of more than 2,000 characters cannot ignore their case"),
        (r"\x{110000}", "there is no character 110000"),
        (r"\ud800", "it holds half a character"),
        ("\ud800", "it holds half a character"),
    ],
)
def test_what_has_no_one_meaning_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(FileAccessError) as caught:
        expression_of(pattern)

    assert caught.value.message.startswith(f"'pattern' cannot be searched for: {why}")


def test_a_pattern_has_a_length() -> None:
    with pytest.raises(FileAccessError, match="'pattern' is empty"):
        expression_of("")
    with pytest.raises(FileAccessError, match="'pattern' has 2,001 characters; at most 2,000 are searched for"):
        expression_of("a" * 2001)

from __future__ import annotations

import pytest

from jp.attachment.file_paths import PathPattern, canonical_segment, has_wildcard


def matches(pattern: str, path: str, *, hidden: bool = False) -> bool:
    compiled = PathPattern(pattern.split("/"))
    states = compiled.start
    for name in path.split("/"):
        states = compiled.step(states, name, hidden=hidden)
    return compiled.accepts(states)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.rs", "main.rs"),
        ("*", "x"),
        ("?.rs", "a.rs"),
        ("a*b*c", "axxbyyc"),
        ("*a*", "bab"),
        ("[ab].rs", "a.rs"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[^a-c]x", "dx"),
        ("[]]x", "]x"),
        ("[a-]x", "-x"),
        ("[%5D]x", "]x"),
        ("[", "["),
        ("a[b", "a[b"),
        ("**", "a"),
        ("**", "a/b/c"),
        ("**/*.rs", "main.rs"),
        ("**/*.rs", "a/b/main.rs"),
        ("src/**/mod.rs", "src/mod.rs"),
        ("src/**/mod.rs", "src/a/b/mod.rs"),
        ("**/a/**/b", "x/a/y/z/b"),
        ("%2A", "*"),
        (".*", ".env"),
        (".git*/**", ".github/x"),
        ("caf%C3%A9*", "cafe\u0301s"),
        ("a*", "a\nb"),
        ("[!z-a]", "q"),
    ],
)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.rs", "main.py"),
        ("*.rs", "src/main.rs"),
        ("?", "ab"),
        ("a*b*c", "axxcyyb"),
        ("ab*ba", "aba"),
        ("[ab]", "c"),
        ("[!ab]", "a"),
        ("[z-a]", "q"),
        ("%2A", "x"),
        ("*", ".env"),
        ("**", ".git/config"),
        ("**/*", "a/.env"),
        ("?env", ".env"),
        ("[.]env", ".env"),
        ("src/**/mod.rs", "mod.rs"),
        ("a", "a/b"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


def test_hidden_names_match_on_demand() -> None:
    assert matches("**/*", "a/.env", hidden=True)


def test_a_pattern_covers_what_lies_below_a_directory_that_it_matches() -> None:
    pattern = PathPattern(["**", "target"])

    assert pattern.covers(["a", "target", "debug", ".x"])
    assert not pattern.covers(["a", "targets"])


@pytest.mark.parametrize(
    ("segment", "canonical"),
    [
        ("%61*", "a*"),
        ("a b*", "a%20b*"),
        ("**", "**"),
        ("a**", "a*"),
        ("[^a]", "[!a]"),
        ("[a%2Dc]", "[a-c]"),
        ("[%5Ea]", "[%5Ea]"),
        ("[]]", "[%5D]"),
        ("[x", "%5Bx"),
        ("e\u0301?", "%C3%A9?"),
        ("%2a*", "%2A*"),
    ],
)
def test_a_segment_has_one_spelling(segment: str, canonical: str) -> None:
    assert canonical_segment(segment) == canonical
    assert canonical_segment(canonical) == canonical


@pytest.mark.parametrize(("segment", "expected"), [("a.b", False), ("%2A", False), ("[", False), ("?", True)])
def test_only_raw_wildcards_make_a_pattern(segment: str, *, expected: bool) -> None:
    assert has_wildcard(segment) is expected


def test_a_hostile_pattern_is_matched_in_no_time() -> None:
    # With a backtracking star this is 250**12 steps: the test would not end.
    assert not matches("*a" * 12 + "*b", "a" * 250)

from __future__ import annotations

import pytest

from jp.context.evidence import INDEX_LIMIT, Mentions, classified, mentions_in


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [
        ("src/jp/cli.py", "paths", "src/jp/cli.py"),
        ("src/a.py:12:3.", "paths", "src/a.py"),
        ("/etc/hosts", "paths", "/etc/hosts"),
        ("~/notes", "paths", "~/notes"),
        ("./run", "paths", "./run"),
        ("docs/one/two", "paths", "docs/one/two"),
        ("and/or", "", ""),
        ("/", "", ""),
        ("https://a.test/x?y=1.", "urls", "https://a.test/x?y=1"),
        ("http://", "", ""),
        ("#12", "issues", "#12"),
        ("JP-4711:", "issues", "JP-4711"),
        ("3f2a9bc", "commits", "3f2a9bc"),
        ("deadbeef", "", ""),
        ("1234567", "", ""),
        ("a" * 300 + "/b.py", "", ""),
        ("plain", "", ""),
        ("", "", ""),
    ],
)
def test_a_word_is_known_by_its_form(word: str, kind: str, value: str) -> None:
    assert classified(word) == (kind, value)


def test_the_most_frequent_comes_first_and_errors_come_from_tools() -> None:
    found = mentions_in(
        ["read a/b.py, a/c.py and a/c.py: see (#7)", "ValueError: said a person"],
        outputs=["ok\n  ValueError: bad\nno tests failed\n", "ValueError: bad"],
    )

    assert found == Mentions(issues=("#7",), paths=("a/c.py", "a/b.py"), errors=("ValueError: bad", "no tests failed"))


def test_an_index_is_bounded_and_the_longest_class_gives_way() -> None:
    found = mentions_in(
        [" ".join(f"src/{'deep/' * 20}file{n}.py #{n}" for n in range(200))],
        outputs=["error\n" * 9, "e" * 900 + " error"],
    )

    size = sum(len(text) + 1 for texts in (found.paths, found.issues, found.errors) for text in texts)
    assert size <= INDEX_LIMIT
    assert len(found.issues) == 120
    assert 20 < len(found.paths) < 80
    assert found.errors == ("error", "e" * 199 + "…") or found.errors == ("error",)


def test_a_very_long_line_takes_no_longer_than_its_length() -> None:
    assert mentions_in(["a/" * 200_000, "w" * 400_000], outputs=["x" * 400_000]) == Mentions()

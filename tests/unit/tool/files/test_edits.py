from __future__ import annotations

import pytest

from jp.tool.files.changes import Edit, Match, matches_of, replaced_exactly, replaced_matches
from jp.tool.files.territory import FileAccessError

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 1\n"


def edit(old: str, new: str, *, replace_all: bool = False) -> Edit:
    return Edit(number=2, old=old, new=new, replace_all=replace_all)


def matches(expression: str, text: str) -> list[Match]:
    return matches_of(edit(expression, ""), text)


def test_what_is_there_once_is_replaced() -> None:
    assert replaced_exactly(TEXT, edit("one", "three")) == (TEXT.replace("one", "three"), 1)


def test_all_of_it_is_replaced_where_that_is_said() -> None:
    assert replaced_exactly(TEXT, edit("return 1", "pass", replace_all=True)) == (TEXT.replace("return 1", "pass"), 2)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "x", "'old' is empty"),
        ("one", "one", "'old' and 'new' are the same"),
        ("three", "x", "'old' is not in the file"),
        (
            "  return 1",
            "x",
            "'old' is in the file 2 times, at lines 2, 6; make it longer, or say replace_all where all are meant",
        ),
        (
            "def two():\n  return 1",
            "x",
            "'old' is not in the file; line 5 begins what differs from it in white space only",
        ),
        ("\n\n \n", "x", "'old' is not in the file"),
    ],
)
def test_what_does_not_fit_changes_nothing(old: str, new: str, why: str) -> None:
    with pytest.raises(FileAccessError) as caught:
        replaced_exactly(TEXT, edit(old, new))

    assert caught.value.message == f"pattern 2: {why}. Nothing was changed."


@pytest.mark.parametrize(
    ("text", "places"),
    [("x x", "line 1"), ("x\n" * 6, "lines 1, 2, 3, 4, 5 and more"), ("x x x x x x", "lines 1 and more")],
)
def test_the_first_places_are_named(text: str, places: str) -> None:
    with pytest.raises(FileAccessError, match=f"times, at {places};"):
        replaced_exactly(text, edit("x", "y"))
    with pytest.raises(FileAccessError, match=f"times, at {places};"):
        replaced_matches(text, edit("x", "y"), matches("x", text))


def test_groups_are_put_in() -> None:
    change = edit(r"def (?P<name>\w+)\((z)?\)", "fn $name/$1${1}s$2 $$1")

    assert replaced_matches("a def one() b", change, matches(change.old, "a def one() b")) == (
        "a fn one/oneones $1 b",
        1,
    )


def test_every_match_is_replaced_where_that_is_said() -> None:
    change = edit("^", "> ", replace_all=True)

    assert replaced_matches("a\nb", change, matches("^", "a\nb")) == ("> a\n> b", 2)


def test_an_expression_that_matches_nothing_is_refused() -> None:
    with pytest.raises(FileAccessError, match="pattern 2: the expression 'old' matches nothing in the file"):
        replaced_matches(TEXT, edit("x{3}", "y"), [])


def test_a_group_that_there_is_not_is_refused() -> None:
    with pytest.raises(FileAccessError, match=r"'new' refers to \$\{price\}, but 'old' has no such group"):
        replaced_matches("a", edit("a", "$price"), matches("a", "a"))

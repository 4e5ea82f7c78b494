from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.context.summary_asking import UNSUPPORTED, Evidence, check_claims, claims_in
from jp.context.summary_schema import Decision, MendedError, TouchedFiles
from summaries import ACCOUNT

SHOWN = "Look at src/app/main.py:42 and commit 3f2a9bc4d1, it took 1,024 ms, ABCDEF0123; see https://x.test/a and #77."
EVIDENCE = Evidence([SHOWN], said=["Do  Step by\nstep, don\u2019t use tabs!"], spoke=True)


def test_claims_are_paths_commits_addresses_issues_and_numbers_of_more_than_one_digit() -> None:
    assert sorted(claims_in("In a/b.py:3, 3f2a9bc4d1 did 2 of 1,024 (#77), utf-8, and/or py3.")) == [
        ("#77", "issues"),
        ("1,024", "number"),
        ("3f2a9bc4d1", "commits"),
        ("77", "number"),
        ("a/b.py", "paths"),
    ]


def test_what_was_shown_bears_out_claims_in_other_spellings() -> None:
    told = replace(
        ACCOUNT,
        done=(
            "read src/app/main.py",
            "app/main.py was at 42",
            "it took 1024 ms",
            "at 3f2a9bc",
            "abcdef0123",
            "see #77 3 times",
        ),
        files=TouchedFiles(read=("src/app/main.py",)),
    )

    found = check_claims(told, EVIDENCE)

    assert found.account == told
    assert found.unsupported == 0


def test_unsupported_claims_are_dropped_and_counted() -> None:
    told = replace(
        ACCOUNT,
        goal="mend src/made/up.py at 4711",
        done=("wrote src/other.py", "took 2048 ms", "fine"),
        decisions=(Decision(what="use 3f2a9bc4d1"), Decision(what="x", why="as deadbeef1 says")),
        errors_and_fixes=(MendedError(error="see #78"), MendedError(error="none")),
        files=TouchedFiles(read=("README",), modified=("src/app/main.py", "lib/x.py")),
    )

    found = check_claims(told, EVIDENCE)

    assert found.account.goal == f"mend {UNSUPPORTED} at {UNSUPPORTED}"
    assert found.account.done == ("fine",)
    assert found.account.decisions == told.decisions[:1]
    assert found.account.errors_and_fixes == told.errors_and_fixes[1:]
    assert found.account.files == TouchedFiles(modified=("src/app/main.py",))
    assert found.account.requirements == ACCOUNT.requirements
    assert found.unsupported == 7


@pytest.mark.parametrize(
    ("requirement", "is_said"),
    [
        ("do step", True),
        ("\u201cDon't use tabs\u201d.", True),
        ("step BY step", True),
        ("Do st", False),
        ("use spaces", False),
        ("tabs don't", False),
        ("look at src/app/main.py", False),
        ("...", False),
        ("", False),
    ],
)
def test_a_requirement_stands_word_for_word_in_what_the_person_said(requirement: str, *, is_said: bool) -> None:
    found = check_claims(replace(ACCOUNT, requirements=(requirement,)), EVIDENCE)

    assert found.account.requirements == ((requirement,) if is_said else ())
    assert found.unsupported == (not is_said)


def test_where_nobody_spoke_nobody_asked_for_anything() -> None:
    told = replace(ACCOUNT, done=("built it", "as requested by the user"), next_step="do what the person wanted")

    found = check_claims(told, Evidence([SHOWN], spoke=False))

    assert found.account.requirements == ()
    assert found.account.done == ("built it",)
    assert found.account.next_step == f"do what the {UNSUPPORTED}"
    assert found.unsupported == 3

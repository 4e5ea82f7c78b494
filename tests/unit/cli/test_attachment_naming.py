from __future__ import annotations

import pytest

from jp.app.attachments import meant
from jp.cli.terminal.wording import worded
from jp.errors import UsageError

DECLARED = {
    "src/main.py": "file:src/main.py",
    "file:src/data.txt": "file:src/data.txt",
    "file:sp%20ace.txt": "file:sp%20ace.txt",
    "!file:**/*.lock": "!file:**/*.lock",
    "gh:o/n/pull/12": "gh:o/n/pull/12",
}


@pytest.mark.parametrize(
    ("typed", "canonical", "expected"),
    [
        ("src/main.py", "file:src/src/main.py", "src/main.py"),
        ("main.py", "file:src/main.py", "src/main.py"),
        ("main", "file:main", "src/main.py"),
        ("sp ace", "file:sp%20ace", "file:sp%20ace.txt"),
        ("sp%20ace", "file:sp%2520ace", "file:sp%20ace.txt"),
        ("12", "file:12", "gh:o/n/pull/12"),
        ("lock", "file:lock", "!file:**/*.lock"),
        ("!lock", "!file:**/lock", "!file:**/*.lock"),
        ("foo:pull/1", None, ""),
        (".txt", "file:.txt", ""),
        (".", "file:.", ""),
        ("ata.txt", "file:ata.txt", ""),
        ("!main", "!file:**/main", ""),
        ("src", "file:src", "many"),
    ],
)
def test_what_is_meant_is_found(typed: str, canonical: str | None, expected: str) -> None:
    if expected not in {"", "many"}:
        assert meant(typed, canonical, DECLARED) == expected
        return

    with pytest.raises(UsageError) as raised:
        meant(typed, canonical, DECLARED)

    if typed == ".txt" or expected == "many":
        assert raised.value.message.startswith(f"{typed!r} is a part of 2 attachments: ")
    else:
        assert raised.value.message == f"{typed!r} is not attached"


def test_of_many_parts_a_few_are_shown() -> None:
    declared = {f"file:a/{number}": f"file:a/{number}" for number in range(7)}

    with pytest.raises(UsageError) as raised:
        meant("a", "file:a", declared)

    shown = ", ".join(f"'file:a/{number}'" for number in range(5))
    assert raised.value.message == f"'a' is a part of 7 attachments: {shown} and 2 more"
    assert raised.value.hint == "give more of it"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("src/mian.py", "did you mean 'src/main.py'?"),
        ("SP_ACE.txt", "did you mean 'file:sp%20ace.txt'?"),
        ("nosuch", "list them with `jp attachment ls`"),
    ],
)
def test_what_is_not_attached_proposes_what_is_like_it(typed: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        meant(typed, f"file:{typed}", DECLARED)

    assert worded(raised.value.hint) == hint


def test_two_declarations_of_one_thing_are_one() -> None:
    declared = {"README.md": "file:README.md", "file:./README.md": "file:README.md"}

    assert meant("../README.md", "file:README.md", declared) == "README.md"

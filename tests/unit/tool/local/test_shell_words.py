from __future__ import annotations

import subprocess

import pytest

from jp.errors import JpError
from jp.tool.templates import mark, unmarked, variable, with_variables

NASTY = (
    "; rm -rf /",
    "$(echo injected)",
    "`echo injected`",
    "a\nb",
    "'; echo injected; '",
    '"; echo injected; "',
    "-rf",
    "*",
    "  two  words ",
    "\\",
    "${HOME}",
    "# no comment",
    "",
)

AROUND = (
    "printf '[%s]' {}",
    'printf "[%s]" "{}"',
    "printf '[%s]' '{}'",
    "printf '[%s]' \"$(printf %s {})\"",
    "printf '[%s]' \"$(printf '%s' \"$(printf %s '{}')\")\"",
    "printf '[%s]' \"`printf %s {}`\"",
    "printf '[%s]' \"${{NONE:-{}}}\"",
    "# it's a comment with '{}'\nprintf '[%s]' {}",
    "printf '[%s]' \\''' {} | tail -c +4 # {}",
    "(printf '[%s]' \"{}\")",
    "echo a#b >&2; printf '[%s]' {}",
    "case x in x) printf '[%s]' {};; esac",
    "show() {{ printf '[%s]' {}; }}; show other",
    "echo $((1 + (2))) >&2; printf '[%s]' {}",
)


@pytest.mark.parametrize("around", AROUND)
def test_a_value_is_one_word_and_never_code(around: str) -> None:
    script = with_variables(around.format(mark(0), mark(0)))
    program = "\n".join([f"unset {variable(1)}", script])

    for value in NASTY:
        done = subprocess.run(
            ["/bin/sh", "-c", program], env={variable(0): value}, capture_output=True, check=True, encoding="utf-8"
        )
        # A shell takes the line ends at the end of what a command prints away.
        assert done.stdout == f"[{value}]", script


def test_a_value_may_be_a_part_of_a_word() -> None:
    assert with_variables(f"cat src/{mark(0)}.py --{mark(11)}") == 'cat src/"${JP_VALUE_1}".py --"${JP_VALUE_12}"'


def test_a_value_in_arithmetic_is_refused() -> None:
    with pytest.raises(JpError, match=r"\$\(\(…\)\)"):
        with_variables(f"echo $((1 + {mark(0)}))")


def test_a_quote_that_is_not_closed_does_not_hurt() -> None:
    assert with_variables(f"echo ' {mark(0)}") == "echo ' '\"${JP_VALUE_1}\"'"
    assert with_variables("echo ) } \\") == "echo ) } \\"


def test_marks_become_their_values_again() -> None:
    assert unmarked(f"a {mark(1)} {mark(0)} {mark(7)}", ["x", "y"]) == f"a y x {mark(7)}"

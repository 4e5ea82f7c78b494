"""A word after an option whose value is optional: refused where it reads as the value, else a word like any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.cli.command_line.argv import Option, extract
from jp.cli.command_line.commands import ROOT, walk
from jp.cli.command_line.loading import LoadedCommand, is_usual_profile
from jp.config.model import PROFILES
from jp.errors import UsageError

LOADED = [LoadedCommand(command, path) for path, command in walk(ROOT)]
OPTIONS = [
    (loaded, form, option)
    for loaded in LOADED
    for form, option in loaded.options().items()
    if option.takes == "optional" and not option.mark
]
VALUES = {
    "--fork": ["0", "3", "-1"],
    "--tmp": ["1h", "90", "1h30m", "250ms", "1.5d"],
    "--compact": ["default", "heavy", "light"],
    "--tools": ["strip", "omit", "strip-requests", "strip-responses"],
    "--reset": ["2", "all"],
}
FREE = {"--summarize", "--tool"}
"""Any text is a value, or the names are known only to the configuration."""

PLAIN = st.text("abcxyz ", min_size=1, max_size=8).filter(
    lambda word: word not in {value for values in VALUES.values() for value in values}
)


def test_every_such_option_says_how_its_value_reads() -> None:
    assert {option.name for _, _, option in OPTIONS} == {*VALUES, *FREE}
    assert {name for name in PROFILES if is_usual_profile(name)} == set(VALUES["--compact"]) == set(PROFILES)


@given(st.sampled_from(OPTIONS), st.lists(PLAIN, max_size=3), st.lists(PLAIN, max_size=3), st.data())
def test_a_next_word_that_reads_as_the_value_is_refused(
    case: tuple[LoadedCommand, str, Option], before: list[str], after: list[str], data: st.DataObject
) -> None:
    loaded, form, option = case
    if option.name in FREE:
        word = data.draw(PLAIN)
    else:
        word = data.draw(st.sampled_from(VALUES[option.name]))
        with pytest.raises(UsageError) as error:
            extract([*before, form, word, *after], loaded.options(), command=loaded.name)
        assert error.value.hint.startswith(f"write `{option.name}={word}`")
    bare = f"{option.name}={option.bare}"

    assert extract([*before, f"{form}={word}", *after], loaded.options(), command=loaded.name)[1] == (
        *before,
        f"{option.name}={word}",
        *after,
    )
    assert extract([*before, form, "--", word, *after], loaded.options(), command=loaded.name)[1] == (
        *before,
        bare,
        "--",
        word,
        *after,
    )
    assert extract([*before, form, *after], loaded.options(), command=loaded.name)[1] == (*before, bare, *after)

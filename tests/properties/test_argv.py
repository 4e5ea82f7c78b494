from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.cli.command_line.argv import GLOBAL_OPTIONS, Option, extract, is_bound
from jp.errors import UsageError

TOOL = Option("--tool", "optional", bare="*")
FROM = Option("--from", "bound", bare="last")
MODEL = Option("--model", "value")
NEW = Option("--new")
OPTIONS = {
    "-m": MODEL,
    "--model": MODEL,
    "-n": NEW,
    "--new": NEW,
    "-t": TOOL,
    "--tool": TOOL,
    "--from": FROM,
}

FORMS = [*GLOBAL_OPTIONS, *OPTIONS]
WORDS = st.one_of(
    st.sampled_from(FORMS),
    st.builds("{}={}".format, st.sampled_from(FORMS), st.text(max_size=4)),
    st.builds("-{}".format, st.text("qvncmtFw!=xy", min_size=1, max_size=4)),
    st.sampled_from(["-", "--", "5h", "-3", "last", "why?", ""]),
    st.text(max_size=6),
)
LINES = st.lists(WORDS, max_size=8)


def attempt(words: list[str]) -> tuple[tuple[tuple[str, str], ...], list[str]] | None:
    try:
        settings, arguments = extract(words, OPTIONS, command="jp query")
    except UsageError:
        return None
    return settings, list(arguments)


@given(LINES)
def test_reading_what_was_left_changes_nothing(words: list[str]) -> None:
    once = attempt(words)
    if once is not None:
        assert attempt(once[1]) == ((), once[1])


@given(LINES, LINES)
def test_nothing_after_a_double_dash_is_touched(words: list[str], after: list[str]) -> None:
    before = attempt(words)
    if before is None or "--" in words:
        return
    whole = attempt([*words, "--", *after])

    assert whole is not None
    assert whole[0] == before[0]
    assert whole[1] == [*before[1], "--", *after]


@given(LINES)
def test_no_global_option_is_left_before_a_double_dash(words: list[str]) -> None:
    once = attempt(words)
    if once is None:
        return
    arguments = iter(once[1])
    for word in arguments:
        if word == "--":
            break
        assert word not in GLOBAL_OPTIONS
        if word == "-m":
            next(arguments)


@given(st.lists(st.text(max_size=6).filter(lambda word: not word.startswith("-")), max_size=6))
def test_words_that_are_no_options_stay_as_they_are(words: list[str]) -> None:
    assert attempt(words) == ((), words)


@given(LINES, st.sampled_from(["-q", "-v", "--format=json", "-ca=b"]), st.data())
def test_a_global_option_means_the_same_wherever_it_stands(words: list[str], option: str, data: st.DataObject) -> None:
    plain = [word for word in words if not word.startswith("-") and not is_bound(word)]
    position = data.draw(st.integers(0, len(plain)))

    assert attempt([*plain[:position], option, *plain[position:]]) == attempt([option, *plain])

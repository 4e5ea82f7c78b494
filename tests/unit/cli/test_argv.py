from __future__ import annotations

import pytest

from jp.cli.command_line.advice import missing_command
from jp.cli.command_line.argv import GLOBAL_OPTIONS, Option, Settings, extract, find, is_bound, scan_options
from jp.cli.command_line.commands import Command, Group
from jp.errors import UsageError

QUERY = Command("query", "m:query", "Ask", aliases=("q",))
LS = Command("ls", "m:ls", "List")
ROOT = Group("jp", "A tree", (QUERY, Group("conversation", "All", (LS,), aliases=("c",))))

TOOL = Option("--tool", "optional", bare="*")
NO_TOOL = Option("--tool", "optional", bare="*", mark="!")
FROM = Option("--from", "bound", bare="last")
OPTIONS = {
    "-m": Option("--model", "value"),
    "--model": Option("--model", "value"),
    "-n": Option("--new"),
    "--new": Option("--new"),
    "-t": TOOL,
    "--tool": TOOL,
    "-T": NO_TOOL,
    "--no-tool": NO_TOOL,
    "--from": FROM,
}


def split(*words: str) -> tuple[Settings, list[str]]:
    settings, arguments = extract(words, OPTIONS, command="jp query")
    return settings, list(arguments)


@pytest.mark.parametrize(
    ("words", "path", "rest"),
    [
        ([], ("jp",), ()),
        (["query"], ("jp", "query"), ()),
        (["q", "why?", "-n"], ("jp", "query"), ("why?", "-n")),
        (["c"], ("jp", "conversation"), ()),
        (["c", "ls", "-x"], ("jp", "conversation", "ls"), ("-x",)),
        (["-q", "c", "-Fjson", "ls"], ("jp", "conversation", "ls"), ()),
        (["q", "--", "-n"], ("jp", "query"), ("--", "-n")),
        (["why is it?", "-n"], ("jp", "query"), ("why is it?", "-n")),
        (["why\nis it?"], ("jp", "query"), ("why\nis it?",)),
        (["-q", "--", "c", "ls"], ("jp", "query"), ("--", "c", "ls")),
    ],
)
def test_words_lead_down_the_tree(words: list[str], path: tuple[str, ...], rest: tuple[str, ...]) -> None:
    found = find(words, ROOT)

    assert (found.path, found.rest, found.unknown) == (path, rest, None)


def test_global_options_may_stand_before_each_name() -> None:
    found = find(["-q", "--cfg", "a=b", "conversation", "--format=json", "-vw", "/a/b", "ls"], ROOT)

    assert found.node is LS
    assert found.settings == (
        ("--quiet", ""),
        ("--cfg", "a=b"),
        ("--format", "json"),
        ("--verbose", ""),
        ("--workspace", "/a/b"),
    )


def test_a_word_that_names_nothing_is_reported_with_what_follows_it() -> None:
    found = find(["c", "lss", "-a", "b"], ROOT)
    words = find(["c", "what is it?"], ROOT)

    assert (found.path, found.unknown, found.rest) == (("jp", "conversation"), "lss", ("-a", "b"))
    assert (words.path, words.unknown, words.rest) == (("jp", "conversation"), "what is it?", ())


def test_a_lone_dash_is_no_option() -> None:
    assert find(["-"], ROOT).unknown == "-"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["-n", "query"], "options of a command come after its name, as in `jp query -n …`; see jp --help"),
        (["c", "-qn", "ls"], "options of a command come after its name; see jp conversation --help"),
        (
            ["--formt", "json", "query"],
            "did you mean '--format'? options of a command come after its name; see jp --help",
        ),
        (["c", "--", "ls"], "jp conversation --help lists the commands"),
    ],
)
def test_what_cannot_stand_before_a_command_is_an_error(words: list[str], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(words, ROOT)

    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("words", "settings", "arguments"),
    [
        (["why?"], (), ["why?"]),
        (["why?", "-q", "-v", "-vv"], (("--quiet", ""), *[("--verbose", "")] * 3), ["why?"]),
        (["-qvn"], (("--quiet", ""), ("--verbose", "")), ["-n"]),
        (["-nqm", "x", "-!"], (("--quiet", ""), ("--no-persist", "")), ["-n", "-m", "x"]),
        (["-c", "a=b", "--cfg=c:=1", "-cd=e", "-c=f"], tuple(("--cfg", v) for v in ("a=b", "c:=1", "d=e", "f")), []),
        (["--model", "-q"], (), ["--model=-q"]),
        (["-m", "-q"], (), ["-m", "-q"]),
        (["-mq"], (), ["-m", "q"]),
        (["-m=q"], (), ["-m", "q"]),
        (["--model="], (), ["--model="]),
        (["--model", "a=b"], (), ["--model=a=b"]),
        (["-c", "--"], (("--cfg", "--"),), []),
        (["-", "-q"], (("--quiet", ""),), ["-"]),
        (["--", "-q", "--format", "json"], (), ["--", "-q", "--format", "json"]),
        (["-V", "--", "-V"], (("--version", ""),), ["--", "-V"]),
        (["-h"], (("--help", ""),), []),
    ],
)
def test_global_options_are_taken_out_and_everything_else_stays(
    words: list[str], settings: Settings, arguments: list[str]
) -> None:
    assert split(*words) == (settings, arguments)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["--tool"], ["--tool=*"]),
        (["--tool", "why?"], ["--tool=*", "why?"]),
        (["--tool=read"], ["--tool=read"]),
        (["--tool="], ["--tool="]),
        (["-t", "why?"], ["--tool=*", "why?"]),
        (["-t=read", "why?"], ["--tool=read", "why?"]),
        (["-nt=read"], ["-n", "--tool=read"]),
        (["-tn"], ["--tool=*", "-n"]),
        (["-T", "-t=read", "--no-tool=list"], ["--tool=!*", "--tool=read", "--tool=!list"]),
        (["--tool=!list"], ["--tool=!list"]),
        (["--from", "why?"], ["--from=last", "why?"]),
        (["--from", "5h", "why?"], ["--from=5h", "why?"]),
        (["--from", "-3"], ["--from=-3"]),
        (["--from=-3"], ["--from=-3"]),
        (["--from"], ["--from=last"]),
        (["--from", "-n"], ["--from=last", "-n"]),
    ],
)
def test_an_option_whose_value_is_optional_never_swallows_a_word(words: list[str], arguments: list[str]) -> None:
    assert split(*words) == ((), arguments)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--quiet=yes"], "--quiet takes no value, but got 'yes'", "write just --quiet"),
        (["-n=yes"], "-n takes no value, but got 'yes'", "write just -n"),
        (["-F"], "-F needs a value", "write -F VALUE"),
        (["--model"], "--model needs a value", "write --model VALUE"),
        (
            ["--modle", "x"],
            "jp query has no option '--modle'",
            "did you mean '--model'? jp query --help lists its options",
        ),
        (["-nZ"], "jp query has no option '-Z'", "jp query --help lists its options"),
        (["-3"], "jp query has no option '-3'", "jp query --help lists its options"),
    ],
)
def test_options_that_cannot_be_read_are_errors(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(*words)

    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("word", ["0", "5", "-3", "90s", "5h", "1d12h", "2w", "last"])
def test_bounds_of_a_range_are_recognised(word: str) -> None:
    assert is_bound(word)


@pytest.mark.parametrize(
    "word", ["", "-", "h", "five", "5x", "5h3", "-5h", "--", "last week", "\N{ARABIC-INDIC DIGIT THREE}", "1.5h"]
)
def test_other_words_are_no_bounds(word: str) -> None:
    assert not is_bound(word)


@pytest.mark.parametrize(
    ("words", "impression"),
    [
        ([], (False, 0)),
        (["-vv", "-F", "json", "-v"], (True, 3)),
        (["--format=json", "--verbose"], (True, 1)),
        (["-Fjson"], (True, 0)),
        (["--format"], (False, 0)),
        (["--", "--format", "json", "-v"], (False, 0)),
    ],
)
def test_a_line_that_cannot_be_read_still_says_how_to_report_that(
    words: list[str], impression: tuple[bool, int]
) -> None:
    assert scan_options(words) == impression


def test_every_global_option_has_a_long_form() -> None:
    assert all(option.name in GLOBAL_OPTIONS for option in GLOBAL_OPTIONS.values())


def test_a_query_that_the_configuration_took_is_told_how_to_go_on() -> None:
    error = missing_command([("--quiet", ""), ("--cfg", "and more")])

    assert error is not None
    assert "-c (--cfg) took 'and more' as its value; `jp query` continues" in error.hint
    assert missing_command([("--cfg", "user.name=a b"), ("--cfg", "dev")]) is None

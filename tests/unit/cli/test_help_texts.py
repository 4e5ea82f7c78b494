"""What the commands say about themselves, against what they understand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import groupby

import pytest

from jp.cli.command_line.argv import extract, find
from jp.cli.command_line.commands import ROOT, Command, Group, walk
from jp.cli.command_line.help import EXAMPLES, EXIT_CODES, OPTIONS, WIDTH, root_page
from jp.cli.command_line.loading import LoadedCommand
from jp.cli.options import read_options
from jp.errors import ExitCode
from test_language import BANNED, NOT_PROSE, OPENINGS

COMMANDS = {path: LoadedCommand(command, path) for path, command in walk(ROOT, above=("jp",))}
TEXTS = {"jp": EXAMPLES} | {loaded.name: loaded.command.help or "" for loaded in COMMANDS.values()}


def examples_in(text: str) -> Iterator[tuple[str, ...]]:
    """The words after `jp` of each call of jp in the examples of a help text."""
    _, _, examples = text.partition("Examples:\n")
    for line in examples.splitlines():
        for command in (line, *re.findall(r"\$\(([^)]*)\)", line)):
            words = shlex.shlex(re.sub(r"\$\([^)]*\)", "last", command), posix=True, punctuation_chars="|<>")
            words.whitespace_split = True
            calls = [
                tuple(call) for is_call, call in groupby(words, lambda word: word not in {"|", "<", ">"}) if is_call
            ]
            yield from (call[1:] for call in calls if call[0] == "jp")


@pytest.mark.parametrize("name", TEXTS)
def test_every_example_is_understood(name: str) -> None:
    examples = list(examples_in(TEXTS[name]))

    assert examples != []
    for words in examples:
        found = find(words, ROOT)
        assert isinstance(found.node, Command), words
        loaded = COMMANDS[found.path]
        settings, arguments = extract(list(found.rest), loaded.options(), command=loaded.name)
        options = read_options((*found.settings, *settings), stdout_is_terminal=False)
        with loaded.command.make_context(loaded.name, list(arguments), obj=options):
            pass


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "jp"])
def test_a_help_text_shows_its_own_command(name: str) -> None:
    called = [" ".join(("jp", *words)) for words in examples_in(TEXTS[name])]

    assert any(call == name or call.startswith(f"{name} ") for call in called)


def test_the_exit_codes_that_are_listed_exist() -> None:
    listed = {int(number) for number in re.findall(r"\b(\d+) [a-z]", EXIT_CODES)}

    assert listed <= {int(code) for code in ExitCode}
    assert {int(code) for code in ExitCode} - listed <= {ExitCode.NOTHING_TO_DO}


PAGES = {"jp": root_page(ROOT).render()} | {loaded.name: loaded.page().render() for loaded in COMMANDS.values()}
LONGEST_SUMMARY = 60


def summaries_below(group: Group) -> Iterator[str]:
    for node in group.commands:
        yield node.summary
        if isinstance(node, Group):
            yield from summaries_below(node)


@pytest.mark.parametrize("name", PAGES)
def test_a_help_page_has_no_banned_word(name: str) -> None:
    assert [found[0] for found in BANNED.finditer(NOT_PROSE.sub(" x ", PAGES[name]))] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_help_page_fits_80_columns_and_breaks_no_word_at_a_hyphen(name: str) -> None:
    lines = [line for line in PAGES[name].splitlines() if not re.match(r" {4}\S|Usage:", line)]

    assert [line for line in lines if len(line) > WIDTH] == []
    assert re.findall(r"\S*\w-\n *\S+", PAGES[name]) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_and_of_its_options_says_what_they_do(name: tuple[str, ...]) -> None:
    loaded = COMMANDS[name]
    texts = [loaded.command.help or "", *(parameter.help or "" for parameter in loaded.parameters)]

    assert [text for text in texts if OPENINGS.match(text)] == []


def test_the_line_of_a_command_or_an_option_is_a_short_phrase() -> None:
    summaries = [*summaries_below(ROOT), *(meaning for _, meaning in OPTIONS)]

    assert [
        text for text in summaries if len(text) > LONGEST_SUMMARY or OPENINGS.match(text) or text.endswith(".")
    ] == []
    assert all(text[:1].isupper() for text in summaries)

"""What the commands say about themselves, against what they understand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import chain, groupby

from jp.cli.command_line.argv import extract, find
from jp.cli.command_line.commands import ROOT, Command, Group, walk
from jp.cli.command_line.help import EXAMPLES, EXIT_CODES, OPTIONS, WIDTH, root_page
from jp.cli.command_line.loading import LoadedCommand
from jp.cli.options import read_options
from jp.errors import ExitCode
from test_language import BANNED, NOT_PROSE, OPENINGS


@cache
def commands() -> dict[tuple[str, ...], LoadedCommand]:
    return {path: LoadedCommand(command, path) for path, command in walk(ROOT, above=("jp",))}


@cache
def help_texts() -> dict[str, str]:
    return {"jp": EXAMPLES} | {loaded.name: loaded.command.help or "" for loaded in commands().values()}


@cache
def pages() -> dict[str, str]:
    return {"jp": root_page(ROOT).render()} | {loaded.name: loaded.page().render() for loaded in commands().values()}


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


def understand(words: tuple[str, ...]) -> None:
    """Raise what `jp` raises for these words before it runs their command."""
    found = find(words, ROOT)
    assert isinstance(found.node, Command), words
    loaded = commands()[found.path]
    settings, arguments = extract(list(found.rest), loaded.options(), command=loaded.name)
    options = read_options((*found.settings, *settings), stdout_is_terminal=False)
    with loaded.command.make_context(loaded.name, list(arguments), obj=options):
        pass


def test_every_example_is_understood() -> None:
    examples = {name: list(examples_in(text)) for name, text in help_texts().items()}
    refused: list[str] = []
    for words in chain(*examples.values()):
        try:
            understand(words)
        except Exception as error:  # noqa: BLE001 - each error is one of an example, and all are listed
            refused.append(f"jp {shlex.join(words)}: {error!r}")

    assert [name for name, found in examples.items() if not found] == []
    assert refused == []


def test_a_help_text_shows_its_own_command() -> None:
    called = {name: [" ".join(("jp", *words)) for words in examples_in(text)] for name, text in help_texts().items()}
    del called["jp"]

    assert len(called) > 50
    assert [
        name for name, calls in called.items() if not any(call == name or call.startswith(f"{name} ") for call in calls)
    ] == []


def test_the_exit_codes_that_are_listed_exist() -> None:
    listed = {int(number) for number in re.findall(r"\b(\d+) [a-z]", EXIT_CODES)}

    assert listed <= {int(code) for code in ExitCode}
    assert {int(code) for code in ExitCode} - listed <= {ExitCode.NOTHING_TO_DO}


LONGEST_SUMMARY = 60


def summaries_below(group: Group) -> Iterator[str]:
    for node in group.commands:
        yield node.summary
        if isinstance(node, Group):
            yield from summaries_below(node)


def test_a_help_page_has_no_banned_word() -> None:
    found = {name: BANNED.findall(NOT_PROSE.sub(" x ", page)) for name, page in pages().items()}

    assert {name: words for name, words in found.items() if words} == {}


def test_a_help_page_fits_80_columns_and_breaks_no_word_at_a_hyphen() -> None:
    wide = [
        f"{name}: {line}"
        for name, page in pages().items()
        for line in page.splitlines()
        if len(line) > WIDTH and not re.match(r" {4}\S|Usage:", line)
    ]

    assert wide == []
    assert [
        f"{name}: {broken}" for name, page in pages().items() for broken in re.findall(r"\S*\w-\n *\S+", page)
    ] == []


def test_help_of_a_command_and_of_its_options_says_what_they_do() -> None:
    texts = [
        (loaded.name, text)
        for loaded in commands().values()
        for text in (loaded.command.help or "", *(parameter.help or "" for parameter in loaded.parameters))
    ]

    assert [(name, text) for name, text in texts if OPENINGS.match(text)] == []


def test_the_line_of_a_command_or_an_option_is_a_short_phrase() -> None:
    summaries = [*summaries_below(ROOT), *(meaning for _, meaning in OPTIONS)]

    assert [
        text for text in summaries if len(text) > LONGEST_SUMMARY or OPENINGS.match(text) or text.endswith(".")
    ] == []
    assert all(text[:1].isupper() for text in summaries)

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from jp.cli.command_line.argv import GLOBAL_OPTIONS
from jp.cli.command_line.commands import ROOT, Command, Group
from jp.cli.command_line.help import EXIT_CODES, OPTIONS, WIDTH, Page, group_page, root_page
from jp.errors import ExitCode

GROUPS = [node for node in ROOT.commands if isinstance(node, Group)]


def test_the_first_page_shows_examples_then_every_command() -> None:
    page = root_page(ROOT).render()

    assert page.index("Examples:") < page.index("Commands:") < page.index("Options")
    for node in ROOT.commands:
        assert f"\n  {', '.join((node.name, *node.aliases))} " in page
    assert max(map(len, page.splitlines())) <= WIDTH


def test_the_first_page_lists_each_form_of_each_global_option() -> None:
    words = [word.rstrip(",") for forms, _ in OPTIONS for word in forms.split() if word.startswith("-")]

    assert sorted(words) == sorted(GLOBAL_OPTIONS)


def test_the_exit_codes_on_the_first_page_exist() -> None:
    numbers = [word for word in EXIT_CODES.replace(",", " ").split() if word.isdecimal()]

    assert len(numbers) > 10
    assert {int(number) for number in numbers} <= {int(code) for code in ExitCode}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_page_of_a_group_lists_its_commands_in_eighty_columns(group: Group) -> None:
    page = group_page(group, ("jp", group.name)).render()

    assert all(f"\n  {node.name} " in page for node in group.commands)
    assert max(map(len, page.splitlines())) <= WIDTH


def test_a_group_is_described_from_the_table_alone() -> None:
    group = Group("things", "What there is", (Command("ls", "no.such.module:ls", "List things", aliases=("l",)),))

    assert group_page(group, ("jp", "things")).render() == snapshot(
        """\
Usage: jp things COMMAND [OPTIONS] [ARGUMENTS]

What there is.

Commands:
  ls, l  List things

jp things COMMAND --help explains one command; jp --help lists the options that
every command has.
"""
    )


def test_text_is_wrapped_and_indented_lines_are_not() -> None:
    page = Page(
        usage="jp do",
        text=f"First\nline.\n\n\n{'word ' * 20}\n\nExamples:\n    jp do {'x' * 90}\n",
        sections=(
            ("Empty", ()),
            ("Options", (("-x", "short"), ("--a-name-that-is-longer-than-the-column", "meaning " * 8), ("-y", ""))),
        ),
        footer="",
    )

    assert page.render() == snapshot(
        """\
Usage: jp do

First line.

word word word word word word word word word word word word word word word word
word word word word

Examples:
    jp do xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

Options:
  -x                              short
  --a-name-that-is-longer-than-the-column
                                  meaning meaning meaning meaning meaning
                                  meaning meaning meaning
  -y
"""
    )

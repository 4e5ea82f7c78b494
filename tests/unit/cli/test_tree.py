from __future__ import annotations

from functools import cache

import pytest

from jp.cli.command_line.argv import GLOBAL_OPTIONS
from jp.cli.command_line.commands import ROOT, Group, walk
from jp.cli.command_line.loading import LoadedCommand


@cache
def loaded() -> list[LoadedCommand]:
    return [LoadedCommand(command, path) for path, command in walk(ROOT, above=(ROOT.name,))]


def groups(group: Group) -> list[Group]:
    return [group, *(inner for child in group.commands if isinstance(child, Group) for inner in groups(child))]


@pytest.mark.parametrize("group", groups(ROOT), ids=lambda group: group.name)
def test_names_and_aliases_of_a_group_are_all_different(group: Group) -> None:
    names = [name for node in group.commands for name in (node.name, *node.aliases)]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("group", groups(ROOT), ids=lambda group: group.name)
def test_a_line_of_help_is_short_and_ends_without_a_full_stop_where_it_stands_in_a_list(group: Group) -> None:
    for node in group.commands:
        assert 0 < len(node.summary) <= 60
        assert not node.summary.endswith(".")


def test_a_command_has_only_parameters_that_are_read_without_pydantic() -> None:
    assert [
        f"{command.name} {name}" for command in loaded() for name, is_plain in command.plain.items() if not is_plain
    ] == []


def test_a_command_declares_no_option_that_all_commands_have() -> None:
    assert {command.name: both for command in loaded() if (both := {*command.options()} & {*GLOBAL_OPTIONS})} == {}


def test_help_for_a_command_explains_every_parameter_in_eighty_columns() -> None:
    pages = {command.name: command.page() for command in loaded()}

    assert [name for name, page in pages.items() if not page.text] == []
    assert [
        f"{name} {forms}"
        for name, page in pages.items()
        for _, rows in page.sections
        for forms, meaning in rows
        if not meaning
    ] == []
    assert [name for name, page in pages.items() if max(map(len, page.render().splitlines())) > 80] == []

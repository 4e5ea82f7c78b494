from __future__ import annotations

import pytest

from jp.cli.command_line.argv import GLOBAL_OPTIONS
from jp.cli.command_line.commands import ROOT, Command, Group, walk
from jp.cli.command_line.loading import LoadedCommand

COMMANDS = list(walk(ROOT, above=(ROOT.name,)))


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


each_command = pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])


@each_command
def test_a_command_has_only_parameters_that_are_read_without_pydantic(path: tuple[str, ...], command: Command) -> None:
    assert [name for name, is_plain in LoadedCommand(command, path).plain.items() if not is_plain] == []


@each_command
def test_a_command_declares_no_option_that_all_commands_have(path: tuple[str, ...], command: Command) -> None:
    assert set(LoadedCommand(command, path).options()) & set(GLOBAL_OPTIONS) == set()


@each_command
def test_help_for_a_command_explains_every_parameter_in_eighty_columns(path: tuple[str, ...], command: Command) -> None:
    page = LoadedCommand(command, path).page()

    assert page.text
    assert all(meaning for _, rows in page.sections for _, meaning in rows)
    assert max(map(len, page.render().splitlines())) <= 80

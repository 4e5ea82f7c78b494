from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from jp.cli.command_line.commands import Command, walk
from jp.cli.command_line.loading import LoadedCommand, build
from jp.cli.options import GlobalOptions
from jp.errors import ExitCode, UsageError
from trial import ROOT

COMMANDS = {command.name: LoadedCommand(command, path) for path, command in walk(ROOT, above=("jp",))}
SHOW = COMMANDS["show"]


def test_help_is_made_from_what_the_function_declares() -> None:
    assert SHOW.page().render() == snapshot(
        """\
Usage: jp show [OPTIONS] TARGET…

Show what was understood.

A second paragraph that is long enough to be wrapped, because help has to be
readable in eighty columns and not in more than that.

Examples:
    jp show here
    jp show here --limit 3

Arguments:
  TARGET…  What to show.

Options:
  -n, --limit N         At most N. [default: 10]
  --label K=V           Repeatable.
  -t, --tmp[=DURATION]  Expire.
  --from[=BOUND]        Where to begin.

jp --help lists the options that every command has.
"""
    )


def test_how_options_are_read_comes_from_what_the_function_declares() -> None:
    options = {form: (option.name, option.takes, option.bare) for form, option in SHOW.options().items()}
    flags = {form: option.takes for form, option in COMMANDS["style"].options().items()}

    assert options == {
        "-n": ("--limit", "value", ""),
        "--limit": ("--limit", "value", ""),
        "--label": ("--label", "value", ""),
        "-t": ("--tmp", "optional", "1d"),
        "--tmp": ("--tmp", "optional", "1d"),
        "--from": ("--from", "bound", "last"),
    }
    assert flags == {"--ratio": "value", "--raw": "flag", "--mode": "value"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing argument 'TARGET'"),
        (["a", "--limit=x"], "invalid value for '-n' / '--limit': 'x' is not a whole number"),
        (["a", "--limit=100"], "invalid value for '-n' / '--limit': '100' is more than 99"),
    ],
)
def test_arguments_that_are_not_the_commands_are_usage_errors(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        SHOW.invoke(arguments, GlobalOptions())

    assert caught.value.message == message
    assert caught.value.hint == "usage: jp show [OPTIONS] TARGET…; see jp show --help"


def test_an_argument_too_many_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unexpected"):
        COMMANDS["fail"].invoke(["told", "more"], GlobalOptions())


@pytest.mark.parametrize(("how", "code"), [("nothing", ExitCode.NOTHING_TO_DO)])
def test_a_command_returns_its_exit_code(how: str, code: ExitCode) -> None:
    assert COMMANDS["fail"].invoke([how], GlobalOptions()) == code


def test_a_command_that_returns_nothing_has_succeeded(capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMANDS["style"].invoke(["--raw", "--ratio=0.5"], GlobalOptions()) == ExitCode.OK
    assert capsys.readouterr().out == "0.5 True a\n"


def test_a_command_without_parameters_can_be_built() -> None:
    received: list[GlobalOptions] = []
    with build(received.append).make_context("jp", [], obj=GlobalOptions(quiet=True)) as context:
        context.command.invoke(context)

    assert received == [GlobalOptions(quiet=True)]


def test_a_row_that_names_no_function_is_a_defect() -> None:
    with pytest.raises(AttributeError):
        LoadedCommand(Command("x", "trial:missing", "No such function"), ("jp", "x"))

from __future__ import annotations

import pytest
from msgspec.structs import replace

import transcripts
from jp.context.summary_source import MOST_COMMANDS, Command, Ledger, command_in, ledger_of, runs_command
from jp.context.types import Facts, Message, Meta
from summaries import ran, touched, user


def test_files_and_commands_are_those_that_tools_recorded() -> None:
    found = ledger_of((
        *touched("read", "src/a.py"),
        *touched("read", "README"),
        *touched("edit", "src/a.py"),
        *touched("search", "src"),
        *ran("make", "ok"),
        *ran("make test", "no", exit_code=2, error="1 failed"),
        Message(role="tool", content="src/unknown.py", call_id="x"),
        user("edit src/b.py"),
    ))

    assert found == Ledger(
        modified=("src/a.py",),
        read=("README",),
        commands=(
            Command(command="make", outcome="succeeded"),
            Command(command="make test", outcome="exit 2: 1 failed"),
        ),
    )


@pytest.mark.parametrize(
    ("facts", "is_error", "outcome"),
    [
        (Facts(exit_code=0), False, "succeeded"),
        (Facts(exit_code=141), False, "succeeded"),
        (Facts(exit_code=1), False, "exit 1"),
        (Facts(first_error="boom"), True, "failed: boom"),
        (Facts(), False, "ended"),
    ],
)
def test_how_a_command_ended(*, facts: Facts, is_error: bool, outcome: str) -> None:
    call, result = ran("make", "out")
    ended = replace(result, is_error=is_error, meta=Meta(facts=replace(facts, kind="terminal")))

    assert ledger_of((call, ended)).commands == (Command(command="make", outcome=outcome),)


def test_a_file_that_could_not_be_changed_was_not() -> None:
    call, result = touched("write", "a.py")

    assert ledger_of((call, replace(result, is_error=True))) == Ledger()


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ('{"command": "ls -l"}', "ls -l"),
        ('{"cmd": ["git", "log"]}', "git log"),
        ('{"script": "x = 1"}', "x = 1"),
        ('{"path": "a"}', '{"path": "a"}'),
        ('{"command": 3}', '{"command": 3}'),
        ("ls", "ls"),
        ("", ""),
        ("\ud800", "?"),
        ("[" * 100_000, "[" * 199 + "…"),
        (f'{{"command": "KEY={transcripts.SECRET} make"}}', "KEY=[redacted:"),
    ],
)
def test_the_command_of_a_call(arguments: str, command: str) -> None:
    assert command_in(arguments).startswith(command)
    assert transcripts.SECRET not in command_in(arguments)


def test_of_too_much_the_newest_stays() -> None:
    rounds = [(*touched("read", f"r{n}"), *touched("write", f"w{n % 100}"), *ran(f"c{n}", "ok")) for n in range(200)]

    found = ledger_of([row for one in rounds for row in one])

    assert found.read == tuple(f"r{n}" for n in range(120, 200))
    assert found.modified == tuple(f"w{n}" for n in range(20, 100))
    assert [each.command for each in found.commands] == [f"c{n}" for n in range(200 - MOST_COMMANDS, 200)]


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [({"command": "make"}, True), ({"cmd": ["make"]}, True), ({"path": "a"}, False), ("make", False)],
)
def test_a_call_with_a_command_has_something_run(arguments: dict[str, object] | str, *, runs: bool) -> None:
    assert runs_command(arguments) == runs

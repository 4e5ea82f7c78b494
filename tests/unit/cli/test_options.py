from __future__ import annotations

import pytest

from jp.cli.options import GlobalOptions, read_options, require_persistence
from jp.errors import UsageError


def test_without_settings_everything_has_its_default() -> None:
    assert read_options((), stdout_is_terminal=False) == GlobalOptions()


def test_settings_are_collected_counted_or_the_last_wins() -> None:
    settings = (
        ("--cfg", "a=1"),
        ("--verbose", ""),
        ("--format", "json"),
        ("--quiet", ""),
        ("--verbose", ""),
        ("--format", "text"),
        ("--cfg", "fragment"),
        ("--workspace", "there"),
        ("--no-persist", ""),
        ("--color", "never"),
        ("--width", "60"),
    )

    assert read_options(settings, stdout_is_terminal=True) == GlobalOptions(
        config=("a=1", "fragment"),
        format="text",
        quiet=True,
        verbosity=2,
        workspace="there",
        persist=False,
        color="never",
        width=60,
    )


@pytest.mark.parametrize(("is_terminal", "expected"), [(True, "pretty"), (False, "text")])
@pytest.mark.parametrize("settings", [(), (("--format", "auto"),)])
def test_the_automatic_format_looks_at_stdout(
    settings: tuple[tuple[str, str], ...], *, is_terminal: bool, expected: str
) -> None:
    assert read_options(settings, stdout_is_terminal=is_terminal).format == expected


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("--format", "xml", "use one of auto, text, pretty, json"),
        ("--color", "", "use one of auto, always, never"),
        ("--width", "0", "use a number of columns, such as --width 80"),
        ("--width", "-3", "use a number of columns, such as --width 80"),
        ("--width", "wide", "use a number of columns, such as --width 80"),
    ],
)
def test_a_value_that_is_not_allowed_is_a_usage_error(name: str, value: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(((name, value),), stdout_is_terminal=False)

    assert (caught.value.message, caught.value.hint) == (f"{name} cannot be {value!r}", hint)


def test_a_command_that_only_writes_refuses_to_write_nothing() -> None:
    require_persistence(GlobalOptions(), "jp init")

    with pytest.raises(UsageError) as caught:
        require_persistence(GlobalOptions(persist=False), "jp init")

    assert caught.value.message == "--no-persist leaves nothing for `jp init` to do"

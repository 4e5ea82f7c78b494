from __future__ import annotations

import io
import os
import termios

import pytest

from jp.errors import ConfigurationError
from jp.render.theme import (
    ColorChoice,
    Look,
    Preferences,
    check_code_theme,
    columns_of,
    display_width,
    is_live,
    is_terminal,
    look_at,
    shows_unicode,
    use_color,
)


@pytest.mark.parametrize(
    ("choice", "environment", "is_a_terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_the_flag_beats_no_color_beats_force_color_beats_the_terminal(
    choice: ColorChoice, environment: dict[str, str], *, is_a_terminal: bool, expected: bool
) -> None:
    assert use_color(choice, environment, is_terminal=is_a_terminal) is expected


@pytest.mark.parametrize(
    ("requested", "environment", "columns", "expected"),
    [
        (60, {"COLUMNS": "70"}, 90, 60),
        (None, {"COLUMNS": "70"}, 90, 70),
        (None, {"COLUMNS": "0"}, 90, 90),
        (None, {"COLUMNS": "wide"}, 90, 90),
        (None, {}, 90, 90),
        (None, {}, None, 80),
        (None, {}, 0, 80),
        (5, {}, 90, 20),
    ],
)
def test_the_width_is_asked_for_or_declared_or_the_terminals(
    requested: int | None, environment: dict[str, str], columns: int | None, expected: int
) -> None:
    assert display_width(requested, environment, columns=columns) == expected


def test_running_text_is_bounded_by_the_wrap_width_and_by_the_terminal() -> None:
    assert Look(width=200, wrap=100).text_width == 100
    assert Look(width=60, wrap=100).text_width == 60
    assert Look(width=200).text_width == 200


def test_what_is_no_terminal_has_no_color_and_borrows_its_width() -> None:
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal, os.fdopen(master, "rb"):
        termios.tcsetwinsize(slave, (24, 132))

        look = look_at(io.StringIO(), Preferences(wrap=100), {"COLORTERM": "truecolor"}, siblings=[None, terminal])

        assert look == Look(width=132, wrap=100, color=False, truecolor=True)
        assert look_at(terminal, Preferences(), {}).color
        assert is_live(terminal, {"TERM": "xterm"})
        assert not is_live(terminal, {"TERM": "dumb"})
        assert not is_live(terminal, {})


def test_a_closed_stream_is_nothing() -> None:
    stream = io.StringIO()
    stream.close()

    assert not is_terminal(stream)
    assert not is_terminal(None)
    assert columns_of(stream, None) is None


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", True), ("UTF_8", True), ("ascii", False)])
def test_only_utf_streams_show_unicode(encoding: str, *, expected: bool) -> None:
    assert shows_unicode(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) is expected
    assert shows_unicode(None)


@pytest.mark.parametrize("theme", ["ansi", "ansi_dark", "ansi_light", "monokai", "default"])
def test_known_themes_are_accepted(theme: str) -> None:
    check_code_theme(theme)


def test_an_unknown_theme_is_an_error_that_lists_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="'monochrome' is no theme") as caught:
        check_code_theme("monochrome")

    assert "monokai" in caught.value.hint

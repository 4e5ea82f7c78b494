from __future__ import annotations

import pytest

from jp.errors import ConfigurationError
from jp.render.code_theme import TokenKind, check_code_theme, painter
from jp.render.theme import Look


@pytest.mark.parametrize(
    ("kind", "style"),
    [
        (("Keyword",), "35"),
        (("Keyword", "Constant"), "36"),
        (("Keyword", "Declaration"), "35"),
        (("Literal", "String", "Double"), "32"),
        (("Name", "Other"), ""),
        ((), ""),
    ],
)
def test_the_nearest_general_kind_decides(kind: TokenKind, style: str) -> None:
    assert painter(Look(colour=True))(kind) == style


@pytest.mark.parametrize("theme", ["ansi", "ansi_dark", "ansi_light", "monokai", "default"])
def test_known_themes_are_accepted(theme: str) -> None:
    check_code_theme(theme)


def test_an_unknown_theme_is_an_error_that_lists_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="'monochrome' is no theme") as caught:
        check_code_theme("monochrome")

    assert "monokai" in caught.value.hint


def test_a_pygments_style_is_shown_in_as_many_colours_as_there_are() -> None:
    many = painter(Look(colour=True, code_theme="monokai", truecolor=True))
    few = painter(Look(colour=True, code_theme="monokai"))

    assert many(("Keyword",)) == "38;2;102;217;239"
    assert few(("Keyword",)) == "38;5;81"
    assert few(("Keyword", "NotInAnyStyle")) == few(("Keyword",))
    assert painter(Look(colour=True, code_theme="default"))(("Name", "Class")).startswith("1;38;5;")
    assert painter(Look(colour=True, code_theme="bw"))(("Name",)) == ""

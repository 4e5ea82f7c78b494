from __future__ import annotations

from jp.render.preview import preview_text

DIFF = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"


def test_a_diff_has_colours_where_colours_are_shown() -> None:
    assert preview_text(DIFF, colour=False) == DIFF
    assert preview_text(DIFF, colour=True) == (
        "\x1b[1m--- a\x1b[0m\n"
        "\x1b[1m+++ b\x1b[0m\n"
        "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n"
        "\x1b[31m-old\x1b[0m\n"
        "\x1b[32m+new\x1b[0m\n"
        " same\n"
    )  # fmt: skip


def test_what_is_no_diff_has_none_and_nothing_steers_the_terminal() -> None:
    assert preview_text("+ rm -rf /\x1b[2J\n- x", colour=True) == "+ rm -rf /\n- x\n"
    assert preview_text("", colour=True) == ""


def test_of_a_long_one_the_first_lines_are_shown_and_how_many_there_are() -> None:
    assert preview_text("a\nb\nc\nd", colour=False, most_lines=2) == "a\nb\n(2 more lines)\n"
    assert preview_text("a\nb", colour=False, most_lines=2) == "a\nb\n"

from __future__ import annotations

import re
from pathlib import Path

import pytest

from results import (
    QUOTE,
    ROOT,
    Figures,
    Report,
    keep_results,
    pages,
    quoted,
    read_results,
    rewrite_pages,
    rounded,
    table_lines,
)
from run import SECTIONS
from samples import exponent

PAGE = "It takes <!-- bench:log.append us:.0f -->30<!-- /bench --> us.\n\n<!-- bench:log.table --><!-- /bench -->\n"
FIGURES: Figures = {"append us": 41.5, "table": "| a |\n| - |"}


def test_a_figure_is_written_between_its_comments_and_a_table_in_a_paragraph_of_its_own() -> None:
    once = quoted(PAGE, {"log": FIGURES})

    assert "It takes <!-- bench:log.append us:.0f -->42<!-- /bench --> us." in once
    assert "<!-- bench:log.table -->\n\n| a |\n| - |\n\n<!-- /bench -->" in once
    assert quoted(once, {"log": FIGURES}) == once


def test_a_figure_that_is_not_measured_cannot_be_quoted() -> None:
    with pytest.raises(SystemExit, match=r"a page quotes 'log.append us', which `make bench` does not measure"):
        quoted(PAGE, {"log": {}})


def test_a_section_that_measured_nothing_keeps_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    keep_results({"log": FIGURES, "turns": {"connections": 21}}, path)

    assert keep_results({"log": {"append us": 5.0}, "turns": {}}, path) == read_results(path)
    assert read_results(path) == {"log": {"append us": 5.0}, "turns": {"connections": 21}}


def test_pages_are_rewritten_with_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for page in (tmp_path / "README.md", tmp_path / "docs" / "speed.md"):
        page.write_text(PAGE, encoding="utf-8")
    rewrite_pages({"log": FIGURES}, tmp_path)

    assert [page.read_text(encoding="utf-8") for page in pages(tmp_path)] == [quoted(PAGE, {"log": FIGURES})] * 2


def test_figures_have_four_digits() -> None:
    assert rounded({"a": 1234.567, "b": 0.000123456, "c": "1234.567"}) == {"a": 1235, "b": 0.0001235, "c": "1234.567"}


def test_columns_of_a_table_are_as_wide_as_their_widest_cell() -> None:
    assert table_lines(("", "ms"), [("query", "1"), ("ls", "100")]) == [
        "|       |  ms |",
        "| ----- | --: |",
        "| query |   1 |",
        "| ls    | 100 |",
    ]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_an_exponent_is_the_slope_between_logarithms(power: float) -> None:
    assert exponent({size: 3 * size**power for size in (100, 200, 400)}) == pytest.approx(power)


def test_pages_say_what_the_last_run_has_measured() -> None:
    results = read_results()
    assert results.keys() - {"run"} <= SECTIONS.keys()

    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert text == quoted(text, results), f"{page.name}: run `make bench`"


def test_what_was_measured_names_no_path_of_the_machine() -> None:
    values = [value for figures in read_results().values() for value in figures.values()]

    assert values
    assert not [value for value in values if isinstance(value, str) and re.search(r"(?<!\w)/\w", value)]


@pytest.mark.parametrize(("page", "heading"), [("README.md", "## Speed"), ("docs/speed.md", "# Speed")])
def test_times_and_ratios_are_quoted_and_never_written_by_hand(page: str, heading: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text[text.index(f"{heading}\n") :].partition("\n## Status")[0]

    assert QUOTE.search(section)
    by_hand = QUOTE.sub("", section)
    assert not re.findall(r"\d[\d.,]*\s*(?:ms|s|[µμ]s|MB|times)\b", by_hand)
    assert not re.findall(r"\b(?:an? (?:half|third|quarter|fifth|sixth|seventh|eighth)|twice the)\b", by_hand)


def test_a_report_keeps_its_tables_for_pages() -> None:
    told: list[str] = []
    report = Report(told.append)
    report("now")
    lines = list(report.table("table", ("a",), [("b",)]))

    assert told == ["now"]
    assert report.figures == {"table": "\n".join(lines)}

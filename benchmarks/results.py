"""Figures of the last `make bench`, and the pages that quote them.

A page quotes a figure between two comments, `<!-- bench:SECTION.NAME:FORMAT -->` and `<!-- /bench -->`; what is
between them is written anew whenever all figures are measured. The format is that of a Python format string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
QUOTE = re.compile(
    r"(?P<start><!-- bench:(?P<name>[\w. -]+?)(?::(?P<format>[^>\s]+))? -->)(?P<old>.*?)(?P<end><!-- /bench -->)",
    re.DOTALL,
)

Figures = dict[str, float | str]
"""Figures by their names; a text is a table for a page, or words."""


class Report:
    """What a section has found for pages, and a line at the terminal about what is measured now."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.figures: Figures = {}
        self._progress = progress

    def __call__(self, text: str) -> None:
        """Tell what is measured now."""
        self._progress(text)

    def table(self, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield the lines of a table that pages can quote under this name."""
        lines = table_lines(head, rows)
        self.figures[name] = "\n".join(lines)
        yield from lines


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown; its first column is text, and the others are numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join([first, *others])} |"

    return [line(head), line(rule), *map(line, rows)]


def read_results(path: Path = RESULTS) -> dict[str, Figures]:
    """Return the figures of each section."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep_results(found: Mapping[str, Figures], path: Path = RESULTS) -> dict[str, Figures]:
    """Write the figures to the file; sections without any, which had nothing to measure, keep those that they had."""
    kept = read_results(path) | {section: rounded(figures) for section, figures in found.items() if figures}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    return kept


def rounded(figures: Figures) -> Figures:
    """Return the figures with four significant digits."""
    return {name: value if isinstance(value, str) else float(f"{value:.4g}") for name, value in figures.items()}


def quoted(text: str, results: Mapping[str, Figures]) -> str:
    """Return the page with every figure as it was measured last."""

    def written(match: re.Match[str]) -> str:
        section, _, name = match["name"].partition(".")
        try:
            value = results[section][name]
        except KeyError:
            raise SystemExit(f"a page quotes {match['name']!r}, which `make bench` does not measure") from None
        shown = format(value, match["format"] or "")
        return f"{match['start']}{_framed(shown)}{match['end']}"

    return QUOTE.sub(written, text)


def _framed(shown: str) -> str:
    return f"\n\n{shown}\n\n" if "\n" in shown else shown


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages that may quote figures."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def rewrite_pages(results: Mapping[str, Figures], root: Path = ROOT) -> None:
    """Write all figures into the pages anew."""
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        if (new := quoted(text, results)) != text:
            page.write_text(new, encoding="utf-8")

from __future__ import annotations

from jp.tool.files.read_tools import LONGEST, MOST_COUNTED, MOST_LINES, MOST_SHOWN, SearchReport, lines_of


def test_a_byte_order_mark_and_carriage_returns_are_not_searched() -> None:
    assert lines_of("\ufeffa\r\nb") == ["a", "b"]
    assert lines_of("a\n\n") == ["a", ""]
    assert lines_of("a\r") == ["a\r"]
    assert lines_of("") == []


def test_lines_are_named_by_file_and_number() -> None:
    report = SearchReport(context=0)

    report.add("a", ["one", "two"], [2])
    report.add("empty", [], [])
    report.add("b", ["three"], [1])

    assert report.text() == "a:2:two\nb:1:three"
    assert report.count == 2


def test_context_is_shown_once_and_apart() -> None:
    report = SearchReport(context=1)

    report.add("a", [*map(str, range(1, 11))], [1, 3, 4, 9])
    report.add("b", ["x"], [1])

    assert report.text().split("\n") == [
        *("a:1:1", "a-2-2", "a:3:3", "a:4:4", "a-5-5"),
        "--",
        *("a-8-8", "a:9:9", "a-10-10"),
        "--",
        "b:1:x",
    ]


def test_nothing_found_is_said() -> None:
    report = SearchReport(context=0)

    report.add("a", ["one"], [])
    report.leave_out()

    assert report.text() == "No matches found.\n… 1 files were not searched: too large, not UTF-8, or not readable"


def test_much_is_bounded_and_counted() -> None:
    report = SearchReport(context=0)
    lines = MOST_SHOWN + 1

    report.add("a", ["x"] * lines, range(1, lines + 1))
    report.add("b", ["x"], [1])

    shown = report.text().split("\n")
    assert len(shown) == MOST_SHOWN + 1
    assert shown[-1] == "… the first 200 of 202 matching lines; narrow the pattern or the paths"
    assert report.count == lines + 1


def test_a_match_that_is_only_shown_as_context_is_marked_as_a_match() -> None:
    report = SearchReport(context=1)

    report.add("a", ["x"] * (MOST_SHOWN + 1), range(1, MOST_SHOWN + 2))

    assert report.text().split("\n")[MOST_SHOWN] == f"a:{MOST_SHOWN + 1}:x"


def test_more_than_is_counted_is_said() -> None:
    report = SearchReport(context=0)

    report.add("a", ["x"] * (MOST_COUNTED + 1), range(1, MOST_COUNTED + 2))

    assert report.text().endswith("… the first 200 of more than 5,000 matching lines; narrow the pattern or the paths")


def test_much_context_is_omitted() -> None:
    report = SearchReport(context=10)
    lines = [str(number) for number in range(MOST_LINES * 2)]

    report.add("a", lines, range(11, len(lines), 21))

    shown = report.text().split("\n")
    assert all(line.startswith("a:") for line in shown[:-1])
    assert shown[-1] == "… shown without context, because there is much of it"


def test_a_long_line_is_cut() -> None:
    report = SearchReport(context=0)

    report.add("a", ["x" * (LONGEST + 1234)], [1])

    assert report.text() == f"a:1:{'x' * LONGEST} [… 1,234 more characters]"

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gate import (
    LINEAR,
    Budget,
    Growth,
    Limit,
    Stage,
    Steps,
    grown,
    growth_lines,
    judged,
    lowered,
    probed,
    read_budget,
    write_budget,
)

BUDGET = Budget("3.11", {"modules": Limit(1000, "a client needs many"), "patterns": Limit(10)})


@pytest.mark.parametrize(("exponent", "ok"), [(1, True), (1.5, False), (2, False)])
def test_growth_is_judged_without_what_the_smallest_size_takes(exponent: float, *, ok: bool) -> None:
    def steps(size: int) -> Steps:
        return Counter({"jp.start": 1_000_000, "jp.scan": int(10 * size**exponent)})

    found = grown(Growth("a turn", 100, LINEAR, steps, base=0))

    assert found.ok == ok
    named = [line.split()[0] for line in growth_lines(found)][1:]
    assert named == ([] if ok else ["FAILED:", "jp.scan"])


def test_a_figure_above_its_budget_fails_with_what_to_do() -> None:
    lines, ok = judged({"modules": 1001, "patterns": 10}, BUDGET)

    assert not ok
    assert "  FAILED: 1 more than 1,000: do less, or raise `most` in budget.json and give a `reason`" in lines


def test_a_figure_without_a_budget_fails() -> None:
    lines, ok = judged({"stats": 1}, BUDGET)

    assert not ok
    assert "budget.json has no entry 'stats'" in lines[-1]


@pytest.mark.parametrize(("figure", "asked"), [(1000, False), (951, False), (949, True)])
def test_a_figure_that_fell_by_more_than_a_twentieth_asks_for_a_lower_budget(figure: int, *, asked: bool) -> None:
    lines, ok = judged({"modules": figure}, BUDGET)

    assert ok
    assert (lines[1:] == [f"  lower the budget: `make bench-gate LOWER=1` writes {figure} in place of 1,000"]) == asked


def test_a_lowered_budget_keeps_reasons_and_never_rises(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    write_budget(lowered(BUDGET, {"modules": 901, "patterns": 11, "calls": 123_456}), path)

    assert read_budget(path) == Budget(
        "3.11", {"modules": Limit(901, "a client needs many"), "patterns": Limit(10), "calls": Limit(124_000)}
    )


def test_the_figures_of_a_query_are_those_of_the_budget(tmp_path: Path) -> None:
    figures = Stage(tmp_path).path_figures()

    assert figures.keys() < read_budget().limits.keys()
    assert all(figure > 0 for figure in figures.values())


def test_steps_grow_with_what_a_turn_does(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    assert stage.cycles(0).total() < stage.cycles(2).total()
    assert stage.turn([], "one request")[1] == 1


def test_a_command_that_fails_is_not_counted(tmp_path: Path) -> None:
    home = Stage(tmp_path).home("failing")

    with pytest.raises(SystemExit, match="jp nonsense: exit code 2"):
        probed(home, ("nonsense",))

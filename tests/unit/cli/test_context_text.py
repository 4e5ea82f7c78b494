from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from jp.app.compaction.preview import LastCycle, Tokens
from jp.app.reports import ContextItem, ContextReport, of_breakdown
from jp.cli.conversation.context import report_parts
from jp.context.breakdown import Breakdown, Measurement, Part, Room, break_down
from jp.context.budget import Item
from jp.context.cache_hints import Volatile
from jp.render.tables import plain_text
from jp.render.theme import Look

PARTS = (
    Part(bucket="system_prompt", tokens=400),
    Part(bucket="tool_definitions", tokens=1_200),
    Part(bucket="memory", tokens=4, is_static=False),
)
ITEMS = (
    Item(kind="user", tokens=300, size=1, message=0),
    Item(kind="results", tokens=6_000, size=1, message=1, tool="run"),
    Item(kind="results", tokens=1_500, size=1, message=2, tool="made\x1b[31mup"),
)
LAST = LastCycle(
    turn=2,
    cycle=1,
    model="p/m",
    usage=Tokens(input=1_000, output=0, cache_read=8_000, cache_write=0, reasoning=0),
    reported=9_000,
    estimated=8_000,
    ratio=1.125,
    added=404,
)
LARGE = ContextItem(
    kind="results",
    turn=2,
    tokens=6_000,
    estimated=5_000,
    bytes=1,
    handle="0123abcd",
    tool="run",
    source="src/" + "long/" * 20,
)


def report(breakdown: Breakdown, *, model: str = "p/m", last: LastCycle | None = LAST) -> ContextReport:
    return replace(of_breakdown(breakdown, model=model), last_cycle=last)


REPORT = replace(
    report(
        break_down(
            PARTS,
            ITEMS,
            known_tools=["run"],
            room=Room(window=20_000, reserved=4_000, threshold=12_800),
            measured=Measurement(tokens=9_000, added=404),
        )
    ),
    largest=(LARGE, replace(LARGE, kind="user", handle=None, tool=None, source=None)),
    volatile=(Volatile(part=0, kind="timestamp", count=2, first=3, sample="00:00:00"),),
)

TEXT = """\
model      p/m
window     20,000 tokens, 4,000 of them for the answer
used       about 9,404 tokens, 47% of the window
           9,000 of them reported, the rest estimated
threshold  12,800 tokens: 3,396 to go
free       6,596 tokens
reported   9,000 tokens went in with turn 2, cycle 1, 8,000 of them from the cache
           8,000 were estimated: 1.12 reported for one estimated

                         tokens share
system prompt               400    4%  #
tool definitions          1,200   13%  #####
memory                        4   <1%  #
conversation              7,800   83%  ##################################
  tool results            7,500   80%  ################################
    run                   6,000   64%  ##########################
    ?                     1,500   16%  ######
  your messages             300    3%  #

handle    tokens  turn  kind           of
0123abcd   6,000     2  tool results   run: src/long/long/long/long/long/long/l…
-          6,000     2  your messages  -

where this changes in the system prompt, the provider's cache is missed:
  part 0: 2 times, such as 00:00:00
"""


def shown(report: ContextReport = REPORT, *, width: int = 80, unicode: bool = True, color: bool = False) -> str:
    return plain_text(report_parts(report, Look(width=width, unicode=unicode, color=color)), width=width) + "\n"


def test_a_report_is_read_at_a_glance() -> None:
    assert shown(unicode=False) == TEXT


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_bars_fit_and_colors_change_nothing_else(width: int, *, unicode: bool) -> None:
    plain = shown(width=width, unicode=unicode)
    colored = shown(width=width, unicode=unicode, color=True)

    bars = plain.split("\n\n")[1].splitlines()
    assert max(map(len, bars)) <= max(width, 37)
    assert ("\x1b[36m" in colored) is (width > 39)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    assert plain.isascii() is (not unicode and width > 80)


def test_bars_are_as_long_as_their_shares_and_never_nothing() -> None:
    lines = {line[:20].strip(): line[39:] for line in shown(width=139).splitlines() if "%  " in line}

    assert lines["conversation"] == "█" * 82 + "▉"
    assert lines["memory"] == "▏"
    assert len(lines["run"]) == 64
    tiny = report(break_down([Part(bucket="rules", tokens=1)], [replace(ITEMS[1], tokens=99_999)]))
    assert "rules                         1   <1%  ▏\n" in shown(tiny)


def test_of_many_tools_the_smaller_ones_are_one() -> None:
    items = [Item(kind="results", tokens=100 - at, size=1, message=at, tool=f"t{at}") for at in range(12)]
    breakdown = break_down((), items, known_tools=[item.tool for item in items])

    text = shown(report(breakdown))

    assert "    t7 " in text
    assert "    t8 " not in text
    assert f"    4 others{362:>19}" in text


def test_what_is_not_known_is_said() -> None:
    bare = report(break_down((), ()), model="not known", last=None)

    assert shown(bare) == (
        "model      not known\n"
        "window     not known\n"
        "used       about 0 tokens\n"
        "           estimated\n"
        "\n"
        "                         tokens share\n"
        "conversation                  0    0%\n"
    )


def test_what_is_over_the_threshold_or_unaccounted_for_is_said() -> None:
    breakdown = break_down((), (), room=Room(window=20_000, threshold=100), measured=Measurement(tokens=150))
    text = shown(report(breakdown, last=replace(LAST, usage=replace(LAST.usage, cache_read=0))))

    assert "window     20,000 tokens\nused       150 tokens, 1% of the window\n           reported\n" in text
    assert "threshold  100 tokens: passed by 50\n" in text
    assert "not accounted for           150  100%" in text
    assert "cycle 1\n" in text

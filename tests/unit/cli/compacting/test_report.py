"""How a preview and what was done read."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from jp.app.compaction.compact import (
    CompactionResult,
    made_sentence,
    overlay_text,
    overlay_value,
    preview_parts,
    preview_value,
    turns_text,
)
from jp.app.compaction.order import policies_text
from jp.app.compaction.preview import Preview, SummaryPreview
from jp.cli.terminal.wording import worded
from jp.compaction.fact_lines import tool_policy
from jp.compaction.large_items import LargeItem
from jp.compaction.overlays import Range
from jp.compaction.planning import Effect
from jp.context.budget import EditCost
from jp.conversation.entries import Compaction, SummaryPolicy, ToolCallPolicy
from jp.render.tables import plain_text

PLAIN = Compaction(from_turn=1, to_turn=3, at="2026-01-01T00:00:00Z")
ITEM = LargeItem(kind="results", turn=1, tokens=900, estimated=900, size=3600, handle="0123abcd", tool="run", source="")
EFFECT = Effect(before=2000, after=500, untouched=100, largest=(ITEM, replace(ITEM, kind="reasoning", handle=None)))
COST = EditCost(rewritten=400, saved=1500, next_request=0.01, each_later=0.005, break_even=3)
PREVIEW = Preview(
    model="anthropic/x",
    turns=5,
    profile="default",
    overlays=(replace(PLAIN, reasoning="strip"),),
    effect=EFFECT,
    summary=None,
    cost=COST,
    is_warm=True,
)
SUMMARY = SummaryPreview(
    turns=Range(first=0, last=0),
    model="anthropic/x",
    before=50,
    replaced=900,
    expected=200,
    at_most=300,
    input=1200,
    calls=2,
    usd=0.25,
)


@pytest.mark.parametrize(
    ("overlay", "text"),
    [
        (replace(PLAIN, reasoning="strip"), "reasoning"),
        (replace(PLAIN, tool_calls=tool_policy("strip")), "tools"),
        (replace(PLAIN, tool_calls=tool_policy("strip-requests")), "tool requests"),
        (replace(PLAIN, tool_calls=tool_policy("strip-responses")), "tool responses"),
        (replace(PLAIN, tool_calls=tool_policy("omit")), "tools omitted"),
        (replace(PLAIN, tool_calls=ToolCallPolicy(policy="strip")), "tools"),
        (replace(PLAIN, reasoning="strip", tool_calls=tool_policy("omit")), "reasoning + tools omitted"),
        (replace(PLAIN, reasoning="strip", resources="superseded"), "reasoning + superseded resources"),
        (replace(PLAIN, reasoning="strip", summary=SummaryPolicy(text="s")), "summary"),
        (PLAIN, "nothing"),
    ],
)
def test_an_overlay_is_named_after_what_it_does(overlay: Compaction, text: str) -> None:
    assert policies_text(overlay) == text


def test_turns_and_overlays_are_told_in_a_line() -> None:
    assert (turns_text(3, 3), turns_text(3, 5)) == ("turn 3", "turns 3 to 5")
    assert overlay_text(replace(PLAIN, source="auto")) == "turns 1 to 3: nothing (2026-01-01T00:00:00Z, automatic)"


def test_an_overlay_is_data_without_what_only_its_summary_knows() -> None:
    policy = SummaryPolicy(text="What happened.", model="a/b", state={"account": {}})

    assert overlay_value(replace(PLAIN, summary=policy))["summary"] == {"model": "a/b", "text": "What happened."}


def test_what_was_done_is_told_with_what_undoes_it() -> None:
    made = CompactionResult(overlays=(PLAIN, replace(PLAIN, from_turn=4, to_turn=4)), effect=EFFECT)

    assert worded(made_sentence(made, "jp-c1")) == (
        "compacted turns 1 to 3, turn 4: about 2,000 tokens before, 500 now; undo it with `jp conversation undo jp-c1`"
    )
    assert made_sentence(CompactionResult(overlays=(), effect=EFFECT), "jp-c1") == "nothing to compact"


def test_a_preview_says_what_would_leave_and_what_that_costs() -> None:
    assert plain_text(preview_parts(PREVIEW)) == snapshot("""\
would compact turns 1 to 3: reasoning
tokens: about 2,000 now, 500 after it (75 % fewer)
cost: the cache is warm; the next request costs $0.0100 more, each later one $0.0050 less: it pays after 3 requests

freed  turn  what       handle    of
  900     1  result     0123abcd  run
  900     1  reasoning  -         run
 -300     -  the rest   -         -\
""")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("file:///shed/src/a%20b.py", "run: src/a b.py"),
        ("file:///shed-2/a.py", "run: file:///shed-2/a.py"),
        ("https://a.example/x%20y", "run: https://a.example/x%20y"),
    ],
)
def test_what_lies_in_the_workspace_is_named_as_it_lies_there(source: str, shown: str) -> None:
    preview = replace(PREVIEW, effect=replace(EFFECT, largest=(replace(ITEM, kind="digests", source=source),)))

    line = plain_text(preview_parts(preview, base="file:///shed/")).splitlines()[-2]

    assert line == f"  900     1  stand-in  0123abcd  {shown}"


@pytest.mark.parametrize(
    ("cost", "line"),
    [
        (replace(COST, break_even=None), "cost: the cache is cold; it never pays for itself"),
        (replace(COST, next_request=-0.5), "cost: the cache is cold; the next request is cheaper by $0.5000 already"),
        (replace(COST, next_request=0, each_later=0), "cost: none, the model is free"),
    ],
)
def test_a_cold_cache_and_a_bad_bargain_are_told(cost: EditCost, line: str) -> None:
    assert line in plain_text(preview_parts(replace(PREVIEW, cost=cost, is_warm=False))).splitlines()


def test_a_preview_of_a_summary_says_who_reads_how_much() -> None:
    preview = replace(PREVIEW, overlays=(), summary=SUMMARY, cost=None, effect=Effect(before=9, after=9, untouched=9))

    assert plain_text(preview_parts(preview)) == snapshot("""\
would have turn 0 summarized by anthropic/x
  it reads about 1,200 tokens in 2 requests (at most about $0.2500)
  these turns take about 900 tokens now, and then about 200, at most 300
the cache is read again from turn 0 on\
""")
    unknown = replace(preview, summary=replace(SUMMARY, usd=None, calls=1))
    assert "  it reads about 1,200 tokens (price unknown)" in plain_text(preview_parts(unknown)).splitlines()
    free = replace(preview, summary=replace(SUMMARY, usd=0.0))
    assert "  it reads about 1,200 tokens in 2 requests (free)" in plain_text(preview_parts(free)).splitlines()


def test_a_preview_is_data_with_everything_that_is_told() -> None:
    value = preview_value(replace(PREVIEW, summary=SUMMARY))

    assert value["tokens"] == {"before": 2000, "after": 500, "freed": 1500, "unchanged_prefix": 100}
    assert value["cache"] == {
        "warm": True,
        "edit": {"rewritten": 400, "saved": 1500, "next_request": 0.01, "each_later": 0.005, "break_even": 3},
    }
    assert (value["frees"], value["summary"]["turns"], value["largest"][0]["handle"]) == (
        True,
        {"first": 0, "last": 0},
        "0123abcd",
    )
    nothing = preview_value(replace(PREVIEW, overlays=(), model="", profile="", cost=None))
    assert (nothing["frees"], nothing["model"], nothing["profile"], nothing["cache"]["edit"]) == (
        False,
        None,
        None,
        None,
    )

from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.context.summary_schema import Decision
from jp.context.summary_text import (
    LOCAL_NOTE,
    PREFACE,
    Provenance,
    SummaryState,
    closing,
    opening,
    parse_summary,
    render_summary,
)
from summaries import ACCOUNT, NONCE

STATE = SummaryState(
    account=replace(ACCOUNT, decisions=(Decision(what="use\ntabs", why="they are"), Decision(what=""))),
    provenance=Provenance(unsupported=2),
)
UNSAID = ""
TEXT = f"""\
[[summary:5eed5eed:v1]]
{PREFACE}
## Goal
  mend it
## Requirements, word for word
- do step
## Decisions
- what: use
    tabs
  why: they are
- what: {UNSAID}
## Next step
  run the tests
## About this record
- unsupported: 2
[[/summary:5eed5eed]]"""


def test_a_summary_reads_as_headings_with_what_is_known() -> None:
    assert render_summary(STATE, NONCE) == TEXT
    assert parse_summary(TEXT, NONCE) == STATE


def test_an_empty_summary_is_one() -> None:
    assert render_summary(SummaryState(), NONCE) == f"{opening(NONCE)}\n{PREFACE}\n{closing(NONCE)}"
    assert parse_summary(render_summary(SummaryState(), NONCE), NONCE) == SummaryState()


def test_a_local_summary_says_so_before_anything_else() -> None:
    text = render_summary(SummaryState(provenance=Provenance(is_local=True)), NONCE)

    assert text.split("\n## ")[0].endswith(LOCAL_NOTE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What happened before: much.",
        TEXT.replace(NONCE, "0therone"),
        TEXT + "\n",
        TEXT.replace(":v1", ":v2"),
        TEXT.removesuffix("]]"),
        TEXT.replace("## Goal", "## Mood"),
        TEXT.replace("- do step", "do step"),
        TEXT.replace("- what: use", "  what: use"),
        TEXT.replace("  why: they", "  why they"),
        TEXT.replace("unsupported: 2", "unsupported: many"),
        TEXT.replace("- what: use", "-     what: use"),
    ],
)
def test_what_was_not_rendered_here_does_not_read(text: str) -> None:
    assert parse_summary(text, NONCE) is None

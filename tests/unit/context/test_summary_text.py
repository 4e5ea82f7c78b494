from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jp.context.summary_fold import (
    LOCAL_NOTE,
    PREFACE,
    Provenance,
    SummaryState,
    closing,
    escaped,
    opening,
    render_summary,
)
from jp.context.summary_schema import Decision
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


def test_an_empty_summary_is_one() -> None:
    assert render_summary(SummaryState(), NONCE) == f"{opening(NONCE)}\n{PREFACE}\n{closing(NONCE)}"


def test_a_local_summary_says_so_before_anything_else() -> None:
    text = render_summary(SummaryState(provenance=Provenance(is_local=True)), NONCE)

    assert text.split("\n## ")[0].endswith(LOCAL_NOTE)


@given(st.text() | st.text(alphabet="[/\\sumaryY:S"))
def test_what_begins_a_marker_is_escaped(text: str) -> None:
    found = escaped(text).lower()

    assert "[[summary:" not in found
    assert "[[/summary:" not in found
    assert found.replace("\\", "") == text.lower().replace("\\", "")

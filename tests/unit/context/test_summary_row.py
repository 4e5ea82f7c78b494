from __future__ import annotations

from msgspec.structs import replace

from jp.context.budget import size_of
from jp.context.summary_text import SummaryState, alternating, is_summary, state_of, summary_row
from jp.context.types import Digested, Message, Meta, TextBlock
from summaries import ACCOUNT, NONCE, SYSTEM, WORK, answer, cutter, user

STATE = SummaryState(account=ACCOUNT)
ROW = summary_row(STATE, WORK, NONCE)


def test_a_summary_says_what_it_is_in_its_meta() -> None:
    assert is_summary(ROW)
    assert ROW.meta.digested is not None
    assert (ROW.meta.digested.rule, ROW.meta.digested.version) == ("summary", 1)
    assert ROW.meta.digested.original_bytes == sum(map(size_of, WORK))
    assert state_of(ROW, cutter()) == STATE


def test_a_text_that_reads_like_a_summary_is_none() -> None:
    assert not is_summary(replace(ROW, meta=Meta()))


def test_a_summary_of_another_version_or_program_is_recognised_and_inherited_in_bounds() -> None:
    foreign = Message(role="user", content="What happened: " + "much " * 2_000, meta=Meta(kind="summary"))
    newer = replace(
        ROW, meta=replace(ROW.meta, digested=Digested(sha256="", original_bytes=0, rule="summary", version=2))
    )
    broken = replace(ROW, content=f"{ROW.content}.")

    assert state_of(foreign, cutter()).inherited.startswith("What happened: much")
    assert len(state_of(foreign, cutter()).inherited) <= 3_000
    assert "mend it" in state_of(newer, cutter()).inherited
    assert "mend it" in state_of(broken, cutter()).inherited


def test_where_sides_alternate_a_summary_joins_the_next_message_of_its_side() -> None:
    said = user("go on")
    blocks = Message(role="user", content=(TextBlock(text="a"), TextBlock(text="b")))

    assert alternating((SYSTEM, ROW, said, answer("ok"))) == (
        SYSTEM,
        replace(said, content=(TextBlock(text=str(ROW.content)), TextBlock(text="go on"))),
        answer("ok"),
    )
    assert alternating((ROW, blocks))[0].content == (TextBlock(text=str(ROW.content)), *tuple(blocks.content))
    assert is_summary(alternating((ROW, user(" ")))[0])
    apart = (SYSTEM, ROW, answer("ok"), said)
    assert alternating(apart) is apart
    two = (ROW, ROW)
    assert alternating(two) is two

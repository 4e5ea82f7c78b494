"""Hypothesis strategies for transcripts: well-formed ones, and ones that accidents and foreign hands have damaged."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from msgspec.structs import replace

from jp.context.types import (
    Block,
    Call,
    Facts,
    Message,
    Meta,
    ReasoningBlock,
    StoredBlock,
    TextBlock,
    Transcript,
)

SECRET = "sk-ant-api03-Th1sM4yN0tLeak"
"""Stands in some texts; nothing new that is written may hold it."""

SYNTHETIC = Meta(kind="synthetic")
SUMMARY = Meta(kind="summary", hidden=True)
PENDING = Meta(pending=True)

words = st.sampled_from((
    "yes",
    "Let me look at it.\n",
    "prose " * 60,
    "ünïcödé ✓ 漢字かな \U0001f469\u200d\U0001f4bb e\u0301 " * 8,
    '{"json": "in prose"}',
    "[compacted] run: success",
    f"export KEY={SECRET}",
    "  \n",
))
outputs = st.sampled_from((
    "",
    "ok",
    "drwxr-xr-x 2 root\n" * 80,
    "error: ünmögliche Datei\n" * 40,
    f"TOKEN={SECRET}\n" * 30,
    "line\n" * 400,
))
arguments = st.sampled_from((
    "{}",
    '{"path": "src/a.py"}',
    '{"path":"a.py",  "content":"' + "x = 1\\n" * 120 + '"}',
    '{"n": 1.0e3, "texts": ["' + "\\u00fc\\ud83d\\ude00" * 90 + '", "short"], "n": 2}',
    "not json " * 100,
    '{"cut": "' + "y" * 500,
    f'{{"env": "KEY={SECRET} ' + "z" * 700 + '"}',
))
names = st.sampled_from(("fs_read_file", "run", "search"))
ids = st.sampled_from(("call_0", "call_1", "call_2", "call_3", "call_4", "call_5", "toolu_ü"))
"""Few, so that they repeat in later rounds."""

stored = st.builds(
    StoredBlock,
    sha256=st.sampled_from(("ab" * 32, "cd" * 32)),
    size=st.integers(0, 200_000),
    mime_type=st.sampled_from(("image/png", "application/pdf", "text/plain")),
    chars=st.none() | st.integers(0, 1_000),
)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=words),
    stored,
    st.builds(ReasoningBlock, text=words, signature=st.just("c2ln")),
)


def contents(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str | tuple[Block, ...]]:
    return texts | st.lists(blocks, min_size=1, max_size=3).map(tuple)


facts = st.none() | st.builds(Facts, kind=st.just("terminal"), exit_code=st.integers(0, 2))
systems = st.builds(Message, role=st.just("system"), content=st.sampled_from(("You help.", "Rules. " * 50)))
users = st.builds(
    Message,
    role=st.just("user"),
    content=contents(words),
    meta=st.sampled_from((Meta(), Meta(), Meta(), SYNTHETIC, Meta(hidden=True), Meta(verbatim=True))),
)
answers = st.builds(
    Message, role=st.just("assistant"), content=contents(words), meta=st.sampled_from((Meta(), SYNTHETIC))
)
summaries = st.just(Message(role="user", content="What happened before: much.", meta=SUMMARY))


@st.composite
def rounds(draw: st.DrawFn, *, pending: bool = False) -> Transcript:
    """Calls with their results in any order; of pending ones some results are missing."""
    calls = tuple(
        Call(id=call_id, name=draw(names), arguments=draw(arguments))
        for call_id in draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    )
    answered = draw(st.permutations(calls))
    if pending:
        answered = answered[: draw(st.integers(0, len(calls) - 1))]
    results = [
        Message(
            role="tool",
            call_id=call.id,
            content=draw(contents(outputs)),
            is_error=draw(st.booleans()),
            meta=Meta(facts=draw(facts), verbatim=draw(st.sampled_from((False, False, True)))),
        )
        for call in answered
    ]
    text = draw(st.sampled_from(("", "I look.")))
    return (Message(role="assistant", content=text, calls=calls, meta=PENDING if pending else Meta()), *results)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Well-formed: system messages, then exchanges; perhaps a summary among the first; perhaps pending calls last."""
    rows = [*draw(st.lists(systems, max_size=2))]
    if draw(st.sampled_from((False, False, True))):
        rows.append(draw(summaries))
    for _ in range(draw(st.integers(0, 4))):
        rows.append(draw(users))
        for _ in range(draw(st.integers(0, 3))):
            rows.extend(draw(rounds()))
        rows.extend(draw(st.lists(answers, max_size=1)))
    if draw(st.booleans()):
        rows.extend(draw(rounds(pending=True)))
    return tuple(rows)


def _delete(draw: st.DrawFn, rows: list[Message]) -> None:
    del rows[draw(st.integers(0, len(rows) - 1))]


def _duplicate(draw: st.DrawFn, rows: list[Message]) -> None:
    rows.insert(draw(st.integers(0, len(rows))), draw(st.sampled_from(rows)))


def _swap(draw: st.DrawFn, rows: list[Message]) -> None:
    position = draw(st.integers(0, len(rows) - 1))
    rows[position - 1], rows[position] = rows[position], rows[position - 1]


def _move(draw: st.DrawFn, rows: list[Message]) -> None:
    row = rows.pop(draw(st.integers(0, len(rows) - 1)))
    rows.insert(draw(st.integers(0, len(rows))), row)


def _rename(draw: st.DrawFn, rows: list[Message]) -> None:
    position = draw(st.integers(0, len(rows) - 1))
    row, new = rows[position], draw(ids | st.just(""))
    if row.role == "tool":
        rows[position] = replace(row, call_id=new)
    elif row.calls:
        rows[position] = replace(row, calls=(*row.calls[:-1], replace(row.calls[-1], id=new)))


def _interrupt(draw: st.DrawFn, rows: list[Message]) -> None:
    rows.insert(draw(st.integers(0, len(rows))), draw(users))


def _misplace_calls(draw: st.DrawFn, rows: list[Message]) -> None:
    """What a careless import makes of the roles."""
    position = draw(st.integers(0, len(rows) - 1))
    rows[position] = replace(rows[position], role=draw(st.sampled_from(("user", "assistant", "tool"))))


def _suspend(draw: st.DrawFn, rows: list[Message]) -> None:
    position = draw(st.integers(0, len(rows) - 1))
    rows[position] = replace(rows[position], meta=PENDING)


MUTATIONS: tuple[Callable[[st.DrawFn, list[Message]], None], ...] = (
    _delete,
    _duplicate,
    _swap,
    _move,
    _rename,
    _interrupt,
    _misplace_calls,
    _suspend,
)


@st.composite
def damaged_transcripts(draw: st.DrawFn) -> Transcript:
    """Well-formed ones to which up to six accidents happened."""
    rows = list(draw(transcripts()))
    for mutate in draw(st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=6)):
        if rows:
            mutate(draw, rows)
    return tuple(rows)

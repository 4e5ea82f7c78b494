"""Hypothesis strategies for transcripts: well-formed ones, and ones that accidents and foreign hands have damaged."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from choices import Choices, choices
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

WORDS = (
    "yes",
    "Let me look at it.\n",
    "prose " * 60,
    "ünïcödé ✓ 漢字かな \U0001f469\u200d\U0001f4bb e\u0301 " * 8,
    '{"json": "in prose"}',
    "[compacted] run: success",
    f"export KEY={SECRET}",
    "  \n",
)
OUTPUTS = (
    "",
    "ok",
    "drwxr-xr-x 2 root\n" * 80,
    "error: ünmögliche Datei\n" * 40,
    f"TOKEN={SECRET}\n" * 30,
    "line\n" * 400,
)
ARGUMENTS = (
    "{}",
    '{"path": "src/a.py"}',
    '{"path":"a.py",  "content":"' + "x = 1\\n" * 120 + '"}',
    '{"n": 1.0e3, "texts": ["' + "\\u00fc\\ud83d\\ude00" * 90 + '", "short"], "n": 2}',
    "not json " * 100,
    '{"cut": "' + "y" * 500,
    f'{{"env": "KEY={SECRET} ' + "z" * 700 + '"}',
)
TOOLS = ("fs_read_file", "run", "search")
IDS = ("call_0", "call_1", "call_2", "call_3", "call_4", "toolu_ü")
"""Few, so that they repeat in later rounds."""
SIZES = range(1, len(IDS) + 1)

USER_METAS = (Meta(), Meta(), Meta(), SYNTHETIC, Meta(hidden=True))
RESULT_METAS = (Meta(), Meta(), Meta(facts=Facts(kind="terminal", exit_code=2)))
SUMMARY_ROW = Message(role="user", content="What happened before: much.", meta=SUMMARY)


class Writer:
    """Fills rows. Contents are chosen by a seed and not by draws: they are many, and their choice matters little."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def content(self, texts: Sequence[str]) -> str | tuple[Block, ...]:
        if self._random.random() < 0.6:
            return self._random.choice(texts)
        return tuple(self._block(texts) for _ in range(self._random.randint(1, 3)))

    def _block(self, texts: Sequence[str]) -> Block:
        picture = StoredBlock(sha256="ab" * 32, size=self._random.randint(0, 200_000), mime_type="image/png")
        output = StoredBlock(sha256="cd" * 32, size=900, mime_type="text/plain", chars=800)
        reasoning = ReasoningBlock(text=self._random.choice(WORDS), signature="c2ln")
        return self._random.choice((TextBlock(text=self._random.choice(texts)), picture, output, reasoning))

    def system(self) -> Message:
        return Message(role="system", content=self._random.choice(("You help.", "Rules. " * 50)))

    def user(self) -> Message:
        return Message(role="user", content=self.content(WORDS), meta=self._random.choice(USER_METAS))

    def answer(self) -> Message:
        return Message(role="assistant", content=self.content(WORDS), meta=self._random.choice((Meta(), SYNTHETIC)))

    def round(self, size: int, answered: int) -> Transcript:
        """`size` calls, of which `answered` have their results, in any order."""
        calls = [
            Call(id=call_id, name=self._random.choice(TOOLS), arguments=self._random.choice(ARGUMENTS))
            for call_id in self._random.sample(IDS, size)
        ]
        results = [
            Message(
                role="tool",
                call_id=call.id,
                content=self.content(OUTPUTS),
                is_error=self._random.random() < 0.2,
                meta=self._random.choice(RESULT_METAS),
            )
            for call in self._random.sample(calls, answered)
        ]
        text = self._random.choice(("", "I look."))
        return (Message(role="assistant", content=text, calls=tuple(calls)), *results)


def _well_formed(drawn: Choices) -> Transcript:
    writer = _writer(drawn)
    rows = [writer.system() for _ in range(drawn.below(3))]
    if drawn.one_in(3):
        rows.append(SUMMARY_ROW)
    for _ in range(drawn.below(5)):
        rows.append(writer.user())
        for _ in range(drawn.below(4)):
            size = drawn.pick(SIZES)
            rows.extend(writer.round(size, size))
        rows.extend([writer.answer()] if drawn.one_in(2) else [])
    return tuple(rows)


def _writer(drawn: Choices) -> Writer:
    return Writer(drawn.below(1 << 16))


def _delete(drawn: Choices, rows: list[Message]) -> None:
    del rows[drawn.below(len(rows))]


def _duplicate(drawn: Choices, rows: list[Message]) -> None:
    rows.insert(drawn.below(len(rows) + 1), drawn.pick(rows))


def _swap(drawn: Choices, rows: list[Message]) -> None:
    position = drawn.below(len(rows))
    rows[position - 1], rows[position] = rows[position], rows[position - 1]


def _move(drawn: Choices, rows: list[Message]) -> None:
    row = rows.pop(drawn.below(len(rows)))
    rows.insert(drawn.below(len(rows) + 1), row)


def _rename(drawn: Choices, rows: list[Message]) -> None:
    position = drawn.below(len(rows))
    row, new = rows[position], drawn.pick((*IDS, ""))
    if row.role == "tool":
        rows[position] = replace(row, call_id=new)
    elif row.calls:
        rows[position] = replace(row, calls=(*row.calls[:-1], replace(row.calls[-1], id=new)))


def _interrupt(drawn: Choices, rows: list[Message]) -> None:
    rows.insert(drawn.below(len(rows) + 1), _writer(drawn).user())


def _misplace_calls(drawn: Choices, rows: list[Message]) -> None:
    """What a careless import makes of the roles."""
    position = drawn.below(len(rows))
    rows[position] = replace(rows[position], role=drawn.pick(("user", "assistant", "tool")))


MUTATIONS: tuple[Callable[[Choices, list[Message]], None], ...] = (
    _delete,
    _duplicate,
    _swap,
    _move,
    _rename,
    _interrupt,
    _misplace_calls,
)


def _damaged(drawn: Choices) -> Transcript:
    rows = list(_well_formed(drawn))
    for mutate in drawn.some(MUTATIONS, least=1, most=6):
        if rows:
            mutate(drawn, rows)
    return tuple(rows)


def any_transcripts() -> st.SearchStrategy[Transcript]:
    """Well-formed ones, and ones to which up to six accidents happened."""
    return choices(60).map(lambda drawn: _damaged(drawn) if drawn.one_in(2) else _well_formed(drawn))

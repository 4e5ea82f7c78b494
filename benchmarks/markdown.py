"""CPU time of streaming Markdown to a terminal, over writing the same pieces as they are.

A token is about 4 characters; each comes on its own and what can be shown of it is written at once, to a
pseudo-terminal that another process reads.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from results import Report

SIZES = (2_000, 5_000, 10_000, 20_000)
CHARACTERS_PER_TOKEN = 4
REPEATS = 7
WIDTH = 100

_WORDS = re.findall(
    r"\w+",
    "the loop reads what a provider sends and hands every piece on as it comes so that nobody waits for the end of a "
    "line which may be long while other parts are already there and could be shown to whoever asked for them",
)
_CODE = '''\
def backoff(attempt: int, *, base: float = 1.0, bound: float = 60.0) -> float:
    """Seconds to wait before `attempt`, with full jitter."""
    if attempt < 0:
        raise ValueError(f"not an attempt: {attempt!r}")  # counts from 0
    return min(bound, base * 2**attempt) * random.random()
'''


class Row(NamedTuple):
    """CPU seconds for one size. `linearity` is the cost of a token over that in the smallest size."""

    tokens: int
    raw: float
    ours: float
    ratio: float
    linearity: float


def answer(tokens: int) -> str:
    """An answer of that many tokens: two thirds running text with markup, a quarter code, lists, tables, quotes."""
    chance = random.Random(tokens)  # noqa: S311 - a seed makes every run the same
    size = tokens * CHARACTERS_PER_TOKEN
    parts: list[str] = []
    written = 0
    while written < size:
        part = f"{chance.choice(_BLOCKS)(chance)}\n\n"
        parts.append(part)
        written += len(part)
    return "".join(parts)[:size]


def _sentence(chance: random.Random) -> str:
    words = chance.choices(_WORDS, k=chance.randint(12, 24))
    words[3] = f"**{words[3]} {words[4]}**"
    words[7] = f"`{words[7]}_{words[8]}`"
    if chance.random() < 0.3:
        words[9] = f"[{words[9]}](https://example.com/{words[10]})"
    return " ".join(words).capitalize() + "."


def _paragraph(chance: random.Random) -> str:
    return " ".join(_sentence(chance) for _ in range(chance.randint(2, 6)))


def _heading(chance: random.Random) -> str:
    return f"## {' '.join(chance.choices(_WORDS, k=4)).capitalize()}\n\n{_paragraph(chance)}"


def _bullets(chance: random.Random) -> str:
    return "\n".join(f"{'  ' * (number % 2)}- {_sentence(chance)}" for number in range(chance.randint(3, 7)))


def _numbers(chance: random.Random) -> str:
    return "\n".join(f"{number}. {_sentence(chance)}" for number in range(1, chance.randint(3, 6)))


def _fence(chance: random.Random) -> str:
    return f"```python\n{_CODE * chance.randint(1, 3)}```"


def _table(chance: random.Random) -> str:
    rows = "\n".join(
        f"| `{chance.choice(_WORDS)}` | {chance.randint(1, 999)} | {_sentence(chance)} |" for _ in range(4)
    )
    return f"| name | count | what it says |\n|:-----|------:|--------------|\n{rows}"


def _quote(chance: random.Random) -> str:
    return f"> {_sentence(chance)}"


_BLOCKS: tuple[Callable[[random.Random], str], ...] = (
    *[_paragraph] * 4,
    _heading,
    _bullets,
    _numbers,
    *[_fence] * 2,
    _table,
    _quote,
)


def rows(report: Report) -> Iterator[str]:
    """Measure all sizes."""
    report("streaming Markdown")
    measured = measure(SIZES)
    head = ("tokens", "as it is, μs a token", "as Markdown, μs a token", "ratio", "a token, over the first size")
    yield from report.table(
        "table",
        head,
        [
            (
                f"{row.tokens:,}",
                f"{row.raw / row.tokens * 1e6:.1f}",
                f"{row.ours / row.tokens * 1e6:.1f}",
                f"{row.ratio:.1f}",
                f"{row.linearity:.2f}",
            )
            for row in measured
        ],
    )
    report.figures["us a token"] = measured[-1].ours / measured[-1].tokens * 1e6


def measure(sizes: tuple[int, ...]) -> list[Row]:
    """Measure all sizes: the least of several runs each, taken in turns so that both see the same machine."""
    found: list[Row] = []
    master, terminal = os.openpty()
    with subprocess.Popen(["/bin/cat"], stdin=master, stdout=subprocess.DEVNULL) as reader:
        _render(_pieces(answer(sizes[0])), terminal)  # the imports, which a process pays once
        for size in sizes:
            pieces = _pieces(answer(size))
            runs = [(_timed(_write_raw, pieces, terminal), _timed(_render, pieces, terminal)) for _ in range(REPEATS)]
            raw, ours = (min(times) for times in zip(*runs, strict=True))
            cost = ours / size
            first = found[0].ours / found[0].tokens if found else cost
            found.append(Row(size, raw, ours, ours / raw, cost / first))
        reader.terminate()
    os.close(master)
    os.close(terminal)
    return found


def _pieces(text: str) -> list[str]:
    return [text[start : start + CHARACTERS_PER_TOKEN] for start in range(0, len(text), CHARACTERS_PER_TOKEN)]


def _timed(run: Callable[[list[str], int], None], pieces: list[str], terminal: int) -> float:
    start = time.process_time()
    run(pieces, terminal)
    return time.process_time() - start


def _write_raw(pieces: list[str], terminal: int) -> None:
    with open(terminal, "w", encoding="utf-8", closefd=False) as stream:
        for piece in pieces:
            stream.write(piece)
            stream.flush()


def _render(pieces: list[str], terminal: int) -> None:
    from jp.render.channel import Channel
    from jp.render.markdown import MarkdownStream
    from jp.render.theme import Look

    with open(terminal, "w", encoding="utf-8", closefd=False) as stream:
        channel = Channel(stream, name="stdout")
        markdown = MarkdownStream(Look(width=WIDTH, color=True))
        for piece in pieces:
            if shown := markdown.feed(piece):
                channel.write(shown)
        channel.write(markdown.finish())

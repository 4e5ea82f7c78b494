"""CPU time of one compaction that asks no model, with its view, over reading the same text with `json.loads`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from context.product import Product
from context.sessions import Session, synthetic_session
from jp.compaction.fact_lines import KnownArtifacts
from jp.context.budget import estimate_messages
from jp.context.evidence import mentions_in
from jp.context.markers import Cutter
from jp.context.redaction import redact
from jp.context.summary_fold import leave
from jp.context.types import Transcript, texts_of

_Given = TypeVar("_Given")
_NONCE = "b3nchm4rk"
SIZES = (1_000, 10_000, 100_000)
TARGET_PERCENT = 25
REPEATS = 3
MANY = 20_000
"""Messages, above which one run is enough."""

BAR = 15


def lines(sessions: Sequence[Session], report: Callable[[str], None]) -> Iterator[str]:
    """The table."""
    cases = [(f"synthetic, {size:,} messages", [_of_size(size)]) for size in SIZES]
    if sessions:
        recorded = [session.messages for session in sessions]
        cases.insert(0, (f"{len(sessions)} recorded sessions", recorded))
    yield f"{'':<30}{'MB':>7}{'json.loads s':>14}{'all passes s':>14}{'ratio':>8}{'us a message':>14}"
    for title, transcripts in cases:
        report(f"speed, {title}")
        text = msgspec.json.encode(transcripts).decode()
        count = sum(map(len, transcripts))
        repeats = REPEATS if count <= MANY else 1
        loads = min(_timed(json.loads, text) for _ in range(repeats))
        targets = [estimate_messages(messages) * TARGET_PERCENT // 100 for messages in transcripts]
        runs = [list(zip(_logs(transcripts), targets, strict=True)) for _ in range(repeats)]
        passes = min(_timed(_all_passes, run) for run in runs)
        yield (
            f"{title:<30}{len(text) / 1e6:>7.1f}{loads:>14.3f}{passes:>14.3f}{passes / loads:>8.1f}"
            f"{passes / count * 1e6:>14.0f}"
        )
    if sessions:
        yield ""
        yield from _parts([session.messages for session in sessions])
    yield f"the bar is {BAR} times json.loads for all passes together"


def _parts(transcripts: Sequence[Transcript]) -> Iterator[str]:
    """Each pass by itself over all messages of the recorded sessions, as a multiple of `json.loads`."""
    text = msgspec.json.encode(transcripts).decode()
    loads = min(_timed(json.loads, text) for _ in range(REPEATS))
    parts: dict[str, Callable[[Transcript], object]] = {
        "estimates": estimate_messages,
        "redaction of every text": _redact,
        "what a summary knows": lambda messages: leave(messages, Cutter(_NONCE, KnownArtifacts({}))),
        "of which mentions": _mentions,
    }
    for name, part in parts.items():
        taken = min(_timed(lambda run: list(map(run, transcripts)), part) for _ in range(REPEATS))
        yield f"  {name:<28}{taken / loads:>43.1f}"


def _redact(messages: Transcript) -> None:
    for message in messages:
        for text in texts_of(message):
            redact(text)


def _mentions(messages: Transcript) -> None:
    outputs = [text for message in messages if message.role == "tool" for text in texts_of(message)]
    said = [text for message in messages if message.role != "tool" for text in texts_of(message)]
    mentions_in(said, outputs=outputs)


def _logs(transcripts: Sequence[Transcript]) -> list[Product]:
    logs = [Product() for _ in transcripts]
    for log, messages in zip(logs, transcripts, strict=True):
        log.grow(messages)
    return logs


def _all_passes(chosen: Sequence[tuple[Product, int]]) -> None:
    for log, target in chosen:
        log.compact(target)
        log.view()


def _of_size(messages: int) -> Transcript:
    return synthetic_session(messages // 2)[:messages]


def _timed(run: Callable[[_Given], object], given: _Given) -> float:
    start = time.process_time()
    run(given)
    return time.process_time() - start

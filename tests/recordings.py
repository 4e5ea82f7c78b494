"""Recorded exchanges with providers: found by JP_TEST_DATA, served as they came and cut at random."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopback import Reply
from stories import Told

Recording = dict[str, Any]
Exchange = dict[str, Any]


def recording_of(provider: str, case: str) -> Recording:
    """One recording; the test is skipped where there are none."""
    root = os.environ.get("JP_TEST_DATA")
    if not root:
        pytest.skip("JP_TEST_DATA does not say where the recordings are")
    path = Path(root, "recordings", provider, f"{case}.json")
    return msgspec.json.decode(path.read_bytes(), type=Recording)


def streamed(recording: Recording) -> list[Exchange]:
    """The exchanges whose response is a stream."""
    return [exchange for exchange in recording["exchanges"] if exchange["response"]["framing"] in {"sse", "ndjson"}]


def reply_to(exchange: Exchange, seed: str, *, end: str = "\n") -> Reply:
    """The recorded response, cut at random offsets, inside of characters too; `end` ends its lines."""
    body = exchange["response"]["body"].replace("\n", end).encode()
    cuts = random.Random(seed).sample(range(len(body)), k=min(len(body), 80))
    return Reply(body=body, cuts=tuple(cuts), headers=tuple(exchange["response"]["headers"].items()))


def as_expected(outcome: dict[str, Any]) -> Told:
    """An outcome of the recording in our form; arguments are compared as JSON. Opaque metadata is left out."""
    arguments = msgspec.json.encode(outcome["arguments"]).decode() if "arguments" in outcome else None
    return Told(
        kind=outcome["kind"],
        text=outcome.get("text", "") if arguments is None else arguments,
        call_id=outcome.get("id", ""),
        name=outcome.get("name", ""),
    )


def comparable(block: Told) -> Told:
    """A block with its arguments as JSON writes them."""
    if block.kind == "tool_call":
        return Told(**{**msgspec.structs.asdict(block), "text": msgspec.json.encode(block.arguments).decode()})
    return block

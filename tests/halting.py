"""A model that halts in the middle of its answer until it is told to go on: what happens meanwhile is not a matter of
time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Event
from typing import NamedTuple

import anthropic_wire as wire
from loopback import Loopback, Reply, sse

MODEL = "anthropic/claude-haiku-4-5"
_DELTA = b"event: content_block_delta"


class Halting(NamedTuple):
    """With `environment`, new conversations ask it, others with `--model` too. It goes on at `go_on`."""

    environment: dict[str, str]
    go_on: Event


@contextmanager
def halting(first: str, rest: str) -> Generator[Halting]:
    """A model that says `first`, and later `rest`."""
    go_on = Event()
    body = sse(wire.start(), *wire.text(0, first, rest), *wire.ending())
    halt = body.index(_DELTA, body.index(_DELTA) + 1)
    with Loopback(Reply(body=body, gates={halt: go_on})) as server:
        environment = {
            "JP_CFG_ASSISTANT_MODEL_ID": MODEL,
            "JP_CFG_PROVIDERS_LLM_ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        }
        try:
            yield Halting(environment, go_on)
        finally:
            go_on.set()

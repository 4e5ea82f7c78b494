"""Recorded sessions of agents, played again by a server that counts tokens and remembers prefixes, on small windows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import chat_wire
from forked import run_jp
from jp.conversation.entries import AnyEntry, Compaction
from loopback import JSON, Loopback, Received, Reply
from running import Result, home_beside
from stage import make_workspace, only_log

SESSIONS = (
    "entireio_cli__36246fc59c",
    "princeton-nlp_SWE-agent__92f969992b",
    "PackmindHub_context-evaluator__76b729cfa6",
)
"""Of many turns, of one long turn, and with large results."""

MOST_STEPS = 40
ACCOUNT = json.dumps({"goal": "do it", "next_step": "go on", "requirements": []})
SUMMARIZER = "record of an earlier part of a conversation"
TOO_LONG = b'{"error":{"message":"too many tokens","code":"context_length_exceeded"}}'
KEY = {"OPENROUTER_API_KEY": "sk-or-test-0123456789"}
TOOL = """
[conversation.tools.step]
enable = true
run = "unattended"
summary = "Take a step."
command = "cat steps/{{ tool.arguments.n }}.txt"
[conversation.tools.step.parameters.n]
required = true
type = "integer"
[conversation.tools.step.parameters.input]
required = true
"""

Step = tuple[str, list[tuple[int, str]]]
"""A text, and calls: the number of a result, and arguments."""


class Model:
    """Answers with `steps` one after the other; a request of more than `window` tokens is refused.

    `breaks` counts the requests that do not begin with all of the one before; `summarizer` says how summaries fare.
    """

    def __init__(self, *, window: int = 0, summarizer: str = "reliable") -> None:
        self.steps: list[Step] = []
        self.sizes: list[int] = []
        self.cached = 0
        self.breaks = 0
        self.refused = 0
        self.asked = 0  # for summaries
        self._window = window
        self._summarizer = summarizer
        self._sent: list[str] = []

    def __call__(self, request: Received) -> Reply:
        if SUMMARIZER in request.body.decode():
            return self._summary()
        messages = [json.dumps(message) for message in json.loads(request.body)["messages"]]
        size = len(request.body) // 4
        if self._window and size > self._window:
            self.refused += 1
            return Reply(status=400, headers=JSON, body=TOO_LONG)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._sent, messages, strict=False)))
        self.breaks += same < len(self._sent)
        self._sent = messages
        self.sizes.append(size)
        self.cached += sum(map(len, messages[:same])) // 4
        text, calls = self.steps.pop(0)
        deltas = [*(chat_wire.says(text) if text else ())]
        deltas += [chat_wire.call(at, given, name="step", id=f"c{n}") for at, (n, given) in enumerate(calls)]
        chunks = [chat_wire.chunk(delta) for delta in deltas]
        finish = chat_wire.chunk(finish="tool_calls" if calls else "stop")
        return Reply(body=chat_wire.stream(*chunks, finish, chat_wire.usage(size, len(text) // 4 + 1)))

    def _summary(self) -> Reply:
        self.asked += 1
        if self._summarizer == "silent":
            return Reply(body=b"", ends="hang")
        if self._summarizer == "failing":
            return Reply(status=400, headers=JSON, body=b'{"error":{"message":"no"}}')
        return Reply(body=chat_wire.answer(*chat_wire.says(ACCOUNT)))


class Session:
    """A workspace in which a recorded session is played: its requests, and its results as files."""

    def __init__(self, root: Path, model: Model, *, settings: str) -> None:
        self.root = make_workspace(root / "work", settings=settings)
        self._model = model
        (self.root / "steps").mkdir()
        own = home_beside(self.root) / "config"
        own.mkdir(parents=True, exist_ok=True)
        (own / "config.toml").write_text(TOOL, encoding="utf-8")
        self._results = 0

    def turn(self, text: str, steps: Sequence[dict[str, Any]], results: dict[str, str], *more: str) -> Result:
        """Ask `text`; the model takes `steps`, then says that it is done."""
        self._model.steps = [self._step(row, results) for row in steps if row.get("tool_calls")]
        self._model.steps.append(("Done.", []))
        with Loopback(otherwise=self._model) as server:
            address = f"providers.llm.openrouter.base_url={server.url}"
            cfg = (
                address,
                "assistant.request.max_cycles=400",
                "assistant.request.max_retries=0",
                "assistant.request.first_byte_timeout_secs=0.3",
            )
            words = [word for setting in cfg for word in ("--cfg", setting)]
            asking = ("query", "--model", "openrouter/m", "--approve-all", *words, *more, "--", text.strip() or "go on")
            return run_jp(*asking, cwd=self.root, env=KEY)

    def _step(self, row: dict[str, Any], results: dict[str, str]) -> Step:
        calls: list[tuple[int, str]] = []
        for call in row["tool_calls"]:
            self._results += 1
            result = results.get(call["id"]) or "(nothing)"
            (self.root / "steps" / f"{self._results}.txt").write_text(result.replace("\0", ""), encoding="utf-8")
            given = f"{call['name']} {json.dumps(call['arguments'])}"
            calls.append((self._results, json.dumps({"n": self._results, "input": given})))
        return row.get("text") or "", calls


def recorded(name: str) -> tuple[list[tuple[str, list[dict[str, Any]]]], dict[str, str]]:
    """The turns of a session, each a request and its steps, as many as are few; and its results by their calls."""
    folder = os.environ.get("JP_TEST_DATA")
    if not folder:
        pytest.skip("JP_TEST_DATA is not set")
    path = Path(folder) / "transcripts" / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    results = {row["tool_call_id"]: row["text"] or "" for row in rows if row["role"] == "tool"}
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    left = MOST_STEPS
    for row in rows:
        if row["role"] == "user":
            turns.append((row["text"] or "", []))
        elif row["role"] == "assistant" and turns and left:
            turns[-1][1].append(row)
            left -= 1
    return [turn for turn in turns if turn[1]], results


def settings(window: int, profile: str) -> str:
    """`window` 0 is one that nobody knows."""
    known = f"[providers.llm.openrouter.models.m]\ncontext_window = {window}\nmax_output = {window // 8}\n"
    auto = f'[conversation.compaction.auto]\nenabled = true\nprofile = "{profile}"\n'
    return auto + (known if window else "")


def compactions(entries: Sequence[AnyEntry]) -> int:
    """How many there were; several overlays of one time are one."""
    return len({entry.at for entry in entries if isinstance(entry, Compaction)})


CASES = [
    (SESSIONS[1], 16_000, "default reliable"),
    (SESSIONS[0], 32_000, "heavy failing"),
    (SESSIONS[1], 16_000, "heavy silent"),
    (SESSIONS[2], 16_000, "heavy reliable"),
    (SESSIONS[2], 64_000, "heavy reliable"),
]


@pytest.mark.parametrize(("name", "window", "how"), CASES)
def test_every_session_ends_and_each_compaction_breaks_the_prefix_once(
    tmp_path: Path, name: str, window: int, how: str
) -> None:
    profile, summarizer = how.split()
    turns, results = recorded(name)
    model = Model(window=window, summarizer=summarizer)
    session = Session(tmp_path, model, settings=settings(window, profile))

    for number, (text, steps) in enumerate(turns):
        done = session.turn(text, steps, results, *(("--id", "last") if number else ("--new",)))
        assert (done.code, model.steps) == (0, []), done.stderr

    made = compactions(only_log(session.root))
    assert model.refused == 0
    assert model.breaks == made
    assert made > 0 or window >= 32_000
    assert made <= len(model.sizes) / 5
    assert model.cached >= 0.75 * sum(model.sizes)
    assert model.asked <= (2 * made if profile == "heavy" else 0)
    assert model.asked or summarizer == "reliable"


def test_a_session_ends_on_a_window_that_nobody_knows(tmp_path: Path) -> None:
    turns, results = recorded(SESSIONS[2])
    model = Model(window=12_000)
    session = Session(tmp_path, model, settings=settings(0, "default"))

    for number, (text, steps) in enumerate(turns):
        done = session.turn(text, steps, results, *(("--id", "last") if number else ("--new",)))
        assert (done.code, model.steps) == (0, []), done.stderr

    assert model.refused > 1
    assert model.breaks <= model.refused == compactions(only_log(session.root))

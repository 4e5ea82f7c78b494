"""`jp conversation usage`: what a conversation took and cost, as people and as programs read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forked import prepare, run_jp
from stage import copied, logs, make_workspace

AT = "2026-01-01T00:0{}:00Z"


class Writer:
    """Writes a log in place of another one, an entry at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._count = 0
        self._minute = 0
        log.write_text(log.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")

    def add(self, kind: str, **fields: Any) -> str:
        self._count += 1
        identity = f"e{self._count}"
        entry = {"type": kind, "id": identity, "at": AT.format(self._minute), **fields}
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        return identity

    def turn(self, minute: int) -> str:
        self._minute = minute
        identity = self.add("turn_start")
        self.add("chat_request", content="?")
        return identity

    def model(self, name: str, **parameters: str) -> None:
        self.add("request_context", provider="anthropic", model=name, renderer=1, parameters=parameters)

    def cycle(
        self, messages: list[str], *, kept: int = 0, system: str = "s", finish: str = "stop", **usage: int
    ) -> None:
        self.add("chat_response", message="!")
        digests = {"system": system, "tools": "t", "kept": kept, "messages": messages}
        self.add("cycle_end", attempt=1, finish=finish, usage=usage, digests=digests)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    prepare(["query", "--new", "hello"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def usage(root: Path, *more: str) -> str:
    shown = run_jp("conversation", "usage", "last", *more, cwd=root)
    assert (shown.code, shown.stderr) == (0, "")
    return shown.stdout


def write_story(root: Path) -> None:
    writer = Writer(logs(root)[0])
    writer.turn(0)
    writer.model("claude-haiku-4-5")
    writer.cycle(["a"], input=100, cache_write=9900, output=100, reasoning=50)
    undone = writer.turn(2)
    writer.cycle(["b", "c"], kept=1, finish="tools", input=1000, cache_read=10_000, output=10)
    writer.cycle(["C", "d"], kept=2, input=12_000, output=10)
    writer.turn(4)
    writer.cycle(["e"], kept=4, system="S", input=12_000, output=10)
    writer.turn(5)
    writer.model("claude-unheard-of", cache="long")
    writer.cycle(["f"], kept=5, input=9000, output=10)
    writer.add("revert", entries=[undone])


TEXT = """\
turn      cycles   input    read  written  output  reasoning     cost  model
0              1     100       0    9,900     100         50  $0.0130  anthropic/claude-haiku-4-5
1 undone       2  13,000  10,000        0      20          0  $0.0141  anthropic/claude-haiku-4-5
2              1  12,000       0        0      10          0  $0.0120  anthropic/claude-haiku-4-5
3              1   9,000       0        0      10          0  unknown  anthropic/claude-unheard-of

cycles   input    read  written  output  reasoning     cost  model
     4  25,100  10,000    9,900     130         50  $0.0391  anthropic/claude-haiku-4-5
     1   9,000       0        0      10          0  unknown  anthropic/claude-unheard-of

total      4 turns, 5 cycles: 54,000 tokens in, 140 out
cost       at least $0.0391; what 1 of 5 cycles cost is unknown
cache      19% of the tokens that went in were read from it
undone     $0.0141 of it in turns that were undone

expected from the cache, and not read from it:
  turn 1, cycle 1: message 2, turn 1, changed (0 of about 11,000 tokens read)
  turn 2, cycle 0: the system prompt changed (0 of about 12,000 tokens read)
"""


def test_turns_models_sums_and_misses_are_shown(root: Path) -> None:
    write_story(root)

    assert usage(root) == TEXT


def test_a_program_reads_the_same(root: Path) -> None:
    write_story(root)

    shown = json.loads(usage(root, "--format", "json"))

    assert shown["schema"] == 1
    assert shown["id"].startswith("jp-c")
    assert [turn["undone"] for turn in shown["turns"]] == [False, True, False, False]
    assert [len(turn["by_cycle"]) for turn in shown["turns"]] == [1, 2, 1, 1]
    assert [turn["cost_usd"] for turn in shown["turns"]][3] is None
    total = shown["total"]
    assert (total["cost_usd"], total["cycles_of_unknown_cost"]) == (None, 1)
    assert total["cost_usd_at_least"] == pytest.approx(0.039125)
    assert total["usage"] == {
        "input": 34_100,
        "output": 140,
        "cache_read": 10_000,
        "cache_write": 9900,
        "reasoning": 50,
    }
    assert [miss["change"]["section"] for miss in shown["cache"]["misses"]] == ["message", "system"]
    assert shown["cache"]["misses"][1]["seconds"] == 120


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_fits_the_terminal(root: Path, width: int) -> None:
    write_story(root)

    lines = usage(root, "--format", "pretty", "--width", str(width), "--cycles").splitlines()

    assert all(len(line) <= width for line in lines)
    assert any(line.startswith("1.1 undone") for line in lines)
    assert ("13.0k" in lines[2]) is False
    assert ("12.0k" in lines[3]) is (width == 80)


def test_what_nobody_changed_has_expired_or_was_missed(root: Path) -> None:
    writer = Writer(logs(root)[0])
    writer.turn(0)
    writer.model("claude-haiku-4-5")
    writer.cycle(["a"], cache_write=9900)
    writer.turn(3)
    writer.cycle(["b"], kept=1, cache_write=9900)
    writer.turn(9)
    writer.cycle(["c"], kept=2, cache_write=9900)

    shown = usage(root)

    assert shown.endswith(
        "\nexpected from the cache, and not read from it:\n"
        "  turn 1, cycle 0: same prefix; the provider's cache had expired or missed after 3 min "
        "(0 of about 9,900 tokens read)\n\n"
        "1 request came later than the cache is kept: `assistant.request.cache=long` asks for an hour\n"
    )


def test_an_hour_in_the_cache_has_its_own_price(root: Path) -> None:
    writer = Writer(logs(root)[0])
    writer.turn(0)
    writer.model("claude-haiku-4-5", cache="long")
    writer.cycle(["a"], cache_write=1000)

    assert json.loads(usage(root, "--format", "json"))["total"]["cost_usd"] == 0.002
    assert "cost           $0.0020\n" in run_jp("conversation", "show", "last", cwd=root).stdout


def test_a_conversation_without_a_turn_took_nothing(root: Path) -> None:
    Writer(logs(root)[0])

    shown = run_jp("conversation", "usage", "last", cwd=root)
    value = json.loads(usage(root, "--format", "json"))

    assert shown == (0, "", "note: there is no turn in this conversation yet\n")
    assert (value["turns"], value["total"]["cost_usd"], value["cache"]["hit_rate"]) == ([], 0, None)


def test_what_a_fork_copied_was_spent_elsewhere(root: Path) -> None:
    write_story(root)
    source = run_jp("conversation", "show", "last", "-F", "json", cwd=root).stdout
    fork = run_jp("conversation", "fork", "last", "--turn", "2", cwd=root)
    shown = run_jp("conversation", "usage", fork.stdout.strip(), cwd=root).stdout

    assert shown.splitlines()[1].startswith("0 copied       1  12,000")
    assert f"\ncopied     $0.0120 of it in turns that were copied from {json.loads(source)['id']}\n" in shown


def test_the_original_recorded_no_usage(root: Path) -> None:
    directory = root / ".jp/conversations/17000000000-old"
    directory.mkdir()
    (directory / "metadata.json").write_text("{}", encoding="utf-8")
    events = [
        {"timestamp": "2025-01-01 00:00:00.0", "type": "chat_request", "content": "Hi"},
        {"timestamp": "2025-01-01 00:00:01.0", "type": "chat_response", "message": "Hello"},
    ]
    (directory / "events.json").write_text(json.dumps(events), encoding="utf-8")

    shown = run_jp("conversation", "usage", "jp-c17000000000", cwd=root)
    value = json.loads(run_jp("conversation", "usage", "jp-c17000000000", "-F", "json", cwd=root).stdout)

    text = (
        "turn  cycles  input  read  written  output  reasoning     cost  model\n"
        "0          1      -     -        -       -          -  unknown  -\n\n"
        "total      1 turn, 1 cycle: the log does not say what they took\n"
        "cost       unknown\n"
    )
    assert shown == (0, text, "")
    assert (value["total"]["usage"], value["total"]["cost_usd"]) == (None, None)


def test_what_runs_on_ones_own_machine_is_free(root: Path) -> None:
    assert "\ncost       free\n" in usage(root)

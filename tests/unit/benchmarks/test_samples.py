from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from fixtures import JP, make_conversations, make_long_conversation, new_workspace, query, tool_query
from processes import native_codex
from samples import Program, launcher, medians_of
from server import TimingServer, tool_calls
from turns import connections_of_a_turn


def test_the_peak_of_a_program_is_its_own_and_not_that_of_the_benchmark(tmp_path: Path) -> None:
    new_workspace(tmp_path)
    large = bytearray(200_000_000)

    with launcher() as launched:
        small = launched.run(Program("small", (sys.executable, "-I", "-c", "pass"), tmp_path))
        larger = launched.run(Program("larger", (sys.executable, "-I", "-c", "bytearray(b'x') * 60_000_000"), tmp_path))

    assert large
    assert 1 < small.peak < 50 < larger.peak


def test_a_program_that_fails_is_no_sample(tmp_path: Path) -> None:
    new_workspace(tmp_path)

    with launcher() as launched, pytest.raises(SystemExit, match="jp nonsense: exit code 2"):
        launched.run(Program("jp nonsense", (JP, "nonsense"), tmp_path))


def test_a_query_is_timed_up_to_the_first_byte_of_its_request(tmp_path: Path) -> None:
    new_workspace(tmp_path)
    with closing(TimingServer()) as server:
        asking = Program("query", (JP, *query(server.url, "--new", "hello")), tmp_path, to_wire=True)
        version = Program("version", (JP, "--version"), tmp_path)
        found = medians_of([asking, version], server, 1, lambda _: None)

    assert 0 < found["query"].wire < found["query"].wall
    assert found["version"].wire != found["version"].wire  # not a number


def test_scripted_calls_are_made_and_what_comes_of_them_is_sent(tmp_path: Path) -> None:
    make_long_conversation(new_workspace(tmp_path), 16, blob_bytes=100)
    with closing(TimingServer([tool_calls(0, 3), tool_calls(3, 1)])) as server, launcher() as launched:
        launched.run(Program("a turn", (JP, *tool_query(server.url, "--id", "last", "go")), tmp_path))
        assert len(server.arrivals) == len(server.ends) == 3

    (log,) = (tmp_path / "work").rglob("events.jsonl")
    assert log.read_text(encoding="utf-8").count('"type":"tool_call_response"') == 4 + 4


def test_conversations_are_as_many_as_are_asked_for(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    make_conversations(workspace, 12)

    assert len(workspace.ids()) == 12


def test_flights_of_handshakes_are_counted(tmp_path: Path) -> None:
    new_workspace(tmp_path)
    with launcher() as launched:
        connections, flights = connections_of_a_turn(launched, tmp_path, cycles=0)

    assert (connections, flights) == (1, 2)


def test_the_program_that_npm_installs_for_codex_is_found_below_its_script(tmp_path: Path) -> None:
    packages = tmp_path / "node_modules" / "@openai"
    script = packages / "codex" / "bin" / "codex.js"
    program = packages / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"
    for file in (script, program):
        file.parent.mkdir(parents=True)
        file.touch()
    (tmp_path / "codex").symlink_to(script)

    assert native_codex(str(tmp_path / "codex")) == program
    assert native_codex(str(program)) == program
    assert native_codex(None) is None

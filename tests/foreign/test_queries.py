"""Queries to a server that is not ours, as llama.cpp's and as one of the user's own that speaks Chat Completions.

The model's weights are random, and so is what it says; what is asserted holds for any text.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import pytest

from doubles import messages
from foreign_server import TIMEOUT_SECS, WINDOW, ForeignServer, serving
from jp.conversation.entries import AnyEntry, ChatRequest, CycleEnd, ToolCallRequest, ToolCallResponse, TurnStart
from running import Result, home_beside, run_jp, start_jp
from stage import only_log

pytestmark = pytest.mark.foreign

BOTH = pytest.mark.parametrize("model", ["llamacpp/tiny", "mine/tiny"])

NEVER_ENDS = {"logit_bias": {"2": -100}}
"""The model never says that it is done: what ends its answer is something else."""

SETTINGS = """
[assistant.model]
id = "{model}"

[assistant.request]
base_backoff_ms = 1
max_retries = 1

[providers.llm.llamacpp]
base_url = "{url}"

[providers.llm.mine]
base_url = "{url}"
structured = "json_object_schema"
"""

E = TypeVar("E", bound=AnyEntry)


class Asking:
    """A query whose answer is read piece by piece, as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        self.process = process

    def piece(self) -> str:
        """The next piece; empty at the end."""
        assert self.process.stdout is not None
        return os.read(self.process.stdout.fileno(), 1 << 16).decode()

    def rest(self) -> Result:
        """What is still to come."""
        out, errors = self.process.communicate(timeout=TIMEOUT_SECS)
        return Result(self.process.returncode, out.decode(), errors.decode())


class Desk:
    """A workspace, and a user who has the server under both names and asks `model`."""

    def __init__(self, root: Path, url: str, model: str) -> None:
        self.root = root / "work"
        (self.root / ".jp").mkdir(parents=True)
        (self.root / ".jp" / "config.toml").write_text("", encoding="utf-8")
        config = home_beside(self.root) / "config" / "config.toml"
        config.parent.mkdir()
        config.write_text(SETTINGS.format(model=model, url=url), encoding="utf-8")

    def query(self, *arguments: str, stdin: str | None = None) -> Result:
        return run_jp("query", *arguments, cwd=self.root, stdin=stdin)

    def asking(self, *arguments: str, **env: str) -> Asking:
        return Asking(start_jp("query", *arguments, cwd=self.root, env=env))

    @property
    def log(self) -> list[AnyEntry]:
        return only_log(self.root)

    def logged(self, kind: type[E]) -> list[E]:
        return [entry for entry in self.log if isinstance(entry, kind)]

    @property
    def finishes(self) -> list[str]:
        return [entry.finish for entry in self.logged(CycleEnd)]


KEY = {"LLAMACPP_API_KEY": "secret-of-the-server"}
KEYED = ("--cfg", "providers.llm.mine.api_key_env=LLAMACPP_API_KEY")


@pytest.fixture
def guarded(model_file: Path) -> Generator[ForeignServer]:
    """A server of the test's own, which wants a key."""
    with serving(model_file, "--api_key", KEY["LLAMACPP_API_KEY"]) as started:
        yield started


Sit = Callable[[str], Desk]


@pytest.fixture
def sit(server: ForeignServer, tmp_path: Path) -> Sit:
    return lambda model: Desk(tmp_path, server.url, model)


def param(name: str, value: object) -> tuple[str, str]:
    return "--param", f"{name}:={json.dumps(value)}"


SHORT = (*param("max_tokens", 24), *param("other", NEVER_ENDS))
WORDY = param("other", {"min_tokens": 8})
"""The model says something before it is done."""
LONG = (*param("max_tokens", WINDOW - 1024), *param("other", NEVER_ENDS))


@BOTH
def test_a_query_is_answered_and_kept(sit: Sit, model: str) -> None:
    desk = sit(model)

    result = desk.query(*WORDY, "Hello?")

    assert (result.code, result.stderr) == (0, "")
    assert [result.stdout.rstrip("\n")] == [text.rstrip("\n") for text in messages(desk.log)]
    assert desk.finishes == ["stop"]
    assert result.stdout.strip()


@BOTH
def test_a_longest_output_is_kept_to(sit: Sit, model: str) -> None:
    desk = sit(model)

    result = desk.query(*SHORT, "Hello?")

    assert result.code == 14
    assert desk.finishes == ["length"]
    assert 1 <= len(messages(desk.log)[0]) <= 24 * 4


@BOTH
def test_an_answer_comes_in_pieces(sit: Sit, model: str) -> None:
    desk = sit(model)
    asking = desk.asking(*param("max_tokens", 400), *param("other", NEVER_ENDS), "Hello?")
    pieces = [asking.piece()]
    at_first = desk.finishes
    while piece := asking.piece():
        pieces.append(piece)

    assert asking.rest().code == 14
    assert at_first == []
    assert len(pieces) > 10
    assert "".join(pieces).rstrip("\n") == messages(desk.log)[0].rstrip("\n")


@BOTH
def test_a_stop_word_ends_the_answer(sit: Sit, model: str) -> None:
    desk = sit(model)

    result = desk.query(*LONG, *param("stop_words", ["q"]), "Hello?")

    # It may be the first that the model says.
    assert (result.code, bool(result.stdout.strip())) in {(0, True), (13, False)}
    assert "q" not in result.stdout
    assert desk.finishes == ["stop"]


@BOTH
def test_a_conversation_goes_on(sit: Sit, model: str) -> None:
    desk = sit(model)
    first = desk.query(*SHORT, "--system", "Say little.", "--attach", ".jp/config.toml", "Hello?")
    (answer,) = messages(desk.log)

    second = desk.query("--id", "last", "Go on — ünïcode, 日本 and 🦙.")

    assert (first.code, second.code) == (14, 14)
    assert len(messages(desk.log)) == 2
    assert messages(desk.log)[0] == answer
    assert len(desk.logged(TurnStart)) == 2


FILE_TOOL = ("--cfg", "conversation.tools.fs_read_file.enable=true")


@BOTH
def test_tools_are_offered_and_need_not_be_called(sit: Sit, model: str) -> None:
    desk = sit(model)

    result = desk.query(*FILE_TOOL, *SHORT, "Hello?")

    assert result.code == 14
    assert desk.logged(ToolCallRequest) == []


def test_a_call_that_is_forced_comes_runs_and_is_answered(sit: Sit) -> None:
    desk = sit("mine/tiny")
    forced = ("--cfg", "assistant.tool_choice=fs_read_file")

    result = desk.query(*FILE_TOOL, *forced, "--approve", "fs_read_file", *WORDY, "Read!")

    calls, results = desk.logged(ToolCallRequest), desk.logged(ToolCallResponse)
    assert result.code == 0
    assert [call.name for call in calls] == ["fs_read_file"]
    assert isinstance(calls[0].arguments, dict)
    assert isinstance(calls[0].arguments["path"], str)
    assert [answer.request for answer in results] == [calls[0].id]
    assert desk.finishes == ["tools", "stop"]
    assert len(messages(desk.log)) == 1


@BOTH
def test_a_demand_that_the_server_does_not_keep_to_is_repeated_and_given_up(sit: Sit, model: str) -> None:
    """This server takes `required` and does nothing about it; llama.cpp's own does."""
    desk = sit(model)

    result = desk.query(*FILE_TOOL, "--cfg", "assistant.tool_choice=required", *WORDY, "Read!")

    assert result.code == 13
    assert desk.logged(ToolCallRequest) == []
    assert desk.finishes == ["stop"] * 4


def test_an_answer_is_held_to_a_schema(sit: Sit) -> None:
    desk = sit("mine/tiny")

    result = desk.query("--schema", 'risk "low"|"high", sure bool, ?why "a"|"b"', "Hello?")

    value = json.loads(result.stdout)
    assert (result.code, result.stderr) == (0, "")
    assert value["risk"] in {"low", "high"}
    assert isinstance(value["sure"], bool)
    assert value.keys() <= {"risk", "sure", "why"}


@BOTH
def test_an_interrupted_answer_is_kept_and_the_server_is_free(sit: Sit, model: str) -> None:
    desk = sit(model)
    asking = desk.asking(*LONG, "Hello?")
    first = asking.piece()

    asking.process.send_signal(signal.SIGINT)
    ended = asking.rest()
    after = desk.query("--id", "last", *SHORT, "Go on.")

    assert ended.code == 130
    assert "Traceback" not in ended.stderr
    assert (first + ended.stdout).rstrip("\n") == messages(desk.log)[0].rstrip("\n")
    assert desk.finishes == ["cancelled", "length"]
    assert after.code == 14


@BOTH
def test_a_server_of_one_model_takes_any_name(server: ForeignServer, tmp_path: Path, model: str) -> None:
    desk = Desk(tmp_path, server.url, f"{model}-of-another-name")

    assert desk.query(*SHORT, "Hello?").code == 14


@BOTH
def test_a_request_that_is_longer_than_the_window_is_told_as_that(sit: Sit, model: str) -> None:
    desk = sit(model)

    result = desk.query(*SHORT, stdin="word " * WINDOW)

    assert result.code == 7
    assert f"maximum context length is {WINDOW} tokens" in result.stderr
    assert len(desk.logged(ChatRequest)) == 1


def test_a_schema_in_a_form_that_the_server_does_not_know_is_an_error_at_once(sit: Sit) -> None:
    desk = sit("mine/tiny")

    result = desk.query("--cfg", "providers.llm.mine.structured=json_schema", "--schema", "sure bool", "Hello?")

    assert result.code == 5
    assert "response_format" in result.stderr
    assert "retry" not in result.stderr
    assert "hint: `providers.llm.mine` has settings for features that a server lacks" in result.stderr


@BOTH
def test_a_server_that_counts_no_tokens_of_a_stream_leaves_them_unknown(sit: Sit, model: str) -> None:
    desk = sit(model)
    desk.query(*SHORT, "Hello?")

    usage = run_jp("conversation", "usage", "--format", "json", cwd=desk.root)

    assert json.loads(usage.stdout)["total"]["usage"] is None


@pytest.mark.parametrize("provider", ["llamacpp", "mine"])
def test_the_model_is_listed(server: ForeignServer, tmp_path: Path, provider: str) -> None:
    desk = Desk(tmp_path, server.url, f"{provider}/tiny")

    listed = run_jp("model", "ls", provider, "--refresh", "--format", "json", cwd=desk.root)

    assert (listed.code, listed.stderr) == (0, "")
    assert f"{provider}/tiny" in listed.stdout


@BOTH
def test_a_key_is_wanted(guarded: ForeignServer, tmp_path: Path, model: str) -> None:
    desk = Desk(tmp_path, guarded.url, model)

    refused, answered = desk.query("Hello?"), run_jp("query", *KEYED, *SHORT, "Hello?", cwd=desk.root, env=KEY)

    assert refused.code == 4
    assert "Invalid API key" in refused.stderr
    assert answered.code == 14


@BOTH
def test_what_came_of_a_server_that_dies_is_kept_and_nobody_is_there_then(
    guarded: ForeignServer, tmp_path: Path, model: str
) -> None:
    desk = Desk(tmp_path, guarded.url, model)
    asking = desk.asking(*KEYED, *LONG, "Hello?", **KEY)
    first = asking.piece()

    guarded.stop()
    ended = asking.rest()
    after = desk.query("--id", "last", "Are you there?")

    provider = model.partition("/")[0]
    assert ended.code == 5
    assert (first + ended.stdout).rstrip("\n") == messages(desk.log)[0].rstrip("\n")
    assert after.code == 5
    assert re.search(r"no connection to '127\.0\.0\.1:\d+': Connection refused\n", after.stderr)
    assert f"hint: is the server running? `providers.llm.{provider}.base_url` sets its URL" in after.stderr

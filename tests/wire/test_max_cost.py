"""What a query may cost, against a server on this machine that speaks Anthropic's protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anthropic_wire import block, ending, start, text, tool_use
from forked import run_jp
from jp.conversation.entries import ChatResponse, CycleEnd, ToolCallResponse, TurnStart
from loopback import PATIENCE, Loopback, Received, Reply, sse
from running import Result
from stage import logs, make_workspace, only_log

ENV = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
GO_ON = 'hint: go on with `jp query --id last --max-cost USD "continue"`\n'
LARGE = {"input_tokens": 1000, "output_tokens": 1}
"""At the prices of Haiku 4.5, a tenth of a cent."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def query(server: Loopback, cwd: Path, *arguments: str, model: str = "claude-haiku-4-5") -> Result:
    settings = (f"providers.llm.anthropic.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    return run_jp("query", *cfg, "--model", f"anthropic/{model}", *arguments, cwd=cwd, env=ENV)


def calling() -> Reply:
    return Reply(body=sse(start(usage=LARGE), *tool_use(0, "no_such_tool", "{}"), *ending("tool_use")))


def saying(*pieces: str) -> Reply:
    return Reply(body=sse(start(usage=LARGE), *text(0, *pieces), *ending()))


def test_no_further_request_is_sent_where_it_could_not_be_paid(root: Path) -> None:
    with Loopback(calling(), saying("Hello")) as server:
        stopped = query(server, root, "--max-cost", "0.00101", "Hi")

        assert (stopped.code, stopped.stdout) == (6, "")
        assert "error: the turn was stopped by the limit on costs of $0.00101 (about $0.001025" in stopped.stderr
        assert stopped.stderr.endswith(f" is spent); the output so far is kept\n{GO_ON}")
        assert len(server.requests) == 1
        entries = only_log(root)
        assert [entry.finish for entry in entries if isinstance(entry, CycleEnd)] == ["tools"]
        assert any(isinstance(entry, ToolCallResponse) for entry in entries)

        again = query(server, root, "--id", "last", "--max-cost", "0.005", "continue")
        assert (again.code, again.stdout) == (0, "Hello\n")


def test_an_answer_is_cut_where_it_costs_too_much_and_what_came_is_kept(root: Path) -> None:
    pieces = [f"{number:03} " * 25 for number in range(100)]
    opened, *_ = block(0, {"type": "text", "text": ""})
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces
    ]
    with Loopback(Reply(body=sse(start(), opened, *deltas), ends="hang"), saying("and on")) as server:
        cut = query(server, root, "--max-cost", "0.00101", "Hi")

        assert server.client_left.wait(PATIENCE)
        assert cut.code == 6
        assert cut.stderr.endswith(f"; the output so far is kept\n{GO_ON}")
        (kept,) = [entry.message or "" for entry in only_log(root) if isinstance(entry, ChatResponse)]
        assert kept == cut.stdout.removesuffix("\n")
        assert "".join(pieces).startswith(kept)
        assert 600 < len(kept) < 900  # 200 tokens at 5 USD for a million, less the prompt
        assert [entry.finish for entry in only_log(root) if isinstance(entry, CycleEnd)] == ["length"]

        assert query(server, root, "--id", "last", "go on").stdout == "and on\n"
        assert kept in json.dumps(server.requests[1].json())


@pytest.mark.parametrize("by", ["option", "setting"])
def test_a_request_that_costs_too_much_is_not_sent_and_nothing_is_written(root: Path, by: str) -> None:
    limit = ("--max-cost", "0.00001") if by == "option" else ("--cfg", "assistant.request.max_cost=0.00001")
    with Loopback() as server:
        refused = query(server, root, *limit, "Hi")

    assert (refused.code, refused.stdout) == (6, "")
    assert refused.stderr == (
        "error: the request alone costs about $0.000022, and the limit on costs is $0.00001; "
        "nothing was sent or written\n"
        "hint: raise it with `--max-cost USD`, or send less: `jp query --dry-run` shows what is sent\n"
    )
    assert (server.requests, logs(root)) == ([], [])


def test_costs_that_nobody_knows_cannot_be_limited(root: Path) -> None:
    with Loopback(saying("Hello")) as server:
        refused = query(server, root, "--max-cost", "1", "Hi", model="claude-unheard-of")
        models = "providers.llm.anthropic.models.claude-unheard-of"
        prices = ("--cfg", f"{models}.input_price=1", "--cfg", f"{models}.output_price=2")

        assert refused.code == 3
        assert refused.stderr == (
            "error: there is a limit on costs ($1), but what 'anthropic/claude-unheard-of' costs is not known\n"
            "hint: say it, in USD for a million tokens: "
            f"`jp config set {models}.input_price=3 {models}.output_price=15`\n"
        )
        assert (server.requests, logs(root)) == ([], [])
        assert query(server, root, "--max-cost", "1", *prices, "Hi", model="claude-unheard-of").stdout == "Hello\n"


def test_a_correction_is_paid_from_the_same_limit(root: Path) -> None:
    with Loopback(saying('{"name": 1}'), saying('{"name": "Ada"}')) as server:
        stopped = query(server, root, "--max-cost", "0.001026", "--schema", "name str", "Hi")

    assert (stopped.code, stopped.stdout) == (6, "")
    assert stopped.stderr.endswith(GO_ON)
    assert len(server.requests) == 1
    assert sum(isinstance(entry, TurnStart) for entry in only_log(root)) == 1


def test_a_value_that_is_cut_for_its_cost_is_no_misfit(root: Path) -> None:
    with Loopback(saying('{"name": "', *["word " * 20] * 20)) as server:
        stopped = query(server, root, "--max-cost", "0.0015", "--schema", "name str", "Hi")

    assert (stopped.code, stopped.stdout) == (6, "")
    assert stopped.stderr.endswith(GO_ON)


@pytest.mark.parametrize(("limit", "has_title"), [("0.00005", False), ("0.01", True)])
def test_a_title_is_paid_from_the_same_limit(root: Path, limit: str, *, has_title: bool) -> None:
    def answer(request: Received) -> Reply:
        words = '{"title": "Greetings"}' if request.json()["model"] == "claude-haiku-5-5" else "Hello"
        return Reply(body=sse(start(), *text(0, words), *ending()))

    with Loopback(otherwise=answer) as server:
        auto = "conversation.title.generate.auto=true"
        done = query(server, root, "-v", "--cfg", auto, "--max-cost", limit, "Hi", model="claude-sonnet-5-5")

    assert (done.code, done.stdout) == (0, "Hello\n")
    assert ("log: no title: the limit on costs leaves nothing for it\n" in done.stderr) is not has_title
    assert len(server.requests) == 1 + has_title


def test_a_limit_has_to_be_an_amount(root: Path) -> None:
    for limit, said in (("0", "cannot be 0"), ("-1", "cannot be -1"), ("abc", "'abc' is not a number")):
        refused = run_jp("query", "--max-cost", limit, "Hi", cwd=root)

        assert (refused.code, refused.stdout, logs(root)) == (2, "", [])
        assert said in refused.stderr.splitlines()[0]

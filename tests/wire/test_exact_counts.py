"""`jp query --dry-run --exact` against servers on this machine, and what estimates learn from answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anthropic_wire import ending, start, text
from forked import run_jp
from loopback import JSON, Loopback, Received, Reply, sse
from running import Result, home_beside
from stage import logs, make_workspace

ENV = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "OPENAI_API_KEY": "k-o", "GEMINI_API_KEY": "k-g"}
WORDS = "a word or two, " * 400


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def jp(server: Loopback, cwd: Path, model: str, *arguments: str, env: dict[str, str] | None = None) -> Result:
    provider = model.partition("/")[0]
    cfg = ("--cfg", f"providers.llm.{provider}.base_url={server.url}") if provider != "script" else ()
    return run_jp("query", *cfg, "--model", model, *arguments, cwd=cwd, env=ENV if env is None else env)


def count(tokens: object) -> Reply:
    return Reply(headers=JSON, body=json.dumps(tokens).encode())


@pytest.mark.parametrize(
    ("model", "answer", "target"),
    [
        ("anthropic/claude-haiku-4-5", {"input_tokens": 1234}, "/v1/messages/count_tokens"),
        (
            "openai/gpt-5.6",
            {"object": "response.input_tokens", "input_tokens": 1234},
            "/v1/responses/input_tokens",
        ),
        (
            "google/gemini-3.8-flash",
            {"totalTokens": 1234, "promptTokensDetails": []},
            "/models/gemini-3.8-flash:countTokens",
        ),
    ],
)
def test_a_provider_counts_what_would_be_sent(model: str, answer: dict[str, Any], target: str, root: Path) -> None:
    provider = model.partition("/")[0]
    with Loopback(count(answer), count(answer)) as server:
        told = jp(server, root, model, "--dry-run", "--exact", "Hi")
        data = jp(server, root, model, "--dry-run", "--exact", "-F", "json", "Hi")
        first, second = server.requests

    assert (told.code, told.stderr) == (0, "")
    assert f" tokens, counted by {provider}, $" in told.stdout
    assert "total      1,234 of " in told.stdout
    assert told.stdout.endswith("nothing was written, or sent but to be counted; --format json shows the request\n")
    value = json.loads(data.stdout)
    assert (value["exact"]["tokens"], value["exact"]["by"]) == (1234, provider)
    assert value["estimate"]["total"] != 1234
    assert first.target == target
    assert {first.headers.get(name) for name in ("x-api-key", "authorization", "x-goog-api-key")} & {
        ENV["ANTHROPIC_API_KEY"],
        "Bearer k-o",
        "k-g",
    }
    assert first.body == second.body
    sent = json.dumps(value["request"]["body"])
    assert all(json.dumps(part)[1:-1] in sent for part in _parts_of(first))
    assert logs(root) == []


def _parts_of(request: Received) -> list[Any]:
    """The message, as each provider is asked to count it."""
    body: dict[str, Any] = request.json()
    whole = body.get("generateContentRequest", body)
    return [whole.get("messages") or whole.get("input") or whole["contents"]]


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (
            ("ollama/qwen3:8b", "--dry-run", "--exact"),
            "'ollama' does not count tokens, so --exact is of no use",
            "remove --exact for an estimate; those that count are: anthropic, openai, google",
        ),
        (
            ("anthropic/claude-haiku-4-5", "--exact"),
            "--exact is for --dry-run",
            "`jp query --dry-run --exact …` counts what would be sent",
        ),
    ],
)
def test_where_nobody_counts_there_is_an_error_and_no_estimate(
    arguments: tuple[str, ...], error: str, hint: str, root: Path
) -> None:
    with Loopback() as server:
        result = jp(server, root, *arguments, "Hi")

        assert server.requests == []
    assert (result.code, result.stdout, result.stderr) == (2, "", f"error: {error}\nhint: {hint}\n")


def test_a_scenario_counts_nothing(root: Path) -> None:
    result = run_jp("query", "--dry-run", "--exact", "Hi", cwd=root, env=ENV)

    assert (result.code, result.stdout) == (2, "")
    assert "'script' does not count tokens" in result.stderr


def test_a_cloud_that_does_not_count_is_named(root: Path) -> None:
    account = '{"transport":"sdk","platform":"bedrock","region":"us-east-1"}'
    result = run_jp(
        "query",
        "--cfg",
        f"providers.llm.anthropic:={account}",
        "--model",
        "anthropic/claude-haiku-4-5",
        "--dry-run",
        "--exact",
        "Hi",
        cwd=root,
        env=ENV,
    )

    assert (result.code, result.stdout) == (2, "")
    assert "error: 'anthropic' (Bedrock) does not count tokens" in result.stderr


def test_counting_takes_a_key(root: Path) -> None:
    with Loopback() as server:
        result = jp(server, root, "anthropic/claude-haiku-4-5", "--dry-run", "--exact", "Hi", env={})

    assert (result.code, result.stdout) == (4, "")
    assert "no API key for 'anthropic'" in result.stderr


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (
            Reply(status=401, headers=JSON, body=b'{"error":{"message":"bad key"}}'),
            4,
            "anthropic answered 401: bad key",
        ),
        (count({"tokens": 1}), 5, "anthropic did not return a token count"),
        (Reply(headers=JSON, body=b"no"), 5, "anthropic did not return a token count"),
    ],
)
def test_a_count_that_does_not_come_is_an_error(reply: Reply, code: int, said: str, root: Path) -> None:
    with Loopback(reply) as server:
        result = jp(server, root, "anthropic/claude-haiku-4-5", "--dry-run", "--exact", "Hi")

    assert (result.code, result.stdout) == (code, "")
    assert said in result.stderr
    assert ENV["ANTHROPIC_API_KEY"] not in result.stderr


def reported(tokens: int) -> Reply:
    return Reply(body=sse(start(usage={"input_tokens": tokens, "output_tokens": 1}), *text(0, "Yes."), *ending()))


def dry_run(server: Loopback, root: Path, *options: str) -> str:
    return jp(server, root, "anthropic/claude-haiku-4-5", "--dry-run", "--new", *options, WORDS).stdout


def test_estimates_learn_from_what_a_provider_reports(root: Path) -> None:
    with Loopback(otherwise=reported(2400)) as server:
        first, plain = json.loads(dry_run(server, root, "-F", "json")), dry_run(server, root)
        assert jp(server, root, "anthropic/claude-haiku-4-5", "--new", WORDS).code == 0
        second, told = json.loads(dry_run(server, root, "-F", "json")), dry_run(server, root)
        (sent,) = server.requests

    assert first["request"]["body"] == second["request"]["body"] == sent.json()
    before, after = first["estimate"], second["estimate"]
    assert (before["ratio"], before["answers"]) == (1.0, 0)
    assert "calibrated" not in plain
    assert after["answers"] == 1
    assert abs(after["total"] - 2400) <= 2
    assert after["ratio"] == pytest.approx(2400 / before["total"], rel=0.01)
    assert f"about {after['total']:,} of 200,000 tokens (calibrated by 1 answer of this model), about $" in told


def test_nothing_is_learned_where_nothing_is_to_be_kept(root: Path) -> None:
    with Loopback(otherwise=reported(2400)) as server:
        assert jp(server, root, "anthropic/claude-haiku-4-5", "--no-persist", "--new", WORDS).code == 0
        known = json.loads(dry_run(server, root, "-F", "json"))["estimate"]

    assert known["answers"] == 0
    assert list(home_beside(root).rglob("estimates.json")) == []


def test_a_limit_on_costs_goes_by_what_was_learned(root: Path) -> None:
    limit = ("--max-cost", "0.0017", "--new", WORDS)
    with Loopback(reported(2400), otherwise=reported(2400)) as server:
        assert jp(server, root, "anthropic/claude-haiku-4-5", "--new", WORDS).code == 0
        refused = jp(server, root, "anthropic/claude-haiku-4-5", *limit)
        assert len(server.requests) == 1

    assert refused.code == 6
    assert "the request alone costs about $0.0024" in refused.stderr

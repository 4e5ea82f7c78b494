"""What a provider's refreshed list says of a model decides the request, is recorded, and is sent again from the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import chat_wire
from forked import run_jp
from loopback import JSON, Loopback, Received, Reply
from running import home_beside
from stage import logs, make_workspace

THINKER = {
    "id": "acme/thinker",
    "supported_parameters": ["reasoning"],
    "reasoning": {"mandatory": True, "supported_efforts": ["max", "high", "low"]},
}
LATEST = {**THINKER, "id": "~acme/thinker-latest"}
ABILITIES = {
    "thinking_off": "never",
    "thinks_by_default": True,
    "levels": ["low", "high", "max"],
    "budgets": False,
}


def openrouter(request: Received) -> Reply:
    if request.target.endswith("/models"):
        return Reply(headers=JSON, body=msgspec.json.encode({"data": [THINKER, LATEST]}))
    return Reply(body=chat_wire.answer(*chat_wire.says("Hello")))


def configure(root: Path, server: Loopback, kind: str) -> None:
    path = home_beside(root) / "config" / "config.toml"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f'[providers.llm.{kind}]\nbase_url = "{server.url}"\n', encoding="utf-8")


def dry(root: Path, model: str, *arguments: str) -> dict[str, Any]:
    shown = run_jp("query", "--new", "--dry-run", "--format", "json", "-m", model, *arguments, "hi", cwd=root)
    assert shown.code == 0, shown
    return json.loads(shown.stdout)["request"]["body"]


@pytest.mark.parametrize("name", ["acme/thinker", "~acme/thinker-latest"])
def test_a_listed_model_is_asked_only_for_what_its_list_allows(name: str, tmp_path: Path) -> None:
    root, model = make_workspace(tmp_path / "work"), f"openrouter/{name}"
    with Loopback(otherwise=openrouter) as server:
        configure(root, server, "openrouter")
        before = dry(root, model, "-p", "reasoning=off")
        listing = run_jp("model", "ls", "openrouter", "--refresh", cwd=root)
        bodies = [dry(root, model, "-p", f"reasoning={wanted}") for wanted in ("off", "medium", "max", "20000")]

    assert listing.code == 0
    assert model in listing.stdout
    assert before["reasoning"] == {"enabled": False}
    assert [body["reasoning"] for body in bodies] == [
        {"effort": "low", "exclude": True},
        {"effort": "low"},
        {"effort": "max"},
        {"effort": "high"},
    ]


def test_what_the_list_decided_is_in_the_log_and_is_sent_again_from_there(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    with Loopback(otherwise=openrouter) as server:
        configure(root, server, "openrouter")
        run_jp("model", "ls", "openrouter", "--refresh", cwd=root)
        asked = run_jp(
            *("query", "--new", "-m", "openrouter/acme/thinker", "-p", "reasoning=off", "hi"),
            cwd=root,
            env={"OPENROUTER_API_KEY": "k"},
        )
        sent = server.requests[-1].body
    (home_beside(root) / "data" / "cache" / "models" / "openrouter.json").unlink()
    again = run_jp("conversation", "print", "last", "--as-sent", "0", cwd=root)
    (log,) = logs(root)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (context,) = (line for line in lines if line["type"] == "request_context")

    assert asked.code == 0, asked
    assert context["parameters"] == {"reasoning": "off", "abilities": ABILITIES}
    assert json.loads(sent)["reasoning"] == {"effort": "low", "exclude": True}
    assert again.stdout.removesuffix("\n").encode() == sent


def test_what_a_server_shows_of_a_model_goes_before_what_its_name_lets_expect(tmp_path: Path) -> None:
    def ollama(request: Received) -> Reply:
        shown = {"capabilities": ["completion", "tools"], "model_info": {"x.context_length": 8192}}
        tags = {"models": [{"name": "qwen3:8b"}]}
        return Reply(headers=JSON, body=msgspec.json.encode(tags if request.target == "/api/tags" else shown))

    root = make_workspace(tmp_path / "work")
    with Loopback(otherwise=ollama) as server:
        configure(root, server, "ollama")
        before = dry(root, "ollama/qwen3:8b", "-p", "reasoning=high")
        run_jp("model", "ls", "ollama", "--refresh", cwd=root)
        after = dry(root, "ollama/qwen3:8b", "-p", "reasoning=high")

    assert (before["think"], after["think"]) == (True, False)

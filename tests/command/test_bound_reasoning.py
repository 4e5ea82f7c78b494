"""Reasoning that a vendor takes back only behind an unchanged prefix: what compacting takes of it, and who says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import anthropic_wire
from forked import run_jp
from jp.conversation.entries import CycleEnd, InputChange
from loopback import Loopback, Reply, sse
from prefix_server import PrefixServer
from running import Result
from stage import make_workspace, only_log

ENVIRONMENT = {"ANTHROPIC_API_KEY": "sk-ant-test", "OPENAI_API_KEY": "sk-test"}
MODELS = {"anthropic": "claude-fable-5-2", "openai": "gpt-6.2-sol"}
NOT_SENT = "earlier reasoning not sent: what came before has changed, and the provider checks that"


def jp(root: Path, server: Loopback, vendor: str, *words: str) -> Result:
    settings = (f"providers.llm.{vendor}.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    return run_jp(words[0], *cfg, "--model", f"{vendor}/{MODELS[vendor]}", *words[1:], cwd=root, env=ENVIRONMENT)


def compact(root: Path, *words: str) -> Result:
    return run_jp("conversation", "compact", "last", "--keep", "1", "--tools=strip-requests", *words, cwd=root)


def begun(root: Path, server: Loopback, checking: PrefixServer) -> None:
    """A turn of two calls, and one of two more."""
    for number, words in enumerate((("--new", "one"), ("two",))):
        checking.moves = [("read",), ("read",)]
        result = jp(root, server, checking.vendor, "query", *words)
        assert (result.code, NOT_SENT in result.stderr) == (0, False), number


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
@pytest.mark.parametrize("refuses", [False, True], ids=["drops", "refuses"])
def test_what_a_compaction_invalidates_is_counted_before_and_not_sent_after(
    root: Path, vendor: Any, *, refuses: bool
) -> None:
    checking = PrefixServer(vendor, refuses=refuses)
    with Loopback(otherwise=checking) as server:
        begun(root, server, checking)
        preview = compact(root, "--dry-run")
        value = json.loads(compact(root, "--dry-run", "--format", "json").stdout)
        intact = json.loads(run_jp("conversation", "context", "last", "--format", "json", cwd=root).stdout)
        assert compact(root).code == 0
        context = run_jp("conversation", "context", "last", cwd=root)
        changed = json.loads(run_jp("conversation", "context", "last", "--format", "json", cwd=root).stdout)
        asked = jp(root, server, vendor, "query", "three")
        again = jp(root, server, vendor, "query", "four")
    usage = run_jp("conversation", "usage", "last", cwd=root)
    told = json.loads(run_jp("conversation", "usage", "last", "--format", "json", cwd=root).stdout)

    # Of six pieces one stands before the first call that is stripped, and stays.
    assert value["reasoning_lost"]["blocks"] == 5
    assert value["reasoning_lost"]["tokens"] > 0
    assert "reasoning lost: 5 pieces, about" in preview.stdout
    assert intact["reasoning_withheld"] == {"blocks": 0, "tokens": 0}
    assert changed["reasoning_withheld"] == value["reasoning_lost"]
    assert "reasoning  5 pieces, about" in context.stdout
    assert (asked.code, asked.stderr.count(f"5 pieces of {NOT_SENT}")) == (0, 1)
    assert (again.code, NOT_SENT in again.stderr) == (0, False)
    assert checking.lost == []
    assert checking.sent[-2:] == [1, 2]
    assert "reasoning  5 pieces not sent with the newest request" in usage.stdout
    assert told["reasoning"] == {"withheld": 5, "changed_by_provider": []}


def test_an_undone_compaction_gives_all_of_it_back(root: Path) -> None:
    checking = PrefixServer("anthropic", refuses=True)
    with Loopback(otherwise=checking) as server:
        begun(root, server, checking)
        assert compact(root).code == 0
        assert run_jp("conversation", "compact", "last", "--reset", cwd=root).code == 0
        asked = jp(root, server, "anthropic", "query", "three")

    assert (asked.code, NOT_SENT in asked.stderr) == (0, False)
    assert checking.sent[-1] == 6
    assert checking.lost == []


def test_what_is_printed_as_sent_is_what_was_sent(root: Path) -> None:
    checking = PrefixServer("anthropic")
    with Loopback(otherwise=checking) as server:
        begun(root, server, checking)
        assert compact(root).code == 0
        assert jp(root, server, "anthropic", "query", "three").code == 0
    words = ("conversation", "print", "last", "--as-sent=-1", "--format", "json")
    value = json.loads(run_jp(*words, cwd=root, env=ENVIRONMENT).stdout)

    assert value["verified"] is True
    assert value["request"]["body"]["messages"] == checking.bodies[-1]["messages"]


def test_what_the_vendor_drops_is_kept_in_the_log_and_shown(root: Path) -> None:
    start = anthropic_wire.start()
    message: Any = start["message"]
    change = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "end_user_binding_mismatch"}
    message["input_transformations"] = [change]
    body = sse(start, *anthropic_wire.text(0, "Hello."), *anthropic_wire.ending())
    with Loopback(Reply(body=body)) as server:
        assert jp(root, server, "anthropic", "query", "--new", "hi").code == 0
    usage = run_jp("conversation", "usage", "last", cwd=root)
    told = json.loads(run_jp("conversation", "usage", "last", "--format", "json", cwd=root).stdout)

    (end,) = (entry for entry in only_log(root) if isinstance(entry, CycleEnd))
    assert end.input_changes == (InputChange(**change),)
    assert (
        "changed by the provider before the model saw the request:\n"
        "  turn 0, cycle 0: thinking_dropped messages.1.content.0 (end_user_binding_mismatch)\n"
    ) in usage.stdout
    assert told["reasoning"]["changed_by_provider"] == [{"turn": 0, "cycle": 0, **change}]

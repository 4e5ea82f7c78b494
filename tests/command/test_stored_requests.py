"""Whether a vendor is asked to keep nothing of what it is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forked import run_jp
from loopback import JSON, Loopback, Reply
from stage import make_workspace

MODELS = {
    "google": "gemini-2.5-flash", "openai": "gpt-5", "openrouter": "openai/gpt-5", "work": "m", "labs": "m",
}  # fmt: skip
SERVERS = """
[providers.llm.work]
kind = "google"
base_url = "http://127.0.0.1:9/v1beta"
[providers.llm.labs]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
"""


def body(root: Path, provider: str, *arguments: str) -> dict[str, Any]:
    asked = ("--dry-run", "--format", "json", "--model", f"{provider}/{MODELS[provider]}", *arguments, "hello")
    done = run_jp("query", *asked, cwd=root)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)["request"]["body"]


@pytest.mark.parametrize("provider", MODELS)
def test_nothing_is_kept_unless_a_setting_allows_it(tmp_path: Path, provider: str) -> None:
    root = make_workspace(tmp_path / "work", settings=SERVERS)
    run_jp("workspace", "trust", "--yes", cwd=root)
    usual = body(root, provider)
    allowed = body(root, provider, "--cfg", f"providers.llm.{provider}.store:=true")

    if provider == "openrouter":
        assert (usual["provider"], allowed.get("provider")) == ({"data_collection": "deny"}, None)
    else:
        assert (usual["store"], allowed["store"]) == (False, True)


def test_vertex_is_sent_no_field_that_it_does_not_know(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")

    assert "store" not in body(root, "google", "--cfg", "providers.llm.google.transport=sdk")


@pytest.mark.parametrize("other", ["store:=true", 'provider:={"data_collection":"allow","order":["a"]}'])
def test_no_parameter_has_requests_kept(tmp_path: Path, other: str) -> None:
    root = make_workspace(tmp_path / "work")
    where = f"assistant.model.parameters.other.{other}"
    if other.startswith("provider"):
        assert body(root, "openrouter", "--cfg", where)["provider"] == {"data_collection": "deny", "order": ["a"]}
        return
    for provider in ("google", "openai"):
        done = run_jp("query", "--dry-run", "-m", f"{provider}/{MODELS[provider]}", "--cfg", where, "hi", cwd=root)
        assert (done.code, "'store' cannot be set by `other`" in done.stderr) == (3, True)


def test_a_repository_has_requests_kept_only_where_it_is_trusted(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", settings="[providers.llm.google]\nstore = true\n")
    untrusted = run_jp("query", "--dry-run", "--format", "json", "-m", "google/gemini-2.5-flash", "hi", cwd=root)
    run_jp("workspace", "trust", "--yes", cwd=root)

    assert untrusted.code == 3 or json.loads(untrusted.stdout)["request"]["body"]["store"] is False
    assert "providers.llm.google.store" in untrusted.stderr
    assert body(root, "google")["store"] is True


def test_where_no_vendor_keeps_nothing_the_setting_is_named(tmp_path: Path) -> None:
    told = b'{"error":{"message":"No endpoints found matching your data policy","code":404}}'
    with Loopback(otherwise=Reply(status=404, headers=JSON, body=told)) as server:
        root = make_workspace(tmp_path / "work")
        where = f"providers.llm.openrouter.base_url={server.url}"
        asked = run_jp(
            *("query", "-m", "openrouter/openai/gpt-5", "--cfg", where, "hi"),
            cwd=root,
            env={"OPENROUTER_API_KEY": "sk-or-test"},
        )

    assert asked.code == 5
    assert "may then go to vendors that store them: `jp config set providers.llm.openrouter.store=true`" in asked.stderr

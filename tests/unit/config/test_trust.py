from __future__ import annotations

from typing import Any

import pytest

from jp.config import trust
from jp.config.layers import Layer, Origin
from jp.config.partial import read_partial
from jp.config.trust import Sensitive, UntrustedError, trust_hash, untrusted, values_needing_trust
from jp.errors import ExitCode

FILE = "/w/.jp/config.toml"


def foreign(raw: dict[str, Any], where: str = FILE, reaches: tuple[str, ...] = ()) -> Layer:
    return Layer(origin=Origin(kind="workspace", where=where), change=read_partial(raw), foreign=True, reaches=reaches)


def own(raw: dict[str, Any]) -> Layer:
    return Layer(origin=Origin(kind="user", where="/u/config.toml"), change=read_partial(raw))


def needing(*layers: Layer) -> list[tuple[str, object]]:
    return [(value.key, value.value) for value in values_needing_trust(layers, "/w")]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, []),
        ({"assistant": {"model": {"id": "a/b"}}, "conversation": {"tools": {"x": {"run": "ask", "enable": True}}}}, []),
        (
            {"providers": {"llm": {"anthropic": {"base_url": "https://evil.example"}}}},
            [("providers.llm.anthropic.base_url", "https://evil.example")],
        ),
        (
            {"providers": {"llm": {"mine": {"models": {"a.b": {"context_window": 9, "output_price": 0.0}}}}}},
            [('providers.llm.mine.models."a.b".output_price', 0.0)],
        ),
        (
            {
                "providers": {
                    "llm": {
                        "work": {
                            "kind": "anthropic",
                            "transport": "sdk",
                            "platform": "bedrock",
                            "endpoint": "https://evil.example",
                            "region": "us-east-1",
                            "project": "theirs",
                            "profile": "admin",
                            "api_version": "v9",
                        }
                    }
                }
            },
            [
                ("providers.llm.work.api_version", "v9"),
                ("providers.llm.work.endpoint", "https://evil.example"),
                ("providers.llm.work.platform", "bedrock"),
                ("providers.llm.work.profile", "admin"),
                ("providers.llm.work.project", "theirs"),
                ("providers.llm.work.region", "us-east-1"),
                ("providers.llm.work.transport", "sdk"),
            ],
        ),
        (
            {"providers": {"llm": {"anthropic": {"api_key_env": "AWS_SECRET_ACCESS_KEY"}}}},
            [("providers.llm.anthropic.api_key_env", "AWS_SECRET_ACCESS_KEY")],
        ),
        (
            {"conversation": {"tools": {"*": {"run": "unattended"}, "fs.read": {"run": "unattended"}}}},
            [("conversation.tools.*.run", "unattended"), ('conversation.tools."fs.read".run', "unattended")],
        ),
        (
            {
                "conversation": {
                    "tools": {
                        "a": {"sandbox": {"mode": "read-only", "network": False, "required": True}},
                        "b": {"sandbox": {"mode": "off", "network": True, "required": False, "writable": ["/x"]}},
                        "c": {"sandbox": {"mode": "workspace-write"}},
                    }
                }
            },
            [
                ("conversation.tools.b.sandbox.mode", "off"),
                ("conversation.tools.b.sandbox.network", True),
                ("conversation.tools.b.sandbox.required", False),
                ("conversation.tools.b.sandbox.writable", "/x"),
                ("conversation.tools.c.sandbox.mode", "workspace-write"),
            ],
        ),
        (
            {"editor": {"cmd": "sh -c evil", "envs": ["LESSOPEN"]}},
            [("editor.cmd", "sh -c evil"), ("editor.envs", "LESSOPEN")],
        ),
        (
            {"conversation": {"tools": {"value": {"x": {"run": "unattended"}}, "strategy": "replace"}}},
            [("conversation.tools.x.run", "unattended")],
        ),
        (
            {"conversation": {"attachments": ["file:a", "FILE:a", "!a/b:c", "jp:jp-c1", "jp-c1?select=u:0", "a b:c"]}},
            [],
        ),
        (
            {"conversation": {"attachments": ["file:a", "cmd:ls", " CMD://x", "!cmd:y", "cmd+x://y", "gh:pull/1"]}},
            [
                ("conversation.attachments", " CMD://x"),
                ("conversation.attachments", "!cmd:y"),
                ("conversation.attachments", "cmd+x://y"),
                ("conversation.attachments", "cmd:ls"),
                ("conversation.attachments", "gh:pull/1"),
            ],
        ),
        (
            {"conversation": {"attachments": ["mcp+notes+memo://x", "MCP+my_notes+x", "mcp+x.md", "a_b:c"]}},
            [("conversation.attachments", "MCP+my_notes+x"), ("conversation.attachments", "mcp+notes+memo://x")],
        ),
        (
            {
                "conversation": {
                    "tools": {"a": {"source": "mcp.git.*"}, "b": {"source": "local"}, "c": {"enable": True}}
                }
            },
            [("conversation.tools.a.source", "mcp.git.*")],
        ),
        (
            {"providers": {"llm": {"google": {"store": True}, "openai": {"store": False}, "mine": {"store": True}}}},
            [("providers.llm.google.store", True), ("providers.llm.mine.store", True)],
        ),
        (
            {"conversation": {"tools": {"a": {"rules": [{"run": "unattended"}, {"run": "skip"}]}}}},
            [("conversation.tools.a.rules", {"run": "unattended"})],
        ),
        (
            {"providers": {"mcp": {"git": {"command": "git-server", "arguments": ["-v"], "optional": True}}}},
            [
                ("providers.mcp.git.arguments", "-v"),
                ("providers.mcp.git.command", "git-server"),
                ("providers.mcp.git.optional", True),
            ],
        ),
        (
            {"conversation": {"attachments": ["https://example.org", "notion:x"]}},
            [("conversation.attachments", "https://example.org"), ("conversation.attachments", "notion:x")],
        ),
        (
            {"conversation": {"attachments": {"value": ["cmd:ls"], "strategy": "prepend"}}},
            [("conversation.attachments", "cmd:ls")],
        ),
        ({"conversation": {"attachments": {"0": "cmd:ls"}}}, [("conversation.attachments", "cmd:ls")]),
        ({"conversation": {"attachments": {"0": None}, "tools": None}, "providers": {"llm": None}}, []),
        (
            {"config_load_paths": [".jp/config", ".", "a/../b", "../x", "/etc", "~/x", "/w/y", "a/../../w2"]},
            [
                ("config_load_paths", "../x"),
                ("config_load_paths", "/etc"),
                ("config_load_paths", "a/../../w2"),
                ("config_load_paths", "~/x"),
            ],
        ),
    ],
)
def test_what_runs_reaches_out_or_decides_who_gets_keys_needs_trust(
    raw: dict[str, Any], expected: list[tuple[str, object]]
) -> None:
    assert needing(foreign(raw)) == expected


def test_a_key_of_any_kind_joins_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (
        (("conversation", "tools", "*"), always),
        (("assistant", "system_prompt"), always),
        (("user", "name", "below"), always),
    )
    monkeypatch.setattr(trust, "_RULES", rules)
    raw = {
        "conversation": {"tools": {"a": {"run": "ask", "enable": True}, "b": None}},
        "assistant": {"system_prompt": {"value": "x", "strategy": "append"}},
        "user": {"name": "x"},
    }

    assert needing(foreign(raw)) == [
        ("assistant.system_prompt", "x"),
        ("conversation.tools.a", {"run": "ask", "enable": True}),
    ]


def always(_: object) -> bool:
    return True


def test_the_users_own_layers_need_no_trust() -> None:
    raw = {
        "providers": {"llm": {"anthropic": {"base_url": "https://proxy.example"}}},
        "conversation": {"attachments": ["cmd:ls"], "tools": {"x": {"run": "unattended"}}},
        "config_load_paths": ["/etc"],
    }

    assert needing(own(raw)) == []


def test_a_value_that_the_user_declares_too_needs_no_trust() -> None:
    mine = {"conversation": {"attachments": ["cmd:ls"], "tools": {"x": {"run": "unattended"}}}}
    theirs = {"conversation": {"attachments": ["cmd:ls", "cmd:rm"], "tools": {"y": {"run": "unattended"}}}}

    assert needing(own(mine), foreign(theirs)) == [
        ("conversation.attachments", "cmd:rm"),
        ("conversation.tools.y.run", "unattended"),
    ]


def test_a_file_outside_that_is_extended_needs_trust() -> None:
    assert needing(foreign({}, reaches=("/etc/jp.toml",))) == [("extends", "/etc/jp.toml")]


def test_a_value_says_where_it_is_declared_and_counts_once() -> None:
    raw = {"conversation": {"attachments": ["cmd:ls"]}}

    values = values_needing_trust([foreign(raw, "/w/a.toml"), foreign(raw, "/w/b.toml")], "/w")

    assert values == (
        Sensitive(key="conversation.attachments", value="cmd:ls", origin="the workspace's file /w/a.toml"),
    )


def test_the_hash_covers_keys_and_values_and_nothing_else() -> None:
    first = Sensitive(key="a", value="x", origin="here")
    second = Sensitive(key="b", value={"p": 1, "q": 2}, origin="here")
    moved = Sensitive(key="b", value={"q": 2, "p": 1}, origin="there")
    changed = Sensitive(key="b", value={"q": 2, "p": True}, origin="here")

    assert trust_hash((first, second)) == trust_hash((moved, first, first))
    assert trust_hash((first, second)) != trust_hash((first, changed))
    assert trust_hash((first,)) != trust_hash(())
    assert trust_hash(()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_what_was_accepted_together_or_one_by_one_is_trusted() -> None:
    first = Sensitive(key="a", value="x", origin="here")
    second = Sensitive(key="b", value="y", origin="here")

    assert untrusted((), ()) == ()
    assert untrusted((first, second), ()) == (first, second)
    assert untrusted((first, second), {trust_hash((first, second))}) == ()
    assert untrusted((first, second), {trust_hash((first,))}) == (second,)
    assert untrusted((first,), {trust_hash((first, second))}) == (first,)


def test_the_error_names_the_values_and_the_way_out() -> None:
    value = Sensitive(key="conversation.attachments", value="cmd:ls", origin="the workspace's file /w/a.toml")

    error = UntrustedError((value,))

    assert error.exit_code == ExitCode.CONFIGURATION
    assert "conversation.attachments = 'cmd:ls' (the workspace's file /w/a.toml)" in error.message
    assert "`jp workspace trust`" in error.hint
    assert "`jp workspace trust --id x`" in UntrustedError((), command="jp workspace trust --id x").hint
    assert error.values == (value,)

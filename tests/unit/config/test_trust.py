from __future__ import annotations

from typing import Any

import pytest

from jp.cli.terminal.wording import worded
from jp.config.assignment import read_partial
from jp.config.entries import Limit, Ordered
from jp.config.layers import Layer, LayerKind, Origin, Resolved, resolve
from jp.config.trust import (
    UntrustedError,
    load_paths,
    mark_of_attachment,
    mark_of_change,
    mark_of_id,
    mark_of_text,
    resolve_trusted,
    without_lapsing,
)
from jp.errors import ExitCode
from jp.remedies import TrustWorkspace, remedies_of

FILE = "/w/.jp/config.toml"


def foreign(raw: dict[str, Any], where: str = FILE, kind: LayerKind = "workspace", **more: Any) -> Layer:
    origin = Origin(kind=kind, where=where)
    return Layer(origin=origin, change=read_partial(raw), foreign=True, **more)


def own(raw: dict[str, Any], kind: LayerKind = "user") -> Layer:
    return Layer(origin=Origin(kind=kind, where="/u/config.toml"), change=read_partial(raw))


def trusting(*layers: Layer) -> Resolved:
    return resolve_trusted(layers, "/w")


def ignored(*layers: Layer) -> list[tuple[str, object]]:
    return [(value.key, value.value) for value in trusting(*layers).ignored]


def tools(**entries: Any) -> dict[str, Any]:
    return {"conversation": {"tools": {name.replace("ALL", "*"): value for name, value in entries.items()}}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, []),
        ({"assistant": {"model": {"id": "a/b"}}}, []),
        (tools(x={"run": "ask", "enable": True}), []),
        (
            {"providers": {"llm": {"anthropic": {"base_url": "https://evil.example"}}}},
            [("providers.llm.anthropic.base_url", "https://evil.example")],
        ),
        (
            {"providers": {"llm": {"mine": {"models": {"a.b": {"context_window": 9, "output_price": 0.5}}}}}},
            [('providers.llm.mine.models."a.b".output_price', 0.5)],
        ),
        (tools(ALL={"run": "unattended"}), [("conversation.tools.*.run", "unattended")]),
        ({"editor": {"cmd": "evil", "envs": ["X"]}}, [("editor.cmd", "evil")]),
        (
            {
                "conversation": {
                    "attachments": ["file:a", "!a/b:c", "jp:jp-c1", "a b:c", "cmd:ls", " CMD://x", "!cmd:y"]
                }
            },
            [
                ("conversation.attachments", " CMD://x"),
                ("conversation.attachments", "!cmd:y"),
                ("conversation.attachments", "cmd:ls"),
            ],
        ),
        (tools(a={"source": "mcp.git.*"}, a_b={"enable": True}), [("conversation.tools.a.source", "mcp.git.*")]),
        (tools(a={"source": "builtin", "enable": "always"}), [("conversation.tools.a.enable", "always")]),
        ({"providers": {"mcp": {"git": {"command": "s"}}}}, [("providers.mcp.git.command", "s")]),
        (
            {"config_load_paths": [".", "../x", "~/x", "/w/y"]},
            [("config_load_paths", "../x"), ("config_load_paths", "~/x")],
        ),
        ({"assistant": {"tool_choice": "required"}}, [("assistant.tool_choice", "required")]),
        ({"conversation": None, "providers": {"llm": None, "mcp": None}, "assistant": None}, []),
    ],
)
def test_what_loosens_is_ignored(raw: dict[str, Any], expected: list[tuple[str, object]]) -> None:
    found = ignored(foreign(raw))

    assert [item for item in found if item[0] != "editor.envs"] == expected


@pytest.mark.parametrize(
    ("mine", "theirs", "key"),
    [
        ({"editor": {"cmd": "vi"}}, {"editor": None}, "editor.cmd"),
        ({"providers": {"mcp": {"a": {"command": "x"}}}}, {"providers": {"mcp": None}}, "providers.mcp.a"),
        ({"providers": {"llm": {"aliases": {"q": "a/b"}}}}, {"providers": {"llm": None}}, "providers.llm.aliases.q"),
        (
            {"providers": {"llm": {"s": {"base_url": "https://a"}}}},
            {"providers": {"llm": {"s": None}}},
            "providers.llm.s.base_url",
        ),
        ({"assistant": {"request": {"max_cost": 1}}}, {"assistant": None}, "assistant.request.max_cost"),
        ({"assistant": {"model": {"id": "a/b"}}}, {"assistant": {"model": None}}, "assistant.model.id"),
        ({"assistant": {"model": {"id": "a/b"}}}, {"assistant": {"model": {"id": "c"}}}, "assistant.model.id"),
        (tools(x={"run": "skip"}), {"conversation": {"tools": None}}, "conversation.tools.x"),
        (tools(x={"result": "skip"}), tools(x={"result": "ask"}), "conversation.tools.x.result"),
        (tools(x={"enable": "explicit"}), tools(x={"enable": False}), "conversation.tools.x.enable"),
        (
            tools(x={"access": {"local_network": False}}),
            tools(x={"access": {"local_network": True}}),
            "x.access.local_network",
        ),
    ],
)
def test_what_the_user_says_stays(mine: dict[str, Any], theirs: dict[str, Any], key: str) -> None:
    resolved = trusting(own(mine), foreign(theirs))

    assert [value.key.endswith(key) for value in resolved.ignored] == [True]
    assert resolved.config == resolve([own(mine)]).config or key == "conversation.tools.x"


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (tools(x={"run": "unattended"}), tools(x={"run": "skip"}), {"run": "skip"}),
        (tools(x={"run": "unattended"}), {"conversation": {"tools": None}}, {"run": "ask"}),
        (tools(x={"enable": True}), {"conversation": {"tools": None}}, {"enable": False}),
        (tools(x={"enable": True}), tools(x={"enable": "explicit"}), {"enable": "explicit"}),
        (
            tools(x={"run": "unattended"}),
            tools(x={"rules": [{"run": "ask"}]}),
            {"run": "unattended", "rules": [{"run": "ask"}]},
        ),
        (
            tools(x={"run": "unattended", "rules": [{"run": "skip"}]}),
            tools(x={"rules": [{"arguments": {"a": "b"}}]}),
            {"run": "unattended", "rules": [{"run": "skip"}, {"arguments": {"a": "b"}}]},
        ),
        (
            tools(x={"access": {"fs": [{"path": "a", "read": True}]}}),
            tools(x={"access": {"fs": [{"path": "b"}]}}),
            {"access": {"fs": [{"path": "a", "read": True}, {"path": "b"}]}},
        ),
    ],
)
def test_what_tightens_holds(mine: dict[str, Any], theirs: dict[str, Any], expected: dict[str, Any]) -> None:
    resolved = trusting(own(mine), foreign(theirs))

    assert resolved.plain["conversation"]["tools"]["x"] == expected


def test_rules_are_not_added_where_it_is_not_known_what_they_come_before() -> None:
    group = {"m": {"source": "mcp.s.*", "rules": [{"run": "edit"}]}, "*": {"rules": [{"run": "skip"}]}}
    mine = own({"conversation": {"tools": group}})
    theirs = {"rules": [{"run": "skip", "arguments": {"a": "b"}}], "access": {"fs": [{"path": "x", "read": True}]}}

    resolved = trusting(mine, foreign(tools(m_a=theirs, m={"rules": [{"arguments": {"c": "d"}}]})))

    assert [value.key for value in resolved.ignored] == [
        "conversation.tools.m.rules",
        "conversation.tools.m_a.access.fs",
        "conversation.tools.m_a.rules",
    ]


def test_a_tool_that_the_user_names_is_needed() -> None:
    theirs = foreign(tools(x={"command": "c"}, m={"source": "mcp.s.*"}))

    resolved = trusting(theirs, own(tools(x={"enable": True}, m_a={"enable": True}), kind="cfg"))

    assert [(value.key, value.needed) for value in resolved.ignored] == [
        ("conversation.tools.m.source", True),
        ("conversation.tools.x.command", True),
    ]


def test_what_is_extended_outside_is_omitted_until_it_is_accepted() -> None:
    layers = (
        foreign({"user": {"name": "x"}}, "/etc/jp.toml", reached="/etc/jp.toml"),
        foreign({}, reaches=("/etc/jp.toml",)),
    )

    resolved = trusting(*layers)
    accepted = resolve_trusted(layers, "/w", lambda: resolved.ignored[0].marks)

    assert [(value.key, value.value) for value in resolved.ignored] == [("extends", "/etc/jp.toml")]
    assert (resolved.config.user.name, accepted.config.user.name, accepted.ignored) == (None, "x", ())


def test_what_was_accepted_holds_and_a_change_asks_again() -> None:
    layer = foreign({"editor": {"cmd": "vi"}, **tools(x={"run": "unattended"}), "user": {"name": "a"}})
    marks = {mark for value in trusting(layer).ignored for mark in value.marks}
    changed = foreign({"editor": {"cmd": "vi"}, **tools(x={"run": "unattended", "enable": True})})

    trusted = resolve_trusted([layer], "/w", lambda: marks)
    again = resolve_trusted([changed], "/w", lambda: marks)

    assert (trusted.ignored, trusted.config) == ((), resolve([layer]).config)
    assert [value.key for value in again.ignored] == ["conversation.tools.x.run"]
    assert again.config.editor.cmd == "vi"
    assert resolve_trusted([changed], "/w", lambda: {"x"}).config.editor.cmd is None


def test_a_conversation_goes_on_with_its_model_and_has_marks_of_its_own() -> None:
    said = {"assistant": {"model": {"id": "c/d"}}, **tools(x={"run": "unattended"})}
    layer = foreign(said, kind="conversation")

    resolved = trusting(own({"assistant": {"model": {"id": "a/b"}}}), layer)
    marks = resolved.ignored[0].conversation_marks
    accepted = resolve_trusted([foreign(said, kind="conversation", accepted=marks)], "/w")

    assert resolved.config.assistant.model.id == "c/d"
    assert (resolved.ignored[0].marks, len(marks), accepted.ignored) == (frozenset(), 1, ())


def test_fragments_are_looked_for_outside_only_where_the_user_says_so() -> None:
    theirs = foreign({"config_load_paths": ["in", "/etc"]})

    assert load_paths([theirs], "/w") == ["in"]
    assert load_paths([own({"config_load_paths": ["/etc"]}), theirs], "/w") == ["/etc", "in"]
    assert load_paths([own({})], "/w") == []


def test_a_conversation_keeps_what_is_no_consent() -> None:
    before = resolve([own(tools(x={"run": "ask"}))])
    typed = own({**tools(x={"run": "unattended", "enable": True}, y={"command": "c"})}, kind="cfg")

    kept = without_lapsing(resolve([*before.layers, typed]), before)
    removed = without_lapsing(resolve([*before.layers, own({"conversation": {"tools": None}}, kind="cfg")]), before)

    assert kept.plain["conversation"]["tools"] == {"x": {"run": "ask", "enable": True}}
    assert removed.plain["conversation"]["tools"] == {"x": {"run": "ask"}}
    assert without_lapsing(before, before) is before


def test_directions_compare_what_they_know() -> None:
    words = Ordered(order=("read-only", "workspace-write", "off"))

    assert words.allows("read-only", None)
    assert words.allows("workspace-write", "off")
    assert not words.allows("off", None)
    assert not words.allows(None, "off")
    assert not words.allows("strange", "off")
    assert not words.allows("workspace-write", "strange")
    assert [Limit().allows(*pair) for pair in ((1, None), (None, 1), (1, 2), (3, 2))] == [True, False, True, False]


def test_the_error_names_the_values_and_the_way_out() -> None:
    (value,) = trusting(foreign({"conversation": {"attachments": ["cmd:ls"]}})).ignored

    error = UntrustedError((value,) * 7)

    assert error.exit_code == ExitCode.CONFIGURATION
    assert "conversation.attachments = 'cmd:ls' (the workspace's file /w/.jp/config.toml)" in error.message
    assert "and 2 more" in error.message
    assert "`jp workspace trust`" in worded(error.hint)
    of_conversation = UntrustedError((value,), remedy=TrustWorkspace(conversation="x"))
    assert "`jp workspace trust --id x`" in worded(of_conversation.hint)
    assert remedies_of(of_conversation.hint) == (TrustWorkspace(conversation="x"),)
    assert mark_of_change({"a": 1}) != mark_of_change({"a": True})
    assert mark_of_attachment("a") != mark_of_change({})
    assert len({mark_of_text("a", "b"), mark_of_text("b", "b"), mark_of_text("a", "c"), mark_of_change({})}) == 4


def test_a_model_of_the_same_provider_may_be_chosen_by_whatever_alias() -> None:
    mine = own({"assistant": {"model": {"id": "a/b"}}})
    theirs = {"assistant": {"model": {"id": "q"}}, "providers": {"llm": {"aliases": {"q": "a/c"}}}}
    circle = {"assistant": {"model": {"id": "q"}}, "providers": {"llm": {"aliases": {"q": "r", "r": "q"}}}}

    assert trusting(mine, foreign(theirs)).config.assistant.model.id == "q"
    assert trusting(mine, foreign(circle)).config.assistant.model.id == "a/b"


def test_an_alias_that_comes_with_jp_stays_with_its_provider() -> None:
    aliases = {"opus": "a/b", "haiku": "anthropic/claude-haiku-4-5", "q": "a/c"}
    theirs = foreign({"providers": {"llm": {"aliases": aliases}}})
    mine = own({"providers": {"llm": {"aliases": {"opus": "a/b"}}}})

    resolved = trusting(theirs)

    assert resolved.config.providers.llm.aliases == {"haiku": "anthropic/claude-haiku-4-5", "q": "a/c"}
    assert ignored(theirs) == [("providers.llm.aliases.opus", "a/b")]
    assert ignored(mine, theirs) == []


def test_a_server_of_the_users_own_is_not_taken_out() -> None:
    mine = own({"providers": {"llm": {"s": {"base_url": "https://a"}}}})

    resolved = trusting(mine, foreign({"providers": {"llm": None}}))

    assert resolved.config == resolve([mine]).config
    assert [value.key for value in resolved.ignored] == ["providers.llm.s.base_url"]


def test_what_is_called_like_a_tool_of_an_ignored_server_and_comes_with_jp_is_kept() -> None:
    resolved = trusting(foreign(tools(a={"source": "mcp.s.*"}, a_b={"source": "builtin"}, a_c={"enable": True})))

    assert list(resolved.plain["conversation"]["tools"]) == ["a_b"]


def test_an_element_that_only_a_strangers_list_has_is_no_change_of_the_users() -> None:
    mine = own({"assistant": {"instructions": {"0": {"title": "mine"}}}}, kind="cfg")
    theirs = foreign({"assistant": {"instructions": [{"title": "theirs"}], "tool_choice": "required"}})

    assert trusting(theirs, mine).config.assistant.instructions[0].title == "mine"


def test_consent_is_remembered_by_a_hash_that_does_not_change_between_versions() -> None:
    (value,) = trusting(foreign({"editor": {"cmd": "evil"}})).ignored

    assert value.marks == {"e332770a1b0719e36f321ec78bef9a04cb8f4712d1f85eda70b750e3fca39259"}


def test_an_id_is_accepted_as_itself_and_as_nothing_else() -> None:
    assert mark_of_id("a") == mark_of_id("a")
    assert len({mark_of_id("a"), mark_of_id("b"), mark_of_attachment("a"), mark_of_text("id", "a")}) == 4

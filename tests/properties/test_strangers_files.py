"""No file of a stranger moves a decision towards running, widens access, changes an argument or redirects anything.

Whatever it says of whichever key, by whichever strategy, between whichever layers of the user's own: what is compared
are the decisions that are made of the configuration, with and without it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec
from hypothesis import given

from choices import Choices, accepted, choices
from jp.config.assignment import read_partial
from jp.config.entries import Direction, RunMode, ToolConfig
from jp.config.files import read_spelled
from jp.config.layers import Layer, LayerKind, Origin, Resolved, resolve
from jp.config.model import AppConfig
from jp.config.original import adapt
from jp.config.schema import (
    APP,
    Free,
    InvalidValueError,
    Items,
    KeyPath,
    MergedText,
    Names,
    Node,
    Scalar,
    Table,
    key_text,
    known_keys,
)
from jp.config.trust import field_in, resolve_trusted, without_lapsing
from jp.errors import ConfigurationError
from jp.mcp.definitions import Listing, ServerTool
from jp.provider.registry import PROVIDERS, account_of, base_url_of, key_variables, parse_model_id
from jp.tool.files.access import FileAccess, Use
from jp.tool.mcp import offer
from jp.tool.rules import Paths, run_mode
from jp.tool.toolbox import AUTOMATIC, is_enabled, settings_of

Raw = dict[str, Any]
Draw = Callable[[Choices], Any]

NAMES = ("*", "t", "m", "m_a", "n", "s")
MODELS = ("openai/x", "anthropic/y", "t", "n")
TEXTS = (*MODELS, "mcp.s.*", "mcp.s.a", "builtin", "local", "src", "/etc", "cmd:ls", "file:a", "https://a", "X_KEY")
ORDER: Sequence[RunMode] = ("skip", "edit", "ask", "unattended")
PATHS = Paths(root="/w", real=posixpath.normpath)
CALLS: Sequence[Raw] = (
    *({}, {"path": "a"}, {"path": "src/a"}, {"path": "/etc/x"}),
    *({"path": "a", "x": 1}, {"path": ["a", "src/a"]}),
)
LISTINGS = {"s": Listing(tools=(ServerTool(name="a", parameters={}), ServerTool(name="b", parameters={})))}


def value_of(node: Node, *, plain: bool = False) -> Draw:
    """What a layer may say at `node`; `plain`: in the elements of a list."""
    match node:
        case Scalar(annotation=annotation):
            fit = accepted(annotation, (True, False, 1, 7, 0.5, *TEXTS))
            return lambda drawn: None if not plain and drawn.one_in(5) else drawn.pick(fit)
        case MergedText():
            return lambda drawn: drawn.pick(TEXTS)
        case Items(element=element):
            return list_of(value_of(element, plain=True), plain=plain)
        case Names(value=below):
            return names_of(value_of(below, plain=plain))
        case Free():
            return lambda drawn: drawn.pick((1, "x", True, {"a": 1}))
        case Table():
            return table_of(node, plain=plain)
        case _:
            assert_never(node)


def list_of(element: Draw, *, plain: bool) -> Draw:
    def draw(drawn: Choices) -> Any:
        items = [element(drawn) for _ in range(drawn.below(3))]
        if plain or not drawn.one_in(2):
            return items
        if drawn.one_in(4):
            return {"0": drawn.pick((None, element(drawn)))}
        return {"value": items, "strategy": drawn.pick(("append", "prepend", "replace"))}

    return draw


def names_of(below: Draw) -> Draw:
    def draw(drawn: Choices) -> Raw:
        entries = {name: None if drawn.one_in(6) else below(drawn) for name in drawn.some(NAMES, most=3)}
        return {"value": entries, "strategy": "replace"} if drawn.one_in(4) else entries

    return draw


def table_of(node: Table, *, plain: bool) -> Draw:
    below = {name: value_of(field.node, plain=plain) for name, field in node.fields.items()}
    required = [name for name, field in node.fields.items() if field.required]
    if node.others is not None:
        below |= {name: value_of(node.others.value, plain=plain) for name in ("s", "n")}
    known = list(below)

    def draw(drawn: Choices) -> Raw | None:
        if not plain and drawn.one_in(12):
            return None
        return {name: below[name](drawn) for name in (*required, *drawn.some(known, most=4, least=1))}

    return draw


TREE: Mapping[str, Draw] = {key_text(path): value_of(field.node) for path, field in known_keys(APP)}
SECTIONS: Mapping[tuple[str, ...], Draw] = {
    ("conversation", "tools"): names_of(table_of(Table(ToolConfig), plain=False)),
    ("conversation", "tools", "t"): table_of(Table(ToolConfig), plain=False),
    ("conversation", "tools", "m_a"): table_of(Table(ToolConfig), plain=False),
    ("conversation", "tools", "*"): table_of(Table(ToolConfig), plain=False),
    ("providers", "llm"): value_of(APP.fields["providers"].node.fields["llm"].node),  # type: ignore[union-attr]  # a table
    (): value_of(APP),
}
SAID: Sequence[Raw] = (
    {"conversation": {"tools": {"m": {"source": "mcp.s.*"}}}},
    {"conversation": {"tools": {"*": {"run": "unattended"}}}},
    {"conversation": {"tools": {"*": {"enable": True}}}},
    {"conversation": {"tools": {"t": {"command": "a", "enable": True, "run": "unattended"}}}},
    {"conversation": {"tools": {"t": {"rules": [{"arguments": {"path": "src/**"}, "run": "ask"}]}}}},
    {"conversation": {"tools": {"t": {"rules": [{"arguments": {"path": "**"}, "run": "unattended"}]}}}},
    {"conversation": {"tools": {"t": {"rules": [{"prefix": {"path": "a"}, "exact": True, "run": "unattended"}]}}}},
    {"conversation": {"tools": {"t": {"rules": [{"arguments": {"path": "src/a"}, "exact": True, "run": "skip"}]}}}},
    {"conversation": {"tools": {"t": {"run": "skip"}}}},
    {"conversation": {"tools": {"t": {"access": {"fs": [{"path": "src", "read": True}]}}}}},
    {"assistant": {"model": {"id": "openai/x"}}},
)


ORIGINALS: Sequence[Raw] = (
    {"conversation": {"tools": {"t": {"enable": {"state": True, "allow_toggle": "never"}, "format": "unattended"}}}},
    {"conversation": {"tools": {"t": {"enable": "on", "run": "unattended", "style": {"results_file_link": "off"}}}}},
    {"conversation": {"tools": {"value": {"*": {"enable": "on", "run": "unattended"}}, "strategy": "replace"}}},
    {"conversation": {"tools": {"t": {"questions": {"q": {"target": {"model": {"id": "x"}}, "answer": True}}}}}},
    {"conversation": {"tools": {"t": {"access": {"fs": [{"path": "/etc", "read": True, "execute": True}]}}}}},
    {"conversation": {"tools": {"t": {"access": {"fs": [{"path": "src", "write": True, "delete": True}]}}}}},
    {
        "conversation": {
            "tools": {"t": {"access": {"env": [{"name": "X_KEY", "read": True}]}, "style": {"hidden": True}}}
        }
    },
    {"conversation": {"attachments": [{"type": "cmd", "path": "ls"}, {"type": "file", "path": "/etc/x"}]}},
    {"conversation": {"title": {"generate": {"model": {"id": {"provider": "openai", "name": "x"}, "parameters": {}}}}}},
    {"assistant": {"model": {"id": {"provider": "anthropic", "name": "y"}, "parameters": {"seed": 1}}}},
    {"assistant": {"name": "x", "model": {"id": {"provider": "s", "name": "y"}}}},
    {
        "providers": {
            "llm": {"aliases": {"t": {"provider": "s", "name": "x"}, "n": {"id": "anthropic/y", "parameters": {}}}}
        }
    },
    {"providers": {"llm": {"openai": {"base_url": "https://a", "base_url_env": "OPENAI_BASE_URL"}}}},
    {"providers": {"mcp": {"s": {"type": "stdio", "command": "x"}}}},
    {"editor": {"env_vars": ["X_KEY"], "inline": {"edit_mode": "vi"}}},
)
"""Settings in the spelling of the original JP"""


def said(drawn: Choices) -> Raw:
    """Draw the settings of a layer: of one key, of a section, what matters often, or what the original JP would."""
    kind = drawn.pick(("key", "key", "section", "section", "said", "said", "original"))
    if kind in {"said", "original"}:
        return drawn.pick(SAID if kind == "said" else ORIGINALS)
    if kind == "section":
        path, draw = drawn.pick(list(SECTIONS.items()))
    else:
        known, field = drawn.pick(list(known_keys(APP)))
        path, draw = tuple(drawn.pick(NAMES) if name == "*" else name for name in known), value_of(field.node)
    value = draw(drawn)
    for name in reversed(path):
        value = {name: value}
    return value or {}


def layers_of(drawn: Choices) -> list[Layer]:
    """Layers of which any may be a stranger's."""
    kinds: Sequence[LayerKind] = ("user", "workspace", "directory", "user-workspace", "conversation", "cfg")
    layers: list[Layer] = []
    for kind in sorted(drawn.some(kinds, most=6, least=2), key=kinds.index):
        others = {"user-workspace", "conversation", "cfg"}
        foreign = kind in {"workspace", "directory"} or (kind in others and drawn.one_in(2))
        change = read_spelled(said(drawn), APP, refuse=lambda _: None).change
        layers.append(Layer(origin=Origin(kind=kind, where=str(len(layers))), change=change, foreign=foreign))
    return layers


@given(drawn=choices(200))
def test_what_jp_accepts_is_in_no_other_spelling(drawn: Choices) -> None:
    raw = said(drawn)
    refused: list[InvalidValueError] = []
    read_partial(raw, refuse=refused.append)

    if not refused:
        assert adapt(raw) == (raw, ())


def both(drawn: Choices) -> tuple[Resolved, AppConfig] | None:
    """The configuration, and the one without untrusted layers; None where the layers do not fit together."""
    layers = layers_of(drawn)
    try:
        found = resolve_trusted(layers, "/w")
        own = resolve([layer for layer in layers if not layer.foreign])
    except ConfigurationError:
        return None
    return found, own.config


def tools_of(config: AppConfig) -> dict[str, ToolConfig]:
    """How each tool is configured, those of servers under their own names."""
    try:
        settings = offer(config.conversation.tools, LISTINGS, taken=("t",)).settings
    except ConfigurationError:
        return {}
    return {name: settings_of(name, settings) for name in {*settings, *NAMES, "m_a", "m_b", "other"} - {"*"}}


class Disk:
    """A disk without links."""

    def real_path(self, path: str) -> str:
        return posixpath.normpath(path)

    def private(self) -> Sequence[str]:
        return ()


def allowed(settings: ToolConfig) -> set[tuple[str, Use]]:
    access = FileAccess(Path("/w"), settings.access.fs, Disk())  # type: ignore[arg-type]  # `allows` only resolves paths
    uses: Sequence[Use] = ("read", "write", "walk")
    paths = ("/w", "/w/a", "/w/src", "/w/src/a", "/etc", "/etc/x", "/")
    return {(path, use) for path in paths for use in uses if access.allows(path, use)}


def check_tool(ours: ToolConfig, own: ToolConfig) -> None:
    """No call runs by `ours` that would not by `own`, and none does anything else."""
    for call in CALLS:
        mode, limit = run_mode(ours, call, PATHS), run_mode(own, call, PATHS)
        assert ORDER.index(mode) <= ORDER.index(limit)
        if is_enabled(ours) and not is_enabled(own):
            assert own.enable is None
            assert mode != "unattended"
    assert ORDER.index(ours.result or "unattended") <= ORDER.index(own.result or "unattended")
    assert allowed(ours) <= allowed(own)
    assert own.access.local_network or not ours.access.local_network
    assert own.style.hidden or not ours.style.hidden
    assert (ours.command, ours.input) == (own.command, own.input)
    assert ours.source in {own.source, "builtin"}
    for name in ("parameters", "questions", "options", "environment"):
        assert getattr(ours, name) == getattr(own, name)


@given(drawn=choices(200))
def test_no_decision_on_a_call_is_moved_towards_running(drawn: Choices) -> None:
    if (found := both(drawn)) is None:
        return
    ours, own = tools_of(found[0].config), tools_of(found[1])
    for name in {*ours} & {*own}:
        check_tool(ours[name], own[name])
    for name in {*ours} - {*own} - AUTOMATIC:
        assert ours[name].command is None
        assert not is_enabled(ours[name]) or all(run_mode(ours[name], call, PATHS) != "unattended" for call in CALLS)


@given(drawn=choices(200))
def test_no_request_and_no_key_is_redirected(drawn: Choices) -> None:
    if (found := both(drawn)) is None:
        return
    ours, own = found[0].config, found[1]
    llm, owns = ours.providers.llm, own.providers.llm
    for name in {*llm.servers} - {*owns.servers}:
        extra = llm.servers[name]
        assert (extra.base_url, extra.api_key_env, extra.headers, extra.transport) == (None, None, {}, "http")
    assert ours.providers.mcp == own.providers.mcp
    for provider in (*PROVIDERS[:-1], *owns.servers):
        assert outcome(lambda: base_url_of(llm, provider, {})) == outcome(lambda: base_url_of(owns, provider, {}))  # noqa: B023  # called here
        assert outcome(lambda: key_variables(llm, provider)) == outcome(lambda: key_variables(owns, provider))  # noqa: B023  # called here
        for name in ("transport", "platform", "endpoint", "region", "project", "profile", "api_version", "headers"):
            assert getattr(account_of(llm, provider), name, None) == getattr(account_of(owns, provider), name, None)
    for text in {*MODELS, *owns.aliases}:
        if not isinstance(meant := outcome(lambda: parse_model_id(text, owns)), str):  # noqa: B023  # called here
            assert outcome(lambda: parse_model_id(text, llm)) == meant  # noqa: B023  # called here
    if own.assistant.model.id is not None and ours.assistant.model.id != own.assistant.model.id:
        is_conversations = found[0].origin(("assistant", "model", "id")).kind == "conversation"
        chosen = outcome(lambda: parse_model_id(ours.assistant.model.id or "", llm).provider)
        assert is_conversations or chosen == outcome(
            lambda: parse_model_id(own.assistant.model.id or "", owns).provider
        )


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it; of an error, its words."""
    try:
        return work()
    except ConfigurationError:
        return "an error"


@given(drawn=choices(200))
def test_nothing_else_is_loosened(drawn: Choices) -> None:
    if (found := both(drawn)) is None:
        return
    resolved, own = found
    ours = resolved.config
    assert ours.editor == own.editor
    assert ours.assistant.model.parameters.other == own.assistant.model.parameters.other
    assert ours.conversation.title.generate.model == own.conversation.title.generate.model
    assert ours.assistant.tool_choice in {own.assistant.tool_choice, "none", "auto"}
    limit, most = own.assistant.request.max_cost, ours.assistant.request.max_cost
    assert limit is None or (most is not None and most <= limit)
    for name in ("max_cycles", "max_response_bytes"):
        assert getattr(ours.assistant.request, name) <= getattr(own.assistant.request, name)
    waiting = {value.value for value in resolved.ignored if value.needed}
    for text in {*ours.conversation.attachments} - {*own.conversation.attachments} - waiting:
        assert text not in {"cmd:ls", "https://a"}
    for path in {*ours.config_load_paths} - {*own.config_load_paths}:
        assert path != "/etc"


@given(drawn=choices(200))
def test_what_is_accepted_is_ignored_no_more(drawn: Choices) -> None:
    layers = layers_of(drawn)
    try:
        found = resolve_trusted(layers, "/w")
        everything = resolve(layers)
    except ConfigurationError:
        return
    marks = {mark for value in found.ignored for mark in (*value.marks, *value.conversation_marks)}

    trusted = resolve_trusted(layers, "/w", lambda: marks)

    assert found.ignored or found.config == everything.config or any(layer.foreign for layer in layers)
    assert trusted.ignored == ()


@given(drawn=choices(200))
def test_a_conversation_keeps_no_consent_that_was_given_for_a_run(drawn: Choices) -> None:
    layers = [msgspec.structs.replace(layer, foreign=False) for layer in layers_of(drawn)]
    try:
        before, after = resolve(layers[:-1]), resolve(layers)
        kept = without_lapsing(after, before)
    except ConfigurationError:
        return
    ours, own = tools_of(kept.config), tools_of(before.config)
    for name in {*ours} & {*own}:
        for call in CALLS:
            mode, limit = run_mode(ours[name], call, PATHS), run_mode(own[name], call, PATHS)
            assert ORDER.index(mode) <= ORDER.index(limit)
        assert allowed(ours[name]) <= allowed(own[name])
        assert ours[name].command == own[name].command
    assert kept.config.assistant == after.config.assistant


def test_every_setting_declares_its_direction() -> None:
    """So that nobody adds one without saying whether a stranger may set it."""
    paths = [path for path, _ in known_keys(APP)]
    undeclared = [
        key_text(path) for path in paths if all(direction_of(path[:count]) is None for count in range(1, len(path) + 1))
    ]

    assert paths
    assert undeclared == [], "declare a direction: see jp.config.entries"


def direction_of(path: KeyPath) -> Direction | None:
    node: Node = APP
    direction: Direction | None = None
    for name in path:
        if isinstance(node, Table | Names):
            field = field_in(node, name)
            node, direction = field.node, field.direction
        else:
            direction = None
    return direction

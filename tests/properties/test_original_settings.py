"""The original JP's spelling and formats of configuration: everything is read or refused, and nothing allows more."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jp.config.entries import FileRuleConfig
from jp.config.files import read_spelled
from jp.config.formats import MalformedError, load, offsets
from jp.config.original import adapt
from jp.config.schema import APP, ONLY_ORIGINALS, InvalidValueError, key_text, known_keys
from jp.tool.files.access import FileAccess, Use

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=8,
)
WORDS = (
    *("id", "provider", "name", "parameters", "effort", "exclude", "value", "strategy", "state", "allow_toggle"),
    *("type", "path", "params", "truncate", "lines", "rules", "keep_first", "keep_last", "reasoning", "tool_calls"),
    *("summary", "model", "create", "update", "delete", "write", "read", "external", "execute", "seed"),
    *("dedup", "discard_when_merged", "auth", "api_key_env", "program", "args", "shell", "env", "name", "access", "*"),
)
VALUE_WORDS = ("on", "5m", "stdio", "replace", "append", "keep", "deep_merge", "true", "api_key", "disabled", "2kb")
SHAPED: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(WORDS + VALUE_WORDS),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(WORDS), below, max_size=4),
    max_leaves=10,
)
KEYS = sorted({
    *(key_text(path).replace("*", "t") for path, _ in known_keys(APP)),
    *(f"{table}.{name}".strip(".").replace("*", "t") for table, own in ONLY_ORIGINALS.items() for name in own.split()),
    "assistant.model", "assistant.model.parameters", "conversation.title.generate", "conversation.tools.t",
    "conversation.compaction", "providers.llm.aliases.t", "editor", "conversation.tools", "providers.mcp",
    "providers.llm", "providers.llm.anthropic", "conversation.tools.t.access", "assistant",
})  # fmt: skip


@given(key=st.sampled_from(KEYS), value=SHAPED | VALUES)
def test_whatever_a_key_holds_is_read_or_refused(key: str, value: Any) -> None:
    raw: Any = value
    for name in reversed(key.split(".")):
        raw = {name: raw}
    before = msgspec.json.encode(raw)
    refused: list[InvalidValueError] = []

    read = read_spelled(raw, APP, refuse=refused.append)
    adapted, _ = adapt(raw, refuse=refused.append)

    assert msgspec.json.encode(raw) == before
    assert adapt(adapted, refuse=refused.append)[0] == adapted
    assert all(
        setting.path[: len(key.split("."))] == (*key.split("."),)[: len(setting.path)] for setting in read.unsupported
    )


@given(data=st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_a_table_is_the_same_in_every_format(data: dict[str, Any]) -> None:
    text = json.dumps(data)

    assert load(text, ".json") == data
    assert load(text, ".json5") == data
    assert load(yaml.safe_dump(data), ".yml") == data


@given(text=st.text(max_size=40), suffix=st.sampled_from([".json", ".json5", ".yaml"]))
def test_any_text_is_read_or_refused_with_its_place(text: str, suffix: str) -> None:
    found: MalformedError | None = None
    try:
        load(text, suffix)
    except MalformedError as error:
        found = error

    assert found is None or (1 <= found.line <= text.count("\n") + 1 and found.column >= 1 and found.hint)
    assert all(0 <= start <= value <= len(text) for start, value in offsets(text).values())


class Disk:
    """A disk without links."""

    def real_path(self, path: str) -> str:
        return posixpath.normpath(path)

    def private(self) -> Sequence[str]:
        return ()


PATHS = (".", "src", "src/a", "src/a/b", "docs")
OPTIONS: dict[Any, st.SearchStrategy[Any]] = {
    name: st.booleans() for name in ("read", "write", "create", "update", "delete", "execute")
}
RULE: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({"path": st.sampled_from(PATHS)}, optional=OPTIONS)


def of_original(rules: Sequence[dict[str, Any]]) -> bool:
    """Return whether only the original JP has such rules."""
    return any({"create", "update", "delete", "execute"} & rule.keys() for rule in rules)


def path_of(rule: dict[str, Any]) -> str:
    return rule["path"]


RULES = st.lists(RULE, min_size=1, max_size=5, unique_by=path_of).filter(of_original)


def original_allows(rules: Sequence[dict[str, Any]], path: str, use: Use) -> bool:
    """The original's decision: of the rules above a path, the one with the longest."""
    above = [
        rule for rule in rules if rule["path"] == "." or path == rule["path"] or path.startswith(f"{rule['path']}/")
    ]
    if not above:
        return False
    rule = max(above, key=lambda each: 0 if each["path"] == "." else each["path"].count("/") + 1)
    if use == "write":
        return all(rule.get(name, rule.get("write", False)) for name in ("create", "update", "delete"))
    return rule.get("read", False)


@given(rules=RULES)
def test_rules_for_files_allow_no_more_than_they_do_in_the_original(rules: list[dict[str, Any]]) -> None:
    raw = {"conversation": {"tools": {"t": {"access": {"fs": rules}}}}}
    adapted: Any = adapt(raw)[0]
    ours = tuple(
        msgspec.convert(rule, FileRuleConfig) for rule in adapted["conversation"]["tools"]["t"]["access"]["fs"]
    )
    access = FileAccess(Path("/w"), ours, Disk())  # type: ignore[arg-type]  # `allows` only resolves paths

    for path in (*PATHS[1:], "src/x", "docs/y/z", "other"):
        for use in ("read", "write"):
            if access.allows(f"/w/{path}", use):
                assert original_allows(rules, path, use)

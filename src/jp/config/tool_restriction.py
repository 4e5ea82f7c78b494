"""Restrict untrusted settings of tools: each decision on a call stays as strict as the user's own layers make it.

A tool has its own settings, those of its MCP server's group, and those of `*`. So a value is compared as it holds for
the tool, and what is kept is written where it holds: `restricted_tools(full, own)` is never looser than `own`, for no
tool and no call. Both are plain data, `conversation.tools` with and without the untrusted layers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from jp.config.entries import (
    NEEDS_TRUST,
    NEUTRAL,
    RUN_MODES,
    CallRules,
    Denials,
    Direction,
    NeedsTrust,
    Neutral,
    Offer,
    Ordered,
    ToolConfig,
    entry,
    is_same,
    lapses,
)
from jp.config.schema import Field, KeyPath, Names, Table

ALL = "*"
TOOLS: KeyPath = ("conversation", "tools")

_RANKS: Mapping[Any, int] = {"explicit": 0, False: 1, None: 1, True: 2, "always": 3}
"""Ranks of offers. An `explicit` tool is not offered by `--tool` either."""

Entry = Mapping[str, Any]


class Note(Protocol):
    """Collects ignored values."""

    def __call__(self, path: KeyPath, value: Any, *, needed: bool = False, own: bool = False) -> None:
        """Take note of a key with its value.

        Args:
            path: the key.
            value: what would hold.
            needed: nothing can be asked without it.
            own: the user's own layers say something of the key.
        """
        ...


def restricted_tools(
    full: Mapping[str, Entry], own: Mapping[str, Entry], note: Note, *, lapsing: bool = False
) -> dict[str, Entry]:
    """Return the tools of `full` without what they loosen over `own`.

    `lapsing`: only settings that end with the run are compared, everything else is `full`'s.
    """
    return _Tools(full, own, note, lapsing=lapsing).restricted()


class _Tools:
    def __init__(self, full: Mapping[str, Entry], own: Mapping[str, Entry], note: Note, *, lapsing: bool) -> None:
        self.full = full
        self.own = own
        self._note = note
        self._lapsing = lapsing
        self._groups = sorted(filter(self._is_group, own), key=lambda name: (-len(name), name))
        self._runs_unasked = any(map(_runs_unasked, own.values()))
        self._kept: dict[str, Entry] = {}
        self._is_missing = False
        said = {name for side in (full, own) for tool in side.values() for name in tool}
        self._said_fields = [(path, field) for path, field in _fields() if path[0] in said]
        """A setting that no entry has is unset in each restricted one, too."""

    def restricted(self) -> dict[str, Entry]:
        names = dict.fromkeys((*self.own, *self.full))
        parents = [name for name in (ALL, *self._groups) if name in names]
        gone: list[str] = []
        for name in dict.fromkeys((*parents, *names)):
            kept = self._entry(name)
            if kept is not None:
                self._kept[name] = kept
            else:
                gone.append(f"{name}_")
        for name in [name for name in self._kept if name not in self.own and name.startswith(tuple(gone))]:
            if not self._defines(self._kept[name]):
                del self._kept[name]  # it was to be one of the tools of a server
        return {name: self._kept[name] for name in names if name in self._kept}

    def _is_group(self, name: str) -> bool:
        source = self.own[name].get("source")
        return isinstance(source, str) and source.startswith("mcp.") and source.split(".", 2)[2:] == ["*"]

    def _chains(self, name: str) -> list[tuple[str, ...]]:
        """Return the chains of entries that may apply to a tool, nearest first; it may or may not belong to a group."""
        group = next((group for group in self._groups if name.startswith(f"{group}_")), None)
        chains = [(name, ALL)] if name != ALL else [(ALL,)]
        return chains if group is None else [*chains, (name, group, ALL)]

    def _entry(self, name: str) -> Entry | None:
        """Return the restricted entry, None if the tool does not exist without the ignored values."""
        kept: dict[str, Any] = {}
        self._is_missing = False
        if self.own.get(name) and name not in self.full:
            self._note((*TOOLS, name), None)
        for path, field in self._said_fields:
            value = self._value(name, path, field, kept)
            if value is not msgspec.UNSET:
                _put(kept, path, value)
        return None if self._is_missing or not (kept or name in self.full) else kept

    def _value(self, name: str, path: KeyPath, field: Field, kept: Entry) -> Any:
        """Return the restricted entry's own value, UNSET if it comes from an entry for more tools."""
        direction = direction_of(field)
        said = _Setting(self, name, path, default_of(field))
        if self._lapsing and not lapses(direction):
            direction = NEUTRAL
        match direction:
            case Neutral():
                return said.full if name in self.full or self._lapsing else said.own
            case Offer():
                return self._offer(said, kept)
            case CallRules() | Denials():
                return self._listed(said, direction)
            case Ordered():
                return self._ordered(said, direction)
            case _:
                return self._guarded(said, direction if isinstance(direction, NeedsTrust) else NEEDS_TRUST)

    def _guarded(self, said: _Setting, direction: NeedsTrust) -> Any:
        if is_same(said.full, said.own):
            return said.own
        is_named = said.name in self.own
        is_defined = is_named and self._defines(self.own[said.name])
        if said.full is msgspec.UNSET:
            return said.own
        if said.full in direction.harmless and not is_defined:
            return said.full
        names_it = is_named or any(
            name.startswith(f"{said.name}_") and not self._defines(self.own[name]) for name in self.own
        )
        is_needed = direction.defining and names_it and not is_defined and self._is_wanted(said.name)
        self._note(said.where, said.full, needed=is_needed, own=_is_set(said.own))
        self._is_missing = self._is_missing or (direction.defining and not is_named)
        return said.own

    def _is_wanted(self, name: str) -> bool:
        """Return whether the user's own layers offer a tool, or one of a group, to the model."""
        members = [each for each in self.own if each == name or each.startswith(f"{name}_")]
        offers = (_effective(self.own, chain, ("enable",), None) for each in members for chain in self._chains(each))
        return any(offer in {True, "always"} for offer in offers)

    def _defines(self, entry_of_tool: Entry) -> bool:
        return "command" in entry_of_tool or "source" in entry_of_tool

    def _ordered(self, said: _Setting, direction: Ordered) -> Any:
        pairs = list(zip(said.all_full, said.all_own, strict=True))
        if all(direction.allows(value, own) for value, own in pairs):
            if said.full is not msgspec.UNSET or said.own is msgspec.UNSET:
                return said.full
            values = [direction.said(value) for value, _ in pairs]
            return min(values, key=lambda value: direction.order.index(value) if value in direction.order else 0)
        self._loosened(said)
        return said.own

    def _loosened(self, said: _Setting) -> None:
        if said.name in self.full:
            self._note(said.where, said.full if _is_set(said.full) else said.default, own=_is_set(said.own))

    def _listed(self, said: _Setting, direction: CallRules | Denials) -> Any:
        before, after = said.all_own[0], said.all_full[0]
        if not _is_set(said.full) and not _is_set(said.own):
            return msgspec.UNSET  # what holds for more tools is compared there
        added = [rule for rule in after if rule not in before]
        front, behind = self._stricter(said, added, direction)
        if any(not is_same(rules, before) for rules in said.all_own):
            front, behind = (), ()  # before what they would come is not known
        is_shorter = len(front) + len(behind) < len(added)
        if is_shorter or [rule for rule in after if rule in before] != list(before):
            self._loosened(said)
        return [*front, *before, *behind] if front or behind else said.own

    def _stricter(
        self, said: _Setting, added: Sequence[Entry], direction: CallRules | Denials
    ) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return the added rules that only tighten, to be put before the other rules and after them."""
        if isinstance(direction, Denials):
            return (), [rule for rule in added if not (rule.get("read") or rule.get("write"))]
        if said.name == ALL or said.name in self._groups:
            # Any tool may have other modes that these would come before.
            return [rule for rule in added if _run(rule) == "skip"], ()
        usual = [self._run_of(self.own, chain) for chain in self._chains(said.name)]
        modes = [*usual, *map(_run, said.all_own[0])]
        front = [rule for rule in added if _is_as_strict(rule, modes)]
        return front, [rule for rule in added if rule not in front and _is_as_strict(rule, usual)]

    def _run_of(self, tools: Mapping[str, Entry], chain: Sequence[str]) -> Any:
        return RUN_MODES.said(_effective(tools, chain, ("run",), None))

    def _offer(self, said: _Setting, kept: Entry) -> Any:
        pairs = list(zip(said.all_full, said.all_own, strict=True))
        if all(_RANKS[value] <= _RANKS[own] for value, own in pairs):
            if _is_set(said.full) or not _is_set(said.own):
                return said.full
            return min((value for value, _ in pairs), key=lambda value: _RANKS[value]) or False
        if all(own is None for own in said.all_own) and not self._would_run_unasked(said.name, kept):
            if said.full == "always":  # which nobody could take away
                self._loosened(said)
            return True
        self._loosened(said)
        return said.own

    def _would_run_unasked(self, name: str, kept: Entry) -> bool:
        if name == ALL or name in self._groups:
            return self._runs_unasked
        tools = {**self._kept, name: kept}
        chains = self._chains(name)
        return any(
            self._run_of(tools, chain) == "unattended" or _lets_run(_effective(tools, chain, ("rules",), ()))
            for chain in chains
        )

    def effective(self, name: str, path: KeyPath, default: Any) -> tuple[list[Any], list[Any]]:
        """Return the values with and without untrusted layers, one for each chain of entries."""
        chains = self._chains(name)
        full = [_effective(self.full, chain, path, default) for chain in chains]
        return full, [_effective(self.own, chain, path, default) for chain in chains]


class _Setting:
    """One setting of a tool on both sides: the entry's own value (UNSET for none), and those in effect."""

    def __init__(self, tools: _Tools, name: str, path: KeyPath, default: Any) -> None:
        self.name = name
        self.default = default
        self.where = (*TOOLS, name, *path)
        self.full, self.own = (_value_in(side.get(name, {}), path, default) for side in (tools.full, tools.own))
        self.all_full, self.all_own = tools.effective(name, path, default)


@functools.cache
def _fields() -> tuple[tuple[KeyPath, Field], ...]:
    """Return the settings of a tool; `enable` is last because it depends on the others."""
    found = tuple(_leaves(Table(ToolConfig), ()))
    return tuple(sorted(found, key=lambda item: isinstance(item[1].direction, Offer)))


def _leaves(table: Table, path: KeyPath) -> Iterator[tuple[KeyPath, Field]]:
    for name, field in table.fields.items():
        if isinstance(field.node, Table):
            yield from _leaves(field.node, (*path, name))
        else:
            yield (*path, name), field


def direction_of(field: Field) -> Direction:
    """Return the direction of a setting; without one, it needs trust."""
    return NEEDS_TRUST if field.direction is None else field.direction


def default_of(field: Field) -> Any:
    """Return the default of a setting as plain data; None for none."""
    if isinstance(field.node, Names):
        return {}
    default = field.default
    if isinstance(default, list | tuple):
        return list(cast("Sequence[Any]", default))
    return None if default is msgspec.UNSET else default


def _is_set(value: Any) -> bool:
    return value is not msgspec.UNSET


def _value_in(own: Entry, path: KeyPath, default: Any) -> Any:
    """Return an entry's value, UNSET for none or the default; see `jp.tool.toolbox.settings_over`."""
    value: Any = own
    for name in path:
        value = entry(value).get(name, msgspec.UNSET)
    return msgspec.UNSET if is_same(value, default) else value


def _effective(tools: Mapping[str, Entry], chain: Sequence[str], path: KeyPath, default: Any) -> Any:
    values = (_value_in(tools.get(name, {}), path, default) for name in chain)
    return next((value for value in values if _is_set(value)), default)


def _put(kept: dict[str, Any], path: KeyPath, value: Any) -> None:
    for name in path[:-1]:
        kept = kept.setdefault(name, {})
    kept[path[-1]] = value


def _runs_unasked(own: Entry) -> bool:
    return own.get("run") == "unattended" or _lets_run(own.get("rules", ()))


def _lets_run(rules: Sequence[Entry]) -> bool:
    return any(rule.get("run") == "unattended" for rule in rules)


def _run(rule: Entry) -> str:
    return rule.get("run", "ask")


def _is_as_strict(rule: Entry, modes: Sequence[str]) -> bool:
    return all(RUN_MODES.allows(_run(rule), mode) for mode in modes)

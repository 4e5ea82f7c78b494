"""Which values of a stranger's files need the user's trust (design: safety).

A file that comes with a workspace may set anything, but what runs, reaches out or decides who gets keys applies only
after the user has seen it. A value that one of the user's own layers declares just so needs no more trust.
"""

from __future__ import annotations

import operator
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, assert_never, cast

import msgspec

from jp.config.keys import KeyPath, key_text
from jp.config.layers import Layer
from jp.config.merge import (
    Change,
    ChangeItem,
    ListChange,
    MapChange,
    Put,
    TextChange,
    Unset,
    applied,
)
from jp.errors import ConfigurationError

_SHOWN = 5
"""An error says so many values; the command that accepts them shows all."""


class Sensitive(msgspec.Struct, frozen=True, kw_only=True):
    """One value that needs trust. `origin` says in words where it is declared."""

    key: str
    value: Any
    origin: str


class UntrustedError(ConfigurationError):
    """The workspace declares values that nobody has accepted. `values` are these, `command` is what accepts them."""

    def __init__(self, values: Sequence[Sensitive], *, command: str = "") -> None:
        shown = [f"{value.key} = {value.value!r} ({value.origin})" for value in values[:_SHOWN]]
        more = [f"and {len(values) - _SHOWN} more"] if len(values) > _SHOWN else []
        listed = "; ".join([*shown, *more])
        super().__init__(
            f"this workspace declares what needs your trust: {listed}",
            hint=f"Look at it and accept it with `{command or 'jp workspace trust'}`.",
        )
        self.values = tuple(values)


Needs = Callable[[Any], bool]

_SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)|(mcp)\+[^+/\s]+\+", re.IGNORECASE)


def _always(_: Any) -> bool:
    return True


def _is(*choices: Any) -> Needs:
    return lambda value: value in choices


def _scheme_other_than(*schemes: str) -> Needs:
    def needs(value: Any) -> bool:
        match = _SCHEME.match(str(value).lstrip(" !"))
        return match is not None and (match[1] or match[2]).partition("+")[0].lower() not in schemes

    return needs


def _is_on_server(source: Any) -> bool:
    return str(source).startswith("mcp")


def _runs_unattended(rule: Any) -> bool:
    return not isinstance(rule, dict) or bool(_is("unattended")(cast("dict[str, Any]", rule).get("run")))


_CLOUD = ("transport", "platform", "endpoint", "region", "project", "profile", "api_version")

_RULES: tuple[tuple[KeyPath, Needs], ...] = (
    (("providers", "llm", "*", "base_url"), _always),
    (("providers", "llm", "*", "api_key_env"), _always),
    (("providers", "llm", "*", "store"), bool),
    # In a cloud these say where requests go, and whose credentials they carry.
    *((("providers", "llm", "*", name), _always) for name in _CLOUD),
    # Who may say what a token costs, says what a limit of costs lets through.
    (("providers", "llm", "*", "models", "*", "input_price"), _always),
    (("providers", "llm", "*", "models", "*", "output_price"), _always),
    (("providers", "llm", "*", "models", "*", "cache_read_price"), _always),
    (("providers", "llm", "*", "models", "*", "cache_write_price"), _always),
    (("assistant", "request", "max_cost"), _always),
    (("conversation", "tools", "*", "run"), _is("unattended")),
    (("conversation", "tools", "*", "rules"), _runs_unattended),
    (("conversation", "tools", "*", "command"), _always),
    # A server of the user's own would be started in a stranger's directory.
    (("conversation", "tools", "*", "source"), _is_on_server),
    (("conversation", "tools", "*", "access"), _always),
    # Only the strictest value is sure to loosen nothing.
    (("conversation", "tools", "*", "sandbox", "mode"), _is("off", "workspace-write")),
    (("conversation", "tools", "*", "sandbox", "network"), bool),
    (("conversation", "tools", "*", "sandbox", "writable"), _always),
    (("conversation", "tools", "*", "sandbox", "required"), operator.not_),
    (("conversation", "tools", "*", "environment"), _always),
    # An answer that is always given may be the consent to overwrite a file.
    (("conversation", "tools", "*", "questions"), _always),
    (("providers", "mcp", "*", "*"), _always),
    (("editor", "cmd"), _always),
    (("editor", "envs"), _always),
    # Whatever a scheme does, one that is not known to stay here may run something or reach out.
    (("conversation", "attachments"), _scheme_other_than("file", "jp")),
)
"""Which values need trust, by key; `*` is any name. A key with a table or a list below it is looked at in parts."""


def values_needing_trust(layers: Sequence[Layer], root: str) -> tuple[Sensitive, ...]:
    """The values of foreign layers that need trust, each once, sorted. `root` is the workspace's, an absolute path.

    Also what a foreign layer's `extends` and `config_load_paths` reach outside of `root`.
    """
    own = {_identity(key, value) for layer in layers if not layer.foreign for key, value in _sensitive(layer)}
    found: dict[bytes, Sensitive] = {}
    for layer in layers:
        if not layer.foreign:
            continue
        for key, value in (*_sensitive(layer), *_outside(layer, root)):
            identity = _identity(key, value)
            if identity not in own:
                found.setdefault(identity, Sensitive(key=key, value=value, origin=layer.origin.text))
    return tuple(found[identity] for identity in sorted(found))


def trust_hash(values: Collection[Sensitive]) -> str:
    """A hash over exactly these keys and values: neither their order nor the files they stand in count."""
    import hashlib

    identities = sorted({_identity(value.key, value.value) for value in values})
    return hashlib.sha256(b"\n".join(identities)).hexdigest()


def untrusted(values: Sequence[Sensitive], accepted: Collection[str]) -> tuple[Sensitive, ...]:
    """The values that `accepted`, hashes of what the user has seen, covers neither together nor one by one."""
    if not values or trust_hash(values) in accepted:
        return ()
    return tuple(value for value in values if trust_hash((value,)) not in accepted)


def _identity(key: str, value: Any) -> bytes:
    return msgspec.json.encode((key, value), order="sorted")


def _sensitive(layer: Layer) -> Iterator[tuple[str, Any]]:
    for pattern, needs in _RULES:
        for path, change in _matching(layer.change, pattern, ()):
            yield from ((key_text(path), value) for value in _declared(change) if needs(value))


def _matching(change: Change, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, Change]]:
    if not pattern:
        yield path, change
    elif isinstance(change, MapChange):
        for name, below in change.entries.items():
            if pattern[0] in {name, "*"}:
                yield from _matching(below, pattern[1:], (*path, name))


def _declared(change: Change) -> Iterator[Any]:
    """Every single value that a change brings in."""
    match change:
        case Put(value=value):
            yield value
        case MapChange():
            yield applied(change)
        case ListChange(steps=steps):
            for step in steps:
                yield from _declared(step.change) if isinstance(step, ChangeItem) else step.items
        case TextChange(steps=steps):
            yield from (step.text for step in steps)
        case Unset():
            pass
        case _:
            assert_never(change)


def _outside(layer: Layer, root: str) -> Iterator[tuple[str, Any]]:
    yield from (("extends", path) for path in layer.reaches)
    paths = layer.change.entries.get("config_load_paths", Unset())
    for path in _declared(paths):
        whole = posixpath.normpath(posixpath.join(root, path))
        if path.startswith("~") or posixpath.commonpath((root, whole)) != posixpath.normpath(root):
            yield "config_load_paths", path

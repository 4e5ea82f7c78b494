"""Remedies: the actions that fix an error, as data, and texts that refer to them.

Below the command line no text names a command or an option of it: `jp.cli.wording` says each remedy in its terms, and
another user interface in its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Literal, TypeAlias

import msgspec


class Option(Enum):
    """An argument of a use case, named as in the Python API."""

    APPROVE = "approve"
    APPROVE_ALL = "approve_all"
    AS_SENT = "as_sent"
    ATTACH = "attach"
    BUDGET = "budget"
    COMPACT = "compact"
    CONFIG = "config"
    DEADLINE = "deadline"
    DENY_ALL = "deny_all"
    DISABLED_TOOL = "no_tool"
    DRY_RUN = "dry_run"
    EDIT = "edit"
    END = "end"
    EXACT = "exact"
    EXPIRES = "expires"
    EXPIRES_AT = "expires_at"
    EXTRACT = "extract"
    FORK = "fork"
    FORMAT = "format"
    KEEP_FIRST = "keep_first"
    KEEP_LAST = "keep_last"
    LABEL = "labels"
    LAST = "last"
    LOCAL = "local"
    MAX_COST = "max_cost"
    MODEL = "model"
    NEW = "new"
    NO_EDIT = "no_edit"
    NO_LOCAL = "no_local"
    NO_PERSIST = "no_persist"
    NO_STDIN = "no_stdin"
    OR_NEW = "or_new"
    PARAMETER = "params"
    PATIENCE = "patience"
    PRINT_ID = "print_id"
    PROFILE = "profile"
    PROMPT = "prompt"
    QUOTE = "quote"
    REASONING = "reasoning"
    REPLAY = "replay"
    RESET = "reset"
    RESOURCES = "resources"
    SCHEMA = "schema"
    START = "start"
    SUMMARY = "summary"
    SYSTEM = "system"
    TARGET = "target"
    TEMPLATE = "template"
    TITLE = "title"
    TOOL = "tools"
    TOOL_POLICY = "tool_policy"
    TOOL_USE = "tool_use"
    TURN = "turn"
    WORKSPACE = "workspace"
    YES = "yes"

    def __repr__(self) -> str:
        return str(self)


Change: TypeAlias = Literal["undo", "unarchive", "fork", "activate", "delete", "merge", "untitle"]
View: TypeAlias = Literal[
    "answer",
    "attachments",
    "context",
    "conversation",
    "conversations",
    "ignored settings",
    "labels",
    "models",
    "prompts",
    "setting",
    "setting origin",
    "setting origins",
    "settings",
    "settings files",
    "tool rules",
    "tools",
]


class Remedy(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An action that a text refers to."""


class UseOption(Remedy, frozen=True):
    """Give an option, with `value` where it takes one."""

    option: Option
    value: str = ""


class SetSettings(Remedy, frozen=True):
    """Set settings, each written `key=value`: in the user's own file, in the one nearest, or for one run."""

    assignments: tuple[str, ...]
    scope: Literal["user", "nearest", "run"] = "nearest"


class Ask(Remedy, frozen=True):
    """Ask a model `words`, with `options`; `is_open` where more arguments have to follow."""

    options: tuple[UseOption, ...] = ()
    words: str = ""
    is_open: bool = False


class Compact(Remedy, frozen=True):
    """Compact `conversation`, propose a compaction of it, apply the `proposal`, or reset a compaction by its number."""

    conversation: str = ""
    proposal: str = ""
    proposes: bool = False
    reset: str = ""


class ChangeConversation(Remedy, frozen=True):
    """Change `conversation`, or the active one."""

    change: Change
    conversation: str = ""


class Show(Remedy, frozen=True):
    """Show something; `name` says which, `refreshed` asks its sources instead of the cache."""

    view: View
    name: str = ""
    refreshed: bool = False


class ImportSettings(Remedy, frozen=True):
    """Rewrite the configuration file `path`, or all that are read here, as TOML in jp's spelling."""

    path: str = ""


class StoreKey(Remedy, frozen=True):
    """Store an API key for `provider`."""

    provider: str


class TrustWorkspace(Remedy, frozen=True):
    """Accept the settings of the workspace at `path`, the current one if empty, or those of `conversation`."""

    path: str = ""
    conversation: str = ""


class CreateWorkspace(Remedy, frozen=True):
    """Create a workspace at `path`, or in the current directory."""

    path: str = ""


class RemoveAttachment(Remedy, frozen=True):
    """Remove `uri`, or one of them, from the attachments that a conversation declares."""

    uri: str = ""


AnyRemedy: TypeAlias = (
    UseOption
    | SetSettings
    | Ask
    | Compact
    | ChangeConversation
    | Show
    | StoreKey
    | TrustWorkspace
    | CreateWorkspace
    | ImportSettings
    | RemoveAttachment
)


class Phrase(str):
    """A text with the remedies that it refers to: `parts` are its words and the remedies between them.

    As a plain string, each option is named as in the Python API and each other remedy is written as its constructor.
    Formatting it into another string loses the remedies: combine texts with `phrase` and `join`.
    """

    __slots__ = ("parts",)
    parts: tuple[str | AnyRemedy, ...]

    @property
    def remedies(self) -> tuple[AnyRemedy, ...]:
        """Return the remedies in the order of the text."""
        return tuple(part for part in self.parts if not isinstance(part, str))


def phrase(*parts: str | Option | AnyRemedy) -> str:
    """Return the text of `parts`, without any space between them: a `Phrase` if it refers to a remedy."""
    flat: list[str | AnyRemedy] = []
    for part in parts:
        if isinstance(part, Phrase):
            flat += part.parts
        elif isinstance(part, Option):
            flat.append(UseOption(part))
        elif part != "":
            flat.append(part)
    plain = "".join(map(_plain, flat))
    if all(isinstance(part, str) for part in flat):
        return plain
    made = Phrase(plain)
    made.parts = tuple(flat)
    return made


def join(separator: str, texts: Iterable[str]) -> str:
    """Return the texts that are not empty, with `separator` between them; see `str.join`."""
    parts: list[str] = []
    for text in filter(None, texts):
        parts += (separator, text) if parts else (text,)
    return phrase(*parts)


def remedies_of(text: str) -> tuple[AnyRemedy, ...]:
    """Return the remedies that a message, a hint or a notice refers to."""
    return text.remedies if isinstance(text, Phrase) else ()


def _plain(part: str | AnyRemedy) -> str:
    match part:
        case str():
            return part
        case UseOption(option=option, value=value):
            return f"{option.value}={value}" if value else option.value
        case _:
            return repr(part)

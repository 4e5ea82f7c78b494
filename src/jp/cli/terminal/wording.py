"""The wording of remedies: an option or a command of jp for each that an error, a hint or a notice refers to."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import assert_never

from jp.remedies import (
    AnyRemedy,
    Ask,
    Change,
    ChangeConversation,
    Compact,
    CreateWorkspace,
    ImportSettings,
    Option,
    Phrase,
    RemoveAttachment,
    SetSettings,
    Show,
    StoreKey,
    TrustWorkspace,
    UseOption,
    View,
)

OPTIONS: Mapping[Option, str] = {
    Option.APPROVE: "--approve",
    Option.APPROVE_ALL: "--approve-all",
    Option.AS_SENT: "--as-sent",
    Option.ATTACH: "--attach",
    Option.BUDGET: "--budget",
    Option.COMPACT: "--compact",
    Option.CONFIG: "--cfg",
    Option.DEADLINE: "--deadline",
    Option.DENY_ALL: "--deny-all",
    Option.DISABLED_TOOL: "--no-tool",
    Option.DRY_RUN: "--dry-run",
    Option.EDIT: "--edit",
    Option.END: "--to",
    Option.EXACT: "--exact",
    Option.EXPIRES: "--expires",
    Option.EXPIRES_AT: "--tmp",
    Option.EXTRACT: "--extract",
    Option.FORK: "--fork",
    Option.FORMAT: "--format",
    Option.KEEP_FIRST: "--keep-first",
    Option.KEEP_LAST: "--keep",
    Option.LABEL: "--label",
    Option.LAST: "--last",
    Option.LOCAL: "--local",
    Option.MAX_COST: "--max-cost",
    Option.MODEL: "--model",
    Option.NEW: "--new",
    Option.NO_EDIT: "--no-edit",
    Option.NO_LOCAL: "--no-local",
    Option.NO_PERSIST: "--no-persist",
    Option.NO_STDIN: "--no-stdin",
    Option.OR_NEW: "--or-new",
    Option.PARAMETER: "--param",
    Option.PATIENCE: "--wait",
    Option.PRINT_ID: "--print-id",
    Option.PROFILE: "--profile",
    Option.PROMPT: "--prompt",
    Option.QUOTE: "--quote",
    Option.REASONING: "--reasoning",
    Option.REPLAY: "--replay",
    Option.RESET: "--reset",
    Option.RESOURCES: "--resources",
    Option.SCHEMA: "--schema",
    Option.START: "--from",
    Option.SUMMARY: "--summarize",
    Option.SYSTEM: "--system",
    Option.TARGET: "--id",
    Option.TEMPLATE: "--template",
    Option.TITLE: "--title",
    Option.TOOL: "--tool",
    Option.TOOL_POLICY: "--tools",
    Option.TOOL_USE: "--tool-use",
    Option.TURN: "--turn",
    Option.WORKSPACE: "--workspace",
    Option.YES: "--yes",
}

_DETACHED = frozenset({
    Option.COMPACT,
    Option.DISABLED_TOOL,
    Option.FORK,
    Option.RESET,
    Option.TOOL,
    Option.TOOL_POLICY,
})
"""Options that would not take the next word as their value."""


def worded(text: str) -> str:
    """Return `text` with each remedy as an option or a command."""
    if not isinstance(text, Phrase):
        return text
    return "".join(part if isinstance(part, str) else words_of(part) for part in text.parts)


def words_of(remedy: AnyRemedy) -> str:
    """Return the option or the command that `remedy` is."""
    match remedy:
        case UseOption(option=option, value=value):
            return f"{OPTIONS[option]}{'=' if option in _DETACHED else ' '}{value}" if value else OPTIONS[option]
        case SetSettings(assignments=assignments, scope="run"):
            return " ".join(f"{OPTIONS[Option.CONFIG]} {assignment}" for assignment in assignments)
        case Ask() | Compact() | ChangeConversation() | Show():
            words = _of_conversations(remedy)
        case _:
            words = _of_settings(remedy)
    return " ".join(filter(None, ("jp", *words)))


def _of_conversations(remedy: Ask | Compact | ChangeConversation | Show) -> tuple[str, ...]:
    match remedy:
        case Ask(options=options, words=words, is_open=is_open):
            said = ("query", *map(words_of, options), f'"{words}"' if words else "", "…" if is_open else "")
        case Compact(conversation=conversation, proposal=proposal, proposes=proposes, reset=reset):
            done = (*_given("--apply", proposal), "--propose" if proposes else "", f"--reset={reset}" if reset else "")
            said = ("conversation compact", *done, conversation)
        case ChangeConversation(change=change, conversation=conversation):
            said = ("conversation", _CHANGES[change], conversation)
        case Show(view=view, name=name, refreshed=refreshed):
            said = (_VIEWS[view], name, "--refresh" if refreshed else "")
        case _:
            assert_never(remedy)
    return said


def _of_settings(
    remedy: SetSettings | StoreKey | TrustWorkspace | CreateWorkspace | ImportSettings | RemoveAttachment,
) -> tuple[str, ...]:
    match remedy:
        case SetSettings(assignments=assignments, scope=scope):
            said = ("config set", "--in user" if scope == "user" else "", *assignments)
        case StoreKey(provider=provider):
            said = ("keys set", provider)
        case TrustWorkspace(path=path, conversation=conversation):
            said = ("workspace trust", *_given("--id", conversation), quote(path) if path else "")
        case CreateWorkspace(path=path):
            said = ("init", path)
        case ImportSettings(path=path):
            said = ("config import", quote(path) if path else "")
        case RemoveAttachment(uri=uri):
            said = ("attachment rm", quote(uri) if uri else "")
        case _:
            assert_never(remedy)
    return said


def _given(option: str, value: str) -> tuple[str, ...]:
    return (option, value) if value else ()


_CHANGES: Mapping[Change, str] = {
    "activate": "use",
    "delete": "rm",
    "merge": "merge",
    "fork": "fork",
    "unarchive": "unarchive",
    "undo": "undo",
    "untitle": "edit --no-title",
}
_VIEWS: Mapping[View, str] = {
    "answer": "conversation print",
    "attachments": "attachment ls",
    "context": "conversation context",
    "conversation": "conversation show",
    "conversations": "conversation ls",
    "ignored settings": "config show --ignored",
    "labels": "conversation label ls",
    "models": "model ls",
    "prompts": "prompt ls",
    "setting": "config get",
    "setting origin": "config explain",
    "setting origins": "config show --origins",
    "settings": "config show",
    "settings files": "config path",
    "tool rules": "tool rules",
    "tools": "tool ls",
}

"""Remedies as data, as plain text, and as options and commands that exist."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from jp.app.query.arguments import QueryArguments, check
from jp.cli.command_line.argv import GLOBAL_OPTIONS
from jp.cli.command_line.commands import ROOT as COMMANDS
from jp.cli.command_line.commands import walk
from jp.cli.command_line.loading import LoadedCommand
from jp.cli.terminal.streams import json_text
from jp.cli.terminal.wording import OPTIONS, worded
from jp.errors import JpError, UsageError
from jp.remedies import (
    AnyRemedy,
    Ask,
    Change,
    ChangeConversation,
    Compact,
    CreateWorkspace,
    ImportSettings,
    Option,
    RemoveAttachment,
    SetSettings,
    Show,
    StoreKey,
    TrustWorkspace,
    UseOption,
    View,
    join,
    phrase,
    remedies_of,
)
from jp.tool.base import error_output

FORMS = {
    " ".join(path): {*LoadedCommand(command, path).options(), *GLOBAL_OPTIONS}
    for path, command in walk(COMMANDS, above=("jp",))
}
"""The options of each command."""

EXAMPLES: list[tuple[AnyRemedy, str]] = [
    (SetSettings(("a.b=1", "a.c=2")), "jp config set a.b=1 a.c=2"),
    (SetSettings(("a.b=1",), scope="user"), "jp config set --in user a.b=1"),
    (Ask((UseOption(Option.TARGET, "last"), UseOption(Option.EDIT)), words="why?"), 'jp query --id last --edit "why?"'),
    (Ask(is_open=True), "jp query …"),
    (Compact(), "jp conversation compact"),
    (Compact("jp-c1", proposal="ab"), "jp conversation compact --apply ab jp-c1"),
    (Compact(proposes=True), "jp conversation compact --propose"),
    (Compact("jp-c1", reset="2"), "jp conversation compact --reset=2 jp-c1"),
    (Show("models", "openai", refreshed=True), "jp model ls openai --refresh"),
    (Show("tools", refreshed=True), "jp tool ls --refresh"),
    (StoreKey("openai"), "jp keys set openai"),
    (TrustWorkspace(), "jp workspace trust"),
    (TrustWorkspace("/a b"), "jp workspace trust '/a b'"),
    (TrustWorkspace(conversation="jp-c1"), "jp workspace trust --id jp-c1"),
    (CreateWorkspace(), "jp init"),
    (CreateWorkspace("/a"), "jp init /a"),
    (ImportSettings("/a b.json"), "jp config import '/a b.json'"),
    (RemoveAttachment("file:a b"), "jp attachment rm 'file:a b'"),
]


def names_a_command(words: str) -> bool:
    """Return whether `words` begin with a command of jp that has their options."""
    found = max((name for name in FORMS if f"{words} ".startswith(f"{name} ")), key=len, default="")
    return bool(found) and set(re.findall(r"(?<= )--[a-z-]+", words)) <= FORMS[found]


@pytest.mark.parametrize(("remedy", "words"), EXAMPLES)
def test_a_remedy_is_worded_as_a_command_that_exists(remedy: AnyRemedy, words: str) -> None:
    assert worded(phrase("do `", remedy, "`")) == f"do `{words}`"
    assert names_a_command(words)


@pytest.mark.parametrize("view", get_args(View))
def test_each_view_is_a_command(view: View) -> None:
    assert names_a_command(worded(phrase(Show(view))))


@pytest.mark.parametrize("change", get_args(Change))
def test_each_change_of_a_conversation_is_a_command(change: Change) -> None:
    assert names_a_command(worded(phrase(ChangeConversation(change))))


def test_each_option_is_one_of_some_command() -> None:
    assert set(OPTIONS) == set(Option)
    assert set(OPTIONS.values()) <= set().union(*FORMS.values())


def test_an_option_takes_its_value_as_the_command_line_does() -> None:
    assert worded(phrase(UseOption(Option.MODEL, "a/b"))) == "--model a/b"
    assert worded(phrase(UseOption(Option.TOOL, "x"), " ", UseOption(Option.COMPACT, "y"))) == "--tool=x --compact=y"
    assert worded(phrase(SetSettings(("a=1", "b=2"), scope="run"))) == "--cfg a=1 --cfg b=2"


def test_each_kind_of_remedy_has_an_example() -> None:
    assert {type(remedy) for remedy, _ in EXAMPLES} | {UseOption, Show, ChangeConversation} == set(get_args(AnyRemedy))


def test_an_error_of_a_use_case_says_what_is_wrong_and_carries_the_remedy() -> None:
    with pytest.raises(UsageError) as caught:
        check(QueryArguments(new=True, target="last"))

    assert str(caught.value) == "new and target exclude each other"
    assert caught.value.hint == "new starts a conversation, target continues one"
    assert remedies_of(caught.value.hint) == (UseOption(Option.NEW), UseOption(Option.TARGET))
    assert worded(caught.value.message) == "--new and --id exclude each other"


def test_texts_are_combined_with_their_remedies() -> None:
    advice = phrase("a ", Option.NEW)
    both = join("; ", (advice, "", "b", phrase(StoreKey("x"))))

    assert both == "a new; b; StoreKey(provider='x')"
    assert worded(both) == "a --new; b; jp keys set x"
    assert remedies_of(both) == (UseOption(Option.NEW), StoreKey("x"))
    assert (join(", ", ("a", "b")), remedies_of("a --new")) == ("a, b", ())
    assert worded("as `it` is") == "as `it` is"
    assert type(phrase("a", phrase("b"))) is str  # which can be encoded, unlike a text with remedies


def test_a_text_in_json_has_the_words_of_the_command_line() -> None:
    error = JpError(phrase(Option.YES, " is missing"))

    assert json_text({"message": error.message}) == '{"message":"--yes is missing"}'


def test_a_failure_of_a_tool_is_plain_text_for_the_model() -> None:
    output = error_output(phrase(Option.YES, " is missing"))

    assert msgspec.to_builtins(output)["content"][0]["text"] == "yes is missing"

"""Hints for command lines that jp cannot read: unknown commands, options of other tools, and a missing query.

Imported only when a command line fails. The options of other tools are those of llm, aichat, mods and Claude Code.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from jp.cli.command_line.commands import Group, walk
from jp.errors import JpError, UsageError
from jp.remedies import phrase

_CONTINUE = "`jp query` continues this terminal's conversation; `--id last` continues the most recent one"
_ATTACH = "`--attach FILE` attaches a file"
_PARAMETER = "`--param K=V` sets a parameter, such as `--param temperature=0`"
_TARGET = "`--id TARGET` selects a conversation"
_SYSTEM = "`--system TEXT` sets the system prompt"
_WRITE = "`> FILE` writes the answer to a file"

_OF_QUERY: Mapping[str, str] = {
    **dict.fromkeys(("--continue", "--last", "--resume"), _CONTINUE),
    **dict.fromkeys(("-f", "--file", "--files", "--fragment", "--image"), _ATTACH),
    **dict.fromkeys(("--temperature", "--max-tokens"), _PARAMETER),
    **dict.fromkeys(("--cid", "--conversation", "--session"), _TARGET),
    **dict.fromkeys(("--role", "--system-prompt"), _SYSTEM),
    "-o": f"{_PARAMETER}; {_WRITE}",
    "--option": _PARAMETER,
    "--output": _WRITE,
    "--save": f"`jp prompt add NAME` saves a prompt; every conversation is saved; {_WRITE}",
    **dict.fromkeys(("--chat", "--interactive"), "`jp chat` asks one question after the other"),
    "--key": "`jp keys set PROVIDER` stores a key",
    "--print": "`jp query` always prints the answer and ends",
}
"""Options of other tools for which `jp query` has another name, with a hint that names it."""

_OF_ALL: Mapping[str, str] = {"--json": "`--format json` prints JSON"}
_JSON_OF_QUERY = "`--format json` prints JSON; `--schema SCHEMA` has the model answer with JSON"


_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("logs", "history", "sessions", "list"),
        "`jp conversation ls` lists conversations, `jp conversation print` shows one, `jp conversation grep` searches",
    ),
    **dict.fromkeys(("resume", "continue"), _CONTINUE),
    **dict.fromkeys(("models", "aliases"), "`jp model ls` lists models and their aliases"),
    "templates": "`jp prompt ls` lists saved prompts",
    "tools": "`jp tool ls` lists tools",
    "exec": "`jp query TEXT` asks once and prints the answer",
}
"""Commands of other tools for which jp has another name, with a hint that names it."""

_FEWEST_WORDS = 3
"""So many words are a sentence: a short schema is a name with a type."""


def unknown_command(word: str, path: tuple[str, ...], group: Group) -> UsageError:
    """Return the error for `word`, which names nothing in `group`, with a suggestion."""
    name = " ".join(path)
    if any(character.isspace() for character in word):
        return UsageError(f"{name} has no command {word!r}", hint='to ask something: jp "QUESTION"')
    if len(path) == 1 and word in _COMMANDS:
        return UsageError(f"{name} has no command {word!r}", hint=_COMMANDS[word])
    nearest = _nearest(word, path, group)
    suggestion = f"did you mean {nearest}? " if nearest else ""
    if len(path) == 1 and not nearest:
        suggestion = f"`{name} query {shlex.quote(word)}` asks the model; "
    return UsageError(f"{name} has no command {word!r}", hint=f"{suggestion}{name} --help lists the commands")


def missing_command(settings: Sequence[tuple[str, str]]) -> UsageError | None:
    """Return the error for a command line of options only, if one of them took the words of a query."""
    for form, value in settings:
        if form == "--cfg" and _is_prose_of_query(value):
            return UsageError("there is no command", hint=f"-c (--cfg) took {value!r} as its value; {_CONTINUE}")
    return None


def _is_prose_of_query(value: str) -> bool:
    return " " in value and "=" not in value and not value.startswith(("@", "{"))


def _nearest(word: str, path: tuple[str, ...], group: Group) -> str:
    """Return the commands below the group that have exactly this name, else one of the group with a similar name."""
    from jp.suggestions import closest_names

    found = [" ".join((*path, *below)) for below, _ in walk(group) if below[-1] == word]
    if not found:
        names = [name for node in group.commands for name in (node.name, *node.aliases)]
        found = [" ".join((*path, name)) for name in closest_names(word, names)]
    return " or ".join(f"'{command}'" for command in found)


def early_option(form: str, path: tuple[str, ...], known: Iterable[str]) -> UsageError:
    """Return the error for `form` before the name of a command, where only the forms `known` may be."""
    names = " ".join(path)
    if form == "--":
        return UsageError("a command must come before '--'", hint=f"{names} --help lists the commands")
    is_root = len(path) == 1
    foreign = _foreign(form, "jp query" if is_root else names)
    if is_root and foreign:
        return UsageError(f"jp has no option {form!r}", hint=f"with `jp query`: {foreign}")
    suggestion = _suggestion(form, known)
    example = f", as in `jp query {form} …`" if is_root and not suggestion else ""
    hint = foreign or f"{suggestion}options of a command come after its name{example}"
    return UsageError(f"{names} has no option {form!r}", hint=f"{hint}; see {names} --help")


def unknown_option(form: str, known: Iterable[str], command: str) -> UsageError:
    """Return the error for an option that `command` does not have, with jp's option for the same purpose."""
    hint = f"{_suggestion(form, known)}{command} --help lists its options"
    if foreign := _foreign(form, command):
        hint = f"{foreign}; {command} --help lists its options"
    return UsageError(f"{command} has no option {form!r}", hint=hint)


def missing_value(form: str) -> UsageError:
    """Return the error for an option that ends the command line without its value."""
    if form in {"-c", "--cfg"}:
        return UsageError(
            f"{form} needs a value",
            hint=f"{form} sets a value of the configuration, as in `{form} KEY=VALUE`; {_CONTINUE}",
        )
    return UsageError(f"{form} needs a value", hint=f"write {form} VALUE")


def explain(error: JpError, values: Sequence[tuple[str, str]]) -> None:
    """Add the cause to the hint of an error of `jp query`, where it can be read from the command line.

    Args:
        error: its hint is changed if an option took the query, or if a schema reads as a system prompt.
        values: the options that took the next word as their value, with that word.
    """
    from jp.app.query.question import NoQueryError
    from jp.conversation.schemas import SchemaSyntaxError

    if isinstance(error, NoQueryError) and values:
        form, value = next((pair for pair in reversed(values) if " " in pair[1]), values[-1])
        more = f"; {_CONTINUE}" if form in {"-c", "--cfg"} else ""
        error.hint = phrase(f"{form} took {value!r} as its value{more}; ", error.hint)
    elif any(
        form in {"-c", "--cfg"} and _is_prose_of_query(value) and repr(value) in error.message for form, value in values
    ):
        error.hint = phrase(f"-c is --cfg, a value of the configuration; {_CONTINUE}")
    elif isinstance(error, SchemaSyntaxError) and any(_is_prose(form, value) for form, value in values):
        error.hint = phrase(f"-s is --schema, the form of the answer; {_SYSTEM}; ", error.hint)


def _is_prose(form: str, value: str) -> bool:
    return form in {"-s", "--schema"} and len(value.split()) >= _FEWEST_WORDS


def _foreign(form: str, command: str) -> str:
    """Return jp's way to do what `form` does in other tools; empty if that is unknown."""
    is_query = command == "jp query"
    if form in _OF_ALL:
        return _JSON_OF_QUERY if is_query else _OF_ALL[form]
    return _OF_QUERY.get(form, "") if is_query else ""


def _suggestion(form: str, known: Iterable[str]) -> str:
    from jp.suggestions import closest_names

    near = closest_names(form, [other for other in known if other.startswith("--")])
    return f"did you mean {near[0]!r}? " if near else ""

"""The pass over argv that comes before Typer. Pure.

It finds the command, takes the global options out wherever they stand before `--`, and writes options whose value is
optional as `--name=value`, which is the only form of them that Typer can read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jp.cli.command_line.commands import QUERY, Command, Group
from jp.errors import UsageError

Settings = tuple[tuple[str, str], ...]


class Option:
    """The syntax of an option: `name` is its long form.

    `takes` is `flag`, `value` (with `=`, attached to a short form, or the next word), `optional` (only with `=`), or
    `bound` (with `=`, or the next word if that is a bound). `bare` is the value of the latter two without one, and
    `mark` is put before any value that they have. A next word that `reads` as a value of an `optional` one is refused;
    one that `reads` as a mistyped bound becomes the value of a `bound` one, which the command then refuses.
    """

    __slots__ = ("bare", "mark", "name", "reads", "takes")

    def __init__(
        self,
        name: str,
        takes: str = "flag",
        *,
        bare: str = "",
        mark: str = "",
        reads: Callable[[str], bool] | None = None,
    ) -> None:
        self.name = name
        self.takes = takes
        self.bare = bare
        self.mark = mark
        self.reads = reads


GLOBAL_OPTIONS: dict[str, Option] = {
    form: option
    for option, forms in (
        (Option("--cfg", "value"), ("-c", "--cfg")),
        (Option("--format", "value"), ("-F", "--format")),
        (Option("--quiet"), ("-q", "--quiet")),
        (Option("--verbose"), ("-v", "--verbose")),
        (Option("--workspace", "value"), ("-w", "--workspace")),
        (Option("--no-persist"), ("-!", "--no-persist")),
        (Option("--color", "value"), ("--color",)),
        (Option("--width", "value"), ("--width",)),
        (Option("--version"), ("-V", "--version")),
        (Option("--help"), ("-h", "--help")),
    )
    for form in forms
}
"""Every form of the options that all commands have. No command may declare one of them for itself."""


class CommandMatch:
    """The node to which the words lead, the names on the way, and the remaining words.

    `unknown` is the word that names nothing below the group that was reached.
    """

    __slots__ = ("node", "path", "rest", "settings", "unknown")

    def __init__(
        self,
        node: Command | Group,
        path: tuple[str, ...],
        *,
        settings: Settings,
        rest: tuple[str, ...] = (),
        unknown: str | None = None,
    ) -> None:
        self.node = node
        self.path = path
        self.settings = settings
        self.rest = rest
        self.unknown = unknown


def find(words: Sequence[str], root: Group) -> CommandMatch:
    """Walk `words` down the tree to a command, taking the global options between them.

    Where a command is expected, `--` or a word with white space in it begins a query.

    Raises:
        UsageError: an option of no kind, or of a command that was not named yet.
    """
    reader = _Reader(words, GLOBAL_OPTIONS)
    group = root
    path: tuple[str, ...] = (root.name,)
    while not reader.at_end:
        word = reader.next()
        if group is root and _begins_query(word) and isinstance(query := root.get(QUERY), Command):
            return CommandMatch(query, (*path, QUERY), settings=reader.settings, rest=(word, *reader.rest()))
        if word.startswith("-") and word != "-":
            unknown = reader.take_option(word)
            if unknown is not None:
                from jp.cli.command_line.advice import early_option

                raise early_option(unknown, path, GLOBAL_OPTIONS)
            continue
        child = group.get(word)
        if child is None:
            return CommandMatch(group, path, settings=reader.settings, rest=reader.rest(), unknown=word)
        path = (*path, child.name)
        if isinstance(child, Command):
            return CommandMatch(child, path, settings=reader.settings, rest=reader.rest())
        group = child
    return CommandMatch(group, path, settings=reader.settings)


def extract(words: Sequence[str], options: Mapping[str, Option], *, command: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the global settings among the words after `command`, and the words for Typer.

    `options` are the command's own, by every form. A second pass over the remaining words changes nothing, and words
    after `--` are unchanged.

    Raises:
        UsageError: an option does not exist, lacks its value, or has one that it does not take.
    """
    known = {**GLOBAL_OPTIONS, **options}
    reader = _Reader(words, known)
    while not reader.at_end:
        word = reader.next()
        if word == "--":
            reader.arguments += [word, *reader.rest()]
            break
        if word == "-" or not word.startswith("-"):
            reader.arguments.append(word)
        else:
            unknown = reader.take_option(word)
            if unknown is not None:
                from jp.cli.command_line.advice import unknown_option

                raise unknown_option(unknown, known, command)
    return reader.settings, tuple(reader.arguments)


def _begins_query(word: str) -> bool:
    return word == "--" or (not word.startswith("-") and any(character.isspace() for character in word))


def option_values(words: Sequence[str], options: Mapping[str, Option]) -> list[tuple[str, str]]:
    """Return the options among valid `words` that took the next word as their value, with that word."""
    reader = _Reader(words, {**GLOBAL_OPTIONS, **options})
    while not reader.at_end and (word := reader.next()) != "--":
        if word != "-" and word.startswith("-"):
            reader.take_option(word)
    return reader.taken


def is_bound(word: str) -> bool:
    """Return whether `word` reads as a bound of a range of turns: `5`, `-3`, `5h`, `1d12h`, `last`."""
    if word == "last":
        return True
    return is_number(word) or _is_duration(word)


def is_number(word: str) -> bool:
    """Return whether `word` is the number of a turn, or of a compaction: `5`, `-3`."""
    number = word.removeprefix("-")
    return number.isascii() and number.isdecimal()


def scan_options(words: Sequence[str]) -> tuple[bool, int]:
    """Return whether JSON is requested and the count of `-v`, for a failure before the words are parsed."""
    before = words[: words.index("--")] if "--" in words else words
    pairs = zip(before, [*before[1:], ""], strict=False)
    as_json = any(
        word in {"--format=json", "-Fjson", "-F=json"} or (word in {"--format", "-F"} and value == "json")
        for word, value in pairs
    )
    return as_json, sum(word.count("v") for word in before if word.strip("v") == "-") + before.count("--verbose")


class _Reader:
    """Reads words one after the other, sorting settings from arguments."""

    def __init__(self, words: Sequence[str], options: Mapping[str, Option]) -> None:
        self._words = tuple(words)
        self._position = 0
        self._options = options
        self._settings: list[tuple[str, str]] = []
        self.arguments: list[str] = []
        self.taken: list[tuple[str, str]] = []

    @property
    def at_end(self) -> bool:
        return self._position == len(self._words)

    @property
    def settings(self) -> Settings:
        return tuple(self._settings)

    def next(self) -> str:
        word = self._words[self._position]
        self._position += 1
        return word

    def rest(self) -> tuple[str, ...]:
        return self._words[self._position :]

    def take_option(self, word: str) -> str | None:
        """Read the option or the cluster of options `word`; the form that is not known, where one is not."""
        if not word.startswith("--"):
            return self._take_cluster(word)
        form, equals, value = word.partition("=")
        option = self._options.get(form)
        if option is None:
            return form
        self._take(option, form, value if equals else None)
        return None

    def _take_cluster(self, word: str) -> str | None:
        """Read `-qv`, `-qmMODEL`, `-t=NAME`: letters up to the first that takes a value, which gets the rest."""
        for position in range(1, len(word)):
            form = f"-{word[position]}"
            option = self._options.get(form)
            if option is None:
                return form
            remainder = word[position + 1 :]
            if option.takes == "value" or remainder.startswith("="):
                self._take(option, form, remainder.removeprefix("=") if remainder else None)
                return None
            self._take(option, form, None)
        return None

    def _take(self, option: Option, form: str, value: str | None) -> None:
        if option.takes == "value" and value is None and not self.at_end:
            value = self.next()
            self.taken.append((form, value))
        value = _checked(option, form, value)
        if GLOBAL_OPTIONS.get(form) is option:
            self._settings.append((option.name, value or ""))
        elif option.takes in ("optional", "bound"):
            self.arguments.append(f"{option.name}={option.mark}{self._optional(option, form, value)}")
        elif value is None:
            self.arguments.append(form)
        else:
            self.arguments += [f"{form}={value}"] if form.startswith("--") else [form, value]

    def _optional(self, option: Option, form: str, value: str | None) -> str:
        if value is not None or self.at_end:
            return option.bare if value is None else value
        following = self._words[self._position]
        is_read = option.reads is not None and option.reads(following)
        if option.takes == "bound":
            return self.next() if is_read or is_bound(following) else option.bare
        if is_read:
            raise _detached_value(option, form, following)
        return option.bare


def _checked(option: Option, form: str, value: str | None) -> str | None:
    if option.takes == "flag" and value is not None:
        raise UsageError(f"{form} takes no value, but got {value!r}", hint=f"write just {form}")
    if option.takes == "value" and value is None:
        from jp.cli.command_line.advice import missing_value

        raise missing_value(form)
    return value


def _detached_value(option: Option, form: str, word: str) -> UsageError:
    return UsageError(
        f"{word!r} reads as the value of {form}, which takes one only with '='",
        hint=f"write `{option.name}={word}`, or `--` before {word!r} where it is no value",
    )


def _is_duration(word: str) -> bool:
    """Return whether `word` is numbers, each with a unit: `90s`, `5h`, `1d12h`."""
    digits = 0
    for character in word:
        if character.isascii() and character.isdecimal():
            digits += 1
        elif digits and character in "smhdw":
            digits = 0
        else:
            return False
    return bool(word) and not digits

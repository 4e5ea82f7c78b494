"""Candidates for the word at the cursor: what the script of a shell runs at each press of the Tab key.

Nothing here writes, asks, fails aloud or runs a program, and names from files and titles lose what a terminal or a
shell would interpret. Commands and options come from `table.json`, because Typer and the commands' modules take longer
to import than a completion may; for the same reason, configuration files are read as data, without their rules.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from jp.cli.command_line.argv import GLOBAL_OPTIONS, is_bound
from jp.cli.command_line.commands import QUERY, ROOT, Command, Group
from jp.cli.command_line.help import OPTIONS

VARIABLE = "_JP_COMPLETE"
"""The environment variable by which a script asks: it names the shell."""

_MOST_CONVERSATIONS = 200
_MOST_TEXT = 72
_LARGEST = 1024 * 1024
_LARGEST_LOG = 64 * _LARGEST
_SUFFIXES = (".toml", ".json", ".json5", ".yaml", ".yml")
_GLOBAL_KINDS = {
    "--cfg": "value",
    "--workspace": "path",
    "--format": "auto|text|pretty|json",
    "--color": "auto|always|never",
}
_BASH_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")

Candidate = tuple[str, str]
"""A value with its description, which may be empty."""


class Found:
    """Candidates, and whether the names of files are candidates, too. `open_ended` ones get no space behind them."""

    __slots__ = ("candidates", "files", "open_ended")

    def __init__(self, candidates: Iterable[Candidate] = (), *, files: bool = False, open_ended: bool = False) -> None:
        self.candidates = candidates
        self.files = files
        self.open_ended = open_ended


def answer(shell: str, arguments: list[str]) -> None:
    """Print the candidates for a shell: first a line of flags, then one of value, tab and description each.

    Args:
        shell: `bash`, `zsh` or `fish`.
        arguments: in bash the line up to the cursor and the part of it that readline replaces; elsewhere the words
            before the cursor without `jp`, the last one unfinished.
    """
    printed: list[str] = []
    try:
        for line in _bash(*arguments) if shell == "bash" else lines(_found([_unquoted(word) for word in arguments])):
            printed.append(f"{line}\n")  # noqa: PERF401 - what came before a failure counts
    except BaseException:  # noqa: BLE001, S110 - a completion that fails offers less, without a word in the prompt
        pass
    with contextlib.suppress(OSError):
        sys.stdout.write("".join(printed))
        sys.stdout.flush()


def lines(found: Found) -> Iterator[str]:
    """Yield what the scripts read: flags, then a line for each candidate that has only printable characters."""
    yield " ".join(name for name in ("files", "open_ended") if getattr(found, name))
    for value, description in found.candidates:
        if value.isprintable() and value:
            yield f"{value}\t{_one_line(description)}"


def _one_line(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text[: 2 * _MOST_TEXT]).strip()
    return shown if len(shown) <= _MOST_TEXT else f"{shown[: _MOST_TEXT - 1]}…"


def _bash(line: str, replaced: str) -> Iterator[str]:
    words, raw = _split(line)
    return bash_lines(_found(words[1:]), words, raw, replaced)


def bash_lines(found: Found, words: list[str], raw: str, replaced: str) -> Iterator[str]:
    """Yield candidates quoted for bash, without what stands before the part of the last word that readline replaces.

    Args:
        found: the candidates for the last word.
        words: the words up to the cursor as the shell reads them.
        raw: the last word as it is typed.
        replaced: the end of `raw` that readline replaces.
    """
    quote = raw[:1] if raw[:1] in {"'", '"'} else ""
    before = raw[: len(raw) - len(replaced)] if raw.endswith(replaced) else ""
    quoted: list[Candidate] = []
    for value, description in found.candidates:
        written = value if quote else _escaped(value)
        is_safe = not quote or not set(value) & set("'\"\\$`!")
        if is_safe and value.startswith(words[-1]) and written.startswith(before.removeprefix(quote)):
            quoted.append((written.removeprefix(before.removeprefix(quote)), description))
    if found.files and quoted:
        quoted += [(name.removeprefix(before), "") for name in map(_escaped, _files(words[-1])) if not quote]
    yield from lines(Found(quoted, files=found.files and not quoted, open_ended=found.open_ended))


def _escaped(value: str) -> str:
    return "".join(
        character if character in _BASH_PLAIN or not character.isascii() else f"\\{character}" for character in value
    )


def _split(line: str) -> tuple[list[str], str]:
    """Return the words of a line as the shell reads them, and the last one, at the cursor, as it is typed."""
    words, start, inside, escaped = [""], 0, "", False
    in_word = False
    for position, character in enumerate(line):
        if escaped:
            words[-1] += character
            escaped = False
        elif character == "\\" and inside != "'":
            escaped = in_word = True
        elif inside:
            inside, words[-1] = ("", words[-1]) if character == inside else (inside, words[-1] + character)
        elif character in {"'", '"'}:
            inside, in_word = character, True
        elif character in " \t\n":
            words += [""] if in_word or position == 0 else []
            start, in_word = position + 1, False
        else:
            words[-1] += character
            in_word = True
    return words, line[start:]


def _unquoted(word: str) -> str:
    return _split(word.replace(" ", "\\ "))[0][-1] if set(word) & set("'\"\\") else word


def _files(word: str) -> list[str]:
    directory, name = os.path.split(word)
    with os.scandir(directory or ".") as entries:
        return [
            os.path.join(directory, entry.name) + ("/" if entry.is_dir() else "")  # noqa: PTH118 - keeps `./` as typed
            for entry in entries
            if entry.name.startswith(name) and (name or not entry.name.startswith("."))
        ]


def _table() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("table.json").read_bytes())


class _Position:
    """The words before the cursor: group or command, its options and arguments, and the option that lacks a value."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.node: Command | Group = ROOT
        self.path: tuple[str, ...] = ()
        self.arguments: list[str] = []
        self.pending: tuple[str, str, str] | None = None
        self.is_literal = False
        self.given: dict[str, str] = {}
        self.options = {form: (o.name, o.takes, _GLOBAL_KINDS.get(o.name, "")) for form, o in GLOBAL_OPTIONS.items()}
        self.help = {form: text for forms, text in OPTIONS for form in forms.replace(",", "").split()}
        self.expected: list[tuple[str, str]] = []
        self._table = table

    def pass_word(self, word: str) -> None:
        """Read a word that is complete."""
        if self.pending is not None:
            name, takes, _ = self.pending
            self.pending = None
            if takes == "value" or is_bound(word):
                self.given[name] = word
                return
        if self.is_literal or word == "-" or not word.startswith("-"):
            self._pass_argument(word)
        elif word == "--":
            if self.node is ROOT:
                self._enter(QUERY, ROOT.get(QUERY))
            self.is_literal = True
        else:
            self._pass_option(word)

    def _pass_argument(self, word: str) -> None:
        if not isinstance(self.node, Group):
            self.arguments.append(word)
        elif (child := self.node.get(word)) is not None:
            self._enter(child.name, child)
        else:
            self._enter(QUERY if self.node is ROOT and " " in word else "", ROOT.get(QUERY))

    def _enter(self, name: str, node: Command | Group | None) -> None:
        """Go down to a group or command; a name that is not known has nothing below it."""
        self.path = (*self.path, name)
        self.node = node or ROOT
        for forms, takes, kind, help_text in self._table["commands"].get(" ".join(self.path), ()):
            if not forms:
                self.expected.append((takes, kind))
                continue
            for form in forms.split():
                self.options[form] = (max(forms.split(), key=len), takes, kind)
                self.help[form] = help_text

    def _pass_option(self, word: str) -> None:
        if word.startswith("--"):
            form, equals, value = word.partition("=")
            self._take(form, value if equals else None)
            return
        for index in range(1, len(word)):
            option = self.options.get(f"-{word[index]}")
            if option is None or option[1] == "value" or word[index + 1 : index + 2] == "=":
                self._take(f"-{word[index]}", word[index + 1 :].removeprefix("=") or None)
                return

    def _take(self, form: str, value: str | None) -> None:
        option = self.options.get(form)
        if option is not None and value is not None:
            self.given[option[0]] = value
        elif option is not None and option[1] in {"value", "bound"}:
            self.pending = option


def _found(words: list[str]) -> Found:
    table = _table()
    position = _Position(table)
    for word in words[:-1]:
        position.pass_word(word)
    current = words[-1] if words else ""
    if position.pending is not None and (position.pending[1] == "value" or not current.startswith("-")):
        return _values(position, position.pending[2], current, table)
    if not position.is_literal and current.startswith("--") and "=" in current:
        form, _, value = current.partition("=")
        _, takes, kind = position.options.get(form, ("", "flag", ""))
        return _with_prefix(f"{form}=", _values(position, kind, value, table) if takes != "flag" else Found())
    if not position.is_literal and current.startswith("-"):
        return Found((form, position.help.get(form, "")) for form in position.options if form.startswith(current))
    if isinstance(position.node, Group):
        return Found(_commands(position.node, current))
    taken = min(len(position.arguments), len(position.expected) - 1)
    if taken < 0 or (taken < len(position.arguments) and position.expected[taken][0] != "values"):
        return Found()
    return _values(position, position.expected[taken][1], current, table)


def _with_prefix(prefix: str, found: Found) -> Found:
    candidates = ((f"{prefix}{value}", description) for value, description in found.candidates)
    return Found(candidates, files=found.files, open_ended=found.open_ended)


def _commands(group: Group, current: str) -> Iterator[Candidate]:
    for child in group.commands:
        yield child.name, child.summary
    # As `find_executable` in jp.cli.app: only absolute directories count.
    directories = filter(os.path.isabs, os.environ.get("PATH", "").split(os.pathsep))
    for directory in directories if group is ROOT and current else ():
        for name in _names_in(directory, f"jp-{current}"):
            if os.access(f"{directory}/{name}", os.X_OK):
                yield name.removeprefix("jp-"), directory


def _names_in(directory: str, prefix: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.name.startswith(prefix)]
    except OSError:
        return []


def _values(position: _Position, kind: str, current: str, table: Mapping[str, Any]) -> Found:
    if kind.endswith(","):
        before, comma, last = current.rpartition(",")
        return _with_prefix(f"{before}{comma}", _values(position, kind[:-1], last, table))
    if "|" in kind or kind == "superseded":
        return Found((choice, "") for choice in kind.split("|"))
    if kind in {"path", ""}:
        return Found(files=bool(kind))
    places = _Places(position.given.get("--workspace"))
    if kind == "value":
        return _settings(places, current, table)
    if kind == "attachment":
        schemes = [(f"{scheme}:", "") for scheme in table["schemes"] if current and scheme.startswith(current)]
        chosen = places.conversations(current) if current.startswith("jp-") else ()
        return Found((*schemes, *chosen), files=True, open_ended=bool(schemes))
    sources: Mapping[str, Callable[[], Iterable[Candidate]]] = {
        "target": lambda: _targets(places, current),
        "label": places.labels,
        "name": lambda: [(name.partition("=")[0], "") for name, _ in places.labels()],
        "model": lambda: _models(places),
        "prompt": places.prompts,
        "tool": lambda: [(name, "") for name in {*table["tools"], *places.named("conversation", "tools")}],
        "profile": lambda: [
            (n, "") for n in {*table["profiles"], *places.named("conversation", "compaction", "profiles")}
        ],
        "provider": lambda: [(name, "") for name in table["providers"]],
        "setting": lambda: [(key, "") for key in table["settings"]],
        "attached": lambda: places.attachments(position.given.get("--id", "")),
    }
    return Found(dict.fromkeys(sources[kind]()) if kind in sources else ())


def _settings(places: _Places, current: str, table: Mapping[str, Any]) -> Found:
    key, equals, _ = current.partition("=")
    if equals:
        return _with_prefix(f"{key}=", Found(_models(places) if key.endswith("model.id") else ()))
    if current.startswith("@"):
        return Found(files=False)
    keys = [(f"{key}=", "") for key in table["settings"] if key.startswith(current)]
    fragments = places.fragments()
    return Found((*keys, *fragments), open_ended=not any(name.startswith(current) for name, _ in fragments))


def _targets(places: _Places, current: str) -> Iterator[Candidate]:
    if current.startswith("@"):
        yield from ((f"@{label}", "") for label, _ in places.labels())
        return
    yield from ((".", "Active here"), ("prev", "Active here before"), ("last", "Used last"))
    yield from places.conversations(current)


def _models(places: _Places) -> Iterator[Candidate]:
    package = Path(__file__).parents[2]
    shipped = json.loads((package / "config/aliases.json").read_bytes())["aliases"]
    for alias, model in {**shipped, **places.mapping("providers", "llm", "aliases")}.items():
        yield alias, model if isinstance(model, str) else ""
    for path in sorted((package / "provider").glob("*/models.json")):
        for model in json.loads(path.read_bytes()).get("models", ()):
            yield f"{path.parent.name}/{model['id']}", ""


class _Places:
    """Names from files of the user and the workspace, read without the rules of jp: a damaged file has nothing."""

    def __init__(self, workspace: str | None) -> None:
        from jp.workspace.layout import explicit_root, find_root, user_config_directory, user_data_directory

        self._user = user_config_directory(os.environ)
        self._data = user_data_directory()
        self._root = explicit_root(Path(workspace)) if workspace else find_root(Path.cwd())
        if self._root is not None:
            from jp.workspace.trust import require_own

            require_own(self._root, self._data)
        self._configs: list[dict[str, Any]] | None = None

    def conversations(self, prefix: str = "") -> Iterator[Candidate]:
        """Yield ids with titles, the newest first."""
        for conversation_id, title, _ in self._infos(prefix):
            yield conversation_id, title

    def labels(self) -> list[Candidate]:
        """Return the labels of the newest conversations, as `K=V` or `K`."""
        found = {f"{k}={v}" if v else k: "" for _, _, labels in self._infos("") for k, v in labels.items()}
        return sorted(found.items())

    def _infos(self, prefix: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
        from jp.workspace.layout import storage_at
        from jp.workspace.listing import directories_in, info_of

        digits = prefix.removeprefix("jp-c")
        storages = {storage_at(self._root, self._data, local=local) for local in (False, True)}
        found = [
            (conversation_id, directory)
            for storage in storages
            for conversation_id, directory in directories_in(storage)
            if not digits.isdecimal() or conversation_id.digits.startswith(digits)
        ]
        found.sort(key=lambda pair: pair[0].deciseconds, reverse=True)
        for conversation_id, directory in found[:_MOST_CONVERSATIONS]:
            metadata = info_of(conversation_id, directory, local=False).metadata
            yield str(conversation_id), metadata.title or metadata.first_words or "", metadata.labels

    def prompts(self) -> list[Candidate]:
        """Return the names of saved prompts."""
        return self._names("prompts", (".md",))

    def fragments(self) -> list[Candidate]:
        """Return the names of configuration fragments."""
        return self._names("config", _SUFFIXES)

    def _names(self, directory: str, suffixes: tuple[str, ...]) -> list[Candidate]:
        above = (self._user, None if self._root is None else self._root / ".jp")
        found = (path for place in above if place is not None for path in (place / directory).glob("*.*"))
        return sorted({(path.stem, "") for path in found if path.suffix in suffixes})

    def named(self, *path: str) -> list[str]:
        """Return the names below a key of the configuration."""
        return [name for name in self.mapping(*path) if name not in {"*", "defaults"}]

    def mapping(self, *path: str) -> dict[str, Any]:
        """Return the values below a key of the configuration."""
        merged: dict[str, Any] = {}
        for below in (_at(config, path) for config in self._read()):
            merged |= cast("dict[str, Any]", below) if isinstance(below, dict) else {}
        return merged

    def attachments(self, target: str) -> list[Candidate]:
        """Return the sources that configuration files attach, and those attached to a conversation at any time."""
        deltas = [delta for line in self._log(target) if b'"attachments"' in line for delta in _deltas(line)]
        lists = (_at(config, ("conversation", "attachments")) for config in (*self._read(), *deltas))
        uris = [uri for found in lists if isinstance(found, list) for uri in cast("list[Any]", found)]
        return [(uri, "") for uri in dict.fromkeys(uri for uri in uris if isinstance(uri, str))]

    def _log(self, target: str) -> list[bytes]:
        """Return the lines of the log of the conversation with an id, else of this terminal's active one."""
        from jp.file_access import read_whole
        from jp.workspace.layout import EVENTS, storage_at
        from jp.workspace.listing import directories_in
        from jp.workspace.session import SESSIONS, read_session, session_key

        local = storage_at(self._root, self._data, local=True)
        if not target.startswith("jp-c"):
            key = session_key()
            session = None if key is None else read_session(local.directory / SESSIONS / key.file_name)
            target = session.history[0].id if session is not None and session.history else ""
        for storage in (storage_at(self._root, self._data, local=False), local):
            for conversation_id, directory in directories_in(storage):
                if str(conversation_id) == target:
                    return read_whole(directory / EVENTS, _LARGEST_LOG, follows=False).splitlines()
        return []

    def _read(self) -> list[dict[str, Any]]:
        if self._configs is None:
            places = [] if self._user is None else [self._user / "config.toml"]
            if self._root is not None:
                between = [p for p in (Path.cwd(), *Path.cwd().parents) if p.is_relative_to(self._root)]
                places += [self._root / ".jp/config.toml", *(p / ".jp.toml" for p in reversed(between))]
            self._configs = [data for path in places for suffix in _SUFFIXES for data in _data(path, suffix)]
        return self._configs


def _data(path: Path, suffix: str) -> list[dict[str, Any]]:
    """Return the data of a configuration file with another suffix; nothing if it cannot be read."""
    from jp.file_access import read_whole

    try:
        text = read_whole(path.with_suffix(suffix), _LARGEST, follows=True).decode()
        if suffix != ".toml":
            from jp.config.formats import load

            return [dict(load(text, suffix))]
        import tomllib

        return [tomllib.loads(text)]
    except Exception:  # noqa: BLE001 - each format has errors of its own
        return []


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value below a key, None where there is none."""
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _deltas(line: bytes) -> list[Any]:
    try:
        return [_at(json.loads(line), ("delta",))]
    except ValueError:
        return []

"""Which files git and its like leave out: `.ignore`, `.gitignore` and `.git/info/exclude`, read as git reads them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jp.attachment.files.names import joined

_FILES = (".ignore", ".gitignore")
"""By precedence: any `.ignore` wins over any `.gitignore`."""

_MAX_BYTES = 1024 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# The group with which pathspec marks the end of a directory that a pattern matches.
_DIRECTORY = "ps_d"

# Git reads the classes of POSIX inside a set; pathspec takes them for characters.
_CLASS = re.compile(r"\[:([a-z]+):\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\r\v\f",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_ANY_SET = re.compile(r"\\.|\[(\^?\]?[^\]]*)\]", re.DOTALL)
_SIGN = re.compile(r"[\[&|~]|(?<=-)-")
_ESCAPED = r"\\\g<0>"


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line. `expression` is pathspec's: for paths from the directory that the line holds for."""

    expression: re.Pattern[str]
    ignores: bool

    def is_about(self, path: str, *, is_directory: bool) -> bool:
        """Whether the line matches `path` itself, not just a directory above it: a walk has judged those before."""
        if _DIRECTORY not in self.expression.groupindex:
            return self.expression.search(path) is not None
        if not is_directory:
            match = self.expression.search(path)
            return match is not None and match[_DIRECTORY] is None
        path += "/"
        return any(match.end(_DIRECTORY) == len(path) for match in self.expression.finditer(path))


_Rules = tuple[_Rule, ...]
"""The last line first: it wins."""


class IgnoreRules:
    """What is ignored below `top`; one object serves one walk."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._rules: dict[str, _Rules] = {}
        self._sources: dict[str, tuple[tuple[str, _Rules], ...]] = {}

    @classmethod
    def around(cls, base: str, root: str) -> IgnoreRules:
        """The rules for a walk of `base`: from the root, or the repository if that is larger, downwards.

        Both are absolute and without symlinks. Outside of `root`, the repository that holds `base` counts alone.
        """
        above = [root] if base == root or base.startswith(f"{root.rstrip('/')}/") else []
        repository = _repository(base)
        tops = [*above, *([repository] if repository is not None else []), base]
        return cls(min(tops, key=len))

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        """Whether `name` in `directory` is left out of an expansion."""
        if directory not in self._sources:
            self._sources[directory] = tuple(source for source in self._read(directory) if source[1])
        for prefix, rules in self._sources[directory]:
            path = prefix + name
            for rule in rules:
                if rule.is_about(path, is_directory=is_directory):
                    return rule.ignores
        return False

    def _read(self, directory: str) -> Iterator[tuple[str, _Rules]]:
        """Everything that speaks about `directory`, by precedence, with what leads from there to `directory`."""
        for file in _FILES:
            for above, prefix in self._above(directory):
                yield prefix, self._rules_in(joined(above, file))
        for above, prefix in self._above(directory):
            if (exclude := _exclude_file(above)) is not None:
                yield prefix, self._rules_in(exclude)

    def _above(self, directory: str) -> Iterator[tuple[str, str]]:
        """`directory` and what is above it up to the top, each with what leads from there to `directory`."""
        prefix = ""
        while True:
            yield directory, prefix
            if len(directory) <= len(self._top):
                return
            directory, _, name = directory.rpartition("/")
            directory = directory or "/"
            prefix = f"{name}/{prefix}"

    def _rules_in(self, path: str) -> _Rules:
        if path not in self._rules:
            self._rules[path] = tuple(reversed(list(_parsed(_text(path)))))
        return self._rules[path]


def _parsed(text: str) -> Iterator[_Rule]:
    if not text:
        return
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in text.removeprefix("\ufeff").split("\n"):
        known = _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), line)
        try:
            expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(known)
            if expression is not None and ignores is not None:
                yield _Rule(expression=re.compile(_ANY_SET.sub(_plain_set, expression)), ignores=ignores)
        except (GitIgnorePatternError, re.error):
            # As for git, a line that means nothing does nothing.
            continue


def _plain_set(match: re.Match[str]) -> str:
    """A set of a regular expression whose signs are all characters: Python warns of those it may give a meaning."""
    if match[1] is None:
        return match[0]
    return f"[{_SIGN.sub(_ESCAPED, match[1])}]"


def _text(path: str) -> str:
    """What a small regular file holds; nothing of anything else."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, _MAX_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _repository(base: str) -> str | None:
    """The directory that holds the `.git` of the repository around `base`."""
    directory = Path(base)
    return next((str(above) for above in (directory, *directory.parents) if os.path.lexists(above / ".git")), None)


def _exclude_file(directory: str) -> str | None:
    """The `info/exclude` of the repository in `directory`, which a linked worktree shares with its main one."""
    git = Path(directory, ".git")
    if not os.path.lexists(git):
        return None
    if not git.is_dir():
        git = Path(directory, _text(str(git)).removeprefix("gitdir:").strip())
        git /= _text(str(git / "commondir")).strip()
    return str(git / "info" / "exclude")

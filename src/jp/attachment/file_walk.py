"""From a directory or a glob to files: the walk, ignore files and excludes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from jp.attachment.base import AttachmentError, Declaration, ResolveContext
from jp.attachment.file_paths import (
    Location,
    Names,
    PathPattern,
    States,
    joined,
    locate,
    open_directory,
    parts_below,
    parts_of,
    real_path,
)


class _Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """A path, as URIs spell it, and what of the things below it; None means it and all of them."""

    names: list[str]
    below: PathPattern | None
    written: str
    typed: bool

    def covers(self, names: list[str]) -> bool:
        if names[: len(self.names)] != self.names:
            return False
        return self.below is None or self.below.covers(names[len(self.names) :])


class Exclusion:
    """Files that are not to be attached. One object serves one resolution."""

    def __init__(self, excludes: Sequence[Declaration], context: ResolveContext, names: Names) -> None:
        """`excludes` are `file` declarations.

        Raises:
            AttachmentError: one of them is malformed.
        """
        self._names = names
        self._excluded = tuple(
            _Excluded(
                names=parts_of(names.spelled(path)),
                below=_below(location),
                written=declaration.written,
                typed=declaration.typed,
            )
            for declaration in excludes
            for location in (locate(declaration.uri, context, names),)
            for path in _paths(location, names)
        )

    def by(self, path: str) -> str | None:
        """Return the exclude, as written, that takes away the file or directory at `path`; None where none does."""
        if not self._excluded:
            return None
        parts = parts_of(self._names.spelled(path))
        return next((excluded.written for excluded in self._excluded if excluded.covers(parts)), None)

    def give_way_to(self, *paths: str) -> None:
        """Forget the excludes that were declared earlier and take away what lies at one of `paths`."""
        places = [parts_of(self._names.spelled(path)) for path in paths] if self._excluded else []
        self._excluded = tuple(
            excluded for excluded in self._excluded if excluded.typed or not any(map(excluded.covers, places))
        )


def _below(location: Location) -> PathPattern | None:
    return PathPattern(location.tail) if location.tail else None


def _paths(location: Location, names: Names) -> Iterator[str]:
    """Yield the place as it is written, and as a walk comes to it: through no link, though it may be one itself."""
    if location.tail or location.path == "/":
        real = real_path(location.path, names)
    else:
        directory, name = os.path.split(location.path)
        real = joined(real_path(directory, names), name)
    yield location.path
    if real != location.path:
        yield real


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
        """Return whether the line matches `path` itself, not just a directory above it, which a walk judges first."""
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
    """Ignore rules below `top`; one object serves one walk."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._rules: dict[str, _Rules] = {}
        self._sources: dict[str, tuple[tuple[str, _Rules], ...]] = {}

    @classmethod
    def around(cls, base: str, root: str) -> IgnoreRules:
        """Return the rules for a walk of `base`: from the root, or the repository if that is larger, downwards.

        Both are absolute and without symlinks. Outside of `root`, the repository that holds `base` counts alone.
        """
        above = [root] if base == root or base.startswith(f"{root.rstrip('/')}/") else []
        repository = _repository(base)
        tops = [*above, *([repository] if repository is not None else []), base]
        return cls(min(tops, key=len))

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        """Return whether `name` in `directory` is left out of an expansion."""
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
    """Return a set of a regular expression in which every sign is a character: Python warns of ambiguous ones."""
    if match[1] is None:
        return match[0]
    return f"[{_SIGN.sub(_ESCAPED, match[1])}]"


def _text(path: str) -> str:
    """Return what a small regular file holds; nothing of anything else."""
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
    """Return the directory that holds the `.git` of the repository around `base`."""
    directory = Path(base)
    return next((str(above) for above in (directory, *directory.parents) if os.path.lexists(above / ".git")), None)


def _exclude_file(directory: str) -> str | None:
    """Return the `info/exclude` of the repository in `directory`, which a linked worktree shares with its main one."""
    git = Path(directory, ".git")
    if not os.path.lexists(git):
        return None
    if not git.is_dir():
        git = Path(directory, _text(str(git)).removeprefix("gitdir:").strip())
        git /= _text(str(git / "commondir")).strip()
    return str(git / "info" / "exclude")


MAX_FILES = 2_000
"""Most files of one declaration: more is a tree that was attached by mistake."""

MAX_ENTRIES = 250_000
"""Most names that one walk looks at."""

NEVER_ENTERED = frozenset({".git", ".jp"})

_CHECK_EVERY = 1_000


class WalkBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a walk. `base` is where it begins; nothing outside of `anchor` is reached. Both are real paths."""

    base: str
    anchor: str


class Expansion(msgspec.Struct, kw_only=True):
    """Result of a walk: real paths, in no order. `left_out` are paths by the reason, in words."""

    files: set[str] = msgspec.field(default_factory=set[str])
    left_out: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    excluded_by: str | None = None
    has_ignored: bool = False
    has_directories: bool = False

    def leave_out(self, path: str, reason: str) -> None:
        """Remember that `path` is not among the files."""
        self.left_out.setdefault(reason, []).append(path)


class Walk:
    """One expansion. Directory links are not followed, so it ends; links to files are, inside the anchor."""

    def __init__(self, declaration: Declaration, grounds: WalkBounds, exclusion: Exclusion, root: str) -> None:
        self._declaration = declaration
        self._grounds = grounds
        self._exclusion = exclusion
        self._ignore = IgnoreRules.around(grounds.base, root)
        self._found = Expansion()
        self._links: list[str] = []
        self._entries = 0
        self._todo: list[tuple[str, States]] = []

    def run(self, pattern: PathPattern, check: Callable[[], None]) -> Expansion:
        """Find what matches `pattern` below the base. `check` is called now and then; what it raises ends the walk.

        Raises:
            AttachmentError: there is too much of it.
            OSError: the base cannot be listed.
        """
        self._todo.append((self._grounds.base, pattern.start))
        while self._todo:
            check()
            directory, states = self._todo.pop()
            try:
                self._visit(directory, states, pattern, check)
            except OSError as error:
                if directory == self._grounds.base:
                    raise
                self._found.leave_out(directory, error.strerror or str(error))
        for link in self._links:
            check()
            self._follow(link)
        return self._found

    def _visit(self, directory: str, states: States, pattern: PathPattern, check: Callable[[], None]) -> None:
        descriptor = open_directory(self._grounds.anchor, parts_below(directory, self._grounds.anchor) or [])
        try:
            with os.scandir(descriptor) as entries:
                for entry in self._counted(entries, check):
                    following = frozenset[int]() if entry.name in NEVER_ENTERED else pattern.step(states, entry.name)
                    self._take(directory, entry, following, accepted=pattern.accepts(following))
        finally:
            os.close(descriptor)

    def _counted(self, entries: Iterable[os.DirEntry[str]], check: Callable[[], None]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                message = f"{self._declaration.written!r} has more than {MAX_ENTRIES:,} entries"
                raise AttachmentError(message, hint=_NARROW)
            if self._entries % _CHECK_EVERY == 0:
                check()
            yield entry

    def _take(self, directory: str, entry: os.DirEntry[str], following: States, *, accepted: bool) -> None:
        is_directory = bool(following) and entry.is_dir(follow_symlinks=False)
        path = joined(directory, entry.name)
        if not (accepted or is_directory) or self._is_ignored(directory, entry.name, is_directory=is_directory):
            return
        if self._is_excluded(path, accepted=accepted):
            return
        if is_directory:
            self._found.has_directories |= accepted
            self._todo.append((path, following))
        elif entry.is_symlink():
            self._links.append(path)
        elif entry.is_file(follow_symlinks=False):
            self._found.files.add(path)
        else:
            self._found.leave_out(path, "neither a file nor a directory")
        if len(self._found.files) + len(self._links) > MAX_FILES:
            message = f"{self._declaration.written!r} stands for more than {MAX_FILES:,} files"
            raise AttachmentError(message, hint=_NARROW)

    def _is_ignored(self, directory: str, name: str, *, is_directory: bool) -> bool:
        is_ignored = self._ignore.ignores(directory, name, is_directory=is_directory)
        self._found.has_ignored |= is_ignored
        return is_ignored

    def _is_excluded(self, path: str, *, accepted: bool = True) -> bool:
        exclude = self._exclusion.by(path)
        if exclude is not None and accepted:
            self._found.excluded_by = exclude
        return exclude is not None

    def _follow(self, link: str) -> None:
        try:
            real = os.path.realpath(link, strict=True)
            mode = os.stat(real).st_mode  # noqa: PTH116  text, as everywhere here
        except OSError as error:
            self._found.leave_out(link, f"a link that leads nowhere: {error.strerror}")
            return
        inside = parts_below(real, self._grounds.anchor)
        if inside is None:
            self._found.leave_out(link, f"a link that leads outside of {self._grounds.anchor!r}")
        elif not stat.S_ISREG(mode):
            self._found.leave_out(link, "a link to what is no file")
        elif not NEVER_ENTERED.intersection(inside) and not self._is_excluded(real):
            self._found.files.add(real)


_NARROW = "Narrow it with a glob such as 'src/**/*.py', or leave a directory out with '!DIRECTORY'."


def is_never_entered(path: str, root: str) -> bool:
    """Return whether the real path `path` lies in a directory that jp or git keeps for itself."""
    inside = parts_below(path, root)
    return bool(NEVER_ENTERED.intersection(parts_of(path) if inside is None else inside))

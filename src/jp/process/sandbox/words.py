"""What is said of a confinement: before a program runs, and where the confinement may have stopped it. Pure."""

from __future__ import annotations

import re
from typing import Literal, assert_never

import msgspec

from jp.process.sandbox.mechanisms import Bubblewrap, Landlock, Mechanism, Missing, Seatbelt
from jp.process.sandbox.policy import Confinement

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
    """What of a confinement the mechanism cannot hold, in words."""
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
    """What holds for a program on this machine: in one `word`, and as a `text` for who is to let it run."""

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
    """What the confinement may have kept a program from that said `text` on failing: a write, or the network."""
    if not confinement.has_network and _UNREACHABLE.search(text) is not None:
        return "network"
    return "write" if _REFUSED.search(text) is not None else None

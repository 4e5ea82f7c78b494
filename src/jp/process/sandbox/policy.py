"""Rules for the paths and networks of a confined program, and the mechanisms that enforce them. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol, assert_never

import msgspec

Mode = Literal["workspace-write", "read-only"]
Access = Literal["write", "read", "fresh", "hidden"]
"""A fresh directory is empty, may be written to, and is removed afterwards; what is hidden is empty."""

Kind = Literal["directory", "file", "link"]


class SandboxSettings(Protocol):
    """Settings of the sandbox; None or empty where the configuration has none."""

    @property
    def mode(self) -> Mode | Literal["off"] | None:
        """Return where a program may write."""
        ...

    @property
    def network(self) -> bool | None:
        """Return whether it may use the network."""
        ...

    @property
    def writable(self) -> tuple[str, ...]:
        """Further directories that it may change: absolute, relative to the root, or with `~`."""
        ...

    @property
    def required(self) -> bool | None:
        """Return whether it must not run where some of this cannot be held."""
        ...


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a program. Paths are absolute, but those of `writable`.

    Args:
        root: the workspace's root, the only directory that `workspace-write` lets a program change.
        network: whether it may use the network; never with `read-only`.
        required: whether the program must not run where some of this cannot be held.
        writable: further directories that `workspace-write` lets it change; relative ones begin at the root.
        private: directories of jp itself: hidden, whatever else is said.
    """

    mode: Mode
    root: str
    network: bool = False
    required: bool = False
    writable: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    @property
    def has_network(self) -> bool:
        """Return whether it may use the network."""
        return self.network and self.mode == "workspace-write"


def confinement_of(
    settings: SandboxSettings,
    *,
    default: Mode | Literal["off"],
    root: str,
    private: Sequence[str],
    is_agreed: bool = False,
) -> Confinement | None:
    """Return the limits that a configuration sets; None where it sets none.

    `default` is the mode where it does not say. With `is_agreed`, a person has agreed to what runs, so that it may use
    the network unless the configuration forbids it.
    """
    mode = settings.mode or default
    if mode == "off":
        return None
    return Confinement(
        mode=mode,
        root=root,
        network=is_agreed if settings.network is None else settings.network,
        required=bool(settings.required),
        writable=settings.writable,
        private=tuple(private),
    )


class PathRule(msgspec.Struct, frozen=True, kw_only=True):
    """Access of a program to `path`, which has no links in it, and to all below it."""

    path: str
    access: Access
    is_directory: bool = True


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the disk.

    Args:
        kind: what is at a path; None where nothing is, or where it cannot be reached.
        real: a path without links.
        text: the beginning of a file's text; empty where it cannot be read.
        sockets: paths of local sockets that others listen on.
    """

    kind: Callable[[str], Kind | None]
    real: Callable[[str], str]
    text: Callable[[str], str]
    sockets: tuple[str, ...] = ()


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for paths, those of directories before those of what is in them.

    `frozen_because` says why the root cannot be written to although the mode lets it. `placeholders` are directories
    that have to exist while a program runs, so that it cannot create them; empty ones may be removed afterwards.
    """

    paths: tuple[PathRule, ...]
    frozen_because: str = ""
    placeholders: tuple[str, ...] = ()


_FRESH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - they are replaced by empty ones
_RUNTIME = ("/run", "/var/run")
"""Sockets of services are there, those of the user's session and of containers among them."""

_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d")

_CONFIGURATION_SECRETS = (
    "1Password", "BraveSoftware", "Signal", "Slack", "Yubico", "age", "chromium", "composer/auth.json",
    "containers/auth.json", "discord", "doctl", "fish/fish_history", "gcloud", "gh", "git/credentials",
    "github-copilot", "glab-cli", "google-chrome", "google-chrome-beta", "google-chrome-unstable", "hub",
    "io.datasette.llm", "microsoft-edge", "netlify", "op", "openai", "opera", "rclone", "sops", "vivaldi",
)  # fmt: skip
_HOME_SECRETS = (
    ".1password", ".ICEauthority", ".Xauthority", ".ansible/vault", ".anthropic", ".authinfo", ".authinfo.gpg", ".aws",
    ".azure", ".bash_history", ".boto", ".cache/huggingface/token", ".cargo/credentials", ".cargo/credentials.toml",
    ".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".composer/auth.json", ".databrickscfg",
    ".docker", ".fly", ".gem/credentials", ".gemini/oauth_creds.json", ".git-credentials", ".gnupg",
    ".huggingface/token", ".ksh_history", ".kube", ".lesshst", ".local/share/fish/fish_history",
    ".local/share/keyrings", ".local/share/kwalletd", ".local/share/opencode/auth.json", ".m2/settings-security.xml",
    ".m2/settings.xml", ".mozilla", ".my.cnf", ".mylogin.cnf", ".mysql_history", ".netrc", ".node_repl_history",
    ".npmrc", ".oci", ".openai", ".password-store", ".pgpass", ".pki", ".psql_history", ".pypirc", ".python_history",
    ".rediscli_history", ".s3cfg", ".sqlite_history", ".ssh", ".terraform.d/credentials.tfrc.json", ".thunderbird",
    ".var/app", ".vault-token", ".viminfo", ".wrangler", ".yarnrc.yml", ".zsh_history", ".zsh_sessions",
    "Library/Application Support/BraveSoftware", "Library/Application Support/Chromium",
    "Library/Application Support/Firefox", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Microsoft Edge", "Library/Cookies", "Library/Keychains", "Library/Mail",
    "Library/Messages", "Library/Safari", "_netrc", "snap/chromium", "snap/firefox",
)  # fmt: skip
"""Keys, tokens, histories of shells and profiles of browsers, from a user's home."""

_GIT_POINTER = "gitdir:"


def rules_of(confinement: Confinement, *, homes: Sequence[str], environment: Mapping[str, str], disk: Disk) -> Rules:
    """Return the rules for a program.

    Args:
        confinement: its limits.
        homes: the user's home directories: what HOME says, and what the system says.
        environment: that of the program.
        disk: what is on the disk.
    """
    root = disk.real(confinement.root)
    reason = _frozen_because(confinement, root, homes, disk)
    is_frozen = confinement.mode == "read-only" or reason
    writable = (disk.real(_absolute(path, root, homes)) for path in confinement.writable)
    places = () if is_frozen else tuple(filter(_is_mountable, (root, *writable)))
    git = disk.kind(f"{root}/.git")
    placeholders = (f"{root}/.git",) if root in places and git in {None, "directory"} else ()
    found = _Found(disk)
    # What comes later wins where two rules are for one path.
    found.add("fresh", map(disk.real, _FRESH))
    found.add("hidden", map(disk.real, _RUNTIME))
    needed = _needed(confinement, environment, disk)
    found.add("read", (root, *(path for path in needed if not any(is_below(path, place) for place in (root, *places)))))
    found.add("write", places)
    found.add("hidden", [disk.real(path) for path in _secrets(homes, environment) if disk.kind(path) is not None])
    found.add("read", _kept(places, disk))
    found.put("hidden", placeholders if git is None else (), kind="directory")
    found.put("hidden", [path for path in disk.sockets if access_of(path, found.rules.values()) == "read"], kind="file")
    for path in filter(_is_mountable, map(disk.real, confinement.private)):
        found.forget_below(path)
        found.add("hidden", [path])
    return Rules(paths=_sorted(found.rules.values()), frozen_because=reason, placeholders=placeholders)


class _Found:
    """Rules by path."""

    def __init__(self, disk: Disk) -> None:
        self.rules: dict[str, PathRule] = {}
        self._disk = disk

    def add(self, access: Access, paths: Iterable[str]) -> None:
        """Add a rule for each path that exists."""
        for path in paths:
            kind = self._disk.kind(path)
            if kind is not None:
                self.put(access, [path], kind=kind)

    def put(self, access: Access, paths: Iterable[str], *, kind: Kind) -> None:
        """Add a rule for each path, at which something of this `kind` is."""
        for path in filter(_is_mountable, paths):
            self.rules[path] = PathRule(path=path, access=access, is_directory=kind != "file")

    def forget_below(self, directory: str) -> None:
        """Take the rules away for a directory and what is in it."""
        self.rules = {path: rule for path, rule in self.rules.items() if not is_below(path, directory)}


def _sorted(rules: Collection[PathRule]) -> tuple[PathRule, ...]:
    """Return the rules that change something, the general ones first."""
    changing = [
        rule
        for rule in rules
        if rule.access != "hidden" or access_of(posixpath.dirname(rule.path), rules) not in {"hidden", "fresh"}
    ]
    return tuple(sorted(changing, key=lambda rule: (rule.path.count("/"), rule.path)))


def _absolute(path: str, root: str, homes: Sequence[str]) -> str:
    if path == "~" or path.startswith("~/"):
        return f"{homes[0]}{path[1:]}" if homes else root
    return posixpath.join(root, path)


def _is_mountable(path: str) -> bool:
    """Return whether a rule for `path` leaves the program its own devices and its own list of processes."""
    is_kernels = any(is_below(path, place) for place in ("/dev", "/proc", "/sys"))
    return path != "/" and (is_below(path, "/dev/shm") or not is_kernels)  # noqa: S108 - compared, not written


def is_below(path: str, directory: str) -> bool:
    """Return whether `path` is `directory` or lies in it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def access_of(path: str, rules: Iterable[PathRule]) -> Access:
    """Return what a program may do with `path`."""
    nearest = max((rule for rule in rules if is_below(path, rule.path)), key=lambda rule: len(rule.path), default=None)
    return "read" if nearest is None else nearest.access


def _frozen_because(confinement: Confinement, root: str, homes: Sequence[str], disk: Disk) -> str:
    """Return why nothing below the root may be written although the mode lets it; empty where it may."""
    if confinement.mode == "read-only":
        return ""
    if any(is_below(disk.real(home), root) for home in homes):
        return "the home directory lies in it"
    links = [name for name in (".git", ".jp") if disk.kind(f"{root}/{name}") == "link"]
    return f"{links[0]!r} in it is a link" if links else ""


def _needed(confinement: Confinement, environment: Mapping[str, str], disk: Disk) -> list[str]:
    """Return what has to stay readable although it lies in what is hidden: programs, and how names are resolved."""
    covered = [disk.real(place) for place in (*_FRESH, *_RUNTIME)]
    needed = [place for place in environment.get("PATH", "").split(":") if place.startswith("/")]
    if confinement.has_network:
        needed.append(disk.real("/etc/resolv.conf"))
    needed = [posixpath.normpath(place) for place in needed]
    return [path for path in needed if path not in covered and any(is_below(path, place) for place in covered)]


def _secrets(homes: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    configurations = [f"{home}/.config" for home in homes]
    if (elsewhere := environment.get("XDG_CONFIG_HOME", "")).startswith("/"):
        configurations.append(elsewhere)
    return [
        *_SYSTEM_SECRETS,
        *(f"{home}/{name}" for home in homes for name in _HOME_SECRETS),
        *(f"{place}/{name}" for place in configurations for name in _CONFIGURATION_SECRETS),
    ]


def _kept(places: Sequence[str], disk: Disk) -> list[str]:
    """Return what decides what git and jp run: `.git`, wherever it leads, and `.jp`."""
    kept: list[str] = []
    for place in places:
        kept += [path for name in (".git", ".jp") if disk.kind(path := f"{place}/{name}") not in {None, "link"}]
        git = f"{place}/.git"
        if disk.kind(git) == "file" and (text := disk.text(git).strip()).startswith(_GIT_POINTER):
            directory = disk.real(posixpath.join(place, text.removeprefix(_GIT_POINTER).strip()))
            common = disk.text(f"{directory}/commondir").strip() or "."
            kept += [directory, disk.real(posixpath.join(directory, common))]
    return [path for path in kept if path not in places]


class Bubblewrap(msgspec.Struct, frozen=True):
    """Namespaces, by `program`: all of a confinement is held."""

    program: str


class Landlock(msgspec.Struct, frozen=True):
    """An allow-list of the kernel, in its `version`: part of a confinement is held. See `why` for what is missing."""

    version: int
    why: str


class Seatbelt(msgspec.Struct, frozen=True):
    """The sandbox of macOS."""


class NoMechanism(msgspec.Struct, frozen=True):
    """Nothing here can confine a program; `why` says why not."""

    why: str


Mechanism = Bubblewrap | Landlock | Seatbelt | NoMechanism


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
        case NoMechanism():
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
    if isinstance(mechanism, NoMechanism | Landlock) and confinement.required:
        return Limits(word="refused", text=f"it will not run: a sandbox is required, and {mechanism.why}")
    match mechanism:
        case NoMechanism(why=why):
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

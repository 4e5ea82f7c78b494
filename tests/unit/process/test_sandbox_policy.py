"""The rules for a confined program, and how each mechanism is told: without a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import normpath
from typing import Any

import pytest

from jp.config.entries import SandboxConfig
from jp.process.sandbox.policy import (
    Bubblewrap,
    Confinement,
    Disk,
    Kind,
    Landlock,
    Mechanism,
    NoMechanism,
    PathRule,
    Rules,
    Seatbelt,
    access_of,
    bwrap_words,
    confinement_of,
    denied_use,
    limits_in_force,
    not_held,
    readable_parts,
    rules_of,
    seatbelt_profile,
)

HOME = "/home/ada"
ROOT = "/home/ada/work"


def disk_with(
    *directories: str, links: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None, **more: Any
) -> Disk:
    """A disk that has these directories and the files of `texts`, and all that is above them."""
    to, text = links or {}, texts or {}
    above = {f"{path}/"[:index] for path in (*directories, *text) for index, letter in enumerate(path) if letter == "/"}

    def kind(path: str) -> Kind | None:
        if path in to:
            return "link"
        if path in text:
            return "file"
        return "directory" if path in {*directories, *above} else None

    def real(path: str) -> str:
        path = normpath(path)
        for link, target in to.items():
            if path == link or path.startswith(f"{link}/"):
                return real(target + path.removeprefix(link))
        return path

    return Disk(kind=kind, real=real, text=lambda path: text.get(path, ""), **more)


def confinement(mode: Any = "workspace-write", root: str = ROOT, **more: Any) -> Confinement:
    return Confinement(mode=mode, root=root, **more)


def rules(disk: Disk, limits: Confinement | None = None, **environment: str) -> Rules:
    return rules_of(limits or confinement(), homes=[HOME], environment=environment, disk=disk)


def accesses(found: Rules, *paths: str) -> list[str]:
    return [access_of(path, found.paths) for path in paths]


def test_only_the_workspace_and_temporary_directories_can_be_changed() -> None:
    found = rules(disk_with("/tmp", "/run", ROOT, f"{ROOT}/.git", f"{ROOT}/.jp", "/etc"))

    assert accesses(found, ROOT, f"{ROOT}/src/a.py") == ["write", "write"]
    assert accesses(found, "/", "/etc/hosts", HOME, f"{ROOT}s/a") == ["read"] * 4
    assert accesses(found, f"{ROOT}/.git/hooks/pre-commit", f"{ROOT}/.jp/config.toml") == ["read", "read"]
    assert accesses(found, "/tmp/x", "/run/user/1000/bus") == ["fresh", "hidden"]
    assert found.placeholders == (f"{ROOT}/.git",)


def test_nothing_can_be_changed_where_it_is_to_be_read_only() -> None:
    found = rules(disk_with("/tmp", ROOT), confinement("read-only", writable=("/srv",)))

    assert accesses(found, ROOT, f"{ROOT}/a", "/srv/a") == ["read"] * 3
    assert found.placeholders == ()


def test_secrets_are_hidden_wherever_links_lead() -> None:
    disk = disk_with(
        ROOT,
        f"{HOME}/dotfiles/ssh",
        f"{HOME}/.aws",
        "/elsewhere/gh",
        links={f"{HOME}/.ssh": f"{HOME}/dotfiles/ssh"},
        texts={f"{HOME}/.netrc": "password"},
    )
    found = rules(disk, XDG_CONFIG_HOME="/elsewhere")

    hidden = [rule.path for rule in found.paths if rule.access == "hidden" and rule.path != f"{ROOT}/.git"]
    assert hidden == ["/elsewhere/gh", f"{HOME}/.aws", f"{HOME}/.netrc", f"{HOME}/dotfiles/ssh"]
    assert [rule.is_directory for rule in found.paths if rule.path == f"{HOME}/.netrc"] == [False]


def test_what_jp_keeps_for_itself_is_hidden_whatever_else_is_said() -> None:
    data = f"{ROOT}/data"
    limits = confinement(private=(data,), writable=(f"{data}/cache", "../other", "~/more"))
    found = rules(disk_with(ROOT, f"{data}/cache", "/home/ada/other", f"{HOME}/more"), limits)

    assert accesses(found, f"{data}/keys.json", f"{data}/cache/x") == ["hidden", "hidden"]
    assert accesses(found, f"{HOME}/other/x", f"{HOME}/more/x", f"{HOME}/x") == ["write", "write", "read"]


def test_a_home_that_is_not_known_is_the_root() -> None:
    limits = confinement(writable=("~/x",))
    found = rules_of(limits, homes=[], environment={}, disk=disk_with(ROOT, f"{ROOT}/x"))

    assert accesses(found, f"{ROOT}/x") == ["write"]


def test_a_repository_cannot_be_planted_where_there_is_none() -> None:
    found = rules(disk_with(ROOT))

    assert found.placeholders == (f"{ROOT}/.git",)
    assert accesses(found, f"{ROOT}/.git/config") == ["hidden"]


def test_the_repository_of_a_worktree_cannot_be_changed_where_it_lies_in_what_can() -> None:
    disk = disk_with(
        ROOT,
        f"{ROOT}/main/.git/worktrees/w",
        texts={
            f"{ROOT}/.git": "gitdir: main/.git/worktrees/w\n",
            f"{ROOT}/main/.git/worktrees/w/commondir": "/home/ada/work/main/.git\n",
        },
    )
    found = rules(disk)

    assert accesses(found, f"{ROOT}/.git", f"{ROOT}/main/.git/hooks/x", f"{ROOT}/main/a") == ["read", "read", "write"]
    assert rules(disk_with(ROOT, texts={f"{ROOT}/.git": "nonsense"})).placeholders == ()
    without_more = disk_with(ROOT, f"{ROOT}/g", texts={f"{ROOT}/.git": "gitdir: g"})
    assert accesses(rules(without_more), f"{ROOT}/g/config") == ["read"]


@pytest.mark.parametrize(
    ("root", "links", "reason"),
    [
        (HOME, {}, "the home directory lies in it"),
        ("/", {}, "the home directory lies in it"),
        (ROOT, {f"{ROOT}/.git": "/x"}, "'.git' in it is a link"),
        (ROOT, {f"{ROOT}/.jp": "/x"}, "'.jp' in it is a link"),
    ],
)
def test_a_root_in_which_something_could_not_be_kept_is_read_only(
    root: str, links: dict[str, str], reason: str
) -> None:
    found = rules(disk_with(ROOT, HOME, "/tmp", links=links), confinement(root=root))

    assert found.frozen_because == reason
    assert accesses(found, f"{root}/a", f"{ROOT}/a") == ["read", "read"]
    assert "/" not in {rule.path for rule in found.paths}


def test_programs_and_names_of_hosts_are_found_although_they_lie_in_what_is_hidden() -> None:
    disk = disk_with(
        "/run/resolve",
        "/run/nix/bin",
        "/tmp/work/bin",
        links={"/etc/resolv.conf": "/run/resolve/stub.conf"},
        texts={"/run/resolve/stub.conf": "nameserver"},
    )
    limits = confinement(root="/tmp/work", network=True)
    path = {"PATH": "/run/nix/bin:bin:/tmp/work/bin:/usr/bin:/run"}

    found = rules(disk, limits, **path)
    assert accesses(found, "/run/nix/bin/sh", "/run/resolve/stub.conf", "/run/x") == ["read", "read", "hidden"]
    assert accesses(found, "/tmp/work/bin/x") == ["write"]
    without = rules(disk, confinement(root="/tmp/work"), **path)
    assert accesses(without, "/run/resolve/stub.conf") == ["hidden"]


def test_sockets_of_others_are_hidden_but_those_of_the_workspace() -> None:
    sockets = (f"{ROOT}/db.sock", f"{HOME}/agent.sock", "/tmp/tmux")
    found = rules(disk_with(ROOT, "/tmp", sockets=sockets))

    assert accesses(found, *sockets) == ["write", "hidden", "fresh"]
    assert [rule.path for rule in found.paths if not rule.is_directory] == [f"{HOME}/agent.sock"]


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/dev", "/dev/pts", "/sys/kernel", "/"])
def test_the_own_devices_and_processes_are_never_replaced(place: str) -> None:
    limits = confinement(root=place, writable=(place,))

    assert place not in {rule.path for rule in rules_of(limits, homes=[], environment={}, disk=disk_with(place)).paths}


def test_what_is_set_decides_and_agreement_gives_the_network() -> None:
    def made(**settings: Any) -> Confinement | None:
        return confinement_of(SandboxConfig(**settings), default="workspace-write", root=ROOT, private=("/p",))

    assert made(mode="off") is None
    assert confinement_of(SandboxConfig(), default="off", root=ROOT, private=()) is None
    assert made() == confinement(private=("/p",))
    assert made(mode="read-only", network=True, required=True, writable=("a",)) == confinement(
        "read-only", network=True, required=True, writable=("a",), private=("/p",)
    )
    for network, is_agreed, expected in ((None, True, True), (None, False, False), (False, True, False)):
        found = confinement_of(
            SandboxConfig(network=network), default="workspace-write", root=ROOT, private=(), is_agreed=is_agreed
        )
        assert found is not None
        assert found.has_network is expected
    assert not confinement("read-only", network=True).has_network


def test_bubblewrap_is_told_general_rules_first() -> None:
    found = Rules(
        paths=(
            PathRule(path="/run", access="hidden"),
            PathRule(path="/tmp", access="fresh"),
            PathRule(path="/w", access="write"),
            PathRule(path="/w/.git", access="read"),
            PathRule(path="/w/key", access="hidden", is_directory=False),
        )
    )

    words = bwrap_words("/usr/bin/bwrap", found, directory="/w", empty="/e", network=False)
    assert " ".join(words) == (
        "/usr/bin/bwrap --unshare-all --die-with-parent --cap-drop ALL --ro-bind / / --dev /dev --proc /proc "
        "--tmpfs /run --tmpfs /tmp --bind /w /w --ro-bind /w/.git /w/.git --ro-bind /e /w/key "
        "--remount-ro /run --chdir /w --"
    )
    with_network = bwrap_words("bwrap", found, directory="/w", empty="/e", network=True)
    assert with_network[1:3] == ["--unshare-all", "--share-net"]


def test_macos_is_told_by_a_profile_whose_last_matching_line_decides() -> None:
    found = Rules(
        paths=(
            PathRule(path="/private/tmp", access="fresh"),
            PathRule(path='/w "x"\\', access="write"),
            PathRule(path="/w/.git", access="read"),
            PathRule(path="/w/key", access="hidden", is_directory=False),
        )
    )

    assert seatbelt_profile(found, temporary="/t", network=False).splitlines() == [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        '(allow file-write* (literal "/dev/null"))',
        '(allow file-write* (literal "/dev/zero"))',
        '(allow file-write* (literal "/dev/dtracehelper"))',
        '(allow file-write* (literal "/dev/tty"))',
        '(deny file-read* (subpath "/private/tmp"))',
        '(deny file-write* (subpath "/private/tmp"))',
        '(allow file-read* (subpath "/w \\"x\\"\\\\"))',
        '(allow file-write* (subpath "/w \\"x\\"\\\\"))',
        '(allow file-read* (subpath "/w/.git"))',
        '(deny file-write* (subpath "/w/.git"))',
        '(deny file-read* (literal "/w/key"))',
        '(deny file-write* (literal "/w/key"))',
        '(allow file-read* (subpath "/t"))',
        '(allow file-write* (subpath "/t"))',
        "(deny network*)",
        "(deny process-info*)",
        "(allow process-info* (target same-sandbox))",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny appleevent-send)",
        '(deny mach-lookup (global-name "com.apple.coreservices.launchservicesd"))',
    ]
    assert "(deny network*)" not in seatbelt_profile(found, temporary="/t", network=True)


def test_an_allow_list_names_all_but_what_is_hidden() -> None:
    names = {"/": ["home", "tmp", "usr"], "/home": ["ada", "bob"], "/home/ada": [".ssh", "work"]}
    found = (
        PathRule(path="/tmp", access="fresh"),
        PathRule(path="/home/ada/.ssh", access="hidden"),
        PathRule(path="/tmp/x/bin", access="read"),
    )

    parts = readable_parts(found, lambda directory: names[directory])
    assert parts == ["/home/ada/work", "/home/bob", "/tmp/x/bin", "/usr"]


GAPS = "'.git' and '.jp' in the workspace, UDP and local sockets, names, modes and times of all files"
WHERE = "it can change files only in the workspace, without '.git' and '.jp'"


@pytest.mark.parametrize(
    ("limits", "mechanism", "word", "text"),
    [
        (confinement(network=True), Bubblewrap("b"), "workspace", f"sandbox: {WHERE}; it can use the network"),
        (confinement("read-only"), Seatbelt(), "read-only", "sandbox: it can change nothing; no network"),
        (confinement(), NoMechanism("bwrap is not installed"), "none", "not confined: bwrap is not installed"),
        (
            confinement(required=True),
            NoMechanism("bwrap is not installed"),
            "refused",
            "it will not run: a sandbox is required, and bwrap is not installed",
        ),
        (
            confinement(),
            Landlock(7, "no bwrap"),
            "partly",
            f"sandbox: it can change files only in the workspace; no network; not held (no bwrap): {GAPS}",
        ),
    ],
)
def test_what_holds_is_said(limits: Confinement, mechanism: Mechanism, word: str, text: str) -> None:
    found = limits_in_force(limits, mechanism)

    assert (found.word, found.text) == (word, text)


def test_a_root_that_is_frozen_is_said_to_be() -> None:
    found = limits_in_force(confinement(), Bubblewrap("b"), "the home directory lies in it")

    assert found.word == "read-only"
    assert found.text == (
        "sandbox: it can change nothing in the workspace, because the home directory lies in it; no network"
    )


def test_what_is_not_held_is_named() -> None:
    assert not_held(confinement(), NoMechanism("x")) == ("everything",)
    assert not_held(confinement("read-only"), Landlock(3, "x")) == (
        "the network",
        "signals to other programs",
        "names, modes and times of all files",
    )
    assert not_held(confinement("read-only"), Bubblewrap("b")) == ()
    assert "UDP and local sockets" not in not_held(confinement(network=True), Landlock(6, "x"))


@pytest.mark.parametrize(
    ("said", "use"),
    [
        ("sh: 1: cannot create /etc/x: Read-only file system", "write"),
        ("OSError: [Errno 30] x", "write"),
        ("EACCES: permission denied", "write"),
        ("rm: cannot remove 'x': Operation not permitted", "write"),
        ("curl: (6) Could not resolve host: example.com", "network"),
        ("connect: Network is unreachable", "network"),
        ("dial tcp: lookup x: Temporary failure in name resolution", "network"),
        ("Error: getaddrinfo EAI_AGAIN registry.example", "network"),
        ("1 failed, 3 passed", None),
    ],
)
def test_what_a_sandbox_stops_is_recognized_by_what_programs_say(said: str, use: str | None) -> None:
    assert denied_use(said, confinement()) == use
    assert denied_use(said, confinement(network=True)) == (None if use == "network" else use)


def test_every_secret_is_a_path_below_a_home() -> None:
    from jp.process.sandbox import policy

    names = (*vars(policy)["_HOME_SECRETS"], *vars(policy)["_CONFIGURATION_SECRETS"])
    assert len(set(names)) == len(names)
    assert [name for name in names if re.search(r"^/|/$|\.\.|//", name)] == []
    assert {".ssh", ".aws", ".gnupg", ".netrc", ".docker", ".kube", ".bash_history", ".mozilla", "gh"} <= set(names)

"""Environment variables for programs that jp starts, and the search for their paths."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Mapping

_OF_A_SIGNAL = 128


def find_program(name: str, directory: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of a program for `directory`; None if there is none.

    A name with a slash is a path relative to `directory`. Other names are searched in the absolute directories of
    PATH only, as relative ones may contain files of others.
    """
    if "/" in name:
        return os.path.join(directory, name)  # noqa: PTH118 - text
    for place in environment.get("PATH", os.defpath).split(os.pathsep):
        path = f"{place}/{name}"
        if place.startswith("/") and os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 - text
            return path
    return None


def exit_code_text(code: int) -> str:
    """Return an exit code as in a shell, with the name of the signal for a negative `code`."""
    if code >= 0:
        return str(code)
    import signal

    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{_OF_A_SIGNAL - code} ({name})"


_NAMES = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "TMPDIR", "TMP", "TEMP", "HOSTNAME", "CI", "EDITOR", "VISUAL", "PAGER", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "KUBECONFIG", "DOCKER_HOST",
    "DOCKER_CONTEXT", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "GOPATH", "GOROOT", "GOFLAGS", "NVM_DIR",
    "NODE_PATH", "PYTHONPATH", "MANPATH", "INFOPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH", "PKG_CONFIG_PATH", "IN_NIX_SHELL", "DIRENV_DIR",
})  # fmt: skip
_PATTERN = re.compile(r"LC_\w+|XDG_\w+|NIX_\w+|[A-Z0-9_]+_HOME|(?:https?|ftp|all|no)_proxy", re.IGNORECASE)
_GIT = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX",
    "GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_CEILING_DIRECTORIES",
    "GIT_EXEC_PATH",
})  # fmt: skip
"""Variables that git sets for a hook."""

_PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)
_NEVER = frozenset({
    "XDG_RUNTIME_DIR",  # has the sockets of agents and D-Bus
    "NIX_CONFIG",  # may contain `access-tokens`
})  # fmt: skip
_SCHEME = re.compile(r"(?:https?|socks(?:4a?|5h?)?)://", re.IGNORECASE)
_PROXY = re.compile(r"\w+_proxy", re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)[^\s/]*:[^\s/]*@")
_PERHAPS_LOGIN = re.compile(r"://[^\s/@:]*:(?![0-9]*/)[^\s@]*@")


def scrubbed(environment: Mapping[str, str], *, named: Collection[str] = ()) -> dict[str, str]:
    """Return the variables of `environment` that programs need, without secrets.

    Credentials are removed from URLs, and variables whose name or value looks like a secret are dropped. Variables in
    `named` are passed unchanged.
    """
    passed = {name: _without_logins(name, value) for name, value in environment.items() if _is_passed(name)}
    passed = {name: value for name, value in passed.items() if not _looks_secret(name, value)}
    return passed | {name: environment[name] for name in named if name in environment}


def child_environment(
    environment: Mapping[str, str], *, cwd: str, directory: str, named: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables for a program in `directory`, without prompts of git. jp runs in `cwd`.

    Both paths are absolute; `named` is as in `scrubbed`.
    """
    passed = scrubbed(environment, named=named)
    for name in _PLACES_OF_GIT:
        if name in passed:
            # In a git hook they are relative to its working directory.
            passed[name] = posixpath.join(cwd, passed[name])
    return {**passed, "PWD": directory, "GIT_TERMINAL_PROMPT": "0"}


def _is_passed(name: str) -> bool:
    known = name in _NAMES or name in _GIT or _PATTERN.fullmatch(name) is not None
    return known and name not in _NEVER and _SECRET.search(name) is None


def _without_logins(name: str, value: str) -> str:
    if _PROXY.fullmatch(name) and "@" in value:
        # A proxy may have no scheme, and its password ends at the last `@`.
        scheme = _SCHEME.match(value.strip())
        return (scheme[0] if scheme else "") + value.rpartition("@")[2]
    return _LOGIN.sub("", value)


def _looks_secret(name: str, value: str) -> bool:
    from jp.context.redaction import redact

    return _PERHAPS_LOGIN.search(value) is not None or bool(redact(f"{name}={value}").found)

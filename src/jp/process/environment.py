"""The environment of a process that jp starts: what programs need to work, without what may be a secret. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping

_NAMES = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "TMPDIR", "TMP", "TEMP", "HOSTNAME", "CI", "EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK", "SSL_CERT_FILE",
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
"""Where a hook of git says what it is about."""

_PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)


def scrubbed(environment: Mapping[str, str], *, named: Collection[str] = ()) -> dict[str, str]:
    """What of `environment` a process gets: names that are known to be needed, never one that says it is a secret.

    Those that were `named` for this process it gets in any case.
    """
    return {name: value for name, value in environment.items() if name in named or _is_passed(name)}


def child_environment(
    environment: Mapping[str, str], *, cwd: str, directory: str, named: Collection[str] = ()
) -> dict[str, str]:
    """What a program gets that runs in `directory`, while jp itself runs in `cwd`; both are absolute.

    `named` is as in `scrubbed`. Nothing in it asks a question.
    """
    passed = scrubbed(environment, named=named)
    for name in _PLACES_OF_GIT:
        if name in passed:
            # A hook of git names them as seen from where it runs.
            passed[name] = posixpath.join(cwd, passed[name])
    return {**passed, "PWD": directory, "GIT_TERMINAL_PROMPT": "0"}


def _is_passed(name: str) -> bool:
    known = name in _NAMES or name in _GIT or _PATTERN.fullmatch(name) is not None
    return known and _SECRET.search(name) is None

"""A program that restricts itself with Landlock to the rights in its first argument, and executes another one.

`python -IS landlock.py '{"version": …, "read": […], "write": […], "has_network": …}' PROGRAM ARGUMENT…`

It imports nothing of jp. If a step fails, the other program does not run.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import TypedDict

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _DROP_FROM_BOUNDS = 38, 24
_CAPABILITIES_VERSION, _MOST_CAPABILITIES = 0x20080522, 64
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_IN_FIRST_VERSION = (1 << 13) - 1
_REFER, _TRUNCATE, _CONTROL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _CONTROL_DEVICE
_TCP = 0b11
_SCOPES = 0b11
"""Abstract sockets of other processes, and signals to them."""

_READ = _EXECUTE | _READ_FILE
_FIRST_WITH_REFER, _FIRST_WITH_TRUNCATE, _FIRST_WITH_TCP, _FIRST_WITH_DEVICES, _FIRST_WITH_SCOPES = 2, 3, 4, 5, 6


class Allowed(TypedDict):
    """Rights of the program. `version` is that of the kernel's Landlock; a path includes everything below it."""

    version: int
    read: list[str]
    write: list[str]
    has_network: bool


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def offered_version() -> int:
    """Return the version of the kernel's Landlock; 0 without it."""
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def restrict(allowed: Allowed) -> None:
    """Restrict this thread and its descendants to `allowed`.

    Raises:
        OSError: a system call failed, or a path cannot be opened.
    """
    version = allowed["version"]
    files = _IN_FIRST_VERSION & ~_READ_DIRECTORY
    for first, access in (
        (_FIRST_WITH_REFER, _REFER),
        (_FIRST_WITH_TRUNCATE, _TRUNCATE),
        (_FIRST_WITH_DEVICES, _CONTROL_DEVICE),
    ):
        files |= access if version >= first else 0
    network = 0 if allowed["has_network"] or version < _FIRST_WITH_TCP else _TCP
    ruleset = _Ruleset(files, network, _SCOPES if version >= _FIRST_WITH_SCOPES else 0)
    # A kernel accepts a structure longer than its own only if the rest is zero.
    descriptor = _call(_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), ctypes.c_uint32(0))
    for path in allowed["read"]:
        _allow(descriptor, path, files & _READ)
    for path in allowed["write"]:
        _allow(descriptor, path, files)
    _give_up_privileges()
    _call(_RESTRICT, ctypes.c_int(descriptor), ctypes.c_uint32(0))
    os.close(descriptor)


def _give_up_privileges() -> None:
    """Drop all capabilities permanently: with them root could read the memory of other programs."""
    system = ctypes.CDLL(None, use_errno=True)
    for number in range(_MOST_CAPABILITIES):
        system.prctl(_DROP_FROM_BOUNDS, number, 0, 0, 0)  # fails without root, which is fine
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    if system.capset(header, none) != 0 or system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - text
            access &= _OF_FILES
        rule = _Rule(access, descriptor)
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def main() -> None:
    """Restrict this process, and execute the program."""
    _, allowed, *words = sys.argv
    try:
        restrict(json.loads(allowed))
    except OSError as error:
        sys.exit(f"the sandbox could not be set up: {error}")
    try:
        os.execv(words[0], words)  # noqa: S606 - the words go to it as they are
    except OSError as error:
        sys.exit(f"cannot run {words[0]!r}: {error.strerror}")


if __name__ == "__main__":
    main()

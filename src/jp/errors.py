"""Errors with a message for users, a hint, and an exit code.

Low layers raise; only `cli` prints and exits. A concrete error is defined next to its subject and derives from one of
the classes here, one for each exit code (the table in `docs/exit-codes.md`).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes that scripts rely on."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    CONFIGURATION = 3
    AUTHENTICATION = 4
    PROVIDER = 5
    QUOTA = 6
    CONTEXT_TOO_LONG = 7
    TOOL_DENIED = 8
    SCHEMA_MISMATCH = 9
    ATTACHMENT = 10
    LOCKED = 11
    NOTHING_TO_DO = 12
    REFUSED = 13
    CAPPED = 14
    DEADLINE = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class JpError(Exception):
    """An error that a user is told about in one line.

    `hint` says how to fix it, empty if that is unknown.
    """

    exit_code: ExitCode = ExitCode.FAILURE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(JpError):
    """The command line asks for something that is not possible."""

    exit_code = ExitCode.USAGE


class ConfigurationError(JpError):
    """A configuration value, a file or a missing trust decision prevents the command."""

    exit_code = ExitCode.CONFIGURATION


class AuthenticationError(JpError):
    """The provider has no key, or does not accept it."""

    exit_code = ExitCode.AUTHENTICATION


class StorageError(JpError):
    """A file of jp's own could not be read or written."""


def reason_of(error: Exception) -> str:
    """Return what is wrong with what was read, in words: a library has none for nesting that is too deep."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def root_cause(error: BaseException) -> BaseException:
    """Return the first cause of `error`; of an exception group, that of its first exception."""
    from typing import cast  # help is printed without it

    while True:
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
            continue
        cause = error.__cause__ or error.__context__
        if cause is None:
            return error
        error = cause

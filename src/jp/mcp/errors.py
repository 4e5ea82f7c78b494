"""What can go wrong with a server, in words that name it."""

from __future__ import annotations

from jp.errors import ExitCode, JpError


class ServerError(JpError):
    """A server cannot be used: it does not start, has ended, or does not speak the protocol."""


class EndedError(ServerError):
    """The process of a server has ended."""


class UnauthorizedError(ServerError):
    """A server does not accept the credentials, or demands some."""

    exit_code = ExitCode.AUTHENTICATION


class RefusalError(JpError):
    """A server has answered that it does not do what it was asked."""


class ClosedError(ServerError):
    """The session was over before an answer came."""

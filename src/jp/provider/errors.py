"""Provider errors: one classification for all vendors; what is worth a retry is decided here."""

from __future__ import annotations

from typing import Literal

from jp.errors import ExitCode, JpError

ErrorKind = Literal[
    "timeout",
    "connect",
    "rate_limit",
    "transient",
    "cut",
    "quota",
    "authentication",
    "context_too_long",
    "model_not_found",
    "invalid_request",
    "rejected_reasoning",
    "unsupported",
    "output_limit",
    "other",
]

RETRYABLE: frozenset[ErrorKind] = frozenset({"timeout", "connect", "rate_limit", "transient", "cut"})

_EXIT_CODES: dict[ErrorKind, ExitCode] = {
    "quota": ExitCode.QUOTA,
    "rate_limit": ExitCode.QUOTA,
    "authentication": ExitCode.AUTHENTICATION,
    "context_too_long": ExitCode.CONTEXT_TOO_LONG,
    "model_not_found": ExitCode.CONFIGURATION,
    "output_limit": ExitCode.CAPPED,
}


class ProviderError(JpError):
    """A request failed.

    `retry_after` is what the provider asks for, in seconds. `status` is the HTTP status, None where none came. The kind
    `rejected_reasoning` says that opaque metadata of the conversation (a signature) is what it did not accept.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        hint: str = "",
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: ErrorKind = kind
        self.retry_after = retry_after
        self.status = status
        self.exit_code = _EXIT_CODES.get(kind, ExitCode.PROVIDER)

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE

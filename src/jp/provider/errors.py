"""Errors of providers, classified in one way for all vendors; the class decides whether a retry can help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jp.errors import ExitCode, JpError
from jp.remedies import Ask, ChangeConversation, Compact, Option, Show, UseOption, phrase

if TYPE_CHECKING:
    from jp.conversation.entries import Usage

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
    "unsupported": ExitCode.ATTACHMENT,
}

_AGAIN = phrase(
    *("try again in a while; `", Ask((UseOption(Option.TARGET, "last"),), is_open=True)),
    "` continues this conversation",
)
_OTHER_MODEL = phrase("use another model with `", Option.MODEL, "`")
_LESS = phrase(
    *("send less: `", Compact(), "` hides old content (`", UseOption(Option.PROFILE, "heavy"), "` the most), `"),
    *(ChangeConversation("undo"), "` takes this request back, `", Ask((UseOption(Option.NEW),)), "` starts over"),
)
_SHOW_REQUEST = Ask((UseOption(Option.DRY_RUN), UseOption(Option.FORMAT, "json")), is_open=True)
_HINTS: dict[ErrorKind, str] = {
    "timeout": _AGAIN,
    "connect": "check the network and the provider's URL, and try again",
    "rate_limit": phrase("try again in a while, or ", _OTHER_MODEL),
    "transient": phrase("try again in a while, or ", _OTHER_MODEL),
    "cut": _AGAIN,
    "quota": phrase("check the account's plan, credit and limits, or ", _OTHER_MODEL),
    "authentication": "check the provider's key and its permissions",
    "context_too_long": _LESS,
    "model_not_found": phrase("name another model with `", Option.MODEL, "`; `", Show("models"), "` lists them"),
    "invalid_request": phrase("`", _SHOW_REQUEST, "` shows what is sent"),
    "rejected_reasoning": phrase(_OTHER_MODEL, ": it gets the earlier reasoning as plain text"),
    "unsupported": phrase("ask without it, or ", _OTHER_MODEL),
    "output_limit": "ask for less at a time",
    "other": phrase(
        *("try again, or another model with `", Option.MODEL),
        *("`; `", Show("setting origins"), "` shows the settings in use"),
    ),
}
"""Hints for errors of which only the kind is known."""


class ProviderError(JpError):
    """A failed request.

    The kind `rejected_reasoning` means that the provider rejected opaque metadata of the conversation (a signature).

    Args:
        message: the message for the user.
        kind: the kind of the error, which decides whether a retry can help.
        hint: the hint for the user; by default that of the kind.
        status: the HTTP status, None without one.
        retry_after: the wait in seconds that the provider asks for.
        least_wait: the wait in seconds that such an error usually needs if the provider asks for none.
        lasting: whether a retry cannot help, whatever the kind is.
        usage: the tokens counted by the event that reported the error.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        hint: str = "",
        retry_after: float | None = None,
        least_wait: float = 0.0,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint or _HINTS[kind])
        self.kind: ErrorKind = kind
        self.retry_after = retry_after
        self.least_wait = least_wait
        self.lasting = False
        self.usage: Usage | None = None
        self.status = status
        self.exit_code = _EXIT_CODES.get(kind, ExitCode.PROVIDER)

    @property
    def is_retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in RETRYABLE and not self.lasting

"""What went wrong on the web, in words for a person. No text has credentials or what looks like a secret."""

from __future__ import annotations

import os
import socket
import ssl
from http import HTTPStatus
from typing import cast

import httpx2  # noqa: TID253 - this module is only imported where the client is

from jp.attachment.base import AttachmentError
from jp.attachment.files.failures import in_units
from jp.attachment.web.address import Address
from jp.attachment.web.content import WHAT_IS_TAKEN, ContentType
from jp.attachment.web.reach import IpAddress, Zone, zone_of

_REACH = "Check the address and the network."
_ZONES: dict[Zone, str] = {
    "public": "a public address",
    "loopback": "this machine",
    "private": "in your own network",
    "link-local": "a link-local address",
    "metadata": "where a cloud keeps the credentials of this machine",
    "reserved": "not a public address",
}
_BY_HAND = "`curl ADDRESS | jp query …` attaches it in your own way"


def redirected(declared: Address, where: str) -> AttachmentError:
    """A redirect that is not followed."""
    message = f"{declared.shown!r} redirects {where}"
    return AttachmentError(message, hint=f"Attach the address that you mean, or fetch it yourself: {_BY_HAND}.")


def out_of_reach(declared: Address, here: Address, address: IpAddress) -> AttachmentError:
    """Return the error for a host at an address that must not be connected to."""
    by = "redirects to" if here.host != declared.host or here.port != declared.port else "is not fetched:"
    named = "" if here.host.strip("[]") == str(address) else f" is at {str(address)!r}, which"
    message = f"{declared.shown!r} {by} {here.host!r}{named or ','} is {_ZONES[zone_of(address)]}"
    return AttachmentError(
        message, hint=f"to attach it all the same, type '{address}' in place of the name; or {_BY_HAND}"
    )


class RefusedError(AttachmentError):
    """The server answered with something else than content; `status` is HTTP's."""

    def __init__(self, message: str, *, status: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def refused(declared: Address, here: Address, status: int, retry_after: str) -> RefusedError:
    """The server answered with something else than content."""
    try:
        phrase = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    by = "" if here.host == declared.host else f" at {here.host!r}"
    message = f"{declared.shown!r} answered {phrase}{by}"
    return RefusedError(message, status=status, hint=_advice(status, retry_after))


def _advice(status: int, retry_after: str) -> str:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        return f"It is not for everybody. Fetch it yourself: {_BY_HAND}."
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return "Check the address."
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        when = (
            f"in {int(retry_after):,} s" if retry_after.isdecimal() and len(retry_after) < len("1000000") else "later"
        )
        return f"Try again {when}."
    return f"Fetch it yourself: {_BY_HAND}."


def unsupported(declared: Address, content_type: ContentType) -> AttachmentError:
    """What the server says that it is cannot be attached."""
    return AttachmentError(f"{declared.shown!r} is of the type {content_type.mime_type!r}", hint=WHAT_IS_TAKEN)


def not_attachable(declared: Address, reason: str, hint: str) -> AttachmentError:
    """What came cannot be attached."""
    return AttachmentError(f"{declared.shown!r} is {reason}", hint=hint)


def damaged(declared: Address, how: str) -> AttachmentError:
    """What came cannot be unpacked."""
    return AttachmentError(f"{declared.shown!r} {how}", hint=f"Try again, or fetch it yourself: {_BY_HAND}.")


def too_large(declared: Address, max_bytes: int) -> AttachmentError:
    """It is over its bound."""
    message = f"{declared.shown!r} has more than {in_units(max_bytes)}, which is the most that an attachment has"
    hint = (
        "Pipe a part of it: `curl ADDRESS | head -c 100K | jp query …`, or raise 'conversation.max_attachment_bytes'."
    )
    return AttachmentError(message, hint=hint)


def too_slow(declared: Address, seconds: float) -> AttachmentError:
    """Everything together took too long."""
    message = f"{declared.shown!r} was not complete after {seconds:g} s"
    return AttachmentError(message, hint=f"Try again, or fetch it yourself: {_BY_HAND}.")


def too_long(declared: Address, max_bytes: int) -> AttachmentError:
    """The Markdown of a page is over the bound, though the page is not."""
    message = f"the page at {declared.shown!r} comes to more than {in_units(max_bytes)} as Markdown"
    hint = f"Raise 'conversation.max_attachment_bytes', or attach a part of it: {_BY_HAND}."
    return AttachmentError(message, hint=hint)


def not_converted(declared: Address, seconds: float) -> AttachmentError:
    """It came, and the time was up before it was Markdown."""
    message = f"the page at {declared.shown!r} came, but making Markdown of it was not done after {seconds:g} s in all"
    return AttachmentError(message, hint=f"Attach a part of it: {_BY_HAND}.")


def without_text(declared: Address) -> AttachmentError:
    """A page of which nothing remains."""
    message = f"the page at {declared.shown!r} has no text"
    hint = f"What its scripts would write is not read. Attach the address of its data; or {_BY_HAND}."
    return AttachmentError(message, hint=hint)


def with_stored_password(declared: Address) -> AttachmentError:
    """Credentials in what is stored."""
    message = f"{declared.shown!r} is declared with a name or a password, which would be stored with the conversation"
    hint = "Declare it without them, and give them with `--attach` at the turn that reads it."
    return AttachmentError(message, hint=hint)


def without_certificates(declared: Address, error: OSError) -> AttachmentError:
    """The environment names certificates that cannot be read."""
    name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "SSL_CERT_FILE")
    reason = error.strerror or str(error)
    message = f"{declared.shown!r} cannot be verified: {name} is {os.environ.get(name, '')!r}: {reason}"
    return AttachmentError(message, hint=f"Correct or unset {name}.")


def without_proxy(declared: Address) -> AttachmentError:
    """The environment names a proxy that cannot be used; its address may have a password."""
    message = f"{declared.shown!r} cannot be asked for: a proxy of the environment has an address that cannot be used"
    hint = "Set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// addresses, or unset them."
    return AttachmentError(message, hint=hint)


def unreachable(declared: Address, here: Address, error: Exception) -> AttachmentError:
    """The client failed with `error` on the way to `here`."""
    message, hint = _reason(here.host, error)
    return AttachmentError(f"{declared.shown!r}: {message}", hint=hint)


def _reason(host: str, error: Exception) -> tuple[str, str]:
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection to {host!r} in time", _REACH
        case httpx2.TimeoutException():
            return f"{host!r} was silent for too long", "Try again later."
        case httpx2.ConnectError():
            return _without_connection(host, error)
        case httpx2.ProxyError():
            return f"the proxy on the way to {host!r} refused", "Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY."
        case httpx2.InvalidURL() | UnicodeError() | httpx2.UnsupportedProtocol():
            return f"{host!r} cannot be the name of a host", _REACH
        case _:
            reason = str(_root(error)) or "the server closed it"
            return f"the connection to {host!r} broke off: {reason}", "Try again later."


def _without_connection(host: str, error: Exception) -> tuple[str, str]:
    root = _root(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        hint = "Where the certificate authority is a private one, set SSL_CERT_FILE to its certificate."
        return f"the certificate of {host!r} is not trusted: {root.verify_message}", hint
    if isinstance(root, ssl.SSLError):
        return f"{host!r} does not speak TLS as expected", "If it speaks plain HTTP, write 'http://'."
    if isinstance(root, (socket.gaierror, UnicodeError)):
        reason = root.strerror if isinstance(root, OSError) else "this cannot be the name of a host"
        return f"{host!r} cannot be found: {reason}", _REACH
    reason = os.strerror(root.errno) if isinstance(root, OSError) and root.errno else str(root)
    return f"no connection to {host!r}: {reason}", _REACH


def _root(error: BaseException) -> BaseException:
    """The first cause of `error`: of several attempts, the first."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
            continue
        cause = error.__cause__ or error.__context__
        if cause is None:
            return error
        error = cause

"""Errors of the connection to a server in jp's words, imported only when one occurs."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import cast

import httpx2  # noqa: TID253 - this module is only imported where the client has failed

from jp.errors import ConfigurationError, JpError
from jp.provider.errors import ProviderError


def _root(error: BaseException) -> BaseException:
    """Return the first cause of `error`: of several attempts, that of the first."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
            continue
        cause = error.__cause__ or error.__context__
        if cause is None:
            return error
        error = cause


_REACH = "check the network and the URL: `jp config show --origins` shows the source of `base_url`"

_PROXIES = ("https", "http", "all")

_HERE = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$")
"""Hosts of this machine, where the user has to start the server."""


def _reach() -> str:
    """Return the hint for a server that cannot be reached; behind a proxy, the proxy may be the cause."""
    from urllib.request import getproxies

    found = getproxies()
    names = " or ".join(f"{scheme.upper()}_PROXY" for scheme in _PROXIES if scheme in found)
    return f"{_REACH}; the proxy in {names} may not respond" if names else _REACH


def _without_connection(host: str, error: Exception) -> ProviderError:
    root = _root(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        message = f"the certificate of {host!r} is not trusted: {root.verify_message}"
        hint = "behind a proxy that inspects TLS, set SSL_CERT_FILE to its certificate authority"
        return ProviderError(message, kind="other", hint=hint)
    if isinstance(root, ssl.SSLError):
        hint = "if it speaks plain HTTP, give its address as http://"
        message = f"{host!r} does not speak TLS as expected: {root.strerror or root}"
        return ProviderError(message, kind="other", hint=hint)
    if isinstance(root, socket.gaierror):
        return ProviderError(f"{host!r} cannot be found: {root.strerror}", kind="connect", hint=_reach())
    reason = os.strerror(root.errno) if isinstance(root, OSError) and root.errno else str(root)
    refused = ProviderError(f"no connection to {host!r}: {reason}", kind="connect", hint=_reach())
    refused.lasting = isinstance(root, ConnectionRefusedError) and _HERE.match(host) is not None
    return refused


def _silence(host: str, error: httpx2.TimeoutException) -> ProviderError:
    if isinstance(error, httpx2.ConnectTimeout):
        hint = "`assistant.request.connect_timeout_secs` sets how long jp waits"
        return ProviderError(f"no connection to {host!r} in time", kind="connect", hint=hint)
    hint = "`assistant.request.stream_idle_timeout_secs` sets how long jp waits"
    return ProviderError(f"{host!r} took too long to read the request", kind="timeout", hint=hint)


def failure(error: Exception, *, host: str, begun: bool) -> JpError:
    """Return the error to report for an exception of the HTTP client.

    Args:
        error: the exception.
        host: the server, with its port if it is not the default one.
        begun: whether a response had begun.
    """
    match error:
        case httpx2.TimeoutException():
            return _silence(host, error)
        case httpx2.ConnectError():
            return _without_connection(host, error)
        case httpx2.ProxyError():
            hint = "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY"
            return ProviderError(f"the proxy on the way to {host!r} refused: {error}", kind="connect", hint=hint)
        case httpx2.DecodingError():
            return ProviderError(f"the response of {host!r} cannot be decompressed", kind="transient")
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            message = f"cannot send a request to {host!r}: {error or type(error).__name__}"
            return ConfigurationError(message, hint=_REACH)
        case _:
            reason = str(_root(error)) or type(error).__name__
            return ProviderError(f"the connection to {host!r} broke off: {reason}", kind="cut" if begun else "connect")

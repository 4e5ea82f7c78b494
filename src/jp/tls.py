"""TLS contexts with the trusted certificates, loaded on demand where possible.

Loading a whole CA bundle takes 20 ms and more. OpenSSL reads a directory of hashed certificates on demand, so the
context uses one if the system has it.
"""

from __future__ import annotations

import os
import ssl

from jp.errors import ConfigurationError

_BUNDLE_VARIABLE = "SSL_CERT_FILE"
_DIRECTORY_VARIABLE = "SSL_CERT_DIR"

_FEWEST_ROOTS = 50
"""Minimum number of certificates in a system's root store; a directory with fewer is an addition to one."""


def _is_hashed(name: str) -> bool:
    """Return whether a file has a name that OpenSSL looks up: eight hexadecimal digits and a number."""
    stem, _, number = name.partition(".")
    return len(stem) == len("9d66eef0") and number.isdigit()


def _is_root_store(directory: str) -> bool:
    """Return whether `directory` has a system's root certificates under hashed names."""
    try:
        with os.scandir(directory) as entries:
            return sum(_is_hashed(entry.name) for entry in entries) >= _FEWEST_ROOTS
    except OSError:
        return False


def _chosen_context(bundle: str | None, directory: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=bundle, capath=directory)
    except OSError as error:
        name, value = (_BUNDLE_VARIABLE, bundle) if bundle else (_DIRECTORY_VARIABLE, directory)
        message = f"{name} names {value!r}, which has no readable certificates: {error}"
        raise ConfigurationError(message, hint=f"correct or unset {name}") from None
    return context


def context_for(url: str) -> ssl.SSLContext:
    """Return the context for a client of `url`. It has certificates only if the server or a proxy may use TLS.

    Raises:
        ConfigurationError: a variable names certificates that are not readable.
    """
    return trusting_context() if speaks_tls(url) else bare_context()


def speaks_tls(url: str) -> bool:
    """Return whether the server at `url` or a proxy may use TLS."""
    from urllib.request import getproxies

    return url.lower().startswith("https:") or any(proxy.startswith("https") for proxy in getproxies().values())


def trusting_context() -> ssl.SSLContext:
    """Return a context that verifies servers with SSL_CERT_FILE and SSL_CERT_DIR, or the system's certificates.

    Raises:
        ConfigurationError: a variable names certificates that are not readable.
    """
    bundle = os.environ.get(_BUNDLE_VARIABLE)
    directory = os.environ.get(_DIRECTORY_VARIABLE)
    if bundle or directory:
        return _chosen_context(bundle or None, directory or None)
    system = ssl.get_default_verify_paths().openssl_capath
    if _is_root_store(system):
        return _chosen_context(None, system)
    import httpx2

    return httpx2.create_ssl_context()


def bare_context() -> ssl.SSLContext:
    """Return a context for plain HTTP, without certificates."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

"""Whom TLS trusts: a context that is cheap to make.

Reading a whole CA bundle costs 20 ms and more. A directory of certificates by hash is read as needed, so where the
system has one, it is what the context gets.
"""

from __future__ import annotations

import os
import ssl

from jp.errors import ConfigurationError

_BUNDLE_VARIABLE = "SSL_CERT_FILE"
_DIRECTORY_VARIABLE = "SSL_CERT_DIR"

_FEWEST_ROOTS = 50
"""A public root store has more than a hundred certificates; a directory with a few is somebody's addition to one."""


def _is_hashed(name: str) -> bool:
    """Whether a file is called as OpenSSL looks for it: by eight hexadecimal digits and a number."""
    stem, _, number = name.partition(".")
    return len(stem) == len("9d66eef0") and number.isdigit()


def _is_root_store(directory: str) -> bool:
    """Whether `directory` holds a system's certificates under names by which they are found."""
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
        message = f"{name} names {value!r}, which holds no certificates that can be read: {error}"
        raise ConfigurationError(message, hint=f"correct or unset {name}") from None
    return context


def context_for(url: str) -> ssl.SSLContext:
    """What a client of `url` needs. Certificates are read only where TLS may be spoken: with the server, or a proxy.

    Raises:
        ConfigurationError: a variable names certificates that cannot be read.
    """
    return trusting_context() if speaks_tls(url) else bare_context()


def speaks_tls(url: str) -> bool:
    """Whether TLS may be spoken on the way to `url`."""
    from urllib.request import getproxies

    return url.lower().startswith("https:") or any(proxy.startswith("https") for proxy in getproxies().values())


def trusting_context() -> ssl.SSLContext:
    """A context that verifies servers by SSL_CERT_FILE and SSL_CERT_DIR, or by the system's own certificates.

    Raises:
        ConfigurationError: a variable names what cannot be read.
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
    """A context for plain HTTP: it would verify, and trusts nobody."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

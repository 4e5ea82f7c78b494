"""Fewer certificates than a machine has: to read all of them takes longer than what most tests look at."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

WITHOUT_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of the tests' own that speak plain HTTP."""


def one_authority(directory: Path) -> Path:
    """A file for SSL_CERT_FILE, where a client is made that cannot be given a context."""
    file = directory / "authority.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return file

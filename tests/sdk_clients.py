"""What the vendors' SDKs reach the tests' own servers with: over plain HTTP, so they need not read 150 certificates."""

from __future__ import annotations

import ssl

WITHOUT_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""It trusts nobody. Every client that is given none makes one of its own, which takes longer than what it is asked."""

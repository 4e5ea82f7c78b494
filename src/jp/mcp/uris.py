"""Under which URI jp knows a resource of a server. Pure.

Two servers may use one URI for different things, and a server may use the URI of a file for what it made up: so the
server is a part of it. The rest is the server's own and opaque (RFD 067), but for characters that no URI holds.
"""

from __future__ import annotations

import re
from urllib.parse import quote

LONGEST = 8192
"""How many characters a URI of a server has at most."""

_FORM = re.compile(r"mcp\+(?P<server>[^+/\s]+)\+(?P<uri>\S.*)", re.DOTALL | re.IGNORECASE)
_NO_URI = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def canonical_uri(server: str, uri: str) -> str:
    """The URI of what `server` calls `uri`."""
    legible = _NO_URI.sub(lambda match: quote(match[0], errors="replace"), uri[:LONGEST])
    return f"mcp+{server}+{legible}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """The server, and what it calls the resource; None where `uri` is none of `canonical_uri`."""
    match = _FORM.fullmatch(uri)
    return None if match is None else (match["server"], match["uri"])

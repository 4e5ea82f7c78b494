"""Where a server of models on the user's own machine is: what its environment variable says, else its usual port."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class LocalServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server usually listens, and the variable that says otherwise; it lists models as OpenAI's API does."""

    port: int
    variable: str = ""


def is_loopback(base_url: str) -> bool:
    """Return whether an address is this machine's: `localhost`, or a loopback address."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(server: LocalServer, environ: Mapping[str, str]) -> str:
    """The base URL of a server. Who listens everywhere is asked on loopback."""
    from urllib.parse import urlsplit

    declared = environ.get(server.variable, "").strip() if server.variable else ""
    text = declared if "://" in declared else f"http://{declared}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, text = "", None, ""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - nothing is bound here
        host = "127.0.0.1"
    scheme = "https" if text.startswith("https://") else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port or server.port}"

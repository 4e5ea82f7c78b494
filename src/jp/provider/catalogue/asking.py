"""How each kind of server is asked for its models: where, and with which headers. Pure."""

from __future__ import annotations

_PAGE_SIZE = 1000
"""As many as the servers that have pages give at once."""

_PATHS = {
    "anthropic": f"/v1/models?limit={_PAGE_SIZE}",
    "openai": "/v1/models",
    "google": f"/v1beta/models?pageSize={_PAGE_SIZE}",
    "openrouter": "/v1/models",
    "cerebras": "/v1/models",
    "ollama": "/api/tags",
    "llamacpp": "/v1/models",
}
_ANY_SERVER = "/models"
_CURSORS = {"anthropic": "after_id", "google": "pageToken"}


def list_path(kind: str, cursor: str = "") -> str:
    """The path of a list's first page, or of the one that `cursor` asks for."""
    path = _PATHS.get(kind, _ANY_SERVER)
    if not cursor:
        return path
    from urllib.parse import quote

    return f"{path}&{_CURSORS.get(kind, 'after')}={quote(cursor, safe='')}"


def key_headers(kind: str, key: str | None) -> tuple[tuple[str, str], ...]:
    """The headers that carry a key, and what else a kind of server wants in them."""
    match kind:
        case "anthropic":
            version = ("anthropic-version", "2023-06-01")
            return (version,) if key is None else (version, ("x-api-key", key))
        case "google":
            return () if key is None else (("x-goog-api-key", key),)
        case _:
            return () if key is None else (("authorization", f"Bearer {key}"),)


def server_root(base_url: str) -> str:
    """The address of a server without the version of its API, below which it says what it is itself."""
    return base_url.rstrip("/").removesuffix("/v1")

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from jp.config.entries import McpServerConfig
from jp.errors import StorageError
from jp.mcp.definitions import Hints, Listing, ListingCache, ServerTool, fingerprint

LISTING = Listing(tools=(ServerTool(name="a", parameters={"type": "object"}, hints=Hints(reads_only=True)),))
PROGRAM = McpServerConfig(
    command="server", arguments=("a",), variables=("TOKEN",), environment={"KEY": "1"}, optional=True
)
ADDRESS = McpServerConfig(url="https://example.com/mcp", headers={"x-a": "1"}, headers_env={"x-b": "B"})
HERE = Path("/srv")


def test_what_is_kept_is_what_was_listed(tmp_path: Path) -> None:
    cache = ListingCache(tmp_path / "mcp")

    assert cache.read("key") is None
    cache.write("key", LISTING)
    assert cache.read("key") == LISTING
    assert [path.name for path in (tmp_path / "mcp").iterdir()] == ["key.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"version": 2, "listing": {}}', b'{"version": 1, "listing": 5}', b"[" * 100_000, b"\xff"],
)
def test_what_is_damaged_or_of_another_version_is_nothing(tmp_path: Path, content: bytes) -> None:
    cache = ListingCache(tmp_path)
    cache.path("key").write_bytes(content)

    assert cache.read("key") is None
    cache.write("key", LISTING)
    assert cache.read("key") == LISTING


def test_a_directory_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(StorageError, match=r"key\.json"):
        ListingCache(tmp_path / "file").write("key", LISTING)


@pytest.mark.parametrize(
    ("config", "directory"),
    [
        (replace(PROGRAM, command="other"), HERE),
        (replace(PROGRAM, arguments=("a", "b")), HERE),
        (replace(PROGRAM, variables=("OTHER",)), HERE),
        (replace(PROGRAM, environment={"OTHER": "1"}), HERE),
        (PROGRAM, Path("/elsewhere")),
        (ADDRESS, HERE),
        (replace(ADDRESS, url="https://example.com/other"), HERE),
        (replace(ADDRESS, headers_env={"x-b": "C"}), HERE),
        (replace(ADDRESS, headers={}), HERE),
    ],
)
def test_another_configuration_is_another_server(config: McpServerConfig, directory: Path) -> None:
    others = [fingerprint(other, HERE) for other in (PROGRAM, ADDRESS) if (other, HERE) != (config, directory)]

    assert fingerprint(config, directory) not in others


def test_secrets_and_patience_do_not_tell_servers_apart() -> None:
    assert fingerprint(PROGRAM, HERE) == fingerprint(
        replace(PROGRAM, environment={"KEY": "2"}, optional=False, startup_timeout_secs=1), HERE
    )
    assert fingerprint(ADDRESS, HERE) == fingerprint(replace(ADDRESS, headers={"x-a": "2"}), Path("/elsewhere"))

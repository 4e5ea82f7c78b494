from __future__ import annotations

import json
from pathlib import Path

import pytest

from jp.errors import StorageError
from jp.provider.catalogue import CachedCatalogue, Catalogue, CatalogueStore, ListedModel

URL = "http://x/v1"


def catalogue_of(provider: str = "mine") -> Catalogue:
    models = (ListedModel(id="a", context_window=5, levels=("low",), tools=False), ListedModel(id="b"))
    return Catalogue(provider=provider, base_url=URL, at="2026-11-21T00:00:00.000Z", models=models, skipped=1)


@pytest.mark.parametrize("provider", ["mine", "a/b", "..", "ä b"])
def test_what_was_written_is_read_and_nothing_else_is_left(provider: str, tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path / "cache" / "models")
    store.write(catalogue_of(provider))
    store.write(catalogue_of(provider))

    assert store.read(provider, URL) == CachedCatalogue(catalogue=catalogue_of(provider))
    assert [path.parent for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "cache" / "models"]


def test_a_list_of_another_address_or_name_says_nothing(tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    store.write(catalogue_of())
    (tmp_path / "other.json").write_bytes(store.path("mine").read_bytes())

    assert store.read("mine", "http://y") == CachedCatalogue()
    assert store.read("other", URL) == CachedCatalogue()
    assert store.read("nobody", URL) == CachedCatalogue()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is malformed"),
        ("[" * 5000, "is malformed"),
        ('{"version": 1}', "is malformed"),
        ('{"version": 1, "catalogue": {"models": 3}}', "is malformed"),
        ('{"version": 2, "catalogue": {"models": 3}}', "was written by another version of jp"),
    ],
)
def test_what_cannot_be_read_does_not_count(content: str, problem: str, tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    store.path("mine").write_text(content, encoding="utf-8")

    kept = store.read("mine", URL)

    assert kept.catalogue is None
    assert kept.problem == f"{str(store.path('mine'))!r} {problem}"


def test_a_directory_in_the_way_is_said(tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    store.path("mine").mkdir()

    assert store.read("mine", URL).problem == f"{str(store.path('mine'))!r} cannot be read: Is a directory"
    with pytest.raises(StorageError, match="Is a directory"):
        store.write(catalogue_of())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_the_file_is_json_with_a_version(tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    store.write(catalogue_of())

    assert json.loads(store.path("mine").read_text(encoding="utf-8")) == {
        "version": 1,
        "catalogue": {
            "provider": "mine",
            "base_url": URL,
            "at": "2026-11-21T00:00:00.000Z",
            "models": [{"id": "a", "context_window": 5, "tools": False, "levels": ["low"]}, {"id": "b"}],
            "skipped": 1,
        },
    }

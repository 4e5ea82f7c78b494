"""The tables that come with jp, and the command that writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import model_tables
from jp.app.models import catalogue_store
from jp.provider.catalogue import Catalogue
from jp.provider.listing import ListedModel
from jp.provider.models import find_model, model_table

KINDS = sorted(path.parent.name for path in model_tables.PROVIDERS.glob("*/models.json"))


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_each_table_says_when_and_with_what_it_was_compared(kind: str) -> None:
    table = model_table(kind)

    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", table.checked)
    assert table.source
    assert {row.abilities for row in table.models} | {rule.abilities for rule in table.inferred} <= {
        "",
        *table.abilities,
    }
    assert len({row.id for row in table.models}) == len(table.models)
    assert not table.small or find_model(kind, table.small).known
    for row in table.models:
        assert all(re.search(r"\d{4}-\d{2}", source) for source in row.sources.values()), row.id


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_laid_out_as_the_command_writes_it(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = model_tables.read(kind)
    if kind == "openrouter":
        table = model_tables.routed(
            {vendor: model_tables.read(vendor) for vendor in ("anthropic", "openai", "google")}, table
        )
    before = (model_tables.PROVIDERS / kind / "models.json").read_text(encoding="utf-8")
    (tmp_path / kind).mkdir()
    monkeypatch.setattr(model_tables, "PROVIDERS", tmp_path)

    assert model_tables.write(kind, table)
    assert (tmp_path / kind / "models.json").read_text(encoding="utf-8") == before
    assert not model_tables.write(kind, table)


def test_what_a_vendor_lists_replaces_what_the_table_says_with_the_day_as_its_source() -> None:
    listed = (
        ListedModel(id="gpt-oss-120b", input_price=0.5, context_window=131_072),
        ListedModel(id="brand-new"),
        ListedModel(id="embeds", answers=False),
    )
    catalogue_store().write(
        Catalogue(provider="cerebras", base_url="https://api.cerebras.ai/v1", at="2027-02-03T04:05:06Z", models=listed)
    )

    table, unknown = model_tables.compared("cerebras", model_tables.read("cerebras"))

    (row,) = (row for row in table["models"] if row["id"] == "gpt-oss-120b")
    assert (row["input_price"], row["output_price"]) == (0.5, 0.75)
    assert row["sources"] == {"input_price": "the vendor's list, 2027-02-03"}
    assert (table["checked"], unknown) == ("2027-02-03", ["brand-new"])


def test_the_command_writes_what_the_lists_say_and_openrouter_s_table_after_those_of_its_vendors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "models.json").write_bytes((model_tables.PROVIDERS / kind / "models.json").read_bytes())
    listed = ListedModel(id="claude-haiku-4-5", input_price=7.0)
    catalogue_store().write(
        Catalogue(
            provider="anthropic", base_url="https://api.anthropic.com", at="2027-02-03T04:05:06Z", models=(listed,)
        )
    )
    monkeypatch.setattr(model_tables, "PROVIDERS", tmp_path)

    model_tables.main()

    changed = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if ": changed" in line]
    prices = {
        row["id"]: row["input_price"]
        for kind in ("anthropic", "openrouter")
        for row in model_tables.read(kind)["models"]
        if "haiku-4" in row["id"]
    }
    assert changed == ["anthropic", "openrouter"]
    assert prices == {"claude-haiku-4-5": 7.0, "anthropic/claude-haiku-4.5": 7.0}

"""Write the `models.json` of each provider anew (`make models`).

What `jp model refresh` has kept of a provider's list replaces limits, prices and shutdown days, with the day as its
source; models that only the list has are named, because what they can do has to be read on the vendor's pages.
OpenRouter's table is that of three vendors under its own names.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from jp.app.models import kept_of
from jp.config.model import LlmConfig
from jp.provider.catalogue import LIMITS, PRICES, find_listed

PROVIDERS = Path(__file__).parents[1] / "src/jp/provider"
_VENDORS = ("anthropic", "openai", "google")
"""Those whose models OpenRouter has at their own prices."""

_OPEN = re.compile(r"gpt-oss|gemma-")
"""Open models, whose price at OpenRouter is that of whichever server answers."""

Table = dict[str, Any]


def read(kind: str) -> Table:
    """Return the table of a provider."""
    return msgspec.json.decode((PROVIDERS / kind / "models.json").read_bytes())


def write(kind: str, table: Table) -> bool:
    """Write the table of a provider, one model a line; return whether that changed it."""
    path = PROVIDERS / kind / "models.json"
    text = f"{_laid_out(table)}\n"
    is_changed = not path.exists() or path.read_text(encoding="utf-8") != text
    path.write_text(text, encoding="utf-8")
    return is_changed


def _laid_out(table: Table) -> str:
    lines = [f"  {_compact(name)}: {_lines_of(value)}" for name, value in table.items()]
    return "\n".join(("{", ",\n".join(lines), "}"))


def _lines_of(value: object) -> str:
    """Return a value with each of its entries on a line of its own."""
    if isinstance(value, dict) and value:
        entries = [f"    {_compact(name)}: {_compact(item)}" for name, item in cast("Table", value).items()]
        return "\n".join(("{", ",\n".join(entries), "  }"))
    if isinstance(value, list) and value:
        entries = [f"    {_compact(item)}" for item in cast("list[object]", value)]
        return "\n".join(("[", ",\n".join(entries), "  ]"))
    return _compact(cast("object", value))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def compared(kind: str, table: Table) -> tuple[Table, list[str]]:
    """Return a table with what the provider's kept list says, and the listed models that it does not have."""
    catalogue = kept_of(LlmConfig(), kind).catalogue
    if catalogue is None:
        return table, []
    day = catalogue.at[:10]
    rows: list[Table] = []
    for row in table["models"]:
        listed = find_listed(catalogue, row["id"])
        said = {} if listed is None else {field: getattr(listed, field) for field in (*LIMITS, *PRICES, "shutdown")}
        new = {field: value for field, value in said.items() if value and value != row.get(field)}
        sources = {**row.get("sources", {}), **dict.fromkeys(new, f"the vendor's list, {day}")}
        rows.append({**row, **new, **({"sources": sources} if sources else {})})
    names = {row["id"] for row in rows}
    unknown = [model.id for model in catalogue.models if model.answers is not False and model.id not in names]
    return {**table, "checked": max(day, table["checked"]), "models": rows}, unknown


def routed(tables: dict[str, Table], openrouter: Table) -> Table:
    """Return OpenRouter's table: the vendors' rows and rules under its names, and its own word for the rest."""
    abilities: Table = {"any": openrouter["abilities"]["any"]}
    models: list[Table] = []
    rules: list[Table] = [{"match": "", "abilities": "any"}]
    for vendor, table in tables.items():
        # It reads PDF for every model, and streams the answers of all, which are the defaults.
        able = {
            f"{vendor}.{name}": {field: value for field, value in said.items() if field not in {"documents", "streams"}}
            for name, said in table["abilities"].items()
        }
        models += [_renamed(row, vendor) for row in table["models"] if not _OPEN.match(row["id"])]
        rules += [
            {"match": f"{vendor}/(?:{rule['match']})", "abilities": f"{vendor}.{rule['abilities']}"}
            for rule in table["inferred"]
        ]
        used = {entry["abilities"] for entry in (*models, *rules)}
        abilities |= {name: said for name, said in able.items() if name in used}
    checked = max(table["checked"] for table in tables.values())
    return {**openrouter, "checked": checked, "abilities": abilities, "models": models, "inferred": rules}


def _renamed(row: Table, vendor: str) -> Table:
    # Anthropic's models have a point in their version here: `claude-haiku-4.5`.
    name = re.sub(r"-(\d)-(\d)$", r"-\1.\2", row["id"]) if vendor == "anthropic" else row["id"]
    kept = {field: value for field, value in row.items() if field not in {"shutdown", "successor", "sources"}}
    return {**kept, "id": f"{vendor}/{name}", "abilities": f"{vendor}.{row['abilities']}"}


def main() -> None:
    """Write all tables, and say which changed."""
    tables = {path.parent.name: read(path.parent.name) for path in sorted(PROVIDERS.glob("*/models.json"))}
    for kind, before in tables.items():
        own = routed({vendor: tables[vendor] for vendor in _VENDORS}, before) if kind == "openrouter" else before
        after, unknown = compared(kind, own)
        tables[kind] = after
        state = "changed" if write(kind, after) else "as before"
        sys.stdout.write(f"{kind}: {state}{'; not in the table: ' + ', '.join(unknown) if unknown else ''}\n")


if __name__ == "__main__":
    main()

"""The snippets of `docs/context.md`, one after the other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "context.md"
MODULES = Path(__file__).parents[3] / "src" / "jp" / "context"


def test_the_examples_of_the_page_do_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours

    first, *lines = capsys.readouterr().out.splitlines()
    before, after = map(int, re.findall(r"[0-9]+", first))
    assert after <= 10_000 < before
    assert lines == [
        "[compacted] run: error; 4002 lines, 12034 bytes; recall d2804502",
        "error: no rule for total0",
        "frozenset({'a result'})",
        "70000 tokens",
        "not run: recall 0123abcd",
        "[(0, 'tools'), (1, 'static_prefix'), (3, 'newest')]",
        "part 0: a timestamp (0000-00-00a00:00:00a) changes what should not",
        "23 requests",
        "[('system_prompt', 891), ('conversation', 9)] 119100",
        "below",
        "[compacted] run: error; exit 2; 9000 bytes; recall 0123abcd",
        "error: no rule for total",
        "Exit code: 2",
        "curl -H 'Authorization: Bearer [redacted:authorization]' https://jane:[redacted:password]@example.com/?page_token=7",
        "1 call: [[summary:5eed5eed:v1]] pass",
    ]


def test_the_page_names_every_module() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    assert {path.stem for path in MODULES.glob("*.py")} - {"__init__", "types"} <= named


def test_the_library_loads_nothing_of_the_rest_of_jp() -> None:
    names = [f"jp.context.{path.stem}" for path in sorted(MODULES.glob("*.py")) if path.stem != "__init__"]
    loads = f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, encoding="utf-8", check=True)

    loaded = {
        name for name in done.stdout.split() if name.startswith(("jp.", "anthropic", "openai", "google", "httpx2"))
    }
    assert {name for name in loaded if not name.startswith("jp.context")} <= {
        "jp.errors",
        "jp.file_access",
        "jp.suggestions",
    }

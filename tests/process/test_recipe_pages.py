"""`docs/recipes.md` and `docs/from-llm.md`: their commands are run. And the pages of the site."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from forked import run_script
from stage import make_workspace

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = re.findall(
    r"^## (.*?)\n.*?^```sh\n(.*?)^```$", (DOCS / "recipes.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
ROWS = [
    line for line in (DOCS / "from-llm.md").read_text("utf-8").splitlines() if line.startswith("| `") and "jp" in line
]
TYPED = sorted(
    {command for row in ROWS for command in re.findall(r"`(jp [^`]*)`", row)},
    key=lambda command: (" rm " in command, command),
)
SCENARIO = """
[[reply]]
when = { contains = "review this change" }
text = '{"verdict": "comment", "findings": [{"file": "a.md", "line": 3, "problem": "off by one"}]}'

[[reply]]
when = { contains = "invent a person" }
text = '{"name": "Ada", "age": 36}'

[[reply]]
when = { contains = "script that counts" }
text = '''
```sh
wc -l
```'''

[[reply]]
text = "An answer."
"""
PREPARED = """
git init -q . && git config user.email a@example.org && git config user.name A
printf 'one\\n' >a.md && printf 'boom\\n' >app.log && printf 'notes\\n' >notes.txt && cp "$PNG" picture.png
git add a.md && git commit -qm one && printf 'two\\n' >a.md && git commit -qam two
printf 'three\\n' >a.md && git add a.md
jp query --title 'Lexer work' --new "hello" >/dev/null
"""
NEEDS_JQ = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work", SCENARIO)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    done = run_script(PREPARED.replace("$PNG", str(tmp_path / "a.png")), cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def test_every_way_of_another_tool_has_one_of_jp_that_works(root: Path) -> None:
    """One workspace for all of them, in the order of their letters; two ask for a terminal."""
    assert len(TYPED) > 20
    found = {
        command: (done.returncode, done.stderr)
        for command in TYPED
        if command not in {"jp chat", "jp keys set openai"}
        for done in [run_script(command, cwd=root)]
    }

    assert {command: end for command, end in found.items() if end[0] != 0} == {}


@pytest.mark.parametrize(
    ("title", "script"),
    [pytest.param(*recipe, id=recipe[0], marks=NEEDS_JQ if "jq" in recipe[1] else ()) for recipe in RECIPES],
)
def test_a_recipe_works_as_it_stands(title: str, script: str, root: Path) -> None:
    done = run_script(script, cwd=root)

    assert (done.returncode, done.stderr) == (0, ""), title
    assert done.stdout or list(root.glob("*.summary")) or (root / "notes.md").read_text("utf-8") == "An answer.\n"


def test_every_page_is_in_the_navigation_once() -> None:
    site = tomllib.loads((DOCS.parent / "zensical.toml").read_text("utf-8"))["project"]
    pages = [page for section in site["nav"] for pages in section.values() for page in pages]

    assert sorted(pages) == sorted(path.name for path in DOCS.glob("*.md"))

"""The examples of `docs/structured-output.md`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forked import search_path
from jp.app.schema_checker import read_schema
from jp.conversation.schemas import parse_dsl
from running import home_beside, isolated_environment
from stage import make_workspace

PAGE = Path(__file__).parents[2] / "docs" / "structured-output.md"

READER = f"""#!{sys.executable}
import json, sys
print(json.load(sys.stdin)[sys.argv[2].removeprefix(".")])
"""
"""As much of jq as the script needs: it need not be installed."""


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_fields_say_the_same_as_the_json_schema() -> None:
    assert parse_dsl(block("text")) == json.loads(block("json"))


def test_every_schema_on_the_page_is_one() -> None:
    schemas = re.findall(r"(?:--schema |\| |`)'([^']+)'", PAGE.read_text(encoding="utf-8"))

    assert len(schemas) >= 6
    for schema in schemas:
        read_schema(schema)


@pytest.mark.parametrize(
    ("answer", "code", "stderr"),
    [
        ('{"risk": "low", "why": "A comment."}', 0, ""),
        ('{"risk": "high", "why": "It deletes users."}', 1, "It deletes users.\n"),
        ("no", 0, "no usable answer, so nothing is stopped\n"),
    ],
    ids=["low", "high", "none"],
)
def test_the_script_stops_what_is_too_risky(tmp_path: Path, answer: str, code: int, stderr: str) -> None:
    root = make_workspace(tmp_path / "work", f"[[reply]]\ntext = {json.dumps(answer)}\n")
    (root / "change.diff").write_text("- a\n+ b\n", encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "jq").write_text(READER, encoding="utf-8")
    (programs / "jq").chmod(0o755)
    environment = isolated_environment(home_beside(root), PATH=search_path(programs))

    done = subprocess.run(
        ["sh", "-c", block("sh"), "review.sh", "change.diff"],
        cwd=root,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    said = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith(("error: ", "hint: "))]
    assert (done.returncode, done.stdout, "".join(said)) == (code, "", stderr)

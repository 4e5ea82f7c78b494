"""`jp config import`: the original JP's settings in jp's spelling, with a copy of every file as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp

ORIGINAL = """\
# what I like
[assistant]
name = "A friend"  # gone
model.id = { provider = "script", name = "test" } # who answers

# shown
[style]
code.copy_link = "osc8"
markdown.wrap_width = 80
"""
OURS = """\
# what I like
[assistant]
model.id = "script/test" # who answers

# shown
[style]
markdown.wrap_width = 80
"""


def workspace(tmp_path: Path, **files: str) -> Path:
    """A workspace with these files in `.jp`; `__` is a dot."""
    (tmp_path / "work" / ".jp").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "work" / ".jp" / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return tmp_path / "work"


def test_a_preview_shows_the_changes_and_makes_none(tmp_path: Path) -> None:
    root = workspace(tmp_path, config__toml=ORIGINAL)

    result = run_jp("config", "import", "--dry-run", cwd=root)

    assert result.code == 0
    assert '-name = "A friend"  # gone' in result.stdout.splitlines()
    assert result.stdout.endswith("taken out or changed: assistant.name, style.code.copy_link\n")
    assert [path.name for path in (root / ".jp").iterdir()] == ["config.toml"]
    assert (root / ".jp" / "config.toml").read_text(encoding="utf-8") == ORIGINAL


def test_a_file_is_rewritten_with_its_comments_and_kept_as_it_was(tmp_path: Path) -> None:
    root = workspace(tmp_path, config__toml=ORIGINAL, config__toml__bak="an older copy")
    file = root / ".jp" / "config.toml"

    result = run_jp("config", "import", cwd=root)
    data = json.loads(run_jp("config", "import", "-F", "json", cwd=root).stdout)

    assert result.stdout.startswith(f"wrote {file}, and kept {file}.1.bak\n")
    assert file.read_text(encoding="utf-8") == OURS
    assert Path(f"{file}.1.bak").read_text(encoding="utf-8") == ORIGINAL
    assert Path(f"{file}.bak").read_text(encoding="utf-8") == "an older copy"
    assert data == {"schema": 1, "dry_run": False, "files": []}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config__json", '{"assistant": {"name": "x", "model": {"id": {"provider": "script", "name": "test"}}}}'),
        ("config__json5", "{assistant: {model: {id: 'script/test'}}} // mine"),
        ("config__yaml", "assistant:\n  model: {id: script/test} # mine\n"),
    ],
)
def test_a_file_in_another_format_becomes_toml(name: str, text: str, tmp_path: Path) -> None:
    root = workspace(tmp_path, **{name: text})
    file = root / ".jp" / name.replace("__", ".")

    result = run_jp("config", "import", str(file), cwd=root)

    assert result.code == 0
    assert not file.exists()
    assert Path(f"{file}.bak").read_text(encoding="utf-8") == text
    assert run_jp("config", "get", "assistant.model.id", cwd=root).stdout == "script/test\n"
    assert run_jp("config", "fmt", "--check", cwd=root).code == 0
    assert run_jp("config", "set", "user.name=Ada", cwd=root).code == 0


def test_a_file_keeps_its_layout(tmp_path: Path) -> None:
    title = '[conversation.title.generate.model]\nid = "haiku"\n\n[style.code]\ntheme = "vim"\n'
    root = workspace(tmp_path, config__toml=title, other__toml=title.replace(" = ", "="))
    names = [str(root / ".jp" / name) for name in ("config.toml", "other.toml")]

    run_jp("config", "import", *names, cwd=root)

    assert run_jp("config", "fmt", "--check", *names, cwd=root).stdout == f"would format {names[1]}\n"


def test_a_file_that_extends_one_in_another_format_finds_it_afterwards(tmp_path: Path) -> None:
    root = workspace(tmp_path, config__toml='extends = ["mine.yaml"]\n', mine__yaml="user: {name: Ada}\n")

    before = run_jp("config", "get", "user.name", cwd=root).stdout
    imported = run_jp("config", "import", cwd=root)

    assert imported.stdout.startswith(f"wrote {root / '.jp' / 'mine.toml'}, and kept ")
    assert before == run_jp("config", "get", "user.name", cwd=root).stdout == "Ada\n"


def test_fragments_are_rewritten_too_and_what_is_jps_is_left_alone(tmp_path: Path) -> None:
    root = workspace(tmp_path, config__toml='[user]\nname = "Ada"\n')
    (root / ".jp" / "config" / "skill").mkdir(parents=True)
    fragment = root / ".jp" / "config" / "skill" / "a.toml"
    fragment.write_text('[assistant]\nname = "x"\n', encoding="utf-8")

    result = run_jp("config", "import", cwd=root)

    assert result.stdout.splitlines()[0] == f"wrote {fragment}, and kept {fragment}.bak"
    assert fragment.read_text(encoding="utf-8") == "[assistant]\n"
    assert not (root / ".jp" / "config.toml.bak").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config__yaml", "assistant: {model: {id: null}}", "unsets something with null"),
        ("config__yaml", "assistant: [", "config.yaml', line 1"),
        ("config__toml", '[assistant]\nnmae = "x"\n', "unknown key 'assistant.nmae'"),
        ("config__toml", '[providers.mcp.a]\ncommand = "x"\nchecksum.value = "y"\n', "cannot verify a program"),
    ],
)
def test_what_cannot_be_rewritten_is_an_error_and_stays(name: str, text: str, message: str, tmp_path: Path) -> None:
    root = workspace(tmp_path, **{name: text})

    check_failure(run_jp("config", "import", cwd=root), 3, message)
    assert [path.read_text(encoding="utf-8") for path in (root / ".jp").iterdir()] == [text]


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (tmp_path / "mine.toml").write_text(ORIGINAL, encoding="utf-8")
    (root / ".jp" / "config.toml").symlink_to(tmp_path / "mine.toml")

    check_failure(run_jp("config", "import", ".jp/config.toml", cwd=root), 1, "is a link, and is not written through")
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == ORIGINAL


def test_what_was_trusted_stays_trusted(tmp_path: Path) -> None:
    text = f'{ORIGINAL}[conversation.tools.fs_read_file]\nenable = "on"\nrun = "unattended"\n'
    root = workspace(tmp_path, config__toml=text)
    run_jp("workspace", "trust", "--yes", cwd=root)

    run_jp("config", "import", cwd=root)

    assert run_jp("config", "get", "conversation.tools.fs_read_file.run", cwd=root).stdout == "unattended\n"


def test_nothing_is_written_without_persistence(tmp_path: Path) -> None:
    root = workspace(tmp_path, config__toml=ORIGINAL)

    assert run_jp("config", "import", "--no-persist", cwd=root).code == 2
    assert run_jp("config", "import", "--dry-run", "--no-persist", cwd=root).code == 0

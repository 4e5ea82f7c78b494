"""`jp conversation export`: Markdown, JSON, a page, a bundle."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from forked import prepare, run_jp
from jp.conversation.entries import Compaction, encode
from stage import copied, logs, make_workspace

KEY = "sk-" + "a1B2c3D4" * 5
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
SCENARIO = """
[[reply]]
when = { contains = "Read" }
times = 1
reasoning = "I had better look at the file."
calls = [{ name = "fs_read_file", arguments = { path = "notes.txt" } }]

[[reply]]
text = "**Done**, see <https://example.org/a>.\\n\\n<script>alert(1)</script>\\n"
"""
SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
"""


PAGE = Path(__file__).parents[2] / "docs" / "conversations.md"
DOCUMENTED = {
    row[1]: {name for name in row[3::2] if name not in {"text ", "base64"}}
    for row in (line.split("`") for line in PAGE.read_text(encoding="utf-8").splitlines())
    if len(row) > 3
    and row[0] == "| "
    and row[1] in {"request", "attachment", "message", "reasoning", "compaction", "note"}
}


class Tags(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str, **attributes: str) -> int:
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.found)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation of a tool call, reasoning, two attachments, a key and a compaction."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work", SCENARIO, settings=SETTINGS)
    (root / "notes.txt").write_text(f"the <b>quokka</b>\ntoken={KEY}\n", encoding="utf-8")
    (root / "dot.png").write_bytes(PNG)
    prepare(
        ["query", "--new", "--title", "A <i>title</i>", "--approve-all", "Read the notes"],
        ["query", "--id", ".", "--attach", "notes.txt", "--attach", "dot.png", "and these? <script>alert(2)</script>"],
        ["conversation", "compact", "--from", "0", "--tools=strip", "--reasoning", "--keep-last", "1"],
        cwd=root,
    )
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def export(root: Path, *arguments: str) -> str:
    result = run_jp("conversation", "export", "last", *arguments, cwd=root)
    assert result.code == 0, result
    return result.stdout


def test_markdown_has_what_was_said_called_and_attached(root: Path) -> None:
    text = export(root)
    assert text.startswith("# A <i>title</i>\n\n## Turn 0\n\n### User\n\nRead the notes\n")
    for part in ("### Tool `fs_read_file`", "### Assistant", "## Turn 1", "Attachment `file://", "_Compacted turns 0"):
        assert part in text


def test_json_is_a_versioned_document(root: Path) -> None:
    value = json.loads(export(root, "--to", "json"))
    assert (value["schema"], value["title"], value["redacted"]) == (1, "A <i>title</i>", True)
    first, second = value["turns"]
    assert [part["type"] for part in first["parts"]][:4] == ["request", "reasoning", "tool", "message"]
    assert [part["type"] for part in second["parts"]] == [
        *("request", "attachment", "attachment", "message", "compaction"),
    ]
    assert first["context"]["user"] > 0
    fields = {part["type"]: {*part} - {"type"} for turn in value["turns"] for part in turn["parts"]}
    for kind, names in DOCUMENTED.items():
        assert fields.get(kind, names) == names, kind
    assert second["freed"] == second["parts"][-1]["freed"]


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_secrets_are_redacted_unless_they_are_asked_for(root: Path, form: str) -> None:
    assert KEY not in export(root, "--to", form)
    assert "[redacted:" in export(root, "--to", form)
    assert KEY in export(root, "--to", form, "--with-secrets")


def test_the_page_loads_nothing_and_escapes_everything(root: Path) -> None:
    text = export(root, "--to", "html")
    page = Tags(text)
    assert page.count("script") == page.count("style") == 1
    assert "· 2 turns ·" in page.text
    assert page.count("link") == page.count("iframe") == page.count("i") == page.count("b") == 0
    assert "alert(1)" in page.text
    (policy,) = [found["content"] for _, found in page.found if "http-equiv" in found]
    assert (policy or "").startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    addresses = [value for _, found in page.found for name, value in found.items() if name in {"src", "href"}]
    assert all(
        (value or "").startswith(("#", "data:image/png;base64,", "https://example.org/a")) for value in addresses
    )
    assert page.count("details", **{"class": "reasoning"}) == 1
    assert page.count("details", **{"class": "tool"}) == 1
    assert page.count("details", **{"class": "attachment"}) >= 2
    assert page.count("rect", **{"class": "k-user"}) == 2 + 1
    assert page.count("section", id="turn-1") == 1
    assert "prefers-color-scheme: dark" in text


def test_a_bundle_imports_as_the_same_conversation(root: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "talk.zip"
    written = json.loads(export(root, "--to", "bundle", "-o", str(bundle), "--format", "json"))
    assert (written["path"], written["bytes"]) == (str(bundle), bundle.stat().st_size)
    other = make_workspace(tmp_path / "other")
    result = run_jp("conversation", "import", str(bundle), cwd=other)
    assert result.code == 0, result
    assert logs(other)[0].read_bytes() == logs(root)[0].read_bytes()
    assert logs(other)[0].parent.name == logs(root)[0].parent.name
    shutil.rmtree(root)
    assert run_jp("conversation", "print", "last", "--full", cwd=other).code == 0
    again = run_jp("conversation", "import", str(bundle), cwd=other)
    assert (again.code, "is here already" in again.stderr) == (2, True)


def test_files_of_the_original_say_the_same_and_a_note_what_they_cannot_hold(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "other" / ".jp" / "conversations"
    make_workspace(tmp_path / "other")
    result = run_jp("conversation", "export", "last", "--to", "jp-original", "-o", str(target), cwd=root)
    assert result.code == 0, result
    (directory,) = target.iterdir()
    assert {path.name for path in directory.iterdir()} == {"events.json", "metadata.json", "base_config.json"}
    assert result.stderr == (
        "note: not written, because the original JP has no place for it: attachment snapshots (2), "
        "tool results that are not plain text (1), details of compactions (1)\n"
    )
    stored = json.loads((directory / "events.json").read_bytes())
    assert [one["type"] for one in stored if one["type"] != "config_delta"] == [
        *("turn_start", "chat_request", "chat_response", "tool_call_request", "tool_call_response", "chat_response"),
        *("turn_start", "chat_request", "chat_response", "compaction"),
    ]
    metadata = json.loads((directory / "metadata.json").read_bytes())
    assert {*metadata} == {"title", "last_activated_at"}

    said = [run_jp("conversation", "print", "last", "-F", "json", cwd=place) for place in (root, tmp_path / "other")]
    before, after = ([json.loads(line) for line in one.stdout.splitlines()] for one in said)
    kinds = {"chat_request": "content", "chat_response": "message", "tool_call_request": "arguments"}
    for kind, name in kinds.items():
        values = [[one[name] for one in lines if one["type"] == kind and name in one] for lines in (before, after)]
        assert values[0] == values[1] != []
    again = run_jp("conversation", "export", "last", "--to", "jp-original", "-o", str(target), cwd=root)
    assert (again.code, "exists" in again.stderr) == (2, True)
    nowhere = run_jp("conversation", "export", "last", "--to", "jp-original", cwd=root)
    assert (nowhere.code, "--output" in nowhere.stderr) == (2, True)


def test_a_damaged_bundle_leaves_nothing(root: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "talk.zip"
    export(root, "--to", "bundle", "-o", str(bundle))
    other = make_workspace(tmp_path / "other")
    with ZipFile(bundle, "a") as file:
        file.writestr(f"blobs/{'0' * 64}", b"something else")
        file.writestr("../../escaped", b"x")
    result = run_jp("conversation", "import", str(bundle), cwd=other)
    assert (result.code, "is damaged" in result.stderr) == (1, True)
    (tmp_path / "none.zip").write_bytes(b"PK nothing")
    assert run_jp("conversation", "import", str(tmp_path / "none.zip"), cwd=other).code == 2
    assert not logs(other)
    assert not (tmp_path / "escaped").exists()


def test_the_page_of_one_turn_says_so(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", SCENARIO)
    prepare(["query", "--new", "hello"], cwd=root)
    assert "· 1 turn ·" in Tags(export(root, "--to", "html")).text


def test_a_file_is_never_replaced(root: Path) -> None:
    (root / "talk.html").write_text("mine", encoding="utf-8")
    result = run_jp("conversation", "export", "last", "--to", "html", "-o", "talk.html", cwd=root)
    assert (result.code, (root / "talk.html").read_text(encoding="utf-8")) == (2, "mine")
    unknown = run_jp("conversation", "export", "last", "--to", "pdf", cwd=root)
    assert (unknown.code, "--to cannot be 'pdf'" in unknown.stderr) == (2, True)


def test_a_summary_is_in_the_page(root: Path) -> None:
    from jp.conversation.entries import SummaryPolicy

    with logs(root)[0].open("ab") as file:
        entry = Compaction(id="c", from_turn=0, to_turn=0, summary=SummaryPolicy(text="what <u>was</u> said"))
        file.write(encode(entry) + b"\n")
    page = Tags(export(root, "--to", "html"))
    assert "what <u>was</u> said" in page.text
    assert page.count("rect", **{"class": "k-freed"}) >= 1

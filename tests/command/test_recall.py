"""`jp conversation recall`: originals of hidden content, by handle."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import originals
from failures import check_failure, json_error
from forked import run_jp
from stage import logs, make_workspace
from terminal import jp_at_terminal

LINES = "".join(f"line {number} of the öutput\n" for number in range(2000))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100
LEAF = "the whole of a file\nthat was written"


def sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose conversation, which is active, has a file, a picture, a call with a string, and a result."""
    root = make_workspace(tmp_path_factory.mktemp("recalled") / "work")
    (root / "a.txt").write_text(LINES, encoding="utf-8")
    (root / "b.png").write_bytes(PICTURE)
    attached = ("--attach", "a.txt", "--attach", "b.png")
    assert run_jp("query", "--new", *attached, "what is this?", cwd=root).code == 0
    (log,) = logs(root)
    at = "2026-01-01T00:00:00Z"
    call: dict[str, Any] = {"call_id": "x", "name": "fs_create_file", "arguments": {"path": "c", "content": LEAF}}
    content = [{"type": "text", "text": "no newline"}, {"type": "text", "$blob": "ab" * 32, "size": 9, "chars": 9}]
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "tool_call_request", "id": "c", "at": at, **call}) + "\n")
        file.write(json.dumps({"type": "tool_call_response", "id": "r", "at": at, "request": "c", "content": content}))
        file.write("\n")
    return root


def as_json(root: Path, *arguments: str) -> dict[str, Any]:
    result = run_jp("-F", "json", "conversation", "recall", *arguments, cwd=root)
    assert (result.code, result.stderr) == (0, "")
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_text_comes_in_pages_that_are_the_content_and_say_where_the_next_begins(root: Path) -> None:
    handle = sha(LINES)[:8]
    before = logs(root)[0].read_bytes()

    first = run_jp("conversation", "recall", handle, "--lines", "2", cwd=root)
    page = run_jp("conversation", "recall", handle, "--id", "last", cwd=root)
    pages = [page.stdout]
    while page.stderr:
        offset = page.stderr.partition("--offset ")[2].removesuffix("`\n")
        page = run_jp("c", "recall", handle.upper(), "--offset", offset, cwd=root)
        pages.append(page.stdout)

    go_on = f"go on with `jp conversation recall {handle} --offset 44 --lines 2`"
    note = f"note: 44 of {len(LINES.encode()):,} bytes; {go_on}\n"
    assert first == (0, "line 0 of the öutput\nline 1 of the öutput\n", note)
    assert "".join(pages) == LINES
    assert len(pages) == 3
    assert all(page.endswith("\n") and len(page.encode()) <= 16384 for page in pages)
    assert logs(root)[0].read_bytes() == before


def test_the_notice_of_the_next_page_names_the_conversation_that_was_named(root: Path) -> None:
    result = run_jp("conversation", "recall", sha(LINES)[:8], "--id", "last", cwd=root)
    quiet = run_jp("-q", "conversation", "recall", sha(LINES)[:8], "--offset", "44", "--lines", "1", cwd=root)

    assert f"recall {sha(LINES)[:8]} --id jp-c" in result.stderr
    assert quiet == (0, "line 2 of the öutput\n", "")


@pytest.mark.parametrize("content", ["no newline", LEAF])
def test_a_result_and_a_string_of_a_call_come_as_they_are(content: str, root: Path) -> None:
    assert run_jp("conversation", "recall", sha(content), cwd=root) == (0, content, "")


def test_as_data_a_page_says_what_it_is_of(root: Path) -> None:
    value = as_json(root, f"sha256:{sha(LINES)[:12]}", "--offset", "22", "--lines", "1")

    assert value.pop("id").startswith("jp-c")
    assert value.pop("uri").endswith("a.txt")
    assert value.pop("mime_type").startswith("text/")
    assert value == {
        "schema": 1,
        "handle": sha(LINES)[:8],
        "sha256": sha(LINES),
        "size": len(LINES.encode()),
        "offset": 22,
        "next_offset": 44,
        "text": "line 1 of the öutput\n",
    }
    assert as_json(root, sha(LEAF)[:8])["next_offset"] is None


def test_binary_content_goes_whole_to_a_file_and_in_pages_into_data_and_not_to_a_terminal(root: Path) -> None:
    handle = sha(PICTURE)[:8]
    words = ("conversation", "recall", handle, "--id", "last")

    with (root / "out").open("wb") as out, jp_at_terminal(*words, cwd=root, stdout=out.fileno()) as beside:
        assert beside.finish() == 0
    with jp_at_terminal(*words, cwd=root) as terminal:
        assert terminal.finish() == 2
    first = as_json(root, handle)
    second = as_json(root, handle, "--offset", str(first["next_offset"]))

    assert (root / "out").read_bytes() == PICTURE
    assert beside.shown == ""
    assert terminal.shown == (
        "error: binary content (image/png) of 25,608 bytes is nothing for a terminal\n"
        f"hint: write it to a file: `jp conversation recall {handle} > FILE`\n"
    )
    assert base64.b64decode(first["blob"]) + base64.b64decode(second["blob"]) == PICTURE
    assert (first["next_offset"], second["next_offset"], first["mime_type"]) == (16384, None, "image/png")


def test_at_a_terminal_text_ends_its_line_and_cannot_steer_it(tmp_path: Path) -> None:
    text = "red \x1b[2J alert"
    make_workspace(tmp_path)
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    assert run_jp("query", "--new", "--attach", "x.txt", "what?", cwd=tmp_path).code == 0

    with jp_at_terminal("conversation", "recall", sha(text)[:8], "--id", "last", cwd=tmp_path) as terminal:
        assert terminal.finish() == 0

    assert "\x1b[2J" not in terminal.shown
    assert terminal.shown.startswith("red ")
    assert terminal.shown.endswith("alert\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("abc",), 2, ("'abc' is no handle", "8 to 64 digits")),
        (("00000000",), 2, ("nothing in this conversation has the handle '00000000'", "--id")),
        ((sha(LEAF)[:8], "--offset", "36"), 2, ("--offset cannot be 36", "36 bytes")),
        ((sha(PICTURE)[:8], "--lines", "3"), 2, ("binary content (image/png) has no lines",)),
        (("abababab",), 1, (f"blob '{'ab' * 32}' is missing",)),
    ],
)
def test_what_cannot_be_recalled_is_an_error(
    arguments: tuple[str, ...], code: int, words: tuple[str, ...], root: Path
) -> None:
    check_failure(run_jp("conversation", "recall", *arguments, cwd=root), code, *words)


def test_an_error_is_data_where_data_is_wanted(root: Path) -> None:
    result = run_jp("-F", "json", "conversation", "recall", "00000000", cwd=root)

    assert (result.code, json_error(result)["kind"]) == (2, "unknown_handle")


def test_other_conversations_are_not_looked_through(root: Path) -> None:
    assert run_jp("query", "--new", "--no-persist", "other", cwd=root).code == 0
    elsewhere = {"JP_SESSION": "elsewhere"}
    assert run_jp("query", "--new", "other", cwd=root, env=elsewhere).code == 0

    other = run_jp("conversation", "recall", sha(LEAF)[:8], cwd=root, env=elsewhere)
    nothing = run_jp("conversation", "recall", sha(LEAF)[:8], cwd=root, env={"JP_SESSION": "third"})

    check_failure(other, 2, "nothing in this conversation has the handle")
    check_failure(nothing, 2, "no conversation is active in this terminal")


def test_contents_of_the_original_come_too_and_nothing_is_written(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    directory = tmp_path / ".jp" / "conversations" / "17662304290-a-title"
    originals.write_original(directory, originals.current(), base=originals.BASE)
    before = {path: path.read_bytes() for path in directory.iterdir()}

    result = run_jp("conversation", "recall", sha(originals.LARGE)[:8], "--id", "last", "--lines", "1", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "a line of output, äöü\n")
    assert {path: path.read_bytes() for path in directory.iterdir()} == before

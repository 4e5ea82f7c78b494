"""Attachments that can be read only once: standard input, and the pipes of a shell's `<(command)`."""

from __future__ import annotations

import base64
import shlex
import subprocess
from pathlib import Path

import pytest

from forked import run_jp
from jp.conversation.entries import ChatRequest
from jp.conversation.resource import Resource
from running import JP, home_beside, isolated_environment
from stage import entries_of, logs, make_workspace, only_log

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
PDF = b"%PDF-1.7\n\xff\xfe\x00 page"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def attached(root: Path) -> list[Resource]:
    return [
        resource for entry in only_log(root) if isinstance(entry, ChatRequest) for resource in entry.resources or ()
    ]


@pytest.mark.parametrize(("content", "mime_type"), [(PNG, "image/png"), (PDF, "application/pdf")])
def test_a_picture_or_a_pdf_that_is_piped_in_is_attached(content: bytes, mime_type: str, root: Path) -> None:
    result = run_jp("query", "what is it?", cwd=root, stdin=content)

    assert result == (0, "You said: what is it?\n", "")
    (resource,) = attached(root)
    assert (resource.mime_type, resource.name, resource.blob) == (mime_type, "stdin", content)
    assert resource.uri.startswith("pipe:")


def test_text_is_attached_where_it_is_asked_for(root: Path) -> None:
    assert (
        run_jp("query", "--attach", "-", "what is it?", cwd=root, stdin="one\ntwo\n").stdout
        == "You said: what is it?\n"
    )
    (resource,) = attached(root)
    assert (resource.mime_type, resource.name, resource.text) == ("text/plain", "stdin", "one\ntwo\n")


def test_a_substituted_process_is_attached(root: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(JP)} query --attach <(printf 'one\\n') --attach <(printf 'two\\n') both?"],
        cwd=root,
        env=isolated_environment(home_beside(root)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: both?\n", "")
    assert [resource.text for resource in attached(root)] == ["one\n", "two\n"]
    assert all((resource.name or "").startswith("/dev/fd/") for resource in attached(root))


def test_the_next_turn_has_it_and_does_not_read_it_again(root: Path) -> None:
    run_jp("query", "--attach", "-", "one", cwd=root, stdin="secret words\n", env={"JP_SESSION": "s"})
    result = run_jp("query", "two", cwd=root, env={"JP_SESSION": "s"})

    assert result == (0, "You said: two\n", "")
    assert (
        "secret words" in run_jp("query", "--dry-run", "--format=json", "x", cwd=root, env={"JP_SESSION": "s"}).stdout
    )


def test_the_same_again_becomes_a_reference(root: Path) -> None:
    for words in ("one", "two"):
        run_jp("query", "--attach", "-", words, cwd=root, stdin="same\n" * 500, env={"JP_SESSION": "s"})

    first, second = attached(root)
    assert first.duplicate_of is None
    assert second.duplicate_of is not None


@pytest.mark.parametrize(
    ("options", "stdin", "code", "message"),
    [
        (("--attach", "-"), "", 10, "'stdin' is empty"),
        ((), b"\x7fELF\0\0", 10, "'stdin' is binary"),
        (("--attach", "-"), b"caf\xe9", 10, "'stdin' is not UTF-8 text"),
        (("--attach", "-", "--no-stdin"), "x", 2, "'-' and --no-stdin exclude each other"),
        (("--attach", "/dev/fd/99"), "x", 2, "cannot read the file '/dev/fd/99'"),
    ],
)
def test_what_cannot_be_attached_is_an_error(
    options: tuple[str, ...], stdin: str | bytes, code: int, message: str, root: Path
) -> None:
    result = run_jp("query", *options, "hello", cwd=root, stdin=stdin)

    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr
    assert logs(root) == []


def test_a_file_of_the_workspace_cannot_attach_standard_input(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", settings='[conversation]\nattachments = ["-"]')
    result = run_jp("query", "hello", cwd=root, stdin="words")

    assert result.code != 0
    assert "'-'" in result.stderr


def test_a_picture_is_sent_as_one(root: Path) -> None:
    request = run_jp("query", "--dry-run", "--format=json", "hello", cwd=root, stdin=PNG).stdout

    assert base64.b64encode(PNG).decode() in request


def test_it_is_stored_with_the_conversation(root: Path) -> None:
    run_jp("query", "hello", cwd=root, stdin=PNG * 200)

    (blob,) = [path for path in (root / ".jp" / "blobs").rglob("*") if path.is_file()]
    assert blob.read_bytes() == PNG * 200
    assert entries_of(logs(root)[0])

"""The clipboard as an attachment, read by a replacement of the platform's tool."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from failures import check_failure
from forked import Result, run_jp
from jp.attachment.base import AttachmentError, Declaration, ResolveContext
from jp.attachment.clipboard import ClipboardHandler
from jp.conversation.entries import ChatRequest, ToolCallResponse
from stage import make_workspace, only_log

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
X11 = {"DISPLAY": ":7", "WAYLAND_DISPLAY": ""}
WAYLAND = {"DISPLAY": "", "WAYLAND_DISPLAY": "wayland-1"}


def install(directory: Path, name: str, contents: Mapping[str, bytes], *, lists: str = "") -> None:
    """Write a tool that prints the content for the first of its arguments that is a key; `lists` prints the keys."""
    directory.mkdir(exist_ok=True)
    cases = ""
    for number, (kind, data) in enumerate(contents.items()):
        (directory / f"{name}.{number}").write_bytes(data)
        cases += f'"{kind}") cat "{directory}/{name}.{number}"; exit 0;;\n'
    types = "\\n".join(contents)
    listing = f'"{lists}") printf "{types}\\n"; exit 0;;\n' if lists else ""
    script = f'#!/bin/sh\nfor word in "$@" ""; do case "$word" in\n{listing}{cases}esac; done\nexit 1\n'
    (directory / name).write_text(script, encoding="utf-8")
    (directory / name).chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return tmp_path / "tools"


def jp(root: Path, *arguments: str, tools: Path, display: Mapping[str, str] = X11) -> Result:
    return run_jp(*arguments, cwd=root, env={"PATH": f"{tools}:/usr/bin:/bin", **display})


def attached(root: Path) -> list[tuple[str | None, str | None, str | bytes | None]]:
    request = next(entry for entry in only_log(root) if isinstance(entry, ChatRequest))
    return [(item.name, item.mime_type, item.text or item.blob) for item in request.resources]


def test_text_is_attached_by_xclip(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"copied text", "image/png": PNG}, lists="TARGETS")
    result = jp(root, "query", "--attach", "clipboard:", "what is this?", tools=tools)
    assert (result.code, result.stderr) == (0, "")
    assert attached(root) == [("clipboard", "text/plain", "copied text")]


def test_a_picture_is_attached_by_wl_paste(root: Path, tools: Path) -> None:
    install(tools, "wl-paste", {"text/html": b"<img>", "image/png": PNG}, lists="--list-types")
    result = jp(root, "query", "--attach", "clipboard:", "what is this?", tools=tools, display=WAYLAND)
    assert (result.code, result.stderr) == (0, "")
    assert attached(root) == [("clipboard", "image/png", PNG)]


def test_the_picture_is_chosen_where_there_is_text_too(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"copied text", "image/png": PNG}, lists="TARGETS")
    assert jp(root, "query", "--attach", "clipboard:image", "what is this?", tools=tools).code == 0
    assert attached(root) == [("clipboard", "image/png", PNG)]


def test_it_stays_as_it_was_when_the_clipboard_changes(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"first"}, lists="TARGETS")
    jp(root, "query", "--attach", "clipboard:", "one", tools=tools)
    install(tools, "xclip", {"UTF8_STRING": b"second"}, lists="TARGETS")
    assert jp(root, "query", "--id", "last", "two", tools=tools).code == 0
    requests = [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]
    assert [[item.text for item in request.resources] for request in requests] == [["first"], []]


def test_what_was_read_names_nothing_that_can_be_read_again(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"first"}, lists="TARGETS")
    jp(root, "query", "--attach", "clipboard:", "one", tools=tools)
    request = next(entry for entry in only_log(root) if isinstance(entry, ChatRequest))
    uri = request.resources[0].uri
    check_failure(jp(root, "attachment", "print", uri, tools=tools), 10, f"{uri!r} is not a clipboard", "hint:")


def test_the_model_cannot_have_the_clipboard_read_again(tmp_path: Path, tools: Path) -> None:
    uri = f"clipboard:{hashlib.sha256(b'first').hexdigest()[:12]}"
    scenario = f"""
[[reply]]
times = 1
calls = [{{ name = "refresh_resource", arguments = {{ uri = "{uri}" }} }}]
[[reply]]
text = "done"
"""
    root = make_workspace(tmp_path / "work", scenario)
    install(tools, "xclip", {"UTF8_STRING": b"first"}, lists="TARGETS")
    assert jp(root, "query", "--attach", "clipboard:", "one", tools=tools).code == 0
    result = next(entry for entry in only_log(root) if isinstance(entry, ToolCallResponse))
    assert result.is_error
    assert "was read once" in str(result.content)


def test_after_an_undo_the_clipboard_is_read_as_its_user_asked(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"first"}, lists="TARGETS")
    jp(root, "query", "--attach", "clipboard:", "one", tools=tools)
    assert jp(root, "conversation", "undo", "last", tools=tools).code == 0
    assert jp(root, "query", "--id", "last", "two", tools=tools).code == 0


def test_a_declared_clipboard_is_read_by_the_next_query_only(root: Path, tools: Path) -> None:
    install(tools, "xclip", {"UTF8_STRING": b"later"}, lists="TARGETS")
    jp(root, "query", "one", tools=tools)
    assert jp(root, "attachment", "add", "clipboard:", "--id", "last", tools=tools).code == 0
    listed = json.loads(jp(root, "attachment", "ls", "--id", "last", "--format", "json", tools=tools).stdout)
    assert [(item["uri"], item["state"]) for item in listed["attachments"]] == [("clipboard:", "pending")]
    for words in ("two", "three"):
        assert jp(root, "query", "--id", "last", words, tools=tools).code == 0
    requests = [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]
    assert [[item.text for item in request.resources] for request in requests] == [[], ["later"], []]


def test_an_empty_clipboard_is_an_error(root: Path, tools: Path) -> None:
    install(tools, "xclip", {}, lists="TARGETS")
    check_failure(jp(root, "query", "-a", "clipboard:", "x", tools=tools), 10, "the clipboard is empty", "hint: copy")
    install(tools, "xclip", {"UTF8_STRING": b"text"}, lists="TARGETS")
    result = jp(root, "query", "-a", "clipboard:image", "x", tools=tools)
    check_failure(result, 10, "the clipboard has no image", "hint: copy")


def test_a_missing_tool_is_an_error_that_names_what_to_install(root: Path, tmp_path: Path) -> None:
    tools = tmp_path / "none"
    result = jp(root, "query", "-a", "clipboard:", "x", tools=tools)
    check_failure(result, 10, "nothing here can read the clipboard", "xclip")
    result = jp(root, "query", "-a", "clipboard:", "x", tools=tools, display={"DISPLAY": "", "WAYLAND_DISPLAY": ""})
    check_failure(result, 10, "nothing here can read the clipboard", "there is no display here")


@pytest.mark.parametrize("through", ["itself", "linked directory", "linked tool"])
def test_a_tool_of_the_workspace_is_never_run(root: Path, tmp_path: Path, through: str) -> None:
    install(root / "bin", "xclip", {"UTF8_STRING": b"forged"}, lists="TARGETS")
    place = root / "bin" if through == "itself" else tmp_path / "link"
    if through == "linked directory":
        place.symlink_to(root / "bin")
    elif through == "linked tool":
        place.mkdir()
        (place / "xclip").symlink_to(root / "bin" / "xclip")
    result = jp(root, "query", "-a", "clipboard:", "x", tools=place)
    check_failure(result, 10, "nothing here can read the clipboard", "hint:")


def test_a_file_cannot_attach_the_clipboard(tmp_path: Path, tools: Path) -> None:
    root = make_workspace(tmp_path / "work", settings='[conversation]\nattachments = ["clipboard:"]\n')
    install(tools, "xclip", {"UTF8_STRING": b"a password"}, lists="TARGETS")
    assert jp(root, "workspace", "trust", "--yes", tools=tools).code == 0
    result = jp(root, "query", "x", tools=tools)
    check_failure(result, 10, "'clipboard:' is declared in a file", "hint: attach it yourself")


def test_a_clipboard_over_the_bound_is_refused(tmp_path: Path, tools: Path) -> None:
    root = make_workspace(tmp_path / "work", settings="[conversation]\nmax_attachment_bytes = 1000\n")
    install(tools, "xclip", {"UTF8_STRING": b"x" * 1001}, lists="TARGETS")
    result = jp(root, "query", "-a", "clipboard:", "x", tools=tools)
    check_failure(result, 10, "the clipboard has more than", "max_attachment_bytes")
    install(tools, "xclip", {"UTF8_STRING": b"x" * 5000}, lists="TARGETS")
    result = jp(root, "query", "-a", "clipboard:", "x", tools=tools)
    check_failure(result, 10, "the clipboard has more than", "max_attachment_bytes")


def read(tools: Path, platform: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> str | bytes | None:
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    context = ResolveContext(root=tools, cwd=tools, anchored=False)
    declaration = Declaration(uri=uri, written=uri, confined=False)
    found = anyio.run(ClipboardHandler(platform=platform).resolve, declaration, context).resources[0]
    return found.text or found.blob


def test_macos_gives_text_and_else_a_picture(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tools, "pbpaste", {"": b"text of a Mac"})
    install(tools, "osascript", {"-e": f"«data PNGf{PNG.hex().upper()}»\n".encode()})
    assert read(tools, "darwin", "clipboard:", monkeypatch) == "text of a Mac"
    assert read(tools, "darwin", "clipboard:image", monkeypatch) == PNG
    install(tools, "pbpaste", {"": b""})
    assert read(tools, "darwin", "clipboard:", monkeypatch) == PNG
    install(tools, "osascript", {})
    with pytest.raises(AttachmentError, match="the clipboard is empty"):
        read(tools, "darwin", "clipboard:", monkeypatch)


def test_windows_gives_text_and_else_a_picture_to_wsl(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.mkdir()
    for text, picture in (("text of Windows", b""), ("", base64.b64encode(PNG))):
        script = f'#!/bin/sh\ncase "$*" in *GetImage*) printf "{picture.decode()}";; *) printf "{text}";; esac\n'
        (tools / "powershell.exe").write_text(script, encoding="utf-8")
        (tools / "powershell.exe").chmod(0o755)
        assert read(tools, "linux", "clipboard:", monkeypatch) == (text or PNG)

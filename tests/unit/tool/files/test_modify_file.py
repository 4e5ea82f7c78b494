from __future__ import annotations

import os
import stat
from pathlib import Path

import anyio
import pytest

from file_calls import call, failure, invocation, text
from jp.config.entries import FileRuleConfig
from jp.conversation.entries import Facts
from jp.tool.base import ToolInvocation
from jp.tool.files import changes, write_tools
from jp.tool.files.write_tools import MOST_SHOWN, ModifyFile
from plain_names import PlainNames

POEM = "one\ntwo\nthree\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "root" / "src" / "poem.txt").write_text(POEM, encoding="utf-8")
    return tmp_path / "root"


def patterns(*pairs: tuple[str, str], **options: bool) -> list[dict[str, object]]:
    return [{"old": old, "new": new, **options} for old, new in pairs]


def poem(root: Path) -> bytes:
    return (root / "src" / "poem.txt").read_bytes()


def test_all_edits_are_applied_in_their_order_and_shown_as_a_diff(root: Path) -> None:
    edits = patterns(("two", "zwei"), ("zwei\nthree", "zwei\ndrei"))

    output = call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=edits)

    assert poem(root) == b"one\nzwei\ndrei\n"
    assert text(output) == (
        "Changed 'src/poem.txt':\n--- src/poem.txt\n+++ src/poem.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+zwei\n+drei"
    )
    assert output.facts == Facts(kind="patch", path="src/poem.txt", lines="2-3")


def test_an_edit_that_does_not_fit_undoes_those_before_it(root: Path) -> None:
    edits = patterns(("two", "zwei"), ("four", "vier"))

    said = failure(call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=edits))

    assert said == "pattern 2: 'old' is not in the file. Nothing was changed."
    assert poem(root) == POEM.encode()


def test_expressions_have_groups_and_ends_of_lines(root: Path) -> None:
    edits = patterns((r"^t(\w+)$", "T$1"), replace_all=True)

    call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=edits, replace_using_regex=True)

    assert poem(root) == b"one\nTwo\nThree\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"patterns": []}, "'patterns' is empty"),
        (
            {"patterns": patterns(("(", "")), "replace_using_regex": True},
            "pattern 1: the expression 'old' is malformed",
        ),
        (
            {"patterns": patterns(("(?=t)", "")), "replace_using_regex": True},
            "pattern 1: the expression 'old' matches 2 times",
        ),
        (
            {"patterns": patterns(("(?=three)", "")), "replace_using_regex": True},
            "the patterns leave 'src/poem.txt' as it is",
        ),
        ({"patterns": patterns(("one", "x"), ("x", "one"))}, "the patterns leave 'src/poem.txt' as it is"),
        ({"patterns": patterns(("one", "\ud800"))}, "a pattern holds half a character"),
        ({"path": "missing", "patterns": patterns(("a", "b"))}, "there is no file 'missing'"),
        ({"path": "src", "patterns": patterns(("a", "b"))}, "'src' is a directory"),
        ({"path": "../x", "patterns": patterns(("a", "b"))}, "'../x' is outside of"),
        ({"path": ".git/config", "patterns": patterns(("a", "b"))}, "'.git/config' lies in '.git'"),
        ({"path": "binary", "patterns": patterns(("a", "b"))}, "'binary' is binary"),
        ({"path": "latin", "patterns": patterns(("a", "b"))}, "'latin' is not UTF-8 text"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_changes_nothing(
    root: Path, arguments: dict[str, object], expected: str
) -> None:
    (root / "binary").write_bytes(b"a\0")
    (root / "latin").write_bytes(b"a\xe9")

    said = failure(call(ModifyFile(PlainNames()), root, **{"path": "src/poem.txt", **arguments}))

    assert said.startswith(expected)
    assert poem(root) == POEM.encode()


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"\xef\xbb\xbfone\r\ntwo\r\n", ("one\ntwo", "1\n2"), b"\xef\xbb\xbf1\r\n2\r\n"),
        (b"one\r\ntwo", ("two", "2\n"), b"one\r\n2\r\n"),
        (b"one\r\ntwo\r\n", ("one\r\n", ""), b"two\r\n"),
        (b"one\r\ntwo\nthree", ("two\nthree", "2\n3"), b"one\r\n2\n3"),
        (b"one\ntwo", ("two", "2"), b"one\n2"),
        ("é\n".encode(), ("é", "e\u0301"), "e\u0301\n".encode()),
    ],
)
def test_a_file_keeps_how_it_is_spelled(root: Path, before: bytes, edit: tuple[str, str], after: bytes) -> None:
    (root / "file").write_bytes(before)

    call(ModifyFile(PlainNames()), root, path="file", patterns=patterns(edit))

    assert (root / "file").read_bytes() == after


def test_a_file_keeps_its_permissions_and_a_link_stays_one(root: Path) -> None:
    (root / "src" / "poem.txt").chmod(0o754)
    (root / "link").symlink_to("src/poem.txt")

    call(ModifyFile(PlainNames()), root, path="link", patterns=patterns(("one", "1")))

    assert poem(root) == b"1\ntwo\nthree\n"
    assert stat.S_IMODE((root / "src" / "poem.txt").stat().st_mode) == 0o754
    assert (root / "link").is_symlink()
    assert [path.name for path in (root / "src").iterdir()] == ["poem.txt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner(root: Path) -> None:
    os.chown(root / "src" / "poem.txt", 1234, 4321)

    call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("one", "1")))

    status = (root / "src" / "poem.txt").stat()
    assert (status.st_uid, status.st_gid) == (1234, 4321)


def test_a_file_that_is_not_writable_is_left_alone(root: Path) -> None:
    (root / "src" / "poem.txt").chmod(0o444)
    if os.access(root / "src" / "poem.txt", os.W_OK):
        pytest.skip("root may write everywhere")

    said = failure(call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("one", "1"))))

    assert said == "cannot write 'src/poem.txt': Permission denied"
    assert poem(root) == POEM.encode()


def test_an_owner_that_cannot_be_kept_takes_special_rights_along(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = root / "src" / "poem.txt"
    inode = file.stat().st_ino
    look = os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        found = list(look(descriptor))
        found[4] = 99 if found[1] == inode else found[4]
        return os.stat_result(found)

    def refuse(*arguments: int) -> None:
        raise PermissionError

    file.chmod(0o4755)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", of_another)
        patched.setattr(os, "fchown", refuse)
        call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("one", "1")))

    assert poem(root) == b"1\ntwo\nthree\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_what_would_change_is_shown_and_nothing_is_changed(root: Path) -> None:
    asked = invocation(root, {"path": "src/poem.txt", "patterns": patterns(("two", "2"))})

    shown = anyio.run(ModifyFile(PlainNames()).preview, asked)

    assert shown == "--- src/poem.txt\n+++ src/poem.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert poem(root) == POEM.encode()


def test_what_does_not_fit_has_nothing_to_show(root: Path) -> None:
    asked = invocation(root, {"path": "src/poem.txt", "patterns": patterns(("four", "2"))})

    assert anyio.run(ModifyFile(PlainNames()).preview, asked) is None


def test_a_file_that_changed_after_it_was_shown_is_kept(root: Path) -> None:
    tool = ModifyFile(PlainNames())
    asked = invocation(root, {"path": "src/poem.txt", "patterns": patterns(("two", "2"))})

    anyio.run(tool.preview, asked)
    (root / "src" / "poem.txt").write_text(f"{POEM}four\n", encoding="utf-8")
    refused = failure(anyio.run(tool.run, asked))

    assert refused.startswith("'src/poem.txt' has changed since this call was shown, so nothing was written")
    assert poem(root) == f"{POEM}four\n".encode()
    assert not anyio.run(tool.run, asked).is_error


def test_several_calls_of_one_cycle_may_change_one_file(root: Path) -> None:
    tool = ModifyFile(PlainNames())
    edits = [("one", "1"), ("two", "2"), ("three", "3"), ("3", "drei")]
    asked = [invocation(root, {"path": "src/poem.txt", "patterns": patterns(edit)}) for edit in edits[:3]]

    async def shown_then_run() -> list[bool]:
        for each in asked:
            assert await tool.preview(each) is not None
        failed: list[bool] = []

        async def run(each: ToolInvocation) -> None:
            failed.append((await tool.run(each)).is_error)

        async with anyio.create_task_group() as group:
            for each in (*asked, invocation(root, {"path": "src/poem.txt", "patterns": patterns(edits[3])})):
                group.start_soon(run, each)
        return failed

    assert anyio.run(shown_then_run) == [False] * 4
    assert poem(root) == b"1\n2\ndrei\n"


def test_nobody_replaces_a_file_between_the_last_look_and_its_replacement(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    rename = os.rename

    def look_then_rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        held.append(changes.REPLACING.locked())
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", look_then_rename)
        call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("two", "2")))

    assert held == [True]


def test_what_somebody_else_changed_between_two_calls_is_kept(root: Path) -> None:
    tool = ModifyFile(PlainNames())
    first, second = (
        invocation(root, {"path": "src/poem.txt", "patterns": patterns(edit)}) for edit in [("one", "1"), ("two", "2")]
    )
    anyio.run(tool.preview, first)
    anyio.run(tool.preview, second)

    anyio.run(tool.run, first)
    (root / "src" / "poem.txt").write_text("1\ntwo\nfour\n", encoding="utf-8")
    refused = [anyio.run(tool.run, second)]
    (root / "src" / "poem.txt").write_text("1\ntwo\nthree\n", encoding="utf-8")
    anyio.run(tool.preview, second)
    (root / "src" / "poem.txt").write_text("1\ntwo\nfive\n", encoding="utf-8")
    anyio.run(tool.run, invocation(root, {"path": "src/poem.txt", "patterns": patterns(("five", "5"))}))
    refused.append(anyio.run(tool.run, second))

    assert all("has changed since this call was shown" in failure(output) for output in refused)
    assert poem(root) == b"1\ntwo\n5\n"


def test_a_file_that_changes_while_it_is_written_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def change_then_sync(descriptor: int) -> None:
        (root / "src" / "poem.txt").write_text("theirs", encoding="utf-8")
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", change_then_sync)
        said = failure(call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("two", "2"))))

    assert said == "'src/poem.txt' was changed meanwhile, so nothing was written; read it again"
    assert poem(root) == b"theirs"
    assert [path.name for path in (root / "src").iterdir()] == ["poem.txt"]


def test_a_directory_that_becomes_a_link_before_it_is_written_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "poem.txt").write_text(POEM, encoding="utf-8")
    make = write_tools.made

    def swap_then_make(change: write_tools.Change) -> object:
        (root / "src").rename(root / "moved")
        (root / "src").symlink_to(outside)
        return make(change)

    monkeypatch.setattr(write_tools, "made", swap_then_make)
    said = failure(call(ModifyFile(PlainNames()), root, path="src/poem.txt", patterns=patterns(("two", "2"))))

    assert said.startswith("cannot write 'src/poem.txt': ")
    assert (outside / "poem.txt").read_text(encoding="utf-8") == POEM
    assert (root / "moved" / "poem.txt").read_text(encoding="utf-8") == POEM


def test_a_file_that_may_be_read_may_not_be_changed_for_that(root: Path) -> None:
    arguments = {"path": "src/poem.txt", "patterns": patterns(("two", "2"))}
    tool = ModifyFile(PlainNames())

    for rule in (FileRuleConfig(path="src", read=True), FileRuleConfig(path="src", write=True)):
        said = failure(anyio.run(tool.run, invocation(root, arguments, access=[rule])))
        assert said.endswith("the configuration does not let this tool do it")
    assert poem(root) == POEM.encode()


def test_a_long_diff_is_cut_for_the_model(root: Path) -> None:
    (root / "long").write_text("x\n" * 1000, encoding="utf-8")

    output = call(ModifyFile(PlainNames()), root, path="long", patterns=patterns(("x", "y"), replace_all=True))

    assert len(text(output).split("\n")) == MOST_SHOWN + 2
    assert text(output).endswith("… 1,803 more lines of the diff")

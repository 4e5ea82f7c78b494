from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from jp.attachment import file_walk, files
from jp.attachment.base import AttachmentError, Declaration, ResolveContext
from jp.attachment.files import FileHandler
from jp.attachment.registry import AttachmentRegistry, ResolutionPlan, ResolvedAttachments, plan_resolution, resolve_all
from jp.cli.terminal.wording import worded
from jp.conversation.resource import Annotations, Resource
from jp.errors import ExitCode

Attach = Callable[..., ResolvedAttachments]

PNG = b"\x89PNG\r\n\x1a\n\0"
COMPOSED = "caf\u00e9.txt"
DECOMPOSED = "cafe\u0301.txt"


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}", encoding="utf-8")


def names(resolved: ResolvedAttachments) -> list[str | None]:
    return [resource.name for resource in resolved.resources]


def failure(attach: Attach, *texts: str, confined: bool = False) -> AttachmentError:
    with pytest.raises(AttachmentError) as raised:
        attach(*texts, confined=confined)
    return raised.value


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of a user whom permissions bind: tests may run as root, whom they do not."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if os.geteuid() != 0:
            yield directory
            return
        directory.chmod(0o755)
        os.chown(directory, 65534, 65534)
        os.seteuid(65534)
        try:
            yield directory
        finally:
            os.seteuid(0)


# One file


def test_a_file_is_a_snapshot_with_a_canonical_uri(root: Path, attach: Attach) -> None:
    write(root, "src/main.rs")
    os.utime(root / "src" / "main.rs", (0, 1_774_000_800))

    resolved = attach("src/main.rs")

    assert resolved.resources == (
        Resource(
            uri=f"file://{root}/src/main.rs",
            mime_type="text/x-rust",
            annotations=Annotations(last_modified="2026-03-20T10:00:00Z"),
            name="src/main.rs",
            text="text of src/main.rs",
        ),
    )
    assert resolved.declarations == ("file:src/main.rs",)
    assert resolved.notices == ()


def test_a_picture_is_binary(root: Path, attach: Attach) -> None:
    (root / "x.txt").write_bytes(PNG)

    [resource] = attach("x.txt").resources

    assert (resource.mime_type, resource.blob, resource.text) == ("image/png", PNG, None)


def test_a_file_outside_of_the_root_has_its_path_as_name(root: Path, attach: Attach) -> None:
    write(root.parent, "x.txt")

    assert names(attach("../x.txt")) == [str(root.parent / "x.txt")]


def test_relative_paths_begin_where_the_user_stands(root: Path, attach: Attach) -> None:
    write(root, "src/x", "x")
    below = ResolveContext(root=root, cwd=root / "src")

    assert names(attach("x", around=below)) == ["src/x"]
    assert names(attach("file:x", around=below)) == ["x"]
    assert names(attach("x", around=below, confined=True)) == ["x"]


def test_every_way_to_a_file_gives_one_identity(root: Path, attach: Attach) -> None:
    write(root, "a/x")
    (root / "link").symlink_to("a/x")
    (root / "directory").symlink_to("a")

    resolved = attach("a/x", "./a/../a/x", "link", "directory/x", str(root / "a" / "x"), "file:a/%78", "a", "**/x")

    assert [resource.uri for resource in resolved.resources] == [f"file://{root}/a/x"]


@pytest.mark.parametrize(
    "name", ["a b", "a#b", "a?b", "100%", "a%20b", "[x]", "*", "~", "!x", "a:b", "-", "\n", "'", "\\"]
)
def test_a_file_may_have_any_name(name: str, root: Path, attach: Attach) -> None:
    write(root, name)

    for way in (f"./{name}", str(root / name)):
        [resource] = attach(way).resources
        assert resource.name == name


def test_a_name_that_is_not_utf8_is_in_the_uri_byte_by_byte(root: Path, attach: Attach) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("x", encoding="utf-8")

    [resource] = attach(name).resources

    assert resource.uri.endswith("/caf%E9")
    assert resource.name == "caf\ufffd"


@pytest.mark.parametrize("typed", [COMPOSED, DECOMPOSED])
def test_a_file_is_opened_under_its_own_unicode_form(typed: str, root: Path, attach: Attach) -> None:
    write(root, DECOMPOSED)

    [resource] = attach(typed).resources

    assert resource.uri == f"file://{root}/caf%C3%A9.txt"
    assert resource.text == f"text of {DECOMPOSED}"


def test_two_files_that_differ_in_unicode_form_stay_two(root: Path, attach: Attach) -> None:
    write(root, COMPOSED, DECOMPOSED)

    resolved = attach(COMPOSED, DECOMPOSED, ".")

    assert [resource.text for resource in resolved.resources] == [f"text of {COMPOSED}", f"text of {DECOMPOSED}"]
    assert names(attach(".", f"!./{COMPOSED}")) == [DECOMPOSED]


def test_an_empty_file_is_attached(root: Path, attach: Attach) -> None:
    (root / "x").touch()

    assert attach("x").resources[0].text == ""


# What cannot be attached


def test_a_missing_file_names_what_is_closest(root: Path, attach: Attach) -> None:
    write(root, "src/main.rs")

    error = failure(attach, "src/mian.rs")

    assert error.message == "there is no file 'src/mian.rs'"
    assert error.hint == "did you mean 'src/main.rs'?"
    assert error.exit_code is ExitCode.ATTACHMENT


def test_a_missing_directory_names_what_is_closest(root: Path, attach: Attach) -> None:
    write(root, "source/main.rs")

    assert failure(attach, "sorce/main.rs").hint == "did you mean 'source/main.rs'?"
    assert failure(attach, "sorce/other.rs").hint == "did you mean 'source'?"
    assert failure(attach, "source/main.rs/x").message == "there is no file 'source/main.rs/x'"
    assert failure(attach, "sorce/*.rs").hint == "did you mean 'source'?"
    assert failure(attach, "source/main.rs/*").message == "there is no file 'source/main.rs/*'"


def test_a_missing_file_with_nothing_alike_says_where_it_is_not(root: Path, attach: Attach) -> None:
    write(root, "src/x")

    assert failure(attach, "src/other.py").hint == "'src' has nothing called 'other.py'."
    assert failure(attach, "/nowhere-at-all/x").hint == "'/' has nothing called 'nowhere-at-all'."


def test_a_uri_that_should_have_been_a_path_is_explained(root: Path) -> None:
    write(root, "src/a b")
    context = ResolveContext(root=root, cwd=root / "src")
    declaration = Declaration(uri="file:a%20b", written="file:a%20b")

    with pytest.raises(AttachmentError) as raised:
        anyio.run(FileHandler().resolve, declaration, context)

    assert raised.value.hint == f"A URI begins at {str(root)!r}; the plain path 'a b' begins here."


def test_a_link_to_nothing_says_so(root: Path, attach: Attach) -> None:
    (root / "x").symlink_to("gone")

    assert failure(attach, "x").message == "'x' is a link to 'gone', which does not exist"


def test_links_in_a_circle_end(root: Path, attach: Attach) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    assert "Too many levels" in failure(attach, "a").message


def test_a_name_that_is_too_long_is_an_error(attach: Attach) -> None:
    assert "File name too long" in failure(attach, "x" * 300).message


def test_a_pipe_is_refused_without_waiting(root: Path, attach: Attach) -> None:
    os.mkfifo(root / "x")

    error = failure(attach, "x")

    assert error.message == "'x' is a pipe, not a file"
    assert "jp query" in worded(error.hint)


def test_a_descriptor_that_is_a_pipe_is_called_one(attach: Attach) -> None:
    reader, writer = os.pipe()
    try:
        assert failure(attach, f"/dev/fd/{reader}").message == f"'/dev/fd/{reader}' is a pipe, not a file"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_socket_and_a_device_are_refused(root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x")
        assert failure(attach, "x").message == "'x' is a socket, not a file"

    assert failure(attach, "/dev/null").message == "'/dev/null' is a device, not a file"


def test_a_large_file_is_refused_unread_with_its_size(root: Path, attach: Attach) -> None:
    with (root / "big.log").open("wb") as file:
        file.truncate(50 * 1024 * 1024)

    error = failure(attach, "big.log")

    assert error.message == "'big.log' has 50.0 MiB; an attachment has at most 10.0 MiB"
    assert "conversation.max_attachment_bytes" in error.hint


def test_the_bound_of_one_resource_is_the_callers(root: Path, attach: Attach) -> None:
    (root / "x").write_text("12345", encoding="utf-8")

    assert attach("x", around=ResolveContext(root=root, cwd=root, max_bytes=5)).resources
    with pytest.raises(AttachmentError, match="has 5 bytes; an attachment has at most 4 bytes"):
        attach("x", around=ResolveContext(root=root, cwd=root, max_bytes=4))


def test_a_binary_file_is_refused_with_what_is_taken(root: Path, attach: Attach) -> None:
    (root / "x.zip").write_bytes(b"PK\3\4\0")

    error = failure(attach, "x.zip")

    assert error.message == "'x.zip' is binary (application/octet-stream): there is a zero byte at 4"
    assert "PDF" in error.hint


def test_what_may_not_be_read_is_an_error(unprivileged: Path) -> None:
    write(unprivileged, "x", "closed/y", "d/z")
    (unprivileged / "x").chmod(0)
    (unprivileged / "closed").chmod(0)
    context = ResolveContext(root=unprivileged, cwd=unprivileged)

    for uri in ("file:x", "file:closed", "file:closed/y"):
        with pytest.raises(AttachmentError, match="Permission denied") as raised:
            anyio.run(FileHandler().resolve, Declaration(uri=uri, written=uri), context)
        assert "ls -l" in raised.value.hint

    resolution = anyio.run(FileHandler().resolve, Declaration(uri="file:.", written="."), context)
    assert [resource.name for resource in resolution.resources] == ["d/z"]
    assert resolution.notices == ("'.': skipped 'closed', 'x': Permission denied",)


# Confinement


@pytest.mark.parametrize("uri", ["file:../x", "file:link", "file:linked/x", "file:linked", "file:../*", "file:../gone"])
def test_what_a_file_declares_stays_inside(uri: str, root: Path, attach: Attach) -> None:
    write(root.parent, "x")
    (root / "link").symlink_to(root.parent / "x")
    (root / "linked").symlink_to(root.parent)

    error = failure(attach, uri, confined=True)

    assert error.message.startswith(f"{uri!r} leads outside of {str(root)!r}")
    assert "--attach" in worded(error.hint)


def test_what_is_typed_may_lie_anywhere(root: Path, attach: Attach) -> None:
    write(root.parent, "x")
    (root / "link").symlink_to(root.parent / "x")

    assert len(attach("../x", "link").resources) == 1


def test_a_walk_does_not_leave_its_tree_through_links(root: Path, attach: Attach) -> None:
    write(root.parent, "outside/secret")
    write(root, "in/x")
    (root / "link").symlink_to(root.parent / "outside" / "secret")
    (root / "linked").symlink_to(root.parent / "outside")
    (root / "in" / "up").symlink_to("..")

    resolved = attach(".")

    assert names(resolved) == ["in/x"]
    assert f"'.': skipped 'link', 'linked': a link to a target outside of {str(root)!r}" in resolved.notices


def test_a_walk_outside_of_the_root_stays_in_its_own_directory(root: Path, attach: Attach) -> None:
    write(root, "secret")
    write(root.parent, "other/x")
    (root.parent / "other" / "link").symlink_to(root / "secret")

    assert names(attach("../other")) == [str(root.parent / "other" / "x")]


@pytest.mark.parametrize("confined", [True, False])
def test_a_swap_between_check_and_use_reads_nothing(
    root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch, *, confined: bool
) -> None:
    write(root.parent, "secret")
    write(root, "d/x")
    genuine = files.read

    def swap_then_read(*arguments: object) -> object:
        (root / "d" / "x").unlink()
        (root / "d" / "x").symlink_to(root.parent / "secret")
        return genuine(*arguments)  # pyright: ignore[reportArgumentType]  what the caller passed

    monkeypatch.setattr(files, "read", swap_then_read)

    assert "cannot read 'd/x'" in failure(attach, "d/x", confined=confined).message


def test_a_pipe_that_took_the_place_of_a_file_is_refused_without_waiting(
    root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "x")
    genuine = files.read

    def swap_then_read(*arguments: object) -> object:
        (root / "x").unlink()
        os.mkfifo(root / "x")
        return genuine(*arguments)  # pyright: ignore[reportArgumentType]  what the caller passed

    monkeypatch.setattr(files, "read", swap_then_read)

    assert failure(attach, "x").message == "'x' is a pipe, not a file"


# Directories and globs


def test_a_directory_is_everything_below_it_sorted(root: Path, attach: Attach) -> None:
    write(root, "src/b.rs", "src/a/z.rs", "src/a.rs", "src/B.rs", "other/x")

    assert names(attach("src")) == names(attach("src/")) == ["src/B.rs", "src/a/z.rs", "src/a.rs", "src/b.rs"]


def test_globs_match_as_in_a_shell(root: Path, attach: Attach) -> None:
    write(root, "a.rs", "src/b.rs", "src/deep/c.rs", "src/d.py", ".hidden/e.rs")

    assert names(attach("*.rs")) == ["a.rs"]
    assert names(attach("**/*.rs")) == ["a.rs", "src/b.rs", "src/deep/c.rs"]
    assert names(attach("src/*")) == ["src/b.rs", "src/d.py"]
    assert names(attach("src/?.[pr][!y]")) == ["src/b.rs"]
    assert names(attach(".hid*/*")) == [".hidden/e.rs"]


def test_an_existing_name_is_no_glob(root: Path, attach: Attach) -> None:
    write(root, "app/[id].tsx", "app/i.tsx")

    assert names(attach("app/[id].tsx")) == ["app/[id].tsx"]
    assert names(attach("app/[i].tsx")) == ["app/i.tsx"]
    (root / "app" / "i.tsx").unlink()
    assert failure(attach, "file:app/[id].tsx").hint.endswith(f"'file://{root}/app/%5Bid%5D.tsx'.")


def test_ignored_and_hidden_files_need_a_path_of_their_own(root: Path, attach: Attach) -> None:
    write(root, "a", ".env", "target/x", "src/y.log", "src/z")
    (root / ".gitignore").write_text("target/\n*.log\n", encoding="utf-8")

    assert names(attach(".")) == ["a", "src/z"]
    assert names(attach("src/y.log", ".env", "target", "target/*")) == ["src/y.log", ".env", "target/x"]
    assert "skip ignored files" in failure(attach, "src/*.log").hint


def test_what_jp_and_git_keep_is_never_walked(root: Path, attach: Attach) -> None:
    write(root, ".git/config", ".jp/config.toml", "x", "sub/.git/config")
    (root / "link").symlink_to(".git/config")

    assert names(attach(".", "**")) == ["x"]
    for pattern in (".*/**", "**/.git/*", ".git*"):
        assert failure(attach, pattern).message == f"{pattern!r} matches no file"
    assert names(attach(".git/config")) == [".git/config"]
    assert failure(attach, ".git").message == "'.git' is in a directory that git or jp keeps for itself"
    assert "by their paths" in failure(attach, "sub/.git/*").hint


def test_links_to_files_are_followed_and_delivered_once(root: Path, attach: Attach) -> None:
    write(root, "AGENTS.md")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "gone").symlink_to("nowhere")
    (root / "self").symlink_to("self")

    resolved = attach(".")

    assert names(resolved) == ["AGENTS.md"]
    assert len(resolved.notices) == 2


def test_what_cannot_be_sent_is_omitted_of_a_directory_with_a_notice(root: Path, attach: Attach) -> None:
    write(root, "d/x")
    for name in ("a.bin", "b.bin", "c.bin", "d.bin", "e.bin"):
        (root / "d" / name).write_bytes(b"\0")
    (root / "d" / "p.png").write_bytes(PNG)
    with (root / "d" / "huge.iso").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    os.mkfifo(root / "d" / "pipe")

    resolved = attach("d")

    assert names(resolved) == ["d/p.png", "d/x"]
    assert resolved.notices == (
        "'d': skipped 'pipe': neither a file nor a directory",
        "'d': skipped 'a.bin', 'b.bin', 'c.bin' and 3 more: neither text, an image nor a PDF",
    )


def test_a_large_text_in_a_directory_is_an_error_that_says_how_to_go_on(root: Path, attach: Attach) -> None:
    write(root, "d/x")
    (root / "d" / "big.log").write_bytes(b"a" * (10 * 1024 * 1024 + 1))

    error = failure(attach, "d")

    assert error.message == "'d/big.log' in 'd' has 10.0 MiB; an attachment has at most 10.0 MiB"
    assert "'!d/big.log'" in error.hint
    assert names(attach("d", "!d/big.log")) == ["d/x"]


def test_everything_together_is_bounded(root: Path, attach: Attach) -> None:
    write(root, *[f"d/{number}" for number in range(12)])

    with pytest.raises(AttachmentError, match="'d' has more than 120 bytes"):
        attach("d", around=ResolveContext(root=root, cwd=root, max_bytes=12))


def test_a_directory_of_too_many_files_is_an_error_before_any_is_read(
    root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "d").mkdir()
    for number in range(2_001):
        os.close(os.open(root / "d" / str(number), os.O_CREAT))

    def fail(*_: object) -> None:
        pytest.fail("nothing is read")

    monkeypatch.setattr(files, "read", fail)
    error = failure(attach, "d")

    assert error.message == "'d' matches more than 2,000 files"
    assert "such as 'd/" in error.hint


def test_a_walk_looks_at_a_bounded_number_of_names(root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_walk, "MAX_ENTRIES", 5)
    write(root, *[f"d/{number}.txt" for number in range(6)])

    assert failure(attach, "d/*.md").message == "'d/*.md' has more than 5 entries"


def test_a_walk_can_be_stopped_in_a_large_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_walk, "_CHECK_EVERY", 2)
    write(root, *[f"d/{number}.txt" for number in range(6)])
    declaration = Declaration(uri="file:d/*.md", written="d/*.md")
    calls: list[int] = []

    def check() -> None:
        calls.append(1)

    with pytest.raises(AttachmentError, match="matches no file"):
        files.FileReader(declaration, ResolveContext(root=root, cwd=root), [], check).resolve()

    assert len(calls) == 1 + 3


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("empty", "'empty' holds no file to attach", "hidden files"),
        ("hidden", "'hidden' holds no file to attach", "hidden files"),
        ("d/*.py", "'d/*.py' matches no file", "any depth"),
        ("d/su*", "'d/su*' matches no file", "directories only"),
        ("binary", "'binary' has nothing that can be attached", "'x' was skipped: neither text"),
    ],
)
def test_what_stands_for_nothing_is_an_error(
    written: str, message: str, hint: str, *, root: Path, attach: Attach
) -> None:
    (root / "empty").mkdir()
    write(root, "hidden/.x", "d/sub/x")
    (root / "binary").mkdir()
    (root / "binary" / "x").write_bytes(b"\0")

    error = failure(attach, written)

    assert error.message == message
    assert hint in error.hint


def test_files_that_change_under_a_walk_are_omitted(
    root: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a", "b", "c", "d")
    genuine = files.read

    def change_then_read(base: str, steps: list[str], max_bytes: int) -> object:
        if steps[-1] != "d":
            (root / steps[-1]).unlink()
        if steps[-1] == "a":
            os.mkfifo(root / "a")
        if steps[-1] == "b":
            (root / "b").symlink_to("/etc/passwd")
        return genuine(base, steps, max_bytes)

    monkeypatch.setattr(files, "read", change_then_read)
    resolved = attach(".")

    assert names(resolved) == ["d"]
    assert [notice.partition(": skipped ")[2] for notice in resolved.notices] == [
        "'c': No such file or directory",
        "'b': Too many levels of symbolic links",
        "'a': neither a file nor a directory",
    ]


# Excludes


def test_excludes_take_away_from_what_is_attached_with_them(root: Path, attach: Attach) -> None:
    write(root, "src/a.rs", "src/gen/b.rs", "src/gen/deep/c.rs", "x.lock", "src/y.lock")

    assert names(attach(".", "!src/gen", "!*.lock")) == ["src/a.rs"]
    assert names(attach("!./x.lock", ".")) == ["src/a.rs", "src/gen/b.rs", "src/gen/deep/c.rs", "src/y.lock"]
    assert names(attach("src/**/*.rs", "file:src/**/c.rs?exclude")) == ["src/a.rs", "src/gen/b.rs"]
    assert names(attach(".", "!src/[ag]*", "!x.lock")) == ["src/y.lock"]


@pytest.mark.parametrize("include", ["src", "src/a.rs", "src/*", "src/deep/..", "linked", "link"])
def test_what_is_excluded_wholly_is_a_notice(include: str, root: Path, attach: Attach) -> None:
    write(root, "src/a.rs", "src/deep/b.rs")
    (root / "linked").symlink_to("src")
    (root / "link").symlink_to("src/a.rs")

    resolved = attach(include, "!src")

    assert resolved.resources == ()
    assert resolved.notices == (f"{include!r} attaches nothing: '!src' excludes it",)


def test_a_walk_that_excludes_everything_says_so(root: Path, attach: Attach) -> None:
    write(root, "src/a.rs")

    assert attach("src", "!*.rs").notices == ("'src' attaches nothing: '!*.rs' excludes it",)


def test_an_exclude_that_matches_no_candidate_does_not_excuse_an_empty_glob(root: Path, attach: Attach) -> None:
    write(root, "target/a.rs")

    assert failure(attach, "**/*.py", "!target").message == "'**/*.py' matches no file"


def test_excluding_a_link_leaves_its_target(root: Path, attach: Attach) -> None:
    write(root, "a")
    (root / "b").symlink_to("a")

    assert names(attach(".", "!./b")) == ["a"]
    assert names(attach(".", "!./a")) == []
    assert names(attach("b", "!./b")) == []
    (root / "d").mkdir()
    write(root, "d/x")
    (root / "linked").symlink_to("d")
    assert names(attach("linked", "!./linked")) == []


def test_an_exclude_reaches_through_links_to_directories(root: Path, attach: Attach) -> None:
    write(root, "real/a", "real/b")
    (root / "linked").symlink_to("real")

    assert names(attach("linked", "!linked/a")) == ["real/b"]
    assert names(attach("real", "!linked/*a")) == ["real/b"]
    assert names(attach("linked/a", "!linked/a")) == []


@pytest.mark.parametrize(
    ("include", "earlier", "attached", "together"),
    [
        ("src/a.py", "!a.py", ["src/a.py"], []),
        ("src/a.py", "!src", ["src/a.py"], []),
        ("src/a.py", "!**/*.py", ["src/a.py"], []),
        ("link.py", "!src", ["src/a.py"], []),
        ("src", "!src", ["src/a.py", "src/tests/b.py"], []),
        ("src/tests", "!tests", ["src/tests/b.py"], []),
        ("src", "!tests", ["src/a.py"], ["src/a.py"]),
        ("src/*.py", "!*.py", [], []),
    ],
)
def test_a_path_that_is_typed_wins_over_an_earlier_exclude_of_it(
    include: str, earlier: str, attached: list[str], together: list[str], *, root: Path, context: ResolveContext
) -> None:
    write(root, "src/a.py", "src/tests/b.py")
    (root / "link.py").symlink_to("src/a.py")
    registry = AttachmentRegistry()
    path, exclude = (registry.declare(text, context, confined=False) for text in (include, earlier))

    def resolved(plan: ResolutionPlan) -> list[str | None]:
        return names(anyio.run(resolve_all, plan, registry, context))

    assert resolved(plan_resolution([exclude], [path], delivered=())) == attached
    assert resolved(plan_resolution([], [path, exclude], delivered=())) == together
    assert resolved(plan_resolution([exclude], [path, exclude], delivered=())) == together
    assert resolved(plan_resolution([path, exclude], [], delivered=())) == together


def test_excludes_of_other_schemes_concern_no_file(root: Path, context: ResolveContext) -> None:
    write(root, "a")
    include = Declaration(uri="file:a", written="a")
    other = Declaration(uri="gh:a", written="!gh:a", exclude=True)

    async def resolve() -> int:
        return len((await FileHandler().resolve(include, context, excludes=[other])).resources)

    assert anyio.run(resolve) == 1


# Stopping


def test_cancelling_does_not_wait_for_a_file_that_hangs(
    root: Path, context: ResolveContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a", "b")
    started, release = threading.Event(), threading.Event()
    read: list[str] = []
    genuine = files.read

    def hang_then_read(base: str, steps: list[str], max_bytes: int) -> object:
        read.extend(steps)
        started.set()
        release.wait(5)
        return genuine(base, steps, max_bytes)

    monkeypatch.setattr(files, "read", hang_then_read)

    async def attach_and_cancel() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(FileHandler().resolve, Declaration(uri="file:.", written="."), context)
                await anyio.to_thread.run_sync(started.wait)
                tasks.cancel_scope.cancel()
        release.set()

    before = set(threading.enumerate())
    anyio.run(attach_and_cancel)
    for thread in set(threading.enumerate()) - before:
        thread.join(5)

    assert read == ["a"]


@pytest.mark.parametrize(
    ("written", "names", "part"),
    [
        ("src", ["a/x.py", "a/y.py", "b/z.py"], "src/a"),
        ("src/", ["a/x.py", "a/y.py", "top.py"], "src/a"),
        ("src/**/*.py", ["a/x.py", "a/y.py", "b/z.py"], "src/a/**/*.py"),
        ("**/*.py", ["a/x.py", "a/y.py", "b/z.py"], "a/**/*.py"),
        ("src/*.py", ["test_a.py", "test_ab.py", "test_b.py"], "src/test_a*.py"),
        ("many", ["10", "11", "20"], "many/1*"),
        ("only", ["in/one", "in/other"], "only/**/on*"),
        ("src/*/x", ["a/x", "b/x"], ""),
        ("odd", ["[1]", "[2]"], ""),
        ("same", ["a", "a"], ""),
    ],
)
def test_a_narrower_pattern_matches_some_of_the_files(written: str, names: list[str], part: str) -> None:
    assert file_walk.narrower(written, names) == part

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jp.attachment import comparison, file_paths, file_walk
from jp.attachment.base import (
    AttachmentError,
    Declaration,
    MissingSourceError,
    Resolution,
    ResolveContext,
    history_of,
)
from jp.attachment.comparison import AttachmentStatus, Difference, StatusReader
from jp.attachment.registry import AttachmentRegistry, ResolvedAttachments, plan_resolution, resolve_all
from jp.conversation.entries import AnyEntry, ChatRequest, TurnStart
from jp.conversation.resource import Resource, checksum

Attach = Callable[..., ResolvedAttachments]

PNG = b"\x89PNG\r\n\x1a\n\0"


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}", encoding="utf-8")


class Listed:
    """A conversation in which sources are attached, and then looked at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.context = ResolveContext(root=root, cwd=root)
        self.registry = AttachmentRegistry()
        self.entries: list[AnyEntry] = []

    def attach(self, *texts: str, earlier: Sequence[str] = ()) -> None:
        """A turn with what is typed; `earlier` was declared before."""
        plan = plan_resolution(self._declared(earlier), self._declared(texts), delivered=())
        resolved = anyio.run(resolve_all, plan, self.registry, self.context)
        request = ChatRequest(content="?", attachments=resolved.declarations, resources=resolved.resources)
        self.entries += [TurnStart(), request]

    def _declared(self, texts: Sequence[str]) -> list[Declaration]:
        return [self.registry.declare(text, self.context, confined=False) for text in texts]

    def status(
        self, text: str, *, excludes: Sequence[str] = (), context: ResolveContext | None = None
    ) -> AttachmentStatus:
        survey = StatusReader(
            registry=self.registry,
            context=context or self.context,
            history=history_of(self.entries),
            excludes=tuple(self._declared(excludes)),
        )
        (declaration,) = self._declared([text])
        return anyio.run(survey.status, declaration)

    def difference(self, text: str) -> tuple[list[str], list[str], list[str]]:
        """The names of what differs, of a source that is compared and differs."""
        status = self.status(text)
        assert (status.state, status.is_compared, status.detail) == ("changed", True, "")
        found = status.difference
        prefix = f"file://{self.root}/"
        names = [[uri.removeprefix(prefix) for uri in uris] for uris in (found.changed, found.added, found.removed)]
        return names[0], names[1], names[2]

    def is_as_sent(self, text: str) -> bool:
        status = self.status(text)
        return (status.state, status.is_compared, status.difference) == ("sent", True, Difference())


@pytest.fixture
def listed(root: Path) -> Listed:
    return Listed(root)


# Files


def test_a_file_is_as_it_was_sent_until_its_content_changes(listed: Listed) -> None:
    write(listed.root, "a.txt")
    listed.attach("a.txt")
    (listed.root / "a.txt").touch()
    assert listed.is_as_sent("a.txt")

    (listed.root / "a.txt").write_text("TEXT OF a.txt", encoding="utf-8")
    assert listed.difference("a.txt") == (["a.txt"], [], [])

    (listed.root / "a.txt").write_text("longer than it was", encoding="utf-8")
    assert listed.difference("a.txt") == (["a.txt"], [], [])

    listed.attach("a.txt")
    assert listed.is_as_sent("a.txt")
    assert listed.status("a.txt").turn == 1


def test_only_a_file_of_the_same_size_is_read(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "a.txt", "b.txt")
    listed.attach(".")
    (listed.root / "a.txt").write_text("x", encoding="utf-8")
    read: list[Sequence[str]] = []

    def counted(base: str, names: Sequence[str], max_bytes: int) -> file_paths.Snapshot:
        read.append(names)
        return file_paths.read(base, names, max_bytes)

    monkeypatch.setattr(comparison, "read", counted)

    assert listed.difference(".") == (["a.txt"], [], [])
    assert read == [["b.txt"]]


@pytest.mark.parametrize(("before", "after"), [("ab", "ac"), ("ab", "abc")])
def test_what_is_kept_in_another_encoding_is_compared_as_text(listed: Listed, before: str, after: str) -> None:
    (listed.root / "a.txt").write_text(before, encoding="utf-16")
    listed.attach("a.txt")
    assert listed.is_as_sent("a.txt")

    (listed.root / "a.txt").write_text(after, encoding="utf-16")
    assert listed.difference("a.txt") == (["a.txt"], [], [])


def test_a_picture_and_an_empty_file_are_compared(listed: Listed) -> None:
    (listed.root / "a.png").write_bytes(PNG)
    (listed.root / "b").touch()
    listed.attach("a.png", "b")
    assert listed.is_as_sent("a.png")
    assert listed.is_as_sent("b")

    (listed.root / "a.png").write_bytes(PNG[:-1] + b"\1")
    (listed.root / "b").write_bytes(b"\0")
    assert listed.difference("a.png") == (["a.png"], [], [])
    assert listed.difference("b") == (["b"], [], [])


def test_a_file_that_does_not_say_its_size_is_read(listed: Listed) -> None:
    listed.attach("/proc/version")

    assert listed.is_as_sent("/proc/version")


def test_a_file_that_is_gone_is_missing(listed: Listed) -> None:
    write(listed.root, "a.txt")
    listed.attach("a.txt")
    (listed.root / "a.txt").unlink()

    status = listed.status("a.txt")

    assert (status.state, status.is_compared, status.turn) == ("missing", True, 0)
    assert status.detail == "there is no file 'a.txt'"
    assert [copy.name for copy in status.copies] == ["a.txt"]


def test_a_file_that_became_a_pipe_is_not_waited_for(listed: Listed) -> None:
    write(listed.root, "a.txt", "d/b.txt")
    listed.attach("a.txt", "d")
    for path in ("a.txt", "d/b.txt"):
        (listed.root / path).unlink()
        os.mkfifo(listed.root / path)

    status = listed.status("a.txt")

    assert (status.state, status.is_compared) == ("sent", False)
    assert status.detail == "'a.txt' is a pipe, not a file"
    assert listed.difference("d") == ([], [], ["d/b.txt"])


def test_a_file_that_is_too_large_now_has_changed(listed: Listed) -> None:
    write(listed.root, "a.txt")
    listed.attach("a.txt")

    assert listed.status("a.txt", context=replace(listed.context, max_bytes=1)).state == "changed"


# Directories and globs


def test_a_directory_has_what_changed_what_came_and_what_went(listed: Listed) -> None:
    write(listed.root, "d/same", "d/other", "d/gone", "d/ignored")
    listed.attach("d")
    assert listed.is_as_sent("d")

    write(listed.root, "d/new", "d/.hidden")
    (listed.root / "d" / "other").write_text("x", encoding="utf-8")
    (listed.root / "d" / "gone").unlink()
    (listed.root / ".gitignore").write_text("ignored\n", encoding="utf-8")

    assert listed.difference("d") == (["d/other"], ["d/new"], ["d/gone", "d/ignored"])
    assert listed.status("d").turn == 0


def test_a_glob_concerns_only_what_it_matches(listed: Listed) -> None:
    write(listed.root, "a.py", "b.py", "c.txt")
    listed.attach("*.py", "c.txt")
    write(listed.root, "c.txt.bak", "d.py")
    (listed.root / "c.txt").unlink()
    (listed.root / "b.py").unlink()

    assert listed.difference("*.py") == ([], ["d.py"], ["b.py"])


def test_a_directory_that_is_empty_or_gone_now(listed: Listed) -> None:
    write(listed.root, "d/a")
    listed.attach("d")
    (listed.root / "d" / "a").unlink()
    assert listed.difference("d") == ([], [], ["d/a"])

    (listed.root / "d").rmdir()
    assert listed.status("d").state == "missing"


def test_what_no_model_can_read_does_not_come_in_addition(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "d/a")
    listed.attach("d")
    (listed.root / "d" / "binary").write_bytes(b"\0\0")
    (listed.root / "d" / "latin").write_bytes(b"caf\xe9")
    read: list[Sequence[str]] = []

    def counted(base: str, names: Sequence[str], max_bytes: int) -> file_paths.Snapshot:
        read.append(names)
        return file_paths.read(base, names, max_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(comparison, "read", counted)
        assert listed.is_as_sent("d")
    assert read == [["d", "a"], ["d", "latin"]]

    (listed.root / "d" / "picture").write_bytes(PNG)
    assert listed.difference("d") == ([], ["d/picture"], [])


def test_what_would_be_too_much_to_attach_is_not_read(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "d/a")
    listed.attach("d")
    for number in range(4):
        (listed.root / "d" / f"new{number}").write_bytes(b"x" * 3_000 + b"\xff")
    read: list[Sequence[str]] = []

    def counted(base: str, names: Sequence[str], max_bytes: int) -> file_paths.Snapshot:
        read.append(names)
        return file_paths.read(base, names, max_bytes)

    monkeypatch.setattr(comparison, "read", counted)
    status = listed.status("d", context=replace(listed.context, max_bytes=700))

    assert status.difference.added == tuple(f"file://{listed.root}/d/new{number}" for number in range(4))
    assert read == [["d", "a"], ["d", "new0"], ["d", "new1"]]


def test_a_file_with_a_declaration_of_its_own_is_not_the_directorys(listed: Listed) -> None:
    write(listed.root, "d/a", "d/ignored")
    (listed.root / ".gitignore").write_text("ignored\n", encoding="utf-8")
    listed.attach("d", "d/ignored")

    assert listed.is_as_sent("d")
    assert [copy.name for copy in listed.status("d").copies] == ["d/a"]


def test_what_cannot_be_read_any_more(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "a.txt", "d/b", "d/c")
    listed.attach("a.txt", "d")
    write(listed.root, "d/new")

    def refused(base: str, names: Sequence[str]) -> file_paths.FileFacts:
        if names[-1] == "b":
            return file_paths.file_facts(base, names)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(comparison, "file_facts", refused)
    status = listed.status("a.txt")

    assert (status.state, status.is_compared) == ("sent", False)
    assert status.detail == "cannot read 'a.txt': Permission denied"
    assert listed.difference("d") == (["d/c"], [], [])


def test_a_copy_that_came_another_way_is_a_copy(listed: Listed) -> None:
    write(listed.root, "d/a", "d/.hidden")
    listed.attach("d", "d/.hidden")
    write(listed.root, "d/b")
    (listed.root / "d" / "a").write_text("x", encoding="utf-8")
    listed.attach("d/a", "d/b")

    status = listed.status("d")

    assert (status.state, status.turn) == ("sent", 1)
    assert [copy.name for copy in status.copies] == ["d/a", "d/b"]
    assert listed.is_as_sent("d/.hidden")


def test_what_links_lead_to_belongs_to_the_directory(listed: Listed) -> None:
    write(listed.root, "elsewhere/a", "d/b")
    (listed.root / "d" / "link").symlink_to("../elsewhere/a")
    (listed.root / "l").symlink_to("d")
    listed.attach("d", "l/b")
    assert listed.is_as_sent("d")
    assert listed.is_as_sent("l/b")
    listed.attach("l")
    (listed.root / "d" / "b").unlink()
    assert listed.difference("l") == ([], [], ["d/b"])
    write(listed.root, "d/b")

    (listed.root / "elsewhere" / "a").write_text("x", encoding="utf-8")
    assert listed.difference("d") == (["elsewhere/a"], [], [])


def test_a_tree_that_is_too_large_to_look_at_is_not_compared(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "d/a", "d/b", "d/c")
    listed.attach("d")
    monkeypatch.setattr(file_walk, "MAX_ENTRIES", 2)

    status = listed.status("d")

    assert (status.state, status.is_compared) == ("sent", False)
    assert status.detail == "'d' has more than 2 entries"


def test_a_comparison_can_be_left(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(listed.root, "d/a", "d/b")
    listed.attach("d")
    begun, goes_on, looked = threading.Event(), threading.Event(), list[Sequence[str]]()

    def slow(base: str, names: Sequence[str]) -> file_paths.FileFacts:
        looked.append(names)
        begun.set()
        goes_on.wait(5)
        return file_paths.file_facts(base, names)

    monkeypatch.setattr(comparison, "file_facts", slow)

    async def left() -> None:
        survey = StatusReader(registry=listed.registry, context=listed.context, history=history_of(listed.entries))
        declaration = listed.registry.declare("d", listed.context, confined=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(survey.status, declaration)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        goes_on.set()

    anyio.run(left)
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(5)

    assert looked == [["d", "a"]]


# Excludes


def test_a_source_that_was_excluded_wholly_is_excluded(listed: Listed) -> None:
    write(listed.root, "a.txt", "d/b", "d/c")
    listed.attach("a.txt", "d", "!a.txt", "!b")

    status = listed.status("a.txt")

    assert (status.state, status.copies) == ("excluded", ())
    assert status.detail == "'!file:**/a.txt' excludes it"
    assert listed.is_as_sent("d")
    (listed.root / "d" / "b").write_text("x", encoding="utf-8")
    assert listed.is_as_sent("d")
    assert listed.status("!b").state == "excluded"


def test_what_was_attached_against_an_exclude_is_compared_against_it(listed: Listed) -> None:
    write(listed.root, "d/a", "b.txt")
    listed.attach("d", "b.txt", earlier=["!d", "!b.txt"])
    assert listed.is_as_sent("d")
    assert listed.is_as_sent("b.txt")

    write(listed.root, "d/new")
    assert listed.difference("d") == ([], ["d/new"], [])


def test_what_is_still_to_be_read_is_looked_at(listed: Listed) -> None:
    write(listed.root, "a.txt", "d/x.bin", "docs/b.md")
    (listed.root / "empty").mkdir()

    assert listed.status("a.txt") == AttachmentStatus(state="pending", is_compared=True)
    assert listed.status("docs").state == "pending"
    excluded = listed.status("a.txt", excludes=["!cmd:x", "!*.txt"])
    assert (excluded.state, excluded.detail) == ("excluded", "'!*.txt' excludes it")
    assert listed.status("docs", excludes=["!*.md"]).detail == "'!*.md' excludes it"
    for text in ("nosuch.txt", "*.nosuch", "empty"):
        assert listed.status(text).state == "missing"
    assert listed.status("A.TXT").hint == "did you mean 'a.txt'?"


# Other schemes


class WikiHandler:
    """Pages by their name; a whole wiki is all of them."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.pages = dict(pages)
        self.error: AttachmentError | None = None
        self.calls = 0

    def canonical(self, uri: str, context: ResolveContext) -> str:
        return uri

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        self.calls += 1
        if self.error is not None:
            raise self.error
        gone = {exclude.uri for exclude in excludes}
        names = self.pages if declaration.uri.endswith(":all") else [declaration.uri.partition(":")[2]]
        scheme = declaration.uri.partition(":")[0]
        found = [Resource(uri=f"{scheme}:{name}", text=self.pages[name]) for name in names]
        return Resolution(
            resources=tuple(resource for resource in found if not gone & {resource.uri, declaration.uri}),
            notices=("left out",) if gone else (),
        )


class WikiRegistry(AttachmentRegistry):
    """A registry for which some schemes are wikis."""

    def __init__(self, handler: WikiHandler) -> None:
        super().__init__(joined={"jp": lambda: handler, "wiki": lambda: handler, "cmd": lambda: handler})


class Wiki(Listed):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.handler = WikiHandler({"a": "1", "b": "2"})
        self.registry = WikiRegistry(self.handler)
        self.reaches_out = False

    def status(
        self, text: str, *, excludes: Sequence[str] = (), context: ResolveContext | None = None
    ) -> AttachmentStatus:
        survey = StatusReader(
            registry=self.registry,
            context=context or self.context,
            history=history_of(self.entries),
            excludes=tuple(self._declared(excludes)),
            reaches_out=self.reaches_out,
        )
        (declaration,) = self._declared([text])
        return anyio.run(survey.status, declaration)


@pytest.fixture
def wiki(root: Path) -> Wiki:
    return Wiki(root)


def test_conversations_are_compared_always_other_machines_where_asked_commands_never(wiki: Wiki) -> None:
    wiki.attach("jp:a", "wiki:a", "cmd:a")
    wiki.handler.pages["a"] = "other"
    wiki.handler.calls = 0

    states = [(wiki.status(text).state, wiki.status(text).is_compared) for text in ("jp:a", "wiki:a", "cmd:a")]
    assert states == [("changed", True), ("sent", False), ("sent", False)]
    assert wiki.handler.calls == 2

    wiki.reaches_out = True
    states = [(wiki.status(text).state, wiki.status(text).is_compared) for text in ("jp:a", "wiki:a", "cmd:a")]
    assert states == [("changed", True), ("changed", True), ("sent", False)]


def test_a_source_of_several_resources_has_what_came_and_went(wiki: Wiki) -> None:
    wiki.reaches_out = True
    wiki.attach("wiki:all", "!wiki:c")
    assert wiki.is_as_sent("wiki:all")

    wiki.handler.pages = {"b": "3", "c": "excluded", "d": "4"}
    found = wiki.status("wiki:all").difference

    assert found == Difference(changed=("wiki:b",), added=("wiki:d",), removed=("wiki:a",))


def test_a_source_that_cannot_be_asked_stays_as_it_was_sent(wiki: Wiki) -> None:
    wiki.attach("jp:a")
    wiki.handler.error = AttachmentError("no connection", hint="Wait.")
    status = wiki.status("jp:a")
    assert (status.state, status.is_compared, status.detail) == ("sent", False, "no connection")

    wiki.handler.error = MissingSourceError("gone", hint="Look.")
    status = wiki.status("jp:a")
    assert (status.state, status.is_compared, status.detail, status.hint) == ("missing", True, "gone", "Look.")


def test_other_sources_that_are_still_to_be_read(wiki: Wiki) -> None:
    assert wiki.status("jp:a") == AttachmentStatus(state="pending", is_compared=True)
    assert wiki.status("wiki:a") == AttachmentStatus(state="pending")
    assert wiki.status("wiki:a", excludes=["!wiki:a"]).state == "excluded"
    excluded = wiki.status("jp:a", excludes=["!jp:a"])
    assert (excluded.state, excluded.is_compared, excluded.detail) == ("excluded", True, "left out")


def test_what_is_typed_against_an_exclude_of_it_is_compared(wiki: Wiki) -> None:
    wiki.attach("jp:a", earlier=["!jp:a"])

    assert wiki.is_as_sent("jp:a")


def test_what_was_declared_without_a_copy_is_not_compared(wiki: Wiki) -> None:
    wiki.entries = [TurnStart(), ChatRequest(content="?", attachments=("jp:a", "file:x"))]
    write(wiki.root, "x")

    for text in ("jp:a", "x"):
        status = wiki.status(text)
        assert (status.state, status.is_compared, status.turn) == ("sent", False, 0)
        assert status.detail == "this conversation has no copy of it"

    (wiki.root / "x").unlink()
    assert wiki.status("x").state == "sent"

    wiki.entries = [TurnStart(), ChatRequest(content="?", attachments=("jp:a", "!jp:a"))]
    assert wiki.status("jp:a").state == "excluded"


def test_a_copy_that_lies_in_the_blob_store_is_compared_by_what_the_log_says(listed: Listed) -> None:
    write(listed.root, "a.txt")
    listed.attach("a.txt")
    request = listed.entries[-1]
    assert isinstance(request, ChatRequest)
    (copy,) = request.resources
    stored = replace(copy, text=None, sha256=checksum(copy), size=13, chars=13, lines=1)
    listed.entries[-1] = replace(request, resources=(stored,))

    assert listed.is_as_sent("a.txt")


def test_a_root_that_is_gone_is_missing(listed: Listed) -> None:
    write(listed.root, "a.txt")
    listed.attach("a.txt")
    shutil.rmtree(listed.root)

    assert listed.status(f"{listed.root}/a.txt").state == "missing"

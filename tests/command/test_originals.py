"""Conversations of the original JP in use: the shared ten, and others that are written by hand."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from doubles import messages
from failures import check_failure
from forked import prepare, run_jp
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.ids import ConversationId
from jp.conversation.thread import map_carriers
from jp.conversation.turns import turns_of
from jp.render.history import text_history
from jp.render.transcript import Extent
from jp.workspace.store import Stream
from jp.workspace.workspace import find_workspace
from originals import BASE, ID, LARGE, Event, current, event, texts_in, write_original
from running import home_beside
from stage import entries_of, logs, make_workspace

DATA = os.environ.get("JP_TEST_DATA", "")
SHARED = sorted(Path(DATA, "jp_conversations").iterdir()) if DATA else []
NAME = f"{ID.digits}-a-title"
MODEL = ("-m", "script/test")
STRUCTURE = {"metadata", "type", "timestamp", "id", "source", "is_error", "answer_type"}
"""Fields that are said in another way."""


def placed(root: Path, events: list[Event], *, base: Event = BASE, name: str = NAME) -> Path:
    """A workspace with a conversation of the original; its directory."""
    if not root.exists():
        make_workspace(root)
    return write_original(root / ".jp/conversations" / name, events, base=base)


def tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its date and bytes."""
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def decodings(text: str) -> Iterator[str]:
    """What a stored string may be: itself, and what is left of it when it is decoded again and again."""
    yield text
    for _ in range(5):
        try:
            text = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True).decode()
        except ValueError:
            return
        yield text


def stored_texts(events: list[Event]) -> Iterator[str]:
    for stored in events:
        yield from texts_in({name: value for name, value in stored.items() if name not in STRUCTURE})
        # The names that providers' data has in jp are others.
        yield from texts_in(list(stored.get("metadata", {}).values()))


def printed_texts(output: str) -> set[str]:
    return {text for line in output.splitlines() for text in texts_in(json.loads(line))}


def unreachable(events: list[Event], output: str) -> list[str]:
    printed = printed_texts(output)
    return [text for text in stored_texts(events) if text not in STRUCTURE and printed.isdisjoint(decodings(text))]


def read(root: Path, identity: str) -> Stream:
    workspace = find_workspace(root, user_data=home_beside(root) / "data")
    return workspace.read(workspace.get(ConversationId.parse(identity)))


def inlined(stream: Stream) -> list[AnyEntry]:
    """The entries without the header, content inline."""
    return [map_carriers(entry, stream.load) for entry in stream.entries[1:]]


def with_shared(root: Path, *conversations: Path) -> Path:
    """A workspace that holds these of the shared conversations."""
    make_workspace(root)
    for stored in conversations:
        shutil.copytree(stored, root / ".jp/conversations" / stored.name, copy_function=shutil.copyfile)
    return root


def title_of(stored: Path) -> str:
    return json.loads((stored / "metadata.json").read_bytes())["title"]


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no conversations")
def test_the_shared_conversations_are_listed(tmp_path: Path) -> None:
    listed = run_jp("conversation", "ls", cwd=with_shared(tmp_path / "work", *SHARED))

    assert [stored.name for stored in SHARED if title_of(stored) not in listed.stdout] == []


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no conversations")
@pytest.mark.parametrize("stored", SHARED, ids=[path.name.partition("-")[0] for path in SHARED])
def test_a_shared_conversation_is_printed_shown_forked_and_continued(tmp_path: Path, stored: Path) -> None:
    root = with_shared(tmp_path / "work", stored)
    directory = root / ".jp/conversations" / stored.name
    identity = f"jp-c{stored.name.partition('-')[0]}"
    events = cast("list[Event]", json.loads((stored / "events.json").read_bytes()))
    files, stream = tree(directory), read(root, identity)
    entries = inlined(stream)
    short = "".join(text_history(stream.entries, load=stream.load))
    full = "".join(
        text_history(stream.entries, load=stream.load, extent=Extent(tool_lines=None, attachment_lines=None))
    )

    shown = json.loads(run_jp("conversation", "show", identity, "-F", "json", cwd=root).stdout)
    printed = run_jp("conversation", "print", identity, "-F", "json", cwd=root)
    prepare(
        ["conversation", "fork", identity, "--last", "1", "--no-use"],
        ["workspace", "trust", "--yes", "--id", identity],
        ["query", *MODEL, "--id", identity, "--fork", "and now?"],
        cwd=root,
    )
    untouched = tree(directory) == files
    asked = run_jp("query", *MODEL, "--id", identity, "and now?", cwd=root)

    assert unreachable(events, printed.stdout) == []
    assert all(found["message"].split("\n")[0].strip() in full for found in events if found.get("message"))
    notes = [line for line in short.splitlines() if line.startswith(("    configuration ", "    kept from "))]
    assert ("does not know" in short, max(map(len, notes), default=0) < 350) == (False, True)
    assert (shown["title"], shown["tokens_in"], shown["cost_usd"]) == (title_of(stored), None, None)
    assert 0 < shown["turns"] <= sum(found["type"] == "chat_request" for found in events)
    _, part, whole = map(entries_of, logs(root))
    assert [len(turns_of(fork)) for fork in (part, whole)] == [1, len(turns_of(stream.entries)) + 1]
    assert messages(whole)[-1] == "You said: and now?"
    assert untouched
    assert [entry.resources for entry in whole if isinstance(entry, ChatRequest)][-1] == ()
    assert (asked.code, asked.stdout) == (0, "You said: and now?\n"), asked
    assert inlined(read(root, identity))[: len(entries)] == entries
    assert files.items() <= tree(directory).items()


def test_every_text_of_every_variant_can_be_printed(tmp_path: Path) -> None:
    events = [
        {**event("config_delta"), "assistant": {"name": "JP"}, "conversation": {"attachments": ["file:///x"]}},
        event("chat_request", content="before turns", images=["new"]),
        *current(),
        event("chat_response", message="", reasoning="both"),
        event("newer", content="whole"),
        event("compaction", from_turn=0, to_turn=0, summary={"summary": "short", "by": "me"}),
        event(
            "inquiry_request",
            id="alone",
            source={"source": "user"},
            question={
                "text": "Which?",
                "answer_type": {"type": "select", "options": [{"value": "a", "description": "d"}]},
            },
        ),
    ]
    placed(tmp_path / "work", events)

    printed = run_jp("conversation", "print", ID, "-F", "json", cwd=tmp_path / "work")
    text = run_jp("conversation", "print", ID, "--full", cwd=tmp_path / "work")
    path = run_jp("conversation", "path", ID, "--log", cwd=tmp_path / "work")

    assert printed.code == text.code == 0
    assert unreachable(events, printed.stdout) == []
    assert LARGE.splitlines()[0] in text.stdout
    assert path.stdout.endswith(f"{NAME}/events.json\n")


def test_what_was_attached_is_not_attached_again_and_said_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    directory = placed(
        root, current(), base={**BASE, "conversation": {"attachments": ["file:///docs/a.md", "bear://get/5"]}}
    )
    run_jp("workspace", "trust", "--yes", "--id", ID, cwd=root)

    states = run_jp("attachment", "ls", "--id", ID, cwd=root)
    first = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)
    second = run_jp("query", "--id", ID, "and more", cwd=root)

    assert states.stdout.splitlines() == [
        "sent      file:docs/a.md  (this conversation has no copy of it)",
        "sent      bear://get/5  ('bear://get/5' has the scheme 'bear', which is not known)",
    ]
    assert (first.code, first.stdout) == (0, "You said: more\n")
    assert first.stderr == (
        "note: attached before this conversation came to jp, so not again: 'file:docs/a.md', 'bear://get/5'; "
        "--attach reads a source afresh\n"
    )
    assert (second.code, second.stderr) == (0, "")
    assert "and more" in (directory / "events.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="no events"),
        pytest.param([event("turn_start")], id="no request"),
        pytest.param(
            [
                *current(),
                event("config_delta", delta={"conversation": {"attachments": ["cmd://date", "file:///gone"]}}),
            ],
            id="declared after the last request",
        ),
    ],
)
def test_what_no_request_has_attached_is_not_attached_now_either(events: list[Event], tmp_path: Path) -> None:
    root = tmp_path / "work"
    declared = {"attachments": ["cmd://date", "file:///gone"]}
    # What is declared before a request, the request attaches.
    directory = placed(root, events, base=BASE if len(events) > 1 else {**BASE, "conversation": declared})
    run_jp("workspace", "trust", "--yes", "--id", ID, cwd=root)

    states = run_jp("attachment", "ls", "--id", ID, "-F", "json", cwd=root)
    first = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)
    second = run_jp("query", "--id", ID, "and more", cwd=root)
    log = (directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    requests = [line for line in map(json.loads, log) if line["type"] == "chat_request"]

    assert [one["state"] for one in json.loads(states.stdout)["attachments"][-2:]] == ["sent", "sent"]
    assert (first.code, first.stdout) == (0, "You said: more\n")
    assert "'cmd://date', 'file:gone'" in first.stderr
    assert first.stderr.endswith("; --attach reads a source afresh\n")
    assert (second.code, second.stderr) == (0, "")
    assert [(line["content"], "resources" in line) for line in requests[-2:]] == [("more", False), ("and more", False)]


def test_its_settings_need_trust_wherever_it_lies(tmp_path: Path) -> None:
    root = tmp_path / "work"
    tools = {
        "conversation": {"tools": {"fs_read_file": {"run": "unattended", "enable": True}, "gone": {"enable": True}}}
    }
    placed(root, [event("config_delta", delta=tools), *current()])

    untrusted = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)
    copied = run_jp("conversation", "fork", ID, "--last", "1", cwd=root).stdout.strip()
    in_copy = run_jp("query", *MODEL, "--id", ".", "more", cwd=root)
    moved = run_jp(
        "conversation", "import", "--local", str(root / ".jp/conversations" / NAME), cwd=make_workspace(tmp_path / "b")
    )
    local = run_jp("query", *MODEL, "--id", ID, "more", cwd=tmp_path / "b")
    alone = tmp_path / "alone"
    alone.mkdir()
    prepare(["conversation", "import", str(root)], cwd=alone)
    own = run_jp("query", *MODEL, "--id", ID, "more", cwd=alone)
    accepted = run_jp("workspace", "trust", "--yes", "--id", ID, cwd=tmp_path / "b")
    asked = run_jp("query", *MODEL, "--id", ID, "more", cwd=tmp_path / "b")

    assert moved.code == 0
    for result, identity in ((untrusted, ID), (local, ID), (own, ID)):
        assert "ignored until trusted: conversation.tools.fs_read_file.run = 'unattended'" in result.stderr
        assert f"`jp workspace trust --id {identity}`" in result.stderr
    assert [result.stdout for result in (untrusted, local)] == ["You said: more\n"] * 2
    check_failure(in_copy, 3, "conversation.attachments = 'cmd://ls?arg=-l'", f"`jp workspace trust --id {copied}`")
    assert "fs_read_file" in accepted.stdout
    assert (asked.code, asked.stdout) == (0, "You said: more\n")
    assert "note: tools that this conversation was used with are not here: 'gone'\n" in asked.stderr


def test_a_tool_that_the_user_names_has_to_be_there(tmp_path: Path) -> None:
    root = tmp_path / "work"
    placed(root, current(), base={"assistant": {}})

    result = run_jp("query", *MODEL, "-c", "conversation.tools.gone.enable=true", "--id", ID, "x", cwd=root)

    check_failure(result, 3, "unknown tool 'gone'")
    assert not (root / ".jp/conversations" / NAME / "events.jsonl").exists()


def test_a_malformed_one_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "work"
    broken = placed(root, current()) / "events.json"
    placed(root, current(), name="17662304299-another")
    broken.write_text("[{]", encoding="utf-8")

    check_failure(
        run_jp("conversation", "print", ID, cwd=root), 1, repr(str(broken)), "malformed JSON in line 1, column 3"
    )
    check_failure(run_jp("query", *MODEL, "--id", ID, "x", cwd=root), 1, repr(str(broken)))
    listed = run_jp("conversation", "ls", cwd=root)
    assert (listed.code, listed.stderr, listed.stdout.count("jp-c")) == (0, "", 2)


def test_without_persistence_it_is_asked_and_nothing_is_written(tmp_path: Path) -> None:
    root = tmp_path / "work"
    directory = placed(root, current(), base={"assistant": {}})

    result = run_jp("query", "--no-persist", *MODEL, "--id", ID, "x", cwd=root)

    assert (result.code, result.stdout) == (0, "You said: x\n")
    assert sorted(path.name for path in directory.iterdir()) == ["base_config.json", "events.json", "metadata.json"]


def test_a_nonce_is_printed_from_when_there_is_one(tmp_path: Path) -> None:
    root = tmp_path / "work"
    placed(root, current(), base={"assistant": {}})

    def header(*arguments: str) -> dict[str, Any]:
        return json.loads(run_jp(*arguments, "-F", "json", cwd=root).stdout.partition("\n")[0])

    before = header("conversation", "print", ID)
    run_jp("query", *MODEL, "--id", ID, "x", cwd=root)
    after = header("conversation", "print", ID)

    assert (before["type"], "nonce" in before) == ("header", False)
    assert (len(after.pop("nonce")), after) == (16, before)


def test_what_the_original_archived_is_archived_until_it_is_brought_back(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    archive = root / ".jp/conversations/.archive"
    directory = write_original(archive / NAME, current(), base={"assistant": {}})
    write_original(archive / "notes", [])
    before = tree(root)

    listed = run_jp("conversation", "ls", cwd=root)
    put_away = run_jp("conversation", "ls", "--archived", "-F", "json", cwd=root)
    shown = json.loads(run_jp("conversation", "show", ID, "-F", "json", cwd=root).stdout)
    printed = run_jp("conversation", "print", ID, cwd=root)
    path = run_jp("conversation", "path", ID, cwd=root)
    again = run_jp("conversation", "archive", ID, cwd=root)
    continued = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)
    untouched = tree(root) == before
    copied = run_jp("conversation", "fork", ID, cwd=root)
    back = run_jp("conversation", "unarchive", "a title", cwd=root)
    asked = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)

    assert listed == (0, "", "note: there are no such conversations here\n")
    (found,) = json.loads(put_away.stdout)["conversations"]
    assert (found["id"], found["archived_at"]) == (ID, "2025-12-20T11:33:49.000Z")
    assert shown["archived_at"] == found["archived_at"]
    assert (printed.code, "What is in a.txt?" in printed.stdout) == (0, True)
    assert path.stdout == f"{directory}\n"
    assert (again.code, copied.code, untouched) == (0, 0, True)
    check_failure(continued, 2, f"conversation '{ID}' is archived", f"jp conversation unarchive {ID}")
    assert back == (0, f"unarchived {ID} (A title)\n", "")
    assert not directory.exists()
    assert (root / ".jp/conversations" / NAME / "events.json").is_file()
    assert (asked.code, asked.stdout) == (0, "You said: more\n")
    assert json.loads(run_jp("conversation", "ls", "--archived", "-F", "json", cwd=root).stdout)["conversations"] == []


def test_an_archived_one_stays_archived_where_it_is_moved_to_the_users_own_data(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    write_original(root / ".jp/conversations/.archive" / NAME, current(), base={"assistant": {}})

    moved = run_jp("conversation", "edit", ID, "--local", cwd=root)
    path = run_jp("conversation", "path", ID, cwd=root)
    listed = json.loads(run_jp("conversation", "ls", "--archived", "-F", "json", cwd=root).stdout)["conversations"]

    assert moved.code == 0
    assert path.stdout.endswith(f"/conversations/.archive/{NAME}\n")
    assert str(root) not in path.stdout
    assert [(found["id"], found["local"]) for found in listed] == [(ID, True)]


def result_of(*arguments: str, cwd: Path) -> dict[str, Any]:
    result = run_jp("conversation", "import", *arguments, "-F", "json", cwd=cwd)
    assert (result.code, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


def test_conversations_from_elsewhere_come_in_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    there, here = tmp_path / "there", make_workspace(tmp_path / "here")
    placed(there, current())
    write_original(there / ".jp/conversations/.archive/17662304280-old", [event("turn_start")], labels={"a": "b"})
    (there / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "--title", "Own", "-a", "big.txt", "hello", cwd=there)
    before = tree(there)

    imported = result_of(str(there), cwd=here)["imported"]
    own = next(found for found in imported if found["title"] == "Own")
    told = run_jp("conversation", "print", own["id"], "-F", "json", cwd=here)

    assert sorted(found["title"] for found in imported) == ["A title", "A title", "Own"]
    assert all(found["id"] == found["original_id"] for found in imported)
    assert all(Path(found["path"]).is_relative_to(here) for found in imported)
    assert tree(there) == before
    assert "line\\n" * 2000 in told.stdout
    ids = {found["id"] for found in imported}
    listed = json.loads(run_jp("conversation", "ls", "-F", "json", cwd=here).stdout)["conversations"]
    assert {found["id"] for found in listed} >= ids - {"jp-c17662304280"}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "here")


def test_importing_again_is_refused_unless_there_is_something_new(tmp_path: Path, here: Path) -> None:
    source = placed(tmp_path / "there", current())
    first = run_jp("conversation", "import", str(source), cwd=here)
    run_jp("workspace", "trust", "--yes", "--id", ID, cwd=here)
    run_jp("query", *MODEL, "--id", ID, "more", cwd=here)

    again = run_jp("conversation", "import", str(source), cwd=here)
    shutil.rmtree(source)
    write_original(source, [*current(), event("turn_start")], base=BASE)
    grown = run_jp("conversation", "import", str(source), cwd=here)
    both = run_jp("conversation", "import", str(source), str(source.parent), cwd=here)

    assert first == (0, f"imported {ID}  A title\n", "")
    check_failure(again, 2, f"{str(source)!r} is here already, as {ID}", "jp conversation fork")
    assert grown == (0, f"imported jp-c17662304291  A title (another conversation has the id {ID})\n", "")
    check_failure(both, 2, "is here already, as jp-c17662304291")


def test_what_is_here_already_is_skipped_with_a_word(tmp_path: Path, here: Path) -> None:
    source = placed(tmp_path / "there", current())
    run_jp("conversation", "import", str(source), cwd=here)
    write_original(source.parent / "17662304299-other", [event("turn_start")], title="Other")

    result = run_jp("conversation", "import", str(tmp_path / "there"), cwd=here)
    nothing = run_jp("conversation", "import", str(tmp_path / "there"), cwd=here)

    assert result == (0, "imported jp-c17662304299  Other\n", f"note: {str(source)!r} is here already, as {ID}\n")
    check_failure(nothing, 2, "all 2 conversations are here already")


def test_a_conversation_that_is_here_by_itself_is_not_imported(tmp_path: Path) -> None:
    source = placed(tmp_path / "work", current())

    check_failure(run_jp("conversation", "import", str(source), cwd=tmp_path / "work"), 2, "is here already")


def test_a_directory_of_another_name_is_imported_under_the_date_of_its_conversation(tmp_path: Path, here: Path) -> None:
    source = write_original(tmp_path / "backup of jp", current()[:1])

    first = run_jp("conversation", "import", str(source), cwd=here)
    again = run_jp("conversation", "import", str(source), cwd=here)

    assert first == (0, "imported jp-c17662303810  A title\n", "")
    check_failure(again, 2, "is here already")
    assert [path.name for path in (here / ".jp/conversations").iterdir()] == ["17662303810-backup-of-jp"]


def test_metadata_comes_along_but_for_the_date_of_expiry(tmp_path: Path, here: Path) -> None:
    kept: Event = {"labels": {"a": "b"}, "pinned_at": "2025-12-20 11:33:49.0", "odd": [1]}
    write_original(tmp_path / "x" / NAME, current(), expires_at="2025-12-21 00:00:00.0", **kept)

    run_jp("conversation", "import", str(tmp_path / "x" / NAME), cwd=here)

    stored = json.loads((here / ".jp/conversations" / NAME / "metadata.json").read_bytes())
    assert stored.pop("imported_at")
    assert stored == {
        "title": "A title",
        "last_activated_at": "2025-12-20T11:33:49.000000Z",
        "labels": {"a": "b"},
        "pinned_at": "2025-12-20T11:33:49.000000Z",
        "odd": [1],
    }


def test_a_failed_import_leaves_nothing(tmp_path: Path, here: Path) -> None:
    there = tmp_path / "there"
    placed(there, current())
    run_jp("query", "--title", "Own", "x" * 10, cwd=there)
    broken = write_original(there / ".jp/conversations/17662304299-broken", []) / "events.json"
    broken.write_text("[", encoding="utf-8")
    malformed = run_jp("conversation", "import", str(there), cwd=here)
    shutil.rmtree(broken.parent)
    (there / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "--new", "--title", "Big", "-a", "big.txt", "y", cwd=there)
    shutil.rmtree(there / ".jp/blobs")
    missing = run_jp("conversation", "import", str(there), cwd=here)

    check_failure(malformed, 1, repr(str(broken)))
    check_failure(missing, 1, "is missing")
    assert not (here / ".jp/conversations").exists() or list((here / ".jp/conversations").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "an empty path"),
        ("none", "does not exist"),
        ("file", "is no transcript that jp knows"),
        (".", "holds no conversation"),
    ],
)
def test_what_cannot_be_imported_is_refused(here: Path, path: str, words: str) -> None:
    (here / "file").write_text("x", encoding="utf-8")

    check_failure(run_jp("conversation", "import", path, cwd=here), 2, words)


def test_importing_without_persistence_makes_no_sense(here: Path) -> None:
    check_failure(run_jp("--no-persist", "conversation", "import", ".", cwd=here), 2, "--no-persist")


def test_reasoning_that_nobody_signed_is_named_and_sent_to_servers_that_take_it_as_text(tmp_path: Path) -> None:
    root = tmp_path / "work"
    started, asked, *others = current()
    thoughts = [event("chat_response", reasoning=f"thought {number}") for number in range(2)]
    placed(root, [started, asked, *thoughts, *others])
    server = 'providers.llm.mine:={"base_url": "http://127.0.0.1:9/v1", "return_reasoning": "text"}'

    as_text = run_jp("query", "-m", "mine/x", "-c", server, "--id", ID, "--dry-run", "-F", "json", "more", cwd=root)
    told = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)
    again = run_jp("query", *MODEL, "--id", ID, "more", cwd=root)

    assert as_text.code == 0
    assert "thought 1" in as_text.stdout
    assert "note: 2 pieces of reasoning that its model did not sign: sent, as any foreign reasoning" in told.stderr
    assert "did not sign" not in again.stderr

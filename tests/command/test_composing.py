"""Queries that are more than typed words, where no terminal is needed: replays, templates, files, quotes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doubles import kinds
from forked import prepare, run_jp
from jp.app.query.earlier_turns import effective_turns, request_of
from jp.conversation.entries import ChatRequest, Revert, TurnStart
from stage import ECHO, copied, logs, make_workspace, only_log

REFUSING = """
[[reply]]
error = { kind = "invalid_request" }
"""

HINT = 'hint: type one, as in `jp query "why does this fail?"`, or pipe it in'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    prepare(("query", "one"), ("query", "--id", ".", "two"), cwd=root)
    return root


@pytest.fixture
def asked(prepared: Path, tmp_path: Path) -> Path:
    """A workspace with a conversation: `one`, and `two`."""
    return copied(prepared, tmp_path / "work")


def requests(root: Path) -> list[ChatRequest]:
    return [entry for entry in only_log(root) if isinstance(entry, ChatRequest)]


def standing(root: Path) -> list[str]:
    """What is asked in the turns that were not undone."""
    found = map(request_of, effective_turns(only_log(root)))
    return [request.content for request in found if request is not None]


def test_a_replay_undoes_the_last_turn_with_its_new_request(asked: Path) -> None:
    assert run_jp("query", "--id", ".", "--replay", cwd=asked) == (0, "You said: two\n", "")

    entries = only_log(asked)
    starts = [entry.id for entry in entries if isinstance(entry, TurnStart)]
    assert [entry.entries for entry in entries if isinstance(entry, Revert)] == [(starts[1],)]
    assert kinds(entries)[-5:] == ["turn_start", "chat_request", "revert", "chat_response", "cycle_end"]
    assert standing(asked) == ["one", "two"]


def test_every_entry_of_a_replay_is_a_line_in_the_order_of_the_log(asked: Path) -> None:
    before = len(only_log(asked))

    result = run_jp("query", "--id", ".", "--replay", "--format", "json", cwd=asked)

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    header, *written = [line["id"] for line in lines]
    assert written == [entry.id for entry in only_log(asked)[before:]]
    assert header == only_log(asked)[0].id
    assert [line["type"] for line in lines[1:4]] == ["turn_start", "chat_request", "revert"]


def test_words_and_what_is_piped_in_are_added_to_a_replay(asked: Path) -> None:
    result = run_jp("query", "--id", ".", "--replay", "and", "more", cwd=asked, stdin="piped\n")

    assert result.stdout == "You said: two\n\nand more\n\npiped\n"
    assert standing(asked) == ["one", "two\n\nand more\n\npiped"]


def test_the_snapshots_of_a_replayed_turn_come_along_and_are_not_read_again(root: Path) -> None:
    file = root / "a.txt"
    file.write_text("first " * 1000, encoding="utf-8")
    run_jp("query", "--attach", "a.txt", "look", cwd=root)
    file.write_text("second", encoding="utf-8")
    (root / "b.txt").write_text("b", encoding="utf-8")

    run_jp("query", "--id", ".", "--replay", cwd=root)
    file.unlink()
    run_jp("query", "--id", ".", "--replay", "--attach", "b.txt", cwd=root)

    first, second, third = requests(root)
    assert second.resources == first.resources
    assert second.attachments == first.attachments == ("file:a.txt",)
    assert third.resources[:1] == first.resources
    assert [resource.name for resource in third.resources] == ["a.txt", "b.txt"]
    assert third.attachments == ("file:a.txt", "file:b.txt")


def test_what_is_attached_to_a_replay_is_read_again(root: Path) -> None:
    file = root / "a.txt"
    file.write_text("first", encoding="utf-8")
    run_jp("query", "--attach", "a.txt", "look", cwd=root)
    file.write_text("second", encoding="utf-8")

    run_jp("query", "--id", ".", "--replay", "--attach", "a.txt", cwd=root)

    assert [[resource.text for resource in request.resources] for request in requests(root)] == [["first"], ["second"]]
    assert requests(root)[1].attachments == ("file:a.txt",)


def test_a_dry_replay_shows_the_request_and_writes_nothing(asked: Path) -> None:
    before = only_log(asked)

    result = run_jp("query", "--id", ".", "--replay", "--dry-run", "--format", "json", "x", cwd=asked)

    messages = json.loads(result.stdout)["request"]["body"]["messages"]
    texts = [block["text"] for message in messages for block in message["content"]]
    assert texts == ["one", "You said: one", "two\n\nx"]
    assert only_log(asked) == before


def test_a_turn_that_failed_is_asked_again(root: Path) -> None:
    scenario = root / ".jp" / "scenarios" / "test.toml"
    scenario.write_text(REFUSING, encoding="utf-8")
    assert run_jp("query", "one", cwd=root).code == 5
    scenario.write_text(ECHO, encoding="utf-8")

    assert run_jp("query", "--id", ".", "--replay", cwd=root) == (0, "You said: one\n", "")
    assert standing(root) == ["one"]


def test_a_replay_asks_what_the_user_asked_and_undoes_corrections_too(root: Path) -> None:
    assert run_jp("query", "--schema", "a int", "give a number", cwd=root).code == 9
    assert len(standing(root)) == 2

    assert run_jp("query", "--id", ".", "--replay", cwd=root).code == 9

    assert standing(root)[0] == "give a number"
    assert len(standing(root)) == 2
    assert [request.schema is None for request in requests(root)] == [False] * 4


def test_a_replay_can_be_replayed(asked: Path) -> None:
    for _ in range(2):
        assert run_jp("query", "--id", ".", "--replay", cwd=asked).code == 0

    assert standing(asked) == ["one", "two"]
    assert len(requests(asked)) == 4


def test_a_replay_in_a_fork_leaves_its_source_alone(asked: Path) -> None:
    (source,) = logs(asked)
    before = source.read_bytes()

    result = run_jp("query", "--id", ".", "--fork=0", "--replay", "again", cwd=asked)

    assert result.stdout == "You said: one\n\nagain\n"
    assert source.read_bytes() == before
    assert len(logs(asked)) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--replay", "--new"], 2, "error: --replay and --new exclude each other"),
        (["--quote", "--new", "x"], 2, "error: --quote and --new exclude each other"),
        (["--edit", "--no-edit", "x"], 2, "error: --edit and --no-edit exclude each other"),
        (["--template", "--quote", "x"], 2, "error: --template would read what was said before as a template"),
        (["-%e", "--replay"], 2, "error: --template would read what was said before as a template"),
        (["--edit", "x"], 2, "error: --edit needs a terminal for the editor\nhint: run it at a terminal"),
        (["--quote", "x"], 2, "error: --quote needs a terminal for the editor\nhint: run it at a terminal, in the"),
        (["--replay"], 2, "error: there is no conversation here whose last request could be asked again\nhint: name"),
        (["--quote", "-E", "x"], 2, "error: there is no answer that could be quoted\nhint: name another"),
        (["-E"], 2, f"error: there is no query\n{HINT}; `--replay` asks the last request again\n"),
        (["-%", "{{ '' }}"], 2, "error: the template renders to nothing\n"),
        (["-%", "a {{ b }}"], 2, "error: the template cannot be rendered, line 1 ('a {{ b }}'): 'b' is undefined\n"),
    ],
)
def test_what_cannot_be_composed_is_refused_and_nothing_is_written(
    arguments: list[str], code: int, said: str, root: Path
) -> None:
    result = run_jp("query", *arguments, cwd=root)

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith(said), result.stderr
    assert logs(root) == []


def test_a_conversation_without_a_turn_has_nothing_to_replay(asked: Path) -> None:
    log = logs(asked)[0]
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])

    result = run_jp("query", "--id", ".", "--replay", cwd=asked)

    assert result == (
        2,
        "",
        'error: this conversation has no turn that could be asked again\nhint: ask something: `jp query "…"`\n',
    )


def test_the_last_answer_is_quoted_without_an_editor_where_that_is_forbidden(root: Path) -> None:
    run_jp("query", "one\n\ntwo", cwd=root)

    assert run_jp("query", "--id", ".", "--quote", "--no-edit", cwd=root).code == 2
    result = run_jp("query", "--id", ".", "--quote", "--no-edit", "really?", cwd=root)

    assert result == (0, "You said: > You said: one\n>\n> two\n\nreally?\n", "")


def test_a_template_is_rendered_and_what_is_piped_in_is_not(root: Path) -> None:
    config = root / ".jp" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + '[template.values]\nwho = "you"\n', encoding="utf-8")
    values = ("--cfg", 'template.values.ticket:={"id":7}')

    result = run_jp("query", "-%", *values, "ask {{ who }}\nof {{ ticket.id }}", cwd=root, stdin="raw {{ who }}\n")

    assert result == (0, "You said: ask you\nof 7\n\nraw {{ who }}\n", "")


def test_without_the_option_nothing_is_rendered(root: Path) -> None:
    assert run_jp("query", "a {{ b }}", cwd=root).stdout == "You said: a {{ b }}\n"


def test_a_word_stands_for_the_text_of_a_file(root: Path) -> None:
    (root / "prompt.md").write_text("# A prompt\n\nwith {{ x }}\n", encoding="utf-8")

    result = run_jp("query", "-%", "-ctemplate.values.x=1", "first", "@prompt.md", "then", "@@x", "@", "@ y", cwd=root)

    assert result == (0, "You said: first\n\n# A prompt\n\nwith 1\n\nthen @x @ @ y\n", "")


def test_a_file_that_is_missing_names_those_that_are_like_it(root: Path) -> None:
    (root / "prompt.md").write_text("x", encoding="utf-8")

    result = run_jp("query", "@promt.md", cwd=root)

    missing = "error: cannot read the file 'promt.md': No such file or directory\n"
    assert result == (2, "", missing + "hint: did you mean @prompt.md? @@promt.md is the word itself\n")
    assert logs(root) == []


def test_an_error_of_a_template_in_a_file_names_its_own_line(root: Path) -> None:
    (root / "tpl.md").write_text("fine\n{{ nosuch }}\n", encoding="utf-8")

    result = run_jp("query", "-%", "first", "@tpl.md", "then", cwd=root)

    assert result.stderr.startswith("error: the template cannot be rendered in 'tpl.md', line 2 ('{{ nosuch }}'): ")

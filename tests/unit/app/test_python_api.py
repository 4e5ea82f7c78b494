"""The snippets of `docs/python-api.md`, one after the other, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from jp.app.fork import ForkRequest, fork
from jp.app.management import EditRequest, activate, archive, delete, edit, list_conversations, unarchive
from jp.app.options import Options
from jp.app.query.arguments import QueryArguments
from jp.app.query.run import QueryReport, prepare, run
from jp.app.reports import usage_report
from jp.app.transcripts import read_turns, request_as_sent
from jp.errors import JpError, UsageError
from jp.remedies import ChangeConversation, Show, remedies_of

PAGE = Path(__file__).parents[3] / "docs" / "python-api.md"
SCENARIO = """
[[reply]]
when = { contains = "notes" }
calls = [{ name = "fs_list_files", arguments = {} }]
times = 1

[[reply]]
text = "A list of plants."
usage = { input = 100, output = 5 }
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("JP_SESSION", "GIT_INDEX_FILE", "GIT_EXEC_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "workspace"
    (root / ".jp" / "scenarios").mkdir(parents=True)
    (root / ".jp" / "scenarios" / "api.toml").write_text(SCENARIO, encoding="utf-8")
    (root / "notes.txt").write_text("Rose, thyme.\n" * 50, encoding="utf-8")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def page(workspace: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    names: dict[str, Any] = {"WORKSPACE": str(workspace)}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
    names["printed"] = capfd.readouterr()
    return names


def ask(options: Options, **fields: Any) -> QueryReport:
    async def asked() -> QueryReport:
        async with prepare(options, QueryArguments(**fields)) as prepared:
            return await run(prepared)

    return anyio.run(asked)


def test_a_question_is_answered_and_nothing_else_is_printed(page: dict[str, Any]) -> None:
    out, err = page["printed"]

    answer, size, remedies = out.splitlines()
    assert answer == "A list of plants."
    assert re.fullmatch(r"\d+ tokens", size)
    assert remedies.startswith("(SetSettings(assignments=('providers.llm.nobody.base_url=")
    assert err == ""


def test_a_conversation_goes_on_by_its_id_and_is_compacted(page: dict[str, Any], workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    first = ask(options, words=("the notes once more",), new=True, model="script/api", attach=("notes.txt",))

    assert anyio.run(page["go_on"], "and now?", str(workspace), first.conversation) == 5
    assert page["freed"](first.conversation, str(workspace)) > 0
    before = anyio.run(page["shorten"], first.conversation, str(workspace))
    assert before > 0
    assert page["freed"](first.conversation, str(workspace)) == 0


def test_a_fork_has_the_turns_that_were_asked_for_and_is_compacted(page: dict[str, Any], workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    first = ask(options, words=("the notes once more",), new=True, model="script/api", attach=("notes.txt",))
    ask(options, words=("and now?",), target=first.conversation)

    identity = anyio.run(page["other_way"], first.conversation, str(workspace))

    assert identity != first.conversation
    assert len(usage_report(options, identity).turns) == 1
    assert len(usage_report(options, first.conversation).turns) == 2


def test_a_fork_that_cannot_be_compacted_is_not_left_behind(workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    first = ask(options, words=("hi",), new=True, model="script/api")

    with pytest.raises(JpError, match="no-such-profile"):
        anyio.run(fork, options, first.conversation, ForkRequest(compact="no-such-profile"))

    assert len(list((workspace / ".jp" / "conversations").glob("*/events.jsonl"))) == 1


def test_conversations_are_imported_from_another_workspace(
    page: dict[str, Any], workspace: Path, tmp_path: Path
) -> None:
    first = ask(Options(workspace=str(workspace)), words=("hi",), new=True, model="script/api")
    other = tmp_path / "other"
    (other / ".jp").mkdir(parents=True)

    assert page["bring"](str(workspace), str(other))[-1:] != []
    assert usage_report(Options(workspace=str(other)), first.conversation).id == first.conversation
    with pytest.raises(JpError, match="here already"):
        page["bring"](str(workspace), str(other))


def test_reports_say_what_is_used(page: dict[str, Any], workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    first = ask(options, words=("the notes once more",), new=True, model="script/api", attach=("notes.txt",))

    context, output = page["used"](first.conversation, str(workspace))

    assert context > 100
    assert output == 5


def test_notices_are_heard_by_a_class_of_ones_own(page: dict[str, Any], workspace: Path) -> None:
    options = page["Spoken"](workspace=str(workspace))
    schema = '{"type": "object", "required": ["name"]}'

    report = ask(options, words=("who?",), new=True, model="script/api", schema=schema)

    assert report.structured is not None
    assert any("does not fit the schema" in text for text in page["heard"])


def test_what_is_missing_is_an_error_before_anything_is_written(workspace: Path) -> None:
    with pytest.raises(JpError, match=r"no-such-file"):
        ask(Options(workspace=str(workspace)), words=("hi",), new=True, model="script/api", attach=("no-such-file",))

    assert not list((workspace / ".jp").glob("conversations/*"))


def test_standard_input_is_left_alone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JpError, match="there is no query"):
        ask(Options(workspace=str(workspace)), new=True, model="script/api", no_edit=True)


def test_conversations_are_managed(page: dict[str, Any], workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    first = ask(options, words=("the notes",), new=True, model="script/api").conversation
    other = ask(options, words=("the notes",), new=True, model="script/api").conversation

    assert page["tidy_up"](first, str(workspace)) == ["Plants"]
    assert page["take_back"](first, str(workspace)) == ("turn 0",)
    listed = list_conversations(options)
    assert (listed.matching, listed.total) == (3, 3)
    (plants,) = [each for each in listed.conversations if each.id == first]
    assert (plants.pinned_at is None, plants.archived_at, dict(plants.labels)) == (False, None, {"area": "garden"})
    assert list_conversations(options, limit=1).conversations == (plants,)
    assert delete(options, [other], confirm=lambda found: [each.id for each in found] != [other]) == ()
    assert [each.id for each in delete(options, [other])] == [other]
    assert list_conversations(options).total == 2


def test_an_edit_says_what_was_and_what_is(workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    asked = ask(options, words=("the notes",), new=True, model="script/api").conversation
    edit(options, asked, EditRequest(labels=("a=1", "b")))

    report = edit(options, asked, EditRequest(removed_labels=("a",), labels=("c",), expires="1d"))

    assert (dict(report.before.labels), dict(report.after.labels)) == ({"a": "1", "b": ""}, {"b": "", "c": ""})
    assert report.before.expires_at is None
    assert report.after.expires_at is not None
    assert dict(edit(options, asked, EditRequest(clear_labels=True, expires="never")).after.labels) == {}
    with pytest.raises(UsageError, match="there is no label 'zz'") as caught:
        edit(options, asked, EditRequest(removed_labels=("zz",)))
    assert remedies_of(caught.value.hint) == (Show("labels"),)
    with pytest.raises(UsageError, match="expires cannot be 'soon'"):
        edit(options, asked, EditRequest(expires="soon"))


def test_a_conversation_is_activated_and_archiving_it_ends_that(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(workspace=str(workspace))
    asked = ask(options, words=("the notes",), new=True, model="script/api").conversation
    monkeypatch.setenv("JP_SESSION", "api")

    assert activate(options, asked).active
    assert [each.active for each in archive(options, [asked])] == [False]
    with pytest.raises(UsageError, match="is archived") as caught:
        activate(options, asked)
    assert remedies_of(caught.value.hint) == (ChangeConversation("unarchive", asked),)
    assert [each.archived_at for each in unarchive(options, [asked])] == [None]


def test_a_request_is_rebuilt_from_the_log(page: dict[str, Any], workspace: Path) -> None:
    options = Options(workspace=str(workspace))
    asked = ask(options, words=("the notes",), new=True, model="script/api").conversation

    entries, verified = page["last_request"](asked, str(workspace))
    assert (entries > 0, verified) == (True, True)
    with pytest.raises(UsageError, match="as_sent cannot be 'x'"):
        request_as_sent(options, asked, "x")
    assert read_turns(options, asked, turns="0").turns == {0}
    assert read_turns(options, asked).turns is None

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from jp.app.drafts import NotAskedError, drafts_directory, open_draft
from jp.app.query.arguments import QueryArguments
from jp.app.query.conversation import QueryContext
from jp.app.query.question import DraftKeeper
from jp.app.query.screen import NoScreen
from jp.app.settings import read_sources
from jp.cli.options import GlobalOptions
from jp.cli.terminal.wording import worded
from jp.errors import ExitCode, JpError
from jp.workspace.listing import Metadata
from jp.workspace.session import SessionKey
from workspaces import new_workspace

OPTIONS = GlobalOptions()
HERE = SessionKey(source="JP_SESSION", value="here")


class CappedError(JpError):
    exit_code = ExitCode.CAPPED


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueryContext:
    monkeypatch.setenv("JP_GLOBAL_CONFIG_DIR", str(tmp_path / "config"))
    workspace = new_workspace(tmp_path)
    assert workspace.root is not None
    return QueryContext(
        options=OPTIONS,
        arguments=QueryArguments(),
        screen=NoScreen(),
        workspace=workspace,
        session=workspace.session(HERE),
        root=workspace.root,
        sources=read_sources(GlobalOptions(), workspace),
    )


def keeper(place: QueryContext, *, options: GlobalOptions = OPTIONS) -> DraftKeeper:
    opened = open_draft(drafts_directory(place.workspace, "", persistent=True), [])
    opened.draft.write("text", "")
    return DraftKeeper(opened.draft, replace(place, options=options), None)


def kept(place: QueryContext) -> list[str]:
    """Where drafts are kept."""
    return [path.parent.parent.name for path in place.workspace.user_data.glob("**/query.md")]


def test_what_was_answered_is_kept_until_the_log_is_closed(place: QueryContext) -> None:
    with keeper(place) as held:
        held.is_needed = False
        assert kept(place) == ["new"]
    assert kept(place) == []


def test_a_log_that_cannot_be_closed_keeps_it(place: QueryContext, capsys: pytest.CaptureFixture[str]) -> None:
    held = keeper(place)
    held.is_needed = False
    with pytest.raises(OSError, match="disk"), held:
        raise OSError("disk")

    assert kept(place) == ["new"]
    assert capsys.readouterr().err.startswith("note: what you wrote is kept in '")


def test_an_answer_that_a_cap_has_cut_is_an_answer(place: QueryContext) -> None:
    with pytest.raises(CappedError), keeper(place):
        raise CappedError("capped")

    assert kept(place) == []


def test_what_nobody_was_asked_is_kept_and_said_by_the_error(
    place: QueryContext, capsys: pytest.CaptureFixture[str]
) -> None:
    error = NotAskedError("nothing was asked")
    held = keeper(place)
    held.explain(error)
    with pytest.raises(NotAskedError), held:
        raise error

    assert kept(place) == ["new"]
    assert worded(error.hint).endswith("; `jp query --edit` goes on with it")
    assert capsys.readouterr().err == ""


def test_a_draft_goes_with_its_conversation_and_comes_back_when_that_is_taken_back(
    place: QueryContext, capsys: pytest.CaptureFixture[str]
) -> None:
    info = place.workspace.create({}, Metadata())
    with keeper(place) as held:
        place.session.activate(info.id)
        held.follow()
        assert kept(place) == [info.id.digits]
        place.workspace.remove(info, None)

    assert kept(place) == ["new"]
    assert "`jp query --edit` goes on with it" in capsys.readouterr().err


def test_the_command_names_the_conversation_where_another_one_is_active(
    place: QueryContext, capsys: pytest.CaptureFixture[str]
) -> None:
    other, target = (place.workspace.create({}, Metadata()) for _ in range(2))
    place.session.activate(other.id)
    with keeper(place):
        pass
    assert "`jp query --new --edit` goes on with it" in capsys.readouterr().err

    opened = open_draft(drafts_directory(place.workspace, target.id.digits, persistent=True), ["text"])
    opened.draft.write("text", "")
    with DraftKeeper(opened.draft, place, target):
        pass
    assert f"`jp query --id {target.id} --edit` goes on with it" in capsys.readouterr().err


def test_nothing_is_kept_without_persistence(place: QueryContext, capsys: pytest.CaptureFixture[str]) -> None:
    with keeper(place, options=GlobalOptions(persist=False)) as held:
        held.follow()

    assert kept(place) == []
    assert capsys.readouterr().err == ""

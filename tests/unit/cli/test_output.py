from __future__ import annotations

import msgspec
import pytest

from jp.cli.options import GlobalOptions
from jp.cli.output import print_result
from jp.conversation.ids import ConversationId

TEXT = GlobalOptions()
JSON = GlobalOptions(format="json")


@pytest.mark.parametrize(("text", "printed"), [("a", "a\n"), ("a\n", "a\n"), ("", "")])
def test_a_result_is_text_that_ends_with_a_line_break(
    text: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(TEXT, text=text, value={})

    assert capsys.readouterr() == (printed, "")


def test_where_there_is_no_result_a_person_is_told_beside_it_and_a_program_gets_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result(GlobalOptions(format="text"), text="", value={"found": []}, nothing="nothing is there")
    assert capsys.readouterr() == ("", "note: nothing is there\n")

    print_result(GlobalOptions(format="json"), text="", value={"found": []}, nothing="nothing is there")
    assert capsys.readouterr() == ('{"schema":1,"found":[]}\n', "")


def test_a_result_is_one_json_value_with_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(JSON, text="prose", value={"names": ["\N{SNOWMAN}"]})

    out, err = capsys.readouterr()
    assert out == '{"schema":1,"names":["\N{SNOWMAN}"]}\n'
    assert err == ""


def test_an_id_is_text_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(JSON, text="", value={"id": ConversationId.parse("jp-c17800836875")})

    assert capsys.readouterr().out == '{"schema":1,"id":"jp-c17800836875"}\n'


def test_names_that_are_not_utf_8_are_printed_as_far_as_json_can(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(JSON, text="", value={"caf\udce9": ["caf\udce9", 1, ConversationId.parse("jp-c1")]})

    named = "caf\N{REPLACEMENT CHARACTER}"
    assert msgspec.json.decode(capsys.readouterr().out) == {"schema": 1, named: [named, 1, "jp-c1"]}


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError):
        print_result(JSON, text="", value={"id": object()})


def test_only_a_terminal_gets_text_without_what_would_steer_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(GlobalOptions(format="pretty"), text="a\x1b]0;title\x07b", value={})
    print_result(TEXT, text="a\x1b[1mb", value={})

    assert capsys.readouterr().out == "ab\na\x1b[1mb\n"


def test_notices_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    TEXT.notice("by the way")
    JSON.notice("by the way")

    assert capsys.readouterr() == ("", 'note: by the way\n{"schema":1,"note":"by the way"}\n')


def test_quiet_means_no_notices(capsys: pytest.CaptureFixture[str]) -> None:
    GlobalOptions(quiet=True).notice("by the way")

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 0), (1, 1), (2, 2)])
def test_details_are_logged_by_level(verbosity: int, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    options = GlobalOptions(verbosity=verbosity)
    options.log("coarse")
    options.log("fine", level=2)

    assert capsys.readouterr().err.count("log: ") == lines


def test_json_on_stderr_stays_json_where_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A_TOKEN", "12345678")
    GlobalOptions(format="json", verbosity=1).log("uses 12345678")

    assert msgspec.json.decode(capsys.readouterr().err) == {"schema": 1, "log": "uses ***"}

from __future__ import annotations

import msgspec
import pytest

from jp import __version__
from jp.cli.app import run
from trial import ROOT


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(words, ROOT)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["-V"],
        ["-qV"],
        ["show", "--version"],
        ["show", "a", "-V"],
        ["--version", "nonsense"],
        ["wait", "-V"],
    ],
)
def test_the_version_is_answered_wherever_it_is_asked(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, *words) == (0, f"jp {__version__}\n", "")


@pytest.mark.parametrize("words", [["-V", "--format", "json"], ["show", "--format=json", "-V"]])
def test_the_version_is_json_where_that_is_wanted(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, *words)

    assert (code, err) == (0, "")
    assert msgspec.json.decode(out) == {"schema": 1, "version": __version__}


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["--help"], "Usage: jp [OPTIONS] COMMAND"),
        (["-h", "-q"], "Usage: jp [OPTIONS] COMMAND"),
        (["wait", "--help"], "Usage: jp wait COMMAND"),
        (["--help", "w"], "Usage: jp wait COMMAND"),
        (["show", "--help"], "Usage: jp show [OPTIONS] TARGET"),
        (["-h", "s"], "Usage: jp show [OPTIONS] TARGET"),
        (["show", "a", "--limit=x", "-h"], "Usage: jp show [OPTIONS] TARGET"),
        (["wait", "work", "-h"], "Usage: jp wait work [OPTIONS]"),
    ],
)
def test_help_is_about_what_was_named(words: list[str], first: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, *words)

    assert (code, err) == (0, "")
    assert out.startswith(first)


def test_help_after_a_double_dash_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "show", "--", "--help")

    assert code == 0
    assert "targets=['--help']" in out


@pytest.mark.parametrize("words", [[], ["-v"], ["wait"]])
def test_without_a_command_help_goes_to_stderr_as_a_failure(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = outcome(capsys, *words)

    assert (code, out) == (2, "")
    assert err.startswith("Usage: jp")


def test_without_a_command_json_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, "wait", "--format", "json")

    assert (code, out) == (2, "")
    assert msgspec.json.decode(err)["error"]["hint"] == "jp wait --help lists the commands"


def test_a_command_gets_its_parameters_and_the_options_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(
        capsys, "-c", "a=1", "s", "x", "-Fjson", "--from", "-3", "-vtn", "3", "y", "--cfg=b", "--label", "k=v", "-q"
    )

    assert (code, err) == (0, '{"schema":1,"log":"a detail"}\n')
    value = msgspec.json.decode(out)
    assert {name: value[name] for name in ("schema", "targets", "limit", "labels", "tmp", "from")} == {
        "schema": 1,
        "targets": ["x", "y"],
        "limit": 3,
        "labels": ["k=v"],
        "tmp": "1d",
        "from": "-3",
    }
    assert "config=('a=1', 'b')" in value["options"]
    assert "quiet=True, verbosity=1" in value["options"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sho"], "jp has no command 'sho'"),
        (["wait", "wrk"], "jp wait has no command 'wrk'"),
        (["show"], "missing argument 'TARGET'"),
        (["show", "a", "--limt", "3"], "jp show has no option '--limt'"),
        (["show", "a", "--format"], "--format needs a value"),
        (["show", "a", "--color", "red"], "--color cannot be 'red'"),
        (["style", "--mode", "c"], "invalid value for '--mode': 'c' is not one of 'a', 'b'"),
        (["style", "--raw=1"], "--raw takes no value, but got '1'"),
        (["-n", "show"], "jp has no option '-n'"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_understood_ends_with_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    code, out, err = outcome(capsys, *(("--format=json", *words) if as_json else words))

    assert (code, out) == (2, "")
    if as_json:
        error = msgspec.json.decode(err)["error"]
        assert (error["kind"], error["message"], error["exit_code"]) == ("usage", message, 2)
    else:
        assert err.startswith(f"error: {message}\nhint: ") or err == f"error: {message}\n"


def test_words_that_are_not_utf_8_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, "show", "caf\udce9")

    assert (code, out) == (2, "")
    assert err.startswith("error: this argument is not UTF-8: b'caf\\xe9'\n")


@pytest.mark.parametrize(("how", "code"), [("told", 4), ("defect", 1), ("group", 4), ("hang-up", 7), ("nothing", 12)])
def test_the_exit_code_is_the_commands(how: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "fail", how)[:2] == (code, "")


def test_a_defect_shows_where_it_happened_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Traceback" not in outcome(capsys, "fail", "defect", "-v")[2]
    assert "Traceback" in outcome(capsys, "fail", "defect", "-vv")[2]

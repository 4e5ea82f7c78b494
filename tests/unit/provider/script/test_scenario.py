from __future__ import annotations

from pathlib import Path

import pytest

from jp.errors import ConfigurationError
from jp.provider.script.provider import load_scenario
from jp.provider.script.scenario import MAX_BYTES, Call, Failure, Reply, Tokens, When, read_scenario

EVERYTHING = """
description = "All keys"

[[reply]]
when = { exact = "a", contains = "b", regex = "c", tool = "*", error = true, resource = "d", turn = 0, begun = true }
times = 2
reasoning = "thinking"
text = "saying"
calls = [{ name = "read", arguments = { path = "x" } }, { name = "write", arguments = "{" }]
usage = { input = 1, output = 2, cache_read = 3, cache_write = 4, reasoning = 5 }
chunk = 3
wait_ms = 4
delay_ms = 5
stop = "refused"
detail = "because"
error = { kind = "rate_limit", message = "slow down", after = 6, attempts = 7, retry_after = 1, status = 429 }
"""


def test_every_key_is_read() -> None:
    scenario = read_scenario(EVERYTHING, source="s")

    assert scenario.description == "All keys"
    assert scenario.reply == (
        Reply(
            when=When(exact="a", contains="b", regex="c", tool="*", error=True, resource="d", turn=0, begun=True),
            times=2,
            reasoning="thinking",
            text="saying",
            calls=(Call(name="read", arguments={"path": "x"}), Call(name="write", arguments="{")),
            usage=Tokens(input=1, output=2, cache_read=3, cache_write=4, reasoning=5),
            chunk=3,
            wait_ms=4,
            delay_ms=5,
            stop="refused",
            detail="because",
            error=Failure(kind="rate_limit", message="slow down", after=6, attempts=7, retry_after=1, status=429),
        ),
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("reply = 1\n[", "scenario 's.toml' is not TOML: ", "[[reply]]"),
        ("", "scenario 's.toml' has no reply", "give it at least one `[[reply]]`"),
        ("[[replies]]\ntext = 'x'", "scenario 's.toml': unknown key 'replies'", "did you mean 'reply'?"),
        ("[[reply]]\ntext = 'x'\n[[reply]]\ntxt = ''", "reply[1]: unknown key 'txt'", "did you mean 'text'?"),
        (
            "[[reply]]\ntext = ''\nwhen.contain = 'x'",
            "scenario 's.toml': reply[0].when: unknown key 'contain'",
            "did you mean 'contains'?",
        ),
        (
            "[[reply]]\ntext = ''\nwhen.zzz = 'x'",
            "reply[0].when: unknown key 'zzz'",
            "known are: exact, contains, regex, tool, error, resource, turn, begun",
        ),
        ("[[reply]]\ncalls = [{ nam = 'x' }]", "reply[0].calls[0]: unknown key 'nam'", "did you mean 'name'?"),
        ("[[reply]]\ncalls = [{}]", "reply[0].calls[0]: object missing required field name", ""),
        ("[[reply]]\nerror.kind = 'ratelimit'", "reply[0].error.kind: 'ratelimit' is no kind", "'rate_limit'?"),
        ("[[reply]]\nerror.knid = 'cut'", "reply[0].error: unknown key 'knid'", "did you mean 'kind'?"),
        ("[[reply]]\ntext = ''\nstop = 'halt'", "reply[0].stop: 'halt' is no stop", "known are: stop, tools"),
        ("[[reply]]\ntext = ''\nusage.inputs = 1", "reply[0].usage: unknown key 'inputs'", "did you mean 'input'?"),
        ("[[reply]]\ntext = 5", "reply[0].text: expected str | null, got int", ""),
        ("[[reply]]\ntext = ''\nchunk = 0", "reply[0].chunk: expected int >= 1", ""),
        ("[[reply]]\ntext = ''\nwhen.turn = -1", "reply[0].when.turn: expected int >= 0", ""),
        ("[[reply]]\nwhen.turn = 1", 'reply[0]: it says nothing; for an empty answer give `text = ""`', ""),
        ("[[reply]]\nstop = 'tools'", 'reply[0]: `stop = "tools"` needs `calls`', ""),
        ("[[reply]]\nstop = 'stop'\ncalls = [{ name = 'x' }]", "exclude each other", ""),
        ("[[reply]]\ntext = ''\nwhen.error = false", "reply[0]: `when.error` needs `when.tool`", ""),
        ("[[reply]]\ntext = ''\nwhen.regex = '('", "reply[0]: when.regex '(' is not a regular expression: ", ""),
    ],
)
def test_a_mistake_is_named_with_file_place_and_what_was_meant(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_scenario(text, source="s.toml")

    assert "scenario 's.toml'" in caught.value.message
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.hint


@pytest.mark.parametrize("reply", ["text = ''", "reasoning = 'x'", "error.kind = 'cut'", "stop = 'refused'"])
def test_a_reply_needs_one_thing_only(reply: str) -> None:
    assert len(read_scenario(f"[[reply]]\n{reply}", source="s").reply) == 1


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[[reply]]\ntext = 'grün'\n", encoding="utf-8")

    assert load_scenario(path).reply[0].text == "grün"


def test_a_missing_file_is_an_error_that_says_where_scenarios_lie(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_scenario(tmp_path / "s.toml")

    assert caught.value.message == f"there is no scenario {str(tmp_path / 's.toml')!r}"
    assert ".jp/scenarios/NAME.toml" in caught.value.hint


def test_a_directory_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file"):
        load_scenario(tmp_path)


def test_a_path_through_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigurationError, match=r"cannot read scenario .*: Not a directory"):
        load_scenario(tmp_path / "file" / "s.toml")


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"# caf\xe9")

    with pytest.raises(ConfigurationError, match="is not UTF-8: byte 5 does not fit"):
        load_scenario(tmp_path / "s.toml")


def test_a_huge_file_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "s.toml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)

    with pytest.raises(ConfigurationError, match="is larger than 4,194,304 bytes"):
        load_scenario(tmp_path / "s.toml")


def test_what_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"scenario 's' is nested too deeply"):
        read_scenario(f"x = {'[' * 300}{']' * 300}", source="s")

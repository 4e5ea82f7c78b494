"""`jp conversation context`: what fills a context, as people and as programs read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from forked import run_jp
from stage import copied, entries_of, logs, make_workspace

TEXT = """\
model      anthropic/claude-haiku-4-5
window     200,000 tokens, 64,000 of them for the answer
used       about {used:,} tokens, 1% of the window
           {reported:,} of them reported, the rest estimated
threshold  108,800 tokens: {left:,} to go
free       {free:,} tokens
reported   {reported:,} tokens went in with turn 0, cycle 0
           {estimated:,} were estimated: {ratio:.2f} reported for one estimated

"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of one turn, for what only looks at it."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    (root / "a.txt").write_text("some words of a file\n" * 400, encoding="utf-8")
    assert run_jp("query", "--new", "--attach", "a.txt", "hello", cwd=root).code == 0
    log = logs(root)[0]
    text = log.read_text(encoding="utf-8")
    asked = text.replace('"provider":"script","model":"test"', '"provider":"anthropic","model":"claude-haiku-4-5"')
    assert asked != text
    log.write_text(asked, encoding="utf-8")
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return copied(prepared, tmp_path / "work")


def context(root: Path, *more: str) -> str:
    shown = run_jp("conversation", "context", "last", *more, cwd=root)
    assert (shown.code, shown.stderr) == (0, "")
    return shown.stdout


def test_the_window_the_buckets_and_the_largest_items_are_shown(prepared: Path) -> None:
    before = logs(prepared)[0].read_bytes()
    value = json.loads(context(prepared, "--format", "json"))
    last = value["last_cycle"]
    told = {"reported": last["reported"], "estimated": last["estimated"], "ratio": last["ratio"]}
    counts = {"used": value["used"], "left": 108_800 - value["used"], "free": 136_000 - value["used"]}

    text = context(prepared)

    assert text.startswith(TEXT.format(**told, **counts))
    assert value["used"] == last["reported"] + last["added"]
    assert value["source"] == "provider_usage+estimate"
    assert value["schema"] == 1
    assert len(value["buckets"]) == 8
    assert sum(bucket["tokens"] for bucket in value["buckets"]) + value["other"] == value["used"]
    largest = value["largest"][0]
    assert (largest["kind"], largest["bytes"], largest["turn"]) == ("attachments", 8_400, 0)
    assert largest["source"].endswith("/a.txt")
    assert re.search(
        rf"^{largest['handle']} +{largest['tokens']:,} +0  attachments +file://.*/a\.txt$", text, re.MULTILINE
    )
    assert logs(prepared)[0].read_bytes() == before


@pytest.mark.parametrize("width", [80, 200])
def test_it_fits_the_terminal_with_and_without_colour(prepared: Path, width: int) -> None:
    plain = context(prepared, "--format", "pretty", "--width", str(width), "--color", "never")
    coloured = context(prepared, "--format", "pretty", "--width", str(width), "--color", "always")

    assert max(map(len, plain.splitlines())) <= width
    assert "\x1b[33m█" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_nothing_of_what_was_said_or_read_is_in_the_json(prepared: Path) -> None:
    value = context(prepared, "--format", "json")

    assert "hello" not in value
    assert "some words" not in value


def test_a_conversation_without_a_request_goes_by_the_settings(root: Path) -> None:
    log = logs(root)[0]
    kept = [entry for entry in entries_of(log) if type(entry).__name__ in {"Header", "TurnStart", "ChatRequest"}]
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(kept)]))

    value = json.loads(context(root, "--format", "json"))

    assert (value["model"], value["last_cycle"], value["source"]) == ("script/test", None, "local_estimate")


def test_what_does_not_exist_is_an_error(prepared: Path) -> None:
    shown = run_jp("conversation", "context", "jp-c0", cwd=prepared)

    assert (shown.code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("error: ")
    assert "hint: " in shown.stderr


def test_it_is_told_what_each_profile_would_free(root: Path) -> None:
    assert context(root).endswith(
        "profile  frees  of\n"
        "default      -  nothing to hide\n"
        "heavy        -  nothing to hide\n"
        "light        -  nothing to hide\n"
    )
    for _ in range(4):
        assert run_jp("query", "--id", "last", "--attach", "a.txt", "and now?", cwd=root).code == 0
        (root / "a.txt").write_text((root / "a.txt").read_text(encoding="utf-8") + "more\n", encoding="utf-8")

    told = json.loads(context(root, "--format", "json"))["profiles"]

    profiles = {each["profile"]: each for each in told}
    assert [each["freed"] for each in told] == sorted((each["freed"] for each in told), reverse=True)
    assert {name: (each["turns"], each["with_summary"]) for name, each in profiles.items()} == {
        "heavy": (2, True),
        "default": (2, False),
        "light": (0, False),
    }
    dry = run_jp("conversation", "compact", "last", "--dry-run", "--format", "json", cwd=root)
    assert profiles["default"]["freed"] > 0
    assert json.loads(dry.stdout)["frees"] is True


def test_the_threshold_is_that_of_automatic_compaction_where_it_is_on(prepared: Path) -> None:
    auto = "conversation.compaction.auto"

    told = context(prepared, "--format", "json", "--cfg", f"{auto}.enabled=true", "--cfg", f"{auto}.trigger_ratio=0.5")

    assert json.loads(told)["threshold"] == 68_000

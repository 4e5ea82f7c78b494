"""`jp conversation compact`, `undo` and `redo`: what is left out, what is told, and how it comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forked import prepare, run_jp
from jp.conversation.entries import Compaction, Revert
from running import home_beside
from stage import copied, entries_of, logs, make_workspace
from terminal import jp_at_terminal

SCENARIO = """
[[reply]]
when = { contains = "record of an earlier part of a conversation" }
text = '''{"goal": "count the bolts", "next_step": "order more", "requirements": ["count the bolts"]}'''

[[reply]]
when = { contains = "read" }
reasoning = "REASONING is long enough to be worth leaving out of what is sent again and again."
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
when = { tool = "fs_read_file" }
text = "There are many."

[[reply]]
text = "Noted."
"""

SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
[conversation.deduplication]
enabled = false
[conversation.compaction.profiles.slim]
tool_calls = "digest"
budget = "60%"
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work", SCENARIO, settings=SETTINGS)
    (root / "a.txt").write_text("a bolt, a nut and a washer\n" * 300, encoding="utf-8")
    first = ["query", "--approve-all", "--new", "read a.txt and count the bolts"]
    again = ["query", "--approve-all", "--id", "last", "read it again"]
    prepare(first, again, again, again, cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def ask(root: Path, text: str, *more: str) -> None:
    done = run_jp("query", "--approve-all", *more, text, cwd=root)
    assert done.code == 0, done.stderr


def compact(root: Path, *more: str, code: int = 0) -> str:
    done = run_jp("conversation", "compact", *more, "last", cwd=root)
    assert (done.code, done.stderr) == (code, ""), done
    return done.stdout


def as_json(root: Path, *more: str, code: int = 0) -> Any:
    return json.loads(compact(root, *more, "--format", "json", code=code))


def next_request(root: Path) -> str:
    done = run_jp("query", "--id", "last", "--dry-run", "--format", "json", "and now?", cwd=root)
    assert done.code == 0, done.stderr
    return json.dumps(json.loads(done.stdout)["request"]["body"])


def overlays(root: Path) -> list[Compaction]:
    return [entry for entry in entries_of(logs(root)[0]) if isinstance(entry, Compaction)]


def test_a_dry_run_tells_exactly_what_compacting_then_does_and_writes_nothing(root: Path) -> None:
    before = logs(root)[0].read_bytes()

    told = as_json(root, "--dry-run", "--keep", "1")

    assert logs(root)[0].read_bytes() == before
    done = as_json(root, "--keep", "1")
    assert done["tokens"] == {name: told["tokens"][name] for name in ("before", "after", "freed")}
    (overlay,) = overlays(root)
    assert (overlay.from_turn, overlay.to_turn, overlay.reasoning, overlay.source) == (0, 2, "strip", "manual")
    assert overlay.tool_overrides["fs_read_file"].request == "keep"
    assert as_json(root, "--dry-run", "--keep", "1", code=12)["tokens"]["before"] == told["tokens"]["after"]


def reported(root: Path, share: float) -> None:
    """Have the provider report for each request `share` of what it reported; 0 is nothing."""
    (log,) = logs(root)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        usage = line.get("usage", {})
        usage.update({name: int(count * share) for name, count in usage.items()})
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def test_tokens_are_told_as_the_model_counts_them_before_and_after(root: Path) -> None:
    learned = home_beside(root) / "data" / "cache" / "estimates.json"
    learned.parent.mkdir(parents=True, exist_ok=True)
    learned.write_text('{"version": 1, "models": {"script/test": {"ratio": 1.5, "answers": 9}}}', encoding="utf-8")
    measured = as_json(root, "--dry-run", "--keep", "1")["tokens"]

    reported(root, 1.25)
    told = as_json(root, "--dry-run", "--keep", "1")["tokens"]
    assert told["before"] == pytest.approx(measured["before"] * 1.25, rel=0.01)

    reported(root, 0)
    told = as_json(root, "--dry-run", "--keep", "1")["tokens"]
    done = as_json(root, "--keep", "1")["tokens"]
    learned.unlink()
    estimated = as_json(root, "--dry-run", "--keep", "0")["tokens"]["before"]

    assert done["after"] == round(estimated * 1.5)
    assert done == {name: told[name] for name in ("before", "after", "freed")}


def test_the_next_request_is_the_compacted_one_and_undo_brings_back_every_byte(root: Path) -> None:
    whole = next_request(root)
    assert whole.count("REASONING") == 4

    text = compact(root, "--keep", "1")

    assert text.startswith("compacted turns 0 to 2: reasoning + tools digested + superseded resources\ntokens: about ")
    assert "undo it with `jp conversation undo jp-c" in text
    shorter = next_request(root)
    assert shorter.count("REASONING") == 1
    assert shorter.count("[compacted] fs_read_file: success") == 3
    assert len(shorter) < len(whole)
    undone = run_jp("conversation", "undo", "last", cwd=root)
    assert (undone.code, undone.stdout) == (
        0,
        "undid the compaction of turns 0 to 2: reasoning + tools digested + superseded resources\n",
    )
    assert next_request(root) == whole
    assert run_jp("conversation", "redo", "last", cwd=root).code == 0
    assert next_request(root) == shorter
    assert isinstance(entries_of(logs(root)[0])[-1], Revert)


def test_policies_stand_in_place_of_a_profile_and_ranges_narrow_it(root: Path) -> None:
    assert "compacted turn 1: tool responses\n" in compact(root, "--tools=strip-responses", "--turn", "1")
    assert "compacted turns 0 to 2: reasoning\n" in compact(root, "--profile", "light", "--from", "0", "--to", "-1")
    assert "compacted turns 2 to 3: tools omitted\n" in compact(root, "-t=omit", "--from=last", "--keep", "0")
    shown = run_jp("conversation", "show", "last", cwd=root).stdout
    assert "compaction 1   turn 1: tool responses (" in shown
    assert "compaction 3   turns 2 to 3: tools omitted (" in shown


def test_a_reset_undoes_one_or_all_and_says_when_there_is_none(root: Path) -> None:
    whole = next_request(root)
    compact(root, "--turn", "0", "-r")
    compact(root, "--turn", "1", "-r")

    assert compact(root, "--reset=1").startswith("undid turn 0: reasoning\n")
    assert "there is 1" in run_jp("conversation", "compact", "--reset=2", "last", cwd=root).stderr
    assert compact(root, "--reset", "--dry-run") == "would undo turn 1: reasoning\n"
    assert compact(root, "--reset").startswith("undid turn 1: reasoning\n")
    assert compact(root, "--reset", code=12) == "there is no compaction to undo\n"
    assert next_request(root) == whole


def test_a_summary_stands_for_its_turns_and_names_what_can_be_recalled(root: Path) -> None:
    told = as_json(root, "--dry-run", "--profile", "heavy", "--keep", "1")["summary"]
    assert (told["turns"], told["model"]) == ({"first": 0, "last": 2}, "script/test")

    assert compact(root, "--profile", "heavy", "--keep", "1").startswith("compacted turns 0 to 2: summary\n")

    (overlay,) = overlays(root)
    assert overlay.summary is not None
    assert overlay.summary.model == "script/test"
    assert overlay.summary.usage is not None
    usage = run_jp("conversation", "usage", "last", cwd=root).stdout
    assert f"{overlay.summary.usage.input:,} tokens in, {overlay.summary.usage.output:,} out for summaries" in usage
    body = next_request(root)
    assert "count the bolts" in body
    assert "read a.txt and count the bolts" in body
    assert body.count("REASONING") == 1


def test_summaries_that_grow_read_what_is_new_and_ask_no_more_each_time(root: Path) -> None:
    compact(root, "--profile", "heavy", "--keep", "0")
    for number in range(9):
        (root / "a.txt").write_text(f"{number} bolts, a nut and a washer\n" * 300, encoding="utf-8")
        ask(root, f"read it as number {number}", "--id", "last")
        told = as_json(root, "--dry-run", "--profile", "heavy", "--keep", "0")["summary"]
        assert (told["turns"]["first"], told["calls"]) == (0, 1)
        compact(root, "--profile", "heavy", "--keep", "0")

    first, second, *grown = [one.summary for one in overlays(root) if one.summary is not None]
    assert first.usage is not None
    assert second.usage is not None
    for summary in grown:
        assert summary.usage is not None
        assert summary.usage.input < 1.1 * second.usage.input < first.usage.input
    assert "read it as number 8" in grown[-1].text
    assert "read a.txt and count the bolts" in grown[-1].text

    compact(root, "--reset")
    compact(root, "--profile", "heavy", "--keep", "0")
    whole = overlays(root)[-1].summary
    assert whole is not None
    assert whole.usage is not None
    assert whole.usage.input > 5 * second.usage.input


def test_a_proposal_is_applied_word_for_word_and_not_to_turns_that_changed(root: Path) -> None:
    before = logs(root)[0].read_bytes()
    proposed = as_json(root, "--propose", "--profile", "heavy", "--keep", "1")
    assert logs(root)[0].read_bytes() == before

    applied = as_json(root, "--apply", proposed["proposal"])

    assert applied["overlays"] == proposed["overlays"]
    again = run_jp("conversation", "compact", "--apply", proposed["proposal"], "last", cwd=root)
    assert (again.code, again.stderr.startswith("error: there is no proposal")) == (2, True)
    compact(root, "--reset")
    other = as_json(root, "--propose", "--keep", "1")["proposal"]
    log = logs(root)[0]
    log.write_text(log.read_text(encoding="utf-8").replace("There are many.", "There are few."), encoding="utf-8")
    stale = run_jp("conversation", "compact", "--apply", other, "last", cwd=root)
    assert (stale.code, "have changed since" in stale.stderr) == (1, True)


def test_a_proposal_is_stale_once_a_turn_or_a_summary_that_it_was_made_from_is_undone(root: Path) -> None:
    whole = as_json(root, "--propose", "--profile", "heavy", "--keep", "0")["proposal"]
    undo = run_jp("conversation", "undo", "last", cwd=root)
    assert undo.code == 0, undo.stderr

    stale = run_jp("conversation", "compact", "--apply", whole, "last", cwd=root)
    assert (stale.code, "have changed since" in stale.stderr) == (1, True)

    compact(root, "--profile", "heavy", "--turn", "0..1")
    grown = as_json(root, "--propose", "--profile", "heavy", "--keep", "0")["proposal"]
    compact(root, "--reset=1")
    stale = run_jp("conversation", "compact", "--apply", grown, "last", cwd=root)
    assert (stale.code, "have changed since" in stale.stderr) == (1, True)


def test_a_local_summary_takes_no_model_and_keeps_what_was_said_and_done(root: Path) -> None:
    preview = as_json(root, "--dry-run", "--profile", "heavy", "--local", "--keep", "1")
    assert preview["summary"] is None
    assert preview["tokens"]["freed"] > 1_000

    made = as_json(root, "--profile", "heavy", "--local", "--keep", "1")

    assert made["tokens"] == {key: preview["tokens"][key] for key in ("before", "after", "freed")}
    (overlay,) = overlays(root)
    assert overlay.summary is not None
    assert (overlay.summary.model, overlay.summary.usage) == (None, None)
    body = next_request(root)
    assert "read a.txt and count the bolts" in body
    assert "made locally" in body
    compact(root, "--reset")
    proposed = as_json(root, "--propose", "--summarize", "--local", "--keep", "1")
    assert as_json(root, "--apply", proposed["proposal"])["overlays"] == proposed["overlays"]


def test_an_answer_with_words_around_it_and_claims_of_its_own_makes_a_summary_of_what_the_user_said(root: Path) -> None:
    scenario = root / ".jp" / "scenarios" / "test.toml"
    text = scenario.read_text(encoding="utf-8")
    chatty = text.replace("text = '''{", "text = '''Here it is: {").replace(
        '["count the bolts"]}', '["Count  the bolts.", "never use Python"], "mood": "good"} Anything else?'
    )
    assert chatty != text
    scenario.write_text(chatty, encoding="utf-8")

    compact(root, "--profile", "heavy", "--keep", "1")

    (overlay,) = overlays(root)
    assert overlay.summary is not None
    assert overlay.summary.state["account"]["requirements"] == ["Count  the bolts."]
    assert "never use Python" not in overlay.summary.text


def test_an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_the_way_without_a_model_is_named(
    root: Path,
) -> None:
    scenario = root / ".jp" / "scenarios" / "test.toml"
    text = scenario.read_text(encoding="utf-8")
    scenario.write_text(text.replace('"goal": "count the bolts"', '"goal": "string"'), encoding="utf-8")

    done = run_jp("conversation", "compact", "--profile", "heavy", "--keep", "1", "last", cwd=root)

    assert done.code == 5
    assert "The answer repeats the schema" in done.stderr
    assert "--local" in done.stderr
    assert not overlays(root)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--local",), 2, "error: --local is for a summary, and none is asked for\n"),
        (("--local", "--model", "a/b"), 2, "error: --local and --model exclude each other\n"),
        (("--local", "--summarize=x"), 2, "error: --local cannot pay attention to anything\n"),
        (("--local", "--reset"), 2, "error: --reset takes no profile, policy or range\n"),
        (("--profile", "heavi"), 3, "error: there is no compaction profile 'heavi'\nhint: did you mean 'heavy'?\n"),
        (("--profile", "heavy", "-r"), 2, "error: --profile and options that say what to do exclude each other\n"),
        (("--turn", "1", "--keep", "1"), 2, "error: --turn and --keep exclude each other\n"),
        (("--to", "last"), 2, "error: --to cannot be 'last'\n"),
        (("--from", "5", "--to", "3"), 2, "error: the range is reversed: it begins with turn 5 and ends with turn 3\n"),
        (
            ("--turn", "4"),
            2,
            "error: --turn 4: there is no such turn\nhint: of this conversation's turns they are 0 to 3\n",
        ),
        (("--turn", "1..=2"), 2, "error: --turn cannot be '1..=2'\n"),
        (("--apply", "abc", "."), 2, "error: --apply takes one conversation\n"),
        (("--keep", "some"), 2, "error: --keep cannot be 'some'\n"),
        (("--model", "a/b"), 2, "error: --model is for a summary, and none is asked for\n"),
        (("--tools=all",), 2, "error: --tools cannot be 'all'\n"),
        (("--reset=0",), 2, "error: --reset=0: there is no such compaction (there are none)\n"),
        (("--dry-run", "--propose"), 2, "error: --dry-run and --propose exclude each other\n"),
        (("--reset", "-r"), 2, "error: --reset takes no profile, policy or range\n"),
        (("--apply", "abc"), 2, "error: there is no proposal 'abc'\n"),
        (("--no-persist",), 2, "error: "),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    root: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = run_jp("conversation", "compact", *words, "last", cwd=root)

    assert (done.code, done.stdout) == (code, "")
    assert done.stderr.startswith(message), done.stderr
    assert "hint: " in done.stderr


def test_several_conversations_are_compacted_at_once(root: Path) -> None:
    ask(root, "read something else", "--new")
    first, second = (log.parent.name.partition("-")[0] for log in logs(root))

    done = run_jp(
        "conversation", "compact", "--keep", "0", "--format", "json", f"jp-c{first}", f"jp-c{second}", cwd=root
    )

    value = json.loads(done.stdout)
    assert (done.code, [each["frees"] for each in value["conversations"]]) == (0, [True, True])


def test_several_are_looked_for_first_and_what_was_done_before_a_failure_is_told(root: Path) -> None:
    ask(root, "read something else", "--new")
    broken, whole = logs(root)
    names = [f"jp-c{log.parent.name.partition('-')[0]}" for log in (whole, broken)]
    before = whole.read_bytes()

    unknown = run_jp("conversation", "compact", "--keep", "0", names[0], "nowhere", cwd=root)
    assert (unknown.code, unknown.stdout, whole.read_bytes()) == (2, "", before)
    broken.write_bytes(b"{\n" + broken.read_bytes())
    done = run_jp("conversation", "compact", "--keep", "0", "-F", "json", *names, cwd=root)

    assert done.code == 1
    assert [(each["id"], each["frees"]) for each in json.loads(done.stdout)["conversations"]] == [(names[0], True)]
    assert json.loads(done.stderr)["error"]["exit_code"] == 1
    assert whole.read_bytes() != before


def test_turns_that_are_summarised_are_not_summarised_again(root: Path) -> None:
    compact(root, "--profile", "heavy", "--keep", "1")

    assert as_json(root, "--dry-run", "--profile", "heavy", "--keep", "1", code=12)["summary"] is None
    assert compact(root, "--turn", "1", "-s", code=12).startswith("nothing to compact in 4 turns")
    assert len(overlays(root)) == 1
    assert compact(root, "-s", "--keep", "0").startswith("compacted turns 0 to 3: summary\n")


def test_where_a_summary_saves_nothing_the_rest_is_done_and_tiny_turns_are_not_even_told(root: Path) -> None:
    (root / "a.txt").write_text("a bolt\n", encoding="utf-8")
    ask(root, f"read it again{', please' * 60}", "--id", "last")
    ask(root, "thanks", "--id", "last")

    done = run_jp("conversation", "compact", "-s", "-r", "--turn", "4", "last", cwd=root)

    assert (done.code, done.stdout.partition("\n")[0]) == (0, "compacted turn 4: reasoning")
    assert done.stderr == "note: the summary is not shorter than the turns that it replaces, so it is not used\n"
    assert as_json(root, "--dry-run", "-s", "--turn", "5", code=12)["summary"] is None


def test_a_model_that_gives_no_account_leaves_the_log_as_it_was(root: Path) -> None:
    scenario = root / ".jp" / "scenarios" / "test.toml"
    scenario.write_text(
        scenario.read_text(encoding="utf-8").replace('"goal": "count the bolts"', '"x": 1'), encoding="utf-8"
    )
    before = logs(root)[0].read_bytes()

    done = run_jp("conversation", "compact", "-s", "--keep", "0", "last", cwd=root)

    assert (done.code, done.stdout) == (5, "")
    assert "'script/test' gave no summary that can be used" in done.stderr
    assert logs(root)[0].read_bytes() == before


def test_undo_takes_turns_back_one_by_one_until_nothing_is_left(root: Path) -> None:
    said = [run_jp("conversation", "undo", "last", cwd=root) for _ in range(5)]

    assert [done.stdout for done in said] == [*(f"undid turn {number}\n" for number in (3, 2, 1, 0)), ""]
    assert (said[-1].code, said[-1].stderr) == (12, "note: there is nothing to undo\n")
    assert run_jp("conversation", "redo", "last", cwd=root).stdout == "brought back turn 0\n"
    ask(root, "something new", "--id", "last")
    redo = run_jp("conversation", "redo", "last", cwd=root)
    assert (redo.code, redo.stderr) == (12, "note: there is nothing to redo\n")


def test_the_compacted_view_is_printed_under_the_numbers_of_the_turns(root: Path) -> None:
    compact(root, "--turn", "0..1", "-s")
    compact(root, "--turn", "2", "--tools")

    printed = run_jp("conversation", "print", "last", "--compacted", cwd=root)
    lines = run_jp("conversation", "print", "last", "--compacted", "--format", "json", cwd=root)
    one = run_jp("conversation", "print", "last", "--compacted", "--turn", "1", "--hide-tools", cwd=root)

    headings = [line for line in printed.stdout.splitlines() if line.startswith("=== ")]
    assert headings == [
        "=== turns 0 to 1, user",
        "=== turns 0 to 1, assistant",
        "=== turn 2, user",
        "=== turn 2, assistant",
        "=== turn 3, user",
        "=== turn 3, assistant",
    ]
    assert "[compacted] fs_read_file: success" in printed.stdout
    assert printed.stdout.count("REASONING") == 2
    values = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [(value["type"], value["from_turn"], value["to_turn"]) for value in values][:3] == [
        ("user_text", 0, 1),
        ("assistant_text", 0, 1),
        ("user_text", 2, 2),
    ]
    assert one.stdout.startswith("=== turns 0 to 1, user\n")
    assert "turn 2" not in one.stdout
    refused = run_jp("conversation", "print", "last", "--compacted", "--as-sent", "0", cwd=root)
    assert (refused.code, refused.stderr.startswith("error: --compacted and --as-sent exclude")) == (2, True)


def test_a_query_compacts_first_and_then_asks_about_the_compacted_view(root: Path) -> None:
    dry = run_jp("query", "--id", "last", "--compact", "--dry-run", "-F", "json", "and now?", cwd=root)
    before = overlays(root)

    asked = run_jp("query", "--id", "last", "--compact=light", "and now?", cwd=root)

    assert (dry.code, before) == (0, [])
    assert json.dumps(json.loads(dry.stdout)["request"]["body"]).count("REASONING") == 3
    assert (asked.code, asked.stdout) == (0, "Noted.\n")
    assert "note: compacted turn 0: about " in asked.stderr
    assert "undo it with `jp conversation undo jp-c" in asked.stderr
    assert [(one.from_turn, one.to_turn, one.reasoning) for one in overlays(root)] == [(0, 0, "strip")]
    sent = run_jp("conversation", "print", "last", "--as-sent", "-1", cwd=root).stdout
    assert sent.count("REASONING") == 3
    unknown = run_jp("query", "--id", "last", "--compact=lite", "and now?", cwd=root)
    assert (unknown.code, unknown.stderr.startswith("error: there is no compaction profile 'lite'")) == (3, True)


def test_there_is_no_fork_where_there_is_no_such_profile(root: Path) -> None:
    forked = run_jp("conversation", "fork", "last", "--compact=nope", cwd=root)

    assert (forked.code, forked.stdout) == (3, "")
    assert forked.stderr == (
        "error: there is no compaction profile 'nope'\nhint: there are: default, heavy, light, slim\n"
    )
    assert len(logs(root)) == 1


def test_a_fork_is_compacted_and_its_source_is_not(root: Path) -> None:
    compact(root, "--turn", "0", "-r")

    forked = run_jp("conversation", "fork", "last", "--compact", cwd=root)

    assert forked.code == 0, forked.stderr
    assert "compacted turn 0: about " in forked.stderr
    first, second = ([one for one in entries_of(log) if isinstance(one, Compaction)] for log in logs(root))
    assert (len(first), len(second)) == (1, 2)


def test_a_profile_may_name_the_halves_of_calls_as_a_table(root: Path) -> None:
    tidy = 'conversation.compaction.profiles.tidy:={"tool_calls": {"policy": "digest", "response": true}}'

    compact(root, "--cfg", tidy, "--profile", "tidy", "--keep", "1")

    (overlay,) = overlays(root)
    assert overlay.tool_calls is not None
    assert (overlay.tool_calls.policy, overlay.tool_calls.request, overlay.tool_calls.response) == (
        "digest",
        False,
        True,
    )
    wrong = run_jp(
        "conversation", "compact", "--cfg", "conversation.compaction.profiles.tidy.tool_calls=halves", cwd=root
    )
    assert wrong.code in {2, 3}
    assert "'digest', 'strip'" in wrong.stderr


def test_the_preview_of_a_summary_of_few_turns_tells_about_what_it_saves(tmp_path: Path) -> None:
    words = "Many words about bolts, nuts and washers. " * 40
    root = make_workspace(tmp_path / "work", SCENARIO.replace('"Noted."', f'"{words}"'), settings=SETTINGS)
    ask(root, "hello", "--new")
    for text in ("and nuts?", "and washers?", "bye"):
        ask(root, text, "--id", "last")

    told = as_json(root, "--dry-run", "--profile", "heavy", "--keep", "1")["summary"]
    made = as_json(root, "--profile", "heavy", "--keep", "1")["tokens"]

    assert 1_000 < told["replaced"] < 2_000
    freed, predicted = made["freed"], told["replaced"] - told["expected"]
    assert freed > 700
    assert abs(predicted - freed) <= 0.25 * freed


def test_a_budget_leaves_out_what_it_takes_and_no_more(root: Path) -> None:
    before = as_json(root, "--dry-run", "--tools=digest", "--budget", "90%")["tokens"]
    half = as_json(root, "--dry-run", "--tools=digest", "--budget", "60%")
    tight = as_json(root, "--dry-run", "--tools=digest", "--budget", "30%")

    assert half["budget"] == int(before["before"] * 0.6)
    assert half["budget"] >= half["tokens"]["after"] > tight["tokens"]["after"]
    assert before["freed"] < half["tokens"]["freed"] < tight["tokens"]["freed"]


def test_the_oldest_result_gives_way_to_a_budget_and_the_newest_is_sent_whole(root: Path) -> None:
    compact(root, "--tools=digest", "--budget", "60%")

    (overlay,) = [one for one in overlays(root) if one.tool_calls is not None]
    sent = next_request(root)
    assert overlay.kept
    assert sent.count("[compacted] fs_read_file: success") >= 1
    assert "a bolt, a nut and a washer" in sent


def test_a_budget_of_tokens_that_is_reached_already_leaves_everything(root: Path) -> None:
    assert compact(root, "--budget", "100k", code=12).startswith("nothing to compact")
    assert overlays(root) == []


def test_a_budget_that_cannot_be_reached_says_how_far_it_gets_and_what_goes_further(root: Path) -> None:
    said = compact(root, "--budget", "10", "--keep", "0")

    assert "the budget of about 10 tokens cannot be reached in this way" in said
    assert "--local" in said


def test_a_profile_may_say_a_budget_and_an_option_wins(root: Path) -> None:
    share = as_json(root, "--dry-run", "--profile", "slim")
    tokens = as_json(root, "--dry-run", "--profile", "slim", "--budget", "1k")
    assert share["budget"] == int(share["tokens"]["before"] * 0.6)
    assert tokens["budget"] == 1000


@pytest.mark.parametrize("value", ["0", "0%", "140%", "much", "-3", "40x"])
def test_what_is_no_budget_is_told_what_one_is(root: Path, value: str) -> None:
    done = run_jp("conversation", "compact", f"--budget={value}", "last", cwd=root)

    assert done.code == 2
    assert f"--budget cannot be {value!r}" in done.stderr
    assert "such as 40k or 40000, or a share of what there is, such as 25%" in done.stderr


def test_a_budget_and_omitted_calls_exclude_each_other(root: Path) -> None:
    done = run_jp("conversation", "compact", "--budget=25%", "--tools=omit", "last", cwd=root)

    assert done.code == 2
    assert "exclude each other" in done.stderr


def test_a_budget_that_needs_it_has_the_fewest_of_the_oldest_turns_summarised_where_that_is_asked_for(
    root: Path,
) -> None:
    plain = as_json(root, "--dry-run", "--tools=digest", "--budget", "60%", "--local")
    assert [one for one in plain["overlays"] if "summary" in one] == []

    tight = as_json(root, "--dry-run", "--reasoning", "--budget", "60%", "--local")
    (told,) = [one for one in tight["overlays"] if "summary" in one]
    assert (told["from_turn"], told["to_turn"]) == (0, 1)
    assert tight["tokens"]["after"] <= tight["budget"]


def test_the_preview_adds_up_and_names_where_the_cache_breaks(root: Path) -> None:
    told = as_json(root, "--dry-run", "--keep", "1", "--tools=digest")
    shown = compact(root, "--dry-run", "--keep", "1", "--tools=digest")

    assert sum(item["tokens"] for item in told["largest"]) + told["rest"] == told["tokens"]["freed"]
    assert told["changed_from_turn"] == 0
    assert "\nthe cache is read again from turn 0 on\n" in shown
    rows = [line.split() for line in shown.partition("freed")[2].splitlines()[1:]]
    assert rows[-1][2:4] == ["the", "rest"]
    assert sum(int(row[0].replace(",", "")) for row in rows) == told["tokens"]["freed"]
    later = as_json(root, "--dry-run", "--tools=digest", "--turn", "2")
    assert later["changed_from_turn"] == 2


def test_what_frees_little_says_so_and_is_done_where_nobody_can_be_asked(root: Path) -> None:
    note = "it frees only about "
    assert note in compact(root, "--dry-run", "--reasoning", "--keep", "2")
    assert note not in compact(root, "--dry-run", "--tools=digest", "--keep", "2")

    assert note in compact(root, "--reasoning", "--keep", "2")

    assert len(overlays(root)) == 1


@pytest.mark.parametrize(("options", "answer", "written"), [((), "n\n", 0), ((), "y\n", 1), (("--yes",), "", 1)])
def test_what_frees_little_is_asked_about_at_a_terminal(
    root: Path, options: tuple[str, ...], answer: str, written: int
) -> None:
    command = ("conversation", "compact", "--reasoning", "--keep", "2", *options, "last")
    with jp_at_terminal(*command, cwd=root) as terminal:
        if answer:
            terminal.question(r"It frees only about [^?]*under 5 %\. Compact anyway\? \[y/N\]$")
            terminal.type(answer)
        assert terminal.finish() == (0 if written else 12)

    assert len(overlays(root)) == written

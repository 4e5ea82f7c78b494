"""Compaction without being asked: before a request comes near to the model's window, and never where it is off."""

from __future__ import annotations

import json
import re
from pathlib import Path

from forked import prepare, run_jp
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.planning import Planner
from jp.conversation.entries import AnyEntry, Compaction, CycleEnd
from stage import make_workspace, only_log

SCENARIO = """
[[reply]]
when = { contains = "record of an earlier part of a conversation" }
text = '''{"goal": "read a file", "next_step": "read on", "requirements": []}'''

[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
when = { contains = "dig" }
times = 9
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
when = { tool = "fs_read_file" }
text = "I have read it."

[[reply]]
text = "Noted."
"""

AUTO = "[conversation.compaction.auto]\nenabled = true\nmin_turns = 1\n"
SETTINGS = """
[providers.llm.script.models.test]
context_window = 12000
max_output = 2000
[conversation.compaction]
keep_last = 1
[conversation.deduplication]
enabled = false
[conversation.tools.fs_read_file]
enable = true
"""


def workspace(root: Path, settings: str = AUTO, *, scenario: str = SCENARIO) -> Path:
    work = make_workspace(root / "work", scenario, settings=f"{SETTINGS}\n{settings}")
    (work / "a.txt").write_text("a bolt, a nut and a washer\n" * 370, encoding="utf-8")
    return work


def ask_before(root: Path, first: str, *others: str) -> None:
    """Ask in a new conversation, without looking at what is said."""
    asking = ("query", "--approve-all")
    prepare((*asking, "--new", first), *((*asking, "--id", "last", text) for text in others), cwd=root)


def ask(root: Path, text: str, *more: str, code: int = 0) -> str:
    """What is said on stderr."""
    done = run_jp("query", "--approve-all", *more, text, cwd=root)
    assert done.code == code, done
    return done.stderr


def overlays(entries: list[AnyEntry]) -> list[Compaction]:
    return [entry for entry in entries if isinstance(entry, Compaction)]


def prompts(entries: list[AnyEntry]) -> list[int]:
    return [entry.usage.input for entry in entries if isinstance(entry, CycleEnd)]


def test_old_turns_make_room_before_the_window_is_full_and_it_is_said_how_to_undo_that(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    ask_before(root, "read it", "read it again")
    assert overlays(only_log(root)) == []

    said = [ask(root, "read it again", "--id", "last") for _ in range(2)]

    entries = only_log(root)
    made = overlays(entries)
    assert {overlay.source for overlay in made} == {"auto"}
    assert len(made) >= 1
    assert max(prompts(entries)) <= 10_000
    told = [text for text in said if "auto-compacted" in text]
    assert len(told) == len(made)
    assert "undo: `jp conversation compact --reset=1 jp-c" in told[0]
    shown = run_jp("conversation", "show", "last", cwd=root).stdout
    assert "automatic)" in shown


def test_without_it_there_is_never_an_overlay(tmp_path: Path) -> None:
    root = workspace(tmp_path, "")
    ask_before(root, "read it", *["read it again"] * 2)

    ask(root, "read it again", "--id", "last")

    entries = only_log(root)
    assert overlays(entries) == []
    assert max(prompts(entries)) > 10_000


def test_without_it_a_line_names_the_way_on_once_most_of_the_window_is_full(tmp_path: Path) -> None:
    root = workspace(tmp_path, "")
    full = "% of the window of 'script/test': `jp conversation compact --dry-run` shows what can be freed\n"

    said = [ask(root, "read it", *more) for more in (("--new",), *[("--id", "last")] * 3)]

    assert [full in text for text in said] == [False, False, False, True]
    filled = re.search(r"note: the conversation fills (\d+) %", said[-1])
    assert filled is not None
    usage = [entry.usage for entry in only_log(root) if isinstance(entry, CycleEnd)][-1]
    assert int(filled[1]) == (usage.input + usage.output) * 100 // 12_000
    quiet = run_jp("query", "--approve-all", "-q", "--id", "last", "thanks", cwd=root)
    assert "window" not in quiet.stderr
    compacted = run_jp("conversation", "compact", "--keep", "0", "last", cwd=root)
    assert compacted.code == 0
    assert full not in ask(root, "thanks", "--id", "last")


def test_old_results_of_a_long_turn_make_room_while_it_runs(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    configured(root, 12, window=12_000)

    ask(root, "read all of them", "--new")

    entries = only_log(root)
    made = overlays(entries)
    assert [overlay.to_cycle is not None for overlay in made] == [True] * len(made)
    assert made != []
    assert max(prompts(entries)) <= 12_000


FAILING = """
[[reply]]
when = { contains = "and then" }
error = { kind = "context_too_long", attempts = 1 }
text = "Now."
"""


def test_a_request_that_the_provider_finds_too_long_is_sent_once_more_after_a_compaction(tmp_path: Path) -> None:
    root = workspace(tmp_path, scenario=FAILING + SCENARIO)
    config = root / ".jp" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("= 12000", "= 900000"), encoding="utf-8")
    ask_before(root, "read it", "read it again")

    said = ask(root, "and then?", "--id", "last")

    assert "auto-compacted" in said
    entries = only_log(root)
    assert len(overlays(entries)) == 1
    assert [entry.error for entry in entries if isinstance(entry, CycleEnd)][-2:] == ["context_too_long", None]


def test_a_request_that_cannot_fit_is_not_sent(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / "big.txt").write_text("words and more words\n" * 4000, encoding="utf-8")

    done = run_jp("query", "--new", "--attach", "big.txt", "what is it?", "-F", "json", cwd=root)

    assert done.code == 7
    error = json.loads(done.stderr.splitlines()[-1])
    assert "takes 10,000" in error["error"]["message"]
    assert [entry for entry in only_log(root) if isinstance(entry, CycleEnd)] == []

    _, _, remedy = error["error"]["hint"].partition("`jp ")
    undone = run_jp(*remedy.partition("`")[0].split(), cwd=root)
    assert (undone.code, undone.stdout) == (0, "undid turn 0\n")
    note = "note: the next query attaches 'file:big.txt' again, unless `jp attachment rm` takes it out\n"
    assert undone.stderr.endswith(note)
    assert run_jp("attachment", "rm", "--id", "last", "big.txt", cwd=root).code == 0
    assert run_jp("query", "--id", "last", "what is it?", cwd=root).code == 0


def test_a_summary_is_written_where_the_profile_says_so_and_leaving_out_is_not_enough(tmp_path: Path) -> None:
    talk = SCENARIO.replace('text = "Noted."', f'text = "{"many words about bolts and nuts. " * 300}"')
    root = workspace(tmp_path, f'{AUTO}profile = "heavy"\n', scenario=talk)
    ask_before(root, "tell me of bolts", *["tell me more"] * 2)
    assert overlays(only_log(root)) == []

    for _ in range(3):
        ask(root, "tell me more", "--id", "last")

    made = overlays(only_log(root))
    assert any(overlay.summary is not None for overlay in made)
    assert max(prompts(only_log(root))) <= 10_000


def reading(root: Path, count: int) -> str:
    """A scenario in which a model reads `count` files of 5 KB, one after the other; `root` gets the files."""
    for number in range(count):
        (root / f"{number}.txt").write_text(f"file {number}; " + "many words of it\n" * 300, encoding="utf-8")
    begin = """
[[reply]]
when = { contains = "read all" }
calls = [{ name = "fs_read_file", arguments = { path = "0.txt" } }]
"""
    steps = [
        f"""
[[reply]]
when = {{ tool = "fs_read_file", contains = "file {number - 1}; " }}
calls = [{{ name = "fs_read_file", arguments = {{ path = "{number}.txt" }} }}]
"""
        for number in range(1, count)
    ]
    return "\n".join([begin, *steps, '[[reply]]\ntext = "All is read."\n'])


def configured(root: Path, count: int, *, window: int) -> None:
    scenario = reading(root, count)
    (root / ".jp" / "scenarios" / "test.toml").write_text(scenario, encoding="utf-8")
    config = root / ".jp" / "config.toml"
    settings = config.read_text(encoding="utf-8").replace("context_window = 12000", f"context_window = {window}")
    config.write_text(settings, encoding="utf-8")


def told_tokens(line: str) -> tuple[int, int]:
    """How many tokens there were before a compaction, and after it."""
    before, after = (int(found.replace(",", "")) for found in re.findall(r"[\d,]+(?= (?:tokens before|now))", line))
    return before, after


def test_a_turn_of_three_hundred_calls_fits_a_small_window_and_each_compaction_is_undone_by_what_is_told(
    tmp_path: Path,
) -> None:
    root = workspace(tmp_path)
    configured(root, 300, window=16_000)

    many = ("--cfg", "assistant.request.max_cycles=400")
    done = run_jp("query", "--approve-all", "--new", *many, "read all of them", cwd=root)

    told = [line for line in done.stderr.splitlines() if "auto-compacted" in line]
    assert (done.code, done.stdout) == (0, "All is read.\n"), told
    entries = only_log(root)
    sizes = prompts(entries)
    assert len(sizes) == 301
    assert max(sizes) <= 14_000
    made = overlays(entries)
    assert len(told) < len(sizes) / 3
    assert len(made) == len(told)
    freed = [before - after for before, after in map(told_tokens, told)]
    assert len(freed) >= 40
    assert min(freed[6:]) >= 0.9 * max(freed[6:])
    assert made[-1].summary is not None
    assert made[-1].to_cycle is not None
    body = run_jp("query", "--id", "last", "--dry-run", "-F", "json", "and?", cwd=root).stdout
    assert "read all of them" in body
    assert "file 299; " in body
    assert "file 2; " not in body
    undo = told[-1].partition("`jp ")[2].partition("`")[0].split()
    assert run_jp(*undo, cwd=root).code == 0
    assert run_jp("conversation", "show", "last", cwd=root).stdout.count("automatic)") == len(made) - 1


def test_a_compaction_goes_down_to_its_target_in_one_step(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    configured(root, 40, window=42_000)
    config = root / ".jp" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace(AUTO, f"{AUTO}target_ratio = 0.3\n"), encoding="utf-8")

    done = run_jp("query", "--approve-all", "--new", "read all of them", cwd=root)

    told = [line for line in done.stderr.splitlines() if "auto-compacted" in line]
    assert done.code == 0
    assert 1 <= len(told) <= 3
    assert all(before >= 30_000 and after <= 12_000 for before, after in map(told_tokens, told)), told


TOO_LONG = """
[[reply]]
when = { tool = "fs_read_file", contains = "file %d; " }
error = { kind = "context_too_long", attempts = %d }
calls = [{ name = "fs_read_file", arguments = { path = "%d.txt" } }]
"""


def test_a_request_that_stays_too_long_fails_after_two_compactions(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    configured(root, 12, window=900_000)
    scenario = root / ".jp" / "scenarios" / "test.toml"
    scenario.write_text(TOO_LONG % (9, 9, 10) + scenario.read_text(encoding="utf-8"), encoding="utf-8")

    ask(root, "read all of them", "--new", code=7)

    assert len(overlays(only_log(root))) == 2


def refused_when_long(root: Path, *, turns: int) -> str:
    """The hint of an overflow behind so many turns, where nothing is compacted automatically."""
    ask_before(root, "read it", *["read it again"] * (turns - 1))
    done = run_jp("query", "--approve-all", "--id", "last", "-F", "json", "and then?", cwd=root)
    assert done.code == 7
    return json.loads(done.stderr.splitlines()[-1])["error"]["hint"]


ALWAYS_FAILING = FAILING.replace(", attempts = 1", "")


def test_the_hint_of_an_overflow_names_the_compaction_that_helps_and_how_much(tmp_path: Path) -> None:
    root = workspace(tmp_path, "", scenario=ALWAYS_FAILING + SCENARIO)

    hint = refused_when_long(root, turns=3)

    command, share = re.findall(r"`jp (conversation compact [^`]*)` frees about (\d+) %", hint)[0]
    before = Planner(only_log(root), StatusLineFormatter(), {}, now=0).tokens
    assert run_jp(*command.split(), cwd=root).code == 0
    after = Planner(only_log(root), StatusLineFormatter(), {}, now=0).tokens
    assert abs((before - after) * 100 / before - int(share)) <= 1
    assert int(share) >= 80


def test_the_hint_of_an_overflow_names_a_summary_where_nothing_else_helps(tmp_path: Path) -> None:
    words = "many words about bolts and nuts. " * 300
    talk = SCENARIO.replace('text = "Noted."', f'text = "{words}"').replace("contains", "exact")
    root = workspace(tmp_path, "", scenario=ALWAYS_FAILING + talk)

    hint = refused_when_long(root, turns=4)

    assert "--profile heavy --local --keep 1" in hint


def test_the_hint_of_an_overflow_promises_nothing_where_nothing_helps(tmp_path: Path) -> None:
    root = workspace(tmp_path, "", scenario=ALWAYS_FAILING + SCENARIO)

    done = run_jp("query", "--new", "-F", "json", "and then?", cwd=root)

    hint = json.loads(done.stderr.splitlines()[-1])["error"]["hint"]
    assert hint.startswith("no compaction makes it much shorter: `jp conversation undo ")


def test_what_is_tried_before_enough_may_leave_holds_nothing_up(tmp_path: Path) -> None:
    words = "many words about bolts and nuts. " * 300
    root = workspace(tmp_path, AUTO.replace("min_turns = 1", 'min_turns = 6\nprofile = "heavy"\ntrigger_ratio = 0.2'))
    configured(root, 6, window=42_000)
    for number in range(6):
        (root / f"{number}.txt").write_text(f"file {number}; ", encoding="utf-8")
    scenario = root / ".jp" / "scenarios" / "test.toml"
    summaries = SCENARIO.split("[[reply]]")[1]
    replies = scenario.read_text(encoding="utf-8").replace("All is read.", words)
    scenario.write_text(f"[[reply]]{summaries}{replies}", encoding="utf-8")
    ask_before(root, "read all", *["read all"] * 4, "tell me more")
    assert overlays(only_log(root)) == []

    said = ask(root, "tell me more", "--id", "last")

    assert said.count("auto-compacted turns 0 to 4") == 1
    before, after = told_tokens(said)
    assert before > 12_000
    assert after <= 5_000

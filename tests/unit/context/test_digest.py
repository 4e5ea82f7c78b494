from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.anchors import latest_real_user
from jp.context.budget import Budget, estimate_messages
from jp.context.digest import Decision, Digester, Digests, Occasion, digest_in_time, digest_results, exact_start
from jp.context.digest_lines import ToolRule
from jp.context.groups import index_groups
from jp.context.markers import checksum_of
from jp.context.types import Call, Content, Digested, Facts, Message, Meta, StoredBlock, TextBlock, Transcript, texts_of

RULES = {
    "run": ToolRule(kind="terminal", subject="command"),
    "read_file": ToolRule(kind="read", subject="path"),
    "edit": ToolRule(kind="patch"),
}
LOG = (
    "collecting\n" + "ok test\n" * 200 + "error: no such column: total\n" + "ok test\n" * 200 + "1 failed, 400 passed\n"
)
SOURCE = "".join(f"def function_{number}():\n    return {number}\n\n" for number in range(60))


def turn(
    name: str, body: Content, known: Facts | None = None, *, call_id: str = "c", arguments: str = "{}"
) -> Transcript:
    """One call with its result."""
    call = Message(role="assistant", calls=(Call(id=call_id, name=name, arguments=arguments),))
    return (call, Message(role="tool", call_id=call_id, content=body, meta=Meta(facts=known)))


def read(path: str, body: str, lines: str = "", *, call_id: str = "c") -> Transcript:
    return turn("read_file", body, Facts(kind="read", path=path, lines=lines), call_id=call_id)


def digest(messages: Transcript, end: int | None = None, store: MemoryArtifacts | None = None) -> Digests:
    digester = Digester(store or MemoryArtifacts(), RULES)
    end = len(messages) if end is None else end
    return digest_results(messages, index_groups(messages), digester, between=(0, end))


def texts(messages: Transcript) -> list[str]:
    return ["".join(texts_of(row)) for row in messages if row.role == "tool"]


def rules_of(found: Digests) -> list[str]:
    return [action.rule for action in found.actions]


def test_duplicate_read_file_outputs_keep_only_the_newest_full_copy() -> None:
    messages = (*read("a.py", SOURCE, call_id="one"), *read("a.py", SOURCE, call_id="two"), *read("a.py", SOURCE))

    found = digest(messages, end=4)

    assert texts(found.messages).count(SOURCE) == 1
    assert texts(found.messages)[2] == SOURCE
    assert texts(found.messages)[0] == (
        f"[compacted] read_file: success; a.py; 180 lines, {len(SOURCE)} bytes; "
        f"same content as the result of call 2 (c), which stands in full; recall {checksum_of(SOURCE)[:8]}"
    )


def test_old_terminal_output_becomes_a_concise_digest() -> None:
    known = Facts(kind="terminal", exit_code=1, duration_ms=3_240)
    found = digest(turn("run", LOG, known, arguments='{"command": "pytest  -q\\n tests"}'))

    [text] = texts(found.messages)
    assert text == (
        f"[compacted] run: success; pytest -q tests; exit 1; took 3.2 s; 403 lines, {len(LOG)} bytes; "
        f"recall {checksum_of(LOG)[:8]}\n"
        "error: no such column: total\n"
        "1 failed, 400 passed"
    )


def test_recent_tail_output_remains_verbatim() -> None:
    old, recent = turn("run", LOG), turn("run", LOG + LOG)
    messages = (*old, *turn("run", SOURCE), *recent, *recent)

    end = exact_start(messages, index_groups(messages), tail_start=len(messages))
    found = digest(messages, end)

    assert end == 2
    assert found.messages[2:] == messages[2:]
    assert rules_of(found) == ["terminal"]


def test_sensitive_keys_and_values_are_redacted_before_digest_persistence() -> None:
    body = "error: x-api-key: hunter2-XYZ refused\n" * 40 + "https://u:hunter2-XYZ@host said no\n"
    known = Facts(kind="terminal", path="logs?token=hunter2-XYZ")
    arguments = '{"command": "PGPASSWORD=hunter2-XYZ psql", "n": 1}'

    found = digest(turn("run", body, known, arguments=arguments))

    [text] = texts(found.messages)
    assert "hunter2" not in text
    assert "hunter2" not in repr(found.actions)
    assert "PGPASSWORD=[redacted:password] psql" in text
    assert text.endswith("https://u:[redacted:password]@host said no")


def test_every_action_is_reported_and_the_row_says_what_was_done_to_it() -> None:
    store = MemoryArtifacts()
    found = digest(turn("run", LOG, call_id="x"), store=store)

    [action] = found.actions
    assert (action.position, action.ordinal, action.call_id, action.tool, action.rule) == (1, 0, "x", "run", "terminal")
    assert (action.sha256, action.original_bytes, action.original_lines) == (checksum_of(LOG), len(LOG), 403)
    assert action.replacement_bytes == len(texts(found.messages)[0])
    assert [store.recall(handle) for handle in action.handles] == [LOG]
    assert found.messages[1].meta.digested == Digested(
        sha256=checksum_of(LOG), original_bytes=len(LOG), rule="terminal"
    )
    assert msgspec.json.decode(msgspec.json.encode(action), type=type(action)) == action


def test_a_copy_that_is_referred_to_is_never_gone_itself() -> None:
    """A digest of the newest copy is what the others refer to, by a handle that recalls them all."""
    store = MemoryArtifacts()
    found = digest((*turn("run", LOG, call_id="one"), *turn("run", LOG, call_id="two")), store=store)

    first, second = texts(found.messages)
    assert rules_of(found) == ["duplicate", "terminal"]
    assert "same content as the result of call 1 (two), compacted too" in first
    assert {action.handles for action in found.actions} == {(checksum_of(LOG)[:8],)}
    assert store.recall(checksum_of(LOG)[:8]) == LOG
    assert "1 failed, 400 passed" in second


def test_duplicates_inside_the_exact_tail_stay() -> None:
    messages = (*turn("run", LOG), *turn("run", LOG))

    assert digest(messages, end=0).messages is messages


def test_small_duplicates_stay_because_a_reference_would_be_longer() -> None:
    messages = (*turn("run", "ok"), *turn("run", "ok"))

    assert digest(messages).messages is messages


def test_what_would_not_become_half_as_long_stays() -> None:
    body = "\n".join(f"FAILED {number} " + "x" * 190 for number in range(5))

    messages = turn("run", body)

    assert digest(messages).messages is messages


def test_from_eight_hundred_characters_on_a_result_is_worth_a_digest() -> None:
    short, long = turn("run", "ok\n" * 266 + "."), turn("run", "ok\n" * 266 + "..")

    assert len(short[1].content) == 799
    assert digest(short).messages is short
    assert rules_of(digest(long)) == ["terminal"]


def test_calls_are_counted_over_all_rounds() -> None:
    calls = tuple(Call(id=f"c{number}", name="run", arguments="{}") for number in range(3))
    batch = (Message(role="assistant", calls=calls), *(Message(role="tool", call_id=f"c{at}") for at in range(3)))
    messages = (*turn("run", LOG), *batch, *turn("run", LOG, call_id="last"))

    assert "the result of call 4 (last)" in texts(digest(messages, end=6).messages)[0]


def test_the_whole_checksum_tells_contents_apart_and_stands_in_the_report() -> None:
    [action] = digest(turn("run", LOG)).actions

    assert len(action.sha256) == 64


def test_a_result_that_reads_like_a_digest_is_digested_as_any_other() -> None:
    body = "[compacted] run: success; 9 bytes; recall 01234567\n" * 40

    assert rules_of(digest(turn("run", body))) == ["terminal"]


def test_error_lines_survive() -> None:
    [text] = texts(digest(turn("run", LOG)).messages)

    assert "\nerror: no such column: total\n" in text


def test_a_round_of_parallel_calls_is_exact_as_a_whole() -> None:
    calls = tuple(Call(id=f"c{number}", name="run", arguments="{}") for number in range(5))
    results = (Message(role="tool", call_id=call.id, content=LOG) for call in calls)
    messages = (*turn("run", LOG), Message(role="assistant", calls=calls), *results)

    assert exact_start(messages, index_groups(messages), len(messages), rounds=1) == 2
    assert digest(messages, end=2).messages[2:] == messages[2:]


def test_what_is_pending_verbatim_digested_or_the_error_of_the_last_round_stays() -> None:
    row = turn("run", LOG)
    verbatim = (row[0], replace(row[1], meta=Meta(verbatim=True)))
    digested = (row[0], replace(row[1], meta=Meta(digested=Digested(sha256="ab", original_bytes=9, rule="read"))))
    failed = (row[0], replace(row[1], is_error=True))
    pending = (replace(row[0], meta=Meta(pending=True)), row[1])

    for messages in ((*verbatim, *digested, *failed), pending):
        assert digest(messages).messages is messages
    assert rules_of(digest((*failed, *failed[:1], Message(role="tool", call_id="c", content="ok")))) == ["terminal"]


def test_arguments_are_left_to_the_pass_that_cuts_them() -> None:
    """Neither the newest call nor text that is no JSON is touched here."""
    messages = turn("run", LOG, arguments="not json " * 300)

    assert digest(messages).messages[0] is messages[0]


def test_a_read_of_fewer_lines_refers_to_one_of_more_that_stays() -> None:
    part = "".join(SOURCE.splitlines(keepends=True)[30:120])
    messages = (*read("a.py", part, "31-120"), *read("a.py", SOURCE, "1-180", call_id="whole"))

    found = digest(messages, end=2)

    assert rules_of(found) == ["contained"]
    assert "lines 31-120; " in texts(found.messages)[0]
    assert "part of the result of call 1 (whole), which stands in full" in texts(found.messages)[0]


def test_a_read_refers_to_one_of_more_lines_only_where_that_stays_and_comes_later() -> None:
    part = "".join(SOURCE.splitlines(keepends=True)[30:120])
    narrow, wide = read("a.py", part, "31-120"), read("a.py", SOURCE, "1-180")
    staying = (wide[0], replace(wide[1], meta=replace(wide[1].meta, verbatim=True)))

    assert rules_of(digest((*narrow, *wide))) == ["read", "read"]
    assert rules_of(digest((*staying, *narrow))) == ["read"]
    assert rules_of(digest((*narrow, *staying))) == ["contained"]


@pytest.mark.parametrize(
    ("path", "outer", "lines", "body"),
    [
        ("b.py", "1-180", "31-120", SOURCE),
        ("a.py", "40-180", "31-120", SOURCE),
        ("a.py", "1-180", "31-120", SOURCE.replace("return 20", "return 21")),
        ("a.py", "1-180", "", SOURCE),
        ("a.py", "all of it", "31-120", SOURCE),
    ],
)
def test_a_read_of_something_else_or_of_what_changed_is_digested_by_itself(
    path: str, outer: str, lines: str, body: str
) -> None:
    part = "".join(SOURCE.splitlines(keepends=True)[30:120])
    found = digest((*read("a.py", part, lines), *read(path, body, outer)), end=2)

    assert rules_of(found) == ["read"]


def test_a_read_of_the_whole_file_contains_any_part() -> None:
    part = "".join(SOURCE.splitlines(keepends=True)[30:120])

    assert rules_of(digest((*read("a.py", part, "31-120"), *read("a.py", SOURCE)), end=2)) == ["contained"]


def test_a_read_before_a_later_change_says_that_it_is_stale() -> None:
    change = turn("edit", "done", Facts(kind="patch", path="a.py"), call_id="fix")
    failed = (change[0], replace(change[1], is_error=True))
    other = turn("edit", "done", Facts(kind="patch", path="b.py"))
    source = read("a.py", SOURCE)

    assert "; stale: changed later by call 2 (fix); " in texts(digest((*source, *failed, *change)).messages)[0]
    for later in (failed, other, ()):
        assert "stale" not in texts(digest((*change, *source, *later)).messages)[1]


def test_blocks_are_recalled_one_by_one_and_stored_content_by_its_own_checksum() -> None:
    stored = StoredBlock(sha256="cd" * 32, size=90_000, mime_type="text/plain", chars=90_000, lines=1_200)
    picture = StoredBlock(sha256="ab" * 32, size=200_000, mime_type="image/png")
    known = Facts(kind="terminal", exit_code=139, first_error="segmentation fault")
    store = MemoryArtifacts()
    messages = (
        *turn("run", (TextBlock(text=LOG), TextBlock(text="end " * 300))),
        *turn("run", (stored,), known),
        *turn("view", (picture,)),
    )

    found = digest(messages, store=store)

    assert [len(action.handles) for action in found.actions] == [2, 1, 1]
    assert [store.recall(handle) for handle in found.actions[0].handles] == [LOG, "end " * 300]
    assert texts(found.messages)[1:] == [
        "[compacted] run: success; exit 139 (SIGSEGV); 1200 lines, 90000 bytes; recall cdcdcdcd\nsegmentation fault",
        "[compacted] view: success; 200000 bytes; recall abababab",
    ]


def test_a_result_without_a_call_of_its_own_is_left_to_the_sanitizer() -> None:
    messages = (Message(role="tool", call_id="x", content=LOG), *turn("run", "ok"), Message(role="tool", content=LOG))

    assert digest(messages).messages is messages


def test_a_transcript_without_a_user_gets_none() -> None:
    found = digest(turn("run", LOG))

    assert latest_real_user(found.messages) is None


BUDGET = Budget(window=40_000)


def in_time(messages: Transcript, store: MemoryArtifacts, **circumstances: int) -> tuple[Decision, Transcript]:
    digester = Digester(store, RULES)
    used = circumstances.pop("used", estimate_messages(messages))
    occasion = Occasion(budget=BUDGET, used=used, rearm_at=circumstances.pop("rearm_at", 0))
    found = digest_in_time(messages, index_groups(messages), digester, occasion, between=(0, len(messages) - 2))
    return found.decision, found.digests.messages


def test_one_large_batch_frees_much_at_once_and_then_there_is_rest() -> None:
    """What rewrote one more result with every call would write the provider's cache anew each time."""
    store = MemoryArtifacts()
    messages: Transcript = ()
    rewrites = 0
    rearm_at = 0
    for number in range(120):
        before, messages = messages, (*messages, *turn("run", f"{number}\n{LOG}"))
        decision, messages = in_time(messages, store, rearm_at=rearm_at)
        rearm_at = msgspec.json.decode(msgspec.json.encode(decision), type=Decision).rearm_at
        rewrites += messages[: len(before)] != before

    assert 2 <= rewrites <= 5
    assert estimate_messages(messages) < 40_000


def test_where_it_is_not_time_nothing_is_kept_and_nothing_changes() -> None:
    store = MemoryArtifacts()
    messages = (*turn("run", LOG), *turn("run", LOG))

    decision, after = in_time(messages, store, used=1_000)

    assert decision == Decision(run=False, verdict="below_threshold", rearm_at=0)
    assert after is messages
    assert store.kept == {}


def test_where_too_little_would_come_of_it_nothing_changes() -> None:
    store = MemoryArtifacts()
    incompressible = "".join(f"src/{number}/a.py\n" for number in range(40)) + "x" * 900
    messages = (*turn("run", LOG), *turn("run", incompressible))

    decision, after = in_time(messages, store, used=39_000)

    assert decision.verdict == "too_little"
    assert after is messages


def test_ten_thousand_messages_take_a_moment() -> None:
    class Store:
        def handle(self, sha256: str) -> str:
            return sha256[:16]

        def keep(self, content: str) -> str:
            return checksum_of(content)[:16]

        def recall(self, handle: str) -> str | None:
            return handle

    bodies = [*(f"{number}\n" + "line\n" * 200 for number in range(4)), *["ok"] * 96]
    rows = [turn("read_file", body, Facts(path="a.py")) for body in bodies]
    messages = tuple(row for number in range(5_000) for row in rows[number % 100])

    found = digest_results(messages, index_groups(messages), Digester(Store(), RULES), between=(0, len(messages)))

    assert len(found.actions) == 200

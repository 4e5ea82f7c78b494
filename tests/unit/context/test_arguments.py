from __future__ import annotations

import json

from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.groups import index_groups
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter
from jp.context.types import Call, Message, Meta, Transcript

NONCE = "5eed5eed"
SHORT = Call(id="a", name="fs_read_file", arguments='{"path":"a.py"}')
LONG = Call(id="b", name="fs_create_file", arguments='{"content": "' + "x" * 2_000 + '"}')
PLAIN = Call(id="c", name="run", arguments="echo " * 400)
ROUND = (
    Message(role="assistant", calls=(SHORT, LONG, PLAIN)),
    *(Message(role="tool", call_id=call_id, content="ok") for call_id in "abc"),
)
USER = Message(role="user", content="go on")


def shrink(messages: Transcript, start: int, end: int) -> tuple[Transcript, list[tuple[int, int]]]:
    result = shrink_old_arguments(
        messages, index_groups(messages), Cutter(NONCE, MemoryArtifacts()), between=(start, end)
    )
    return result.messages, [(cut.position, cut.call) for cut in result.cuts]


def test_long_json_arguments_of_old_calls_are_cut_and_nothing_else_changes() -> None:
    messages = (USER, *ROUND, USER, *ROUND)

    shorter, cuts = shrink(messages, 0, 6)

    assert cuts == [(1, 1)]
    assert shorter[1].calls[0] == SHORT
    assert shorter[1].calls[2] == PLAIN
    assert len(json.loads(shorter[1].calls[1].arguments)["content"]) == 400
    assert (shorter[0], *shorter[2:]) == (messages[0], *messages[2:])


def test_the_head_and_the_tail_stay() -> None:
    messages = (*ROUND, *ROUND, *ROUND)

    _, cuts = shrink(messages, 4, 8)

    assert cuts == [(4, 1)]
    assert shrink(messages, 4, 4)[0] is messages
    assert shrink(messages, -3, 99)[1] == [(0, 1), (4, 1), (8, 1)]


def test_calls_that_still_run_and_messages_to_be_kept_verbatim_stay() -> None:
    pending = (USER, replace(ROUND[0], meta=Meta(pending=True)))
    verbatim = (replace(ROUND[0], meta=Meta(verbatim=True)), *ROUND[1:])

    assert shrink(pending, 0, 2)[0] is pending
    assert shrink(verbatim, 0, 4)[0] is verbatim

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

import transcripts
from jp.context.sanitize import is_well_paired, is_worth_it
from jp.context.types import Call, Message, Meta, Transcript
from summaries import ran, user
from transcript_validator import complaints


def test_four_fifths_are_worth_it_and_more_is_not() -> None:
    assert is_worth_it(1_000, 800)
    assert not is_worth_it(1_000, 801)
    assert is_worth_it(0, 0)


@given(transcripts.any_transcripts())
def test_what_providers_take_is_well_paired_and_what_is_not_they_do_not_take(messages: Transcript) -> None:
    assert is_well_paired(messages) == (complaints(messages) == [])


def test_each_kind_of_disorder_is_found() -> None:
    call, result = ran("make", "ok")
    twice = replace(call, calls=call.calls * 2)
    foreign = Message(role="user", calls=(Call(id="c", name="run", arguments="{}"),))

    assert is_well_paired((call, result))
    assert is_well_paired((replace(call, meta=Meta(pending=True)),))
    assert not is_well_paired((call,))
    assert not is_well_paired((result,))
    assert not is_well_paired((call, result, result))
    assert not is_well_paired((call, user("?"), result))
    assert not is_well_paired((twice, result, result))
    assert not is_well_paired((foreign,))

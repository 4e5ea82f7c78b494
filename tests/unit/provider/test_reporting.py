from __future__ import annotations

from jp.provider.parameters import stream_error


def test_an_error_in_a_stream_is_told_apart_and_takes_a_while_to_pass() -> None:
    error = stream_error(b'{"error":{"type":"overloaded_error","message":"busy"}}', "mine", "m")

    assert (error.kind, error.message, error.least_wait) == ("transient", "mine reported an error: busy", 3.0)

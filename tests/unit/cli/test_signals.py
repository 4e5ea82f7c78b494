from __future__ import annotations

import signal

import anyio
import pytest

from jp.cli.signals import SAME_PRESS_SECS, SIGNALS, Interruption, heed_interruptions, interruptions
from jp.errors import ExitCode, JpError


class Effects:
    """What an interruption does to the process."""

    def __init__(self) -> None:
        self.stops = 0
        self.exits: list[int] = []
        self.interruption = Interruption(anyio.CancelScope(), self._stop, self.exits.append)

    def _stop(self, _number: int) -> None:
        self.stops += 1


@pytest.mark.parametrize(
    ("received", "exits"),
    [
        ([(signal.SIGINT, 0.0)], []),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, SAME_PRESS_SECS)], []),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, SAME_PRESS_SECS * 2)], [130]),
        ([(signal.SIGTERM, 0.0), (signal.SIGINT, 1.0)], [130]),
        ([(signal.SIGINT, 0.0), (signal.SIGTERM, 1.0), (signal.SIGHUP, 2.0)], []),
    ],
)
def test_the_first_signal_stops_and_a_later_ctrl_c_leaves_at_once(
    received: list[tuple[int, float]], exits: list[int]
) -> None:
    async def receive_all() -> Effects:
        effects = Effects()
        for number, now in received:
            effects.interruption.receive(number, now=now)
        return effects

    effects = anyio.run(receive_all)

    assert (effects.stops, effects.exits) == (1, exits)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, ExitCode.TERMINATED),
        (signal.SIGHUP, ExitCode.TERMINATED),
    ],
)
def test_a_signal_cancels_the_block_which_may_then_tear_down(number: int, code: ExitCode) -> None:
    torn_down: list[bool] = []

    async def work() -> ExitCode | None:
        with interruptions() as interruption:
            try:
                signal.raise_signal(number)
                await anyio.sleep_forever()
            finally:
                torn_down.append(True)
        return interruption.exit_code

    assert anyio.run(work) is code
    assert torn_down == [True]


def test_a_block_that_ends_before_the_cancellation_arrives_was_not_stopped() -> None:
    async def work() -> ExitCode | None:
        with interruptions() as interruption:
            signal.raise_signal(signal.SIGINT)
        await anyio.lowlevel.checkpoint()
        return interruption.exit_code

    assert anyio.run(work) is None


def test_a_block_ends_at_its_deadline() -> None:
    async def work() -> ExitCode | None:
        with interruptions(timeout_secs=0) as interruption:
            await anyio.sleep_forever()
        return interruption.exit_code

    assert anyio.run(work) is ExitCode.DEADLINE


def test_errors_of_the_block_pass_and_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    async def work() -> None:
        with interruptions():
            raise JpError("of the block")

    with pytest.raises(JpError, match="of the block"):
        anyio.run(work)

    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_the_caller_has_us_ignore_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work() -> ExitCode | None:
        with interruptions() as interruption:
            signal.raise_signal(signal.SIGHUP)
            await anyio.lowlevel.checkpoint()
        return interruption.exit_code

    try:
        assert anyio.run(work) is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_work_that_does_not_wait_heeds_a_deadline_and_a_signal_where_it_is_told_to() -> None:
    async def work(*, late: bool) -> ExitCode | None:
        with interruptions(timeout_secs=0 if late else None) as interruption:
            if not late:
                signal.raise_signal(signal.SIGTERM)
            await heed_interruptions()
            raise AssertionError
        return interruption.exit_code

    async def go_on() -> ExitCode | None:
        with interruptions(timeout_secs=60) as interruption:
            await heed_interruptions()
        return interruption.exit_code

    assert anyio.run(lambda: work(late=True)) == ExitCode.DEADLINE
    assert anyio.run(lambda: work(late=False)) == ExitCode.TERMINATED
    assert anyio.run(go_on) is None

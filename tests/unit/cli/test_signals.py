from __future__ import annotations

import os
import signal
import threading

import anyio
import pytest

from jp.cli.terminal.signals import SAME_PRESS_SECS, SIGNALS, Interruption, handle_interruptions, interruptions
from jp.errors import ExitCode, JpError


class Effects:
    """What an interruption does to the process."""

    def __init__(self) -> None:
        self.stops = 0
        self.exits: list[int] = []
        self.interruption = Interruption(anyio.CancelScope(), self._stop, self.exits.append, lambda respond: respond())

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


def test_what_is_offered_is_done_at_the_first_ctrl_c_and_the_next_one_stops() -> None:
    async def receive_all() -> tuple[Effects, list[int]]:
        effects = Effects()
        stops_at_response: list[int] = []
        effects.interruption.offer(lambda: stops_at_response.append(effects.stops))
        for now in (0.0, SAME_PRESS_SECS, SAME_PRESS_SECS * 2, SAME_PRESS_SECS * 4):
            effects.interruption.receive(signal.SIGINT, now=now)
        return effects, stops_at_response

    effects, stops_at_response = anyio.run(receive_all)

    assert stops_at_response == [0]
    assert (effects.stops, effects.exits) == (1, [130])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_offered_is_for_ctrl_c_alone_and_for_as_long_as_it_is_offered(number: int) -> None:
    async def receive_all() -> tuple[int, int]:
        terminated, withdrawn = Effects(), Effects()
        for effects in (terminated, withdrawn):
            effects.interruption.offer(pytest.fail)
        terminated.interruption.receive(number, now=0.0)
        withdrawn.interruption.withdraw()
        withdrawn.interruption.receive(signal.SIGINT, now=0.0)
        return terminated.stops, withdrawn.stops

    assert anyio.run(receive_all) == (1, 1)


def test_work_can_be_stopped_without_a_signal() -> None:
    async def work() -> ExitCode | None:
        with interruptions() as interruption:
            interruption.stop()
            await anyio.sleep_forever()
        return interruption.exit_code

    assert anyio.run(work) == ExitCode.INTERRUPTED


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
            await handle_interruptions()
            raise AssertionError
        return interruption.exit_code

    async def go_on() -> ExitCode | None:
        with interruptions(timeout_secs=60) as interruption:
            await handle_interruptions()
        return interruption.exit_code

    assert anyio.run(lambda: work(late=True)) == ExitCode.DEADLINE
    assert anyio.run(lambda: work(late=False)) == ExitCode.TERMINATED
    assert anyio.run(go_on) is None


def test_a_signal_that_another_thread_gets_stops_the_work_all_the_same() -> None:
    """As one that comes just before the loop begins to wait: nothing wakes it but the descriptor."""
    ready = threading.Event()

    def send() -> None:
        ready.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    async def work() -> ExitCode | None:
        sender = threading.Thread(target=send)
        sender.start()  # it takes the signals that the main thread does not
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            with anyio.fail_after(10), interruptions() as interruption:
                ready.set()
                await anyio.sleep_forever()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            sender.join()
        return interruption.exit_code

    assert anyio.run(work) is ExitCode.TERMINATED

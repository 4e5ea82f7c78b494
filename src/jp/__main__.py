"""The entry point: `jp`, and `python -m jp`."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from sys import UnraisableHookArgs
    from types import TracebackType
else:
    import _signal  # is there already, while `signal` itself would import `enum` first

INTERRUPTED = 130
TERMINATED = 143


def _leave(number: int, frame: object) -> None:
    """End at once on a signal, as long as nothing is open: an exception would be reported by whatever imports this."""
    os._exit(INTERRUPTED if number == _signal.SIGINT else TERMINATED)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _leave)


def main() -> None:
    """Run the command line and leave with its exit code.

    The process ends at once: everything is closed and flushed by then, and Python's own way out takes longer than
    many a run of jp.
    """
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        if _signal.getsignal(number) not in {_signal.SIG_IGN, None}:
            _signal.signal(number, _leave)
    sys.excepthook, sys.unraisablehook = _end_by, _end_by_unraisable
    # Imports make many objects and no garbage: until a request is on its way there are 70,000, and to look through them
    # takes as long as importing fifty modules.
    gc.set_threshold(200_000)
    code = TERMINATED
    try:
        code = _answer(sys.argv[1:])
    except KeyboardInterrupt:  # after the command has ended
        code = INTERRUPTED
    except SystemExit:  # SIGTERM, after the command has ended
        code = TERMINATED
    except BaseException as error:  # noqa: BLE001 - a broken installation: the process ends below without a word of it
        sys.__excepthook__(type(error), error, error.__traceback__)
        code = 1
    finally:
        os._exit(code)


def _end_by(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End on a signal that came between two statements of the way out, without a word."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _end_by_unraisable(raised: UnraisableHookArgs) -> None:
    """End on a signal that came where an exception is lost, as in a destructor."""
    if issubclass(raised.exc_type, (KeyboardInterrupt, SystemExit)):
        os._exit(INTERRUPTED if issubclass(raised.exc_type, KeyboardInterrupt) else TERMINATED)
    sys.__unraisablehook__(raised)


def _answer(words: list[str]) -> int:
    if words in (["--version"], ["-V"]) and _print_version():
        return 0
    if sys.getfilesystemencoding() != "utf-8":
        _become_utf_8()
    if (shell := os.environ.get("_JP_COMPLETE")) is not None:
        from jp.cli.completion.candidates import answer

        answer(shell, words)
        return 0
    from jp.cli.app import run
    from jp.cli.terminal.exit import end_on_signals

    end_on_signals()
    return run(words)


def _become_utf_8() -> None:
    """Restart with UTF-8 for the names of files if the locale has another encoding: jp stores names as UTF-8.

    It does nothing if that is not possible.
    """
    if sys.flags.utf8_mode or not sys.executable:
        return
    try:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - it is this program
    except OSError:
        return


def _print_version() -> bool:
    """Answer the commonest question before anything is imported; False where stdout does not take it."""
    from jp import __version__

    try:
        sys.stdout.write(f"jp {__version__}\n")
        sys.stdout.flush()
    except (OSError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main()

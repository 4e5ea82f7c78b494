"""Run a command of jp in this process and count what it does: `python probe.py FILE UNTIL SCRIPT WORD…`.

The counts are written to `FILE` as lines of a name, a tab and a number: where `UNTIL` is `request`, when the first byte
of a request is sent, which ends the process, and otherwise when the process ends. A step is a call of a function, or a
line of jp's own code: a loop without a call in it costs lines. Steps are counted by function; one of C counts for the
function that calls it. Nothing is imported here that Python has not imported by itself.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from _typeshed import TraceFunction

SENDING = frozenset({"send", "sendmsg", "sendto"})
INTERNET = frozenset({2, 10, 30})
"""Families of addresses: IPv4, and IPv6 of Linux and of macOS."""

OWN = frozenset({"jp", "jp_entry"})
STEPS = "steps in "


class Probe:
    """Counts of one run; each number is drawn from an iterator, which threads share without a lock."""

    def __init__(self, file: str, *, until_request: bool) -> None:
        self._file = file
        self._until_request = until_request
        self._steps: dict[int, tuple[count[int], CodeType, str]] = {}
        self._stats, self._patterns, self._annotations = count(), count(), count()
        self._counted = {
            id(os.stat): self._stats,
            id(os.lstat): self._stats,
            id(builtins.eval): self._annotations,  # noqa: S307 - it is compared, not called
        }

    def profile(self, frame: FrameType, event: str, called: object) -> None:
        """Count a call of a function, as `sys.setprofile` reports it; those of C too."""
        if event == "call":
            self._step(frame)
            code = frame.f_code
            if code.co_name == "compile" and code.co_filename.endswith("re/_compiler.py"):
                next(self._patterns)
        elif event == "c_call":
            self._step(frame)
            if (counter := self._counted.get(id(called))) is not None:
                next(counter)
            elif called is os._exit or (self._until_request and is_sending(called)):
                self._end(frame)

    def trace(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        """Have the lines of jp's functions counted, as `sys.settrace` asks for each call."""
        return self._line if frame.f_globals.get("__name__", "").partition(".")[0] in OWN else None

    def _line(self, frame: FrameType, event: str, argument: object) -> TraceFunction:
        if event == "line":
            self._step(frame)
        return self._line

    def _step(self, frame: FrameType) -> None:
        code = frame.f_code
        found = self._steps.get(id(code))  # the hash of the code itself would be made of all that is in it
        if found is None:
            name = f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}"
            found = self._steps.setdefault(id(code), (count(), code, name))
        next(found[0])

    def _end(self, frame: FrameType) -> None:
        sys.setprofile(None)
        sys.settrace(None)
        counts = {
            "modules": len(sys.modules),
            "modules of jp": sum(name.partition(".")[0] == "jp" for name in list(sys.modules)),
            "frames of jp": frames_of_jp(frame),
            "stats": next(self._stats),
            "patterns": next(self._patterns),
            "annotations": next(self._annotations),
        }
        lines = [f"{name}\t{number}\n" for name, number in counts.items()]
        lines += [f"{STEPS}{name}\t{next(counter)}\n" for counter, _, name in list(self._steps.values())]
        with io.FileIO(self._file, "w") as file:
            file.write("".join(lines).encode())
        if self._until_request:
            os._exit(0)


def frames_of_jp(frame: FrameType | None) -> int:
    """Return how many functions of jp are on the stack."""
    found = 0
    while frame is not None:
        found += frame.f_globals.get("__name__", "").partition(".")[0] in OWN
        frame = frame.f_back
    return found


def is_sending(called: object) -> bool:
    """Tell whether it is a method that sends on a connection; an event loop also wakes itself through a socket."""
    if getattr(called, "__name__", "") not in SENDING:
        return False
    return getattr(getattr(called, "__self__", None), "family", None) in INTERNET


def main() -> None:
    """Run the script with its words, as Python itself would."""
    file, until, script, *words = sys.argv[1:]
    probe = Probe(file, until_request=until == "request")
    with io.open_code(script) as opened:
        code = compile(opened.read(), script, "exec")
    sys.argv[:] = [script, *words]
    sys.path[0] = script.rpartition("/")[0]
    import threading  # every query needs it

    threading.setprofile(probe.profile)
    if until != "request":
        threading.settrace(probe.trace)
        sys.settrace(probe.trace)
    sys.setprofile(probe.profile)
    exec(code, {"__name__": "__main__", "__file__": script})  # noqa: S102 - it is the command under test


if __name__ == "__main__":
    main()

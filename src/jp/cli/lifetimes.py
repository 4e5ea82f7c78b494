"""For how long conversations are kept, as the command line says it."""

from __future__ import annotations

from jp.cli.duration import parse_duration
from jp.errors import UsageError

DEFAULT_LIFETIME = "1d"
"""What `--tmp` means without a duration: enough to change one's mind on the next morning."""

_LONGEST_SECONDS = 100 * 365 * 86_400


def end_of_life(duration: str, *, option: str) -> str:
    """The moment that lies `duration` from now, as metadata have it.

    Raises:
        UsageError: it is no duration, or longer than a hundred years; it names `option`.
    """
    from jp.workspace.stamp import SYSTEM, timestamp

    seconds = parse_duration(duration, option=option)
    if seconds > _LONGEST_SECONDS:
        raise UsageError(f"{option} {duration} is longer than a hundred years", hint="such a conversation needs no end")
    return timestamp(SYSTEM.now() + int(seconds * 1000))

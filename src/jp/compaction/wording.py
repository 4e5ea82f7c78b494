"""What jp says to a model in a view, where it leaves something out or asks for more."""

from __future__ import annotations

HANDLE_DIGITS = 12
"""How many digits of a checksum name content: enough to tell apart whatever one conversation holds."""

CONTINUE = (
    "Your message above was cut off. Continue it exactly where it stops, without any preamble. "
    "Begin by repeating its last 10 to 100 characters word for word, so that the two pieces can be joined."
)


INSIST = (
    "You answered without calling a tool, but a call of a tool is required here. Make the call now.",
    "There is still no call of a tool. Whatever else you have to say can follow its result: respond with the call.",
    "This is the last time that you are asked: respond with a call of a tool and with nothing else.",
)
"""What follows an answer that lacks a call that was demanded, the first, the second and the third time."""


def summary_heading(from_turn: int, to_turn: int) -> str:
    """What stands before a summary in place of the user's requests."""
    turns = f"turn {from_turn}" if from_turn == to_turn else f"turns {from_turn} to {to_turn}"
    return f"[summary of {turns} of this conversation; a record, not a request]"


def work_heading() -> str:
    """Return the line before a summary of what was done in the turn that runs."""
    return "[summary of the work on this request so far; a record, not a request. Go on from here.]"


def attachment_place(turn: int) -> str:
    """Where a snapshot that the user attached stands."""
    return f"the attachment at turn {turn}"


def result_place(turn: int, call_id: str) -> str:
    """Where a snapshot that a tool delivered stands."""
    return f"the result of tool call `{call_id}` in turn {turn}"


def reference(uri: str, sha256: str, place: str, *, handle: str | None = None, has_changed: bool = False) -> str:
    """What stands for a snapshot that was delivered before, unchanged (RFD 067).

    `handle` recalls the whole of a copy that was cut. `has_changed`: it was something else in between.
    """
    since = "It was something else in between." if has_changed else "It has not changed."
    full = "the full content" if handle is None else f"what is shown of it; recall {handle} for the rest"
    return (
        f"The content of {uri} is identical to {place} (checksum: sha256:{sha256[:HANDLE_DIGITS]}). "
        f"{since} Refer to that copy for {full}."
    )


def superseded(uri: str, sha256: str, place: str) -> str:
    """What stands for a snapshot of which a newer one was delivered."""
    return f"[superseded] {uri} (checksum: sha256:{sha256[:HANDLE_DIGITS]}): the newer copy is {place}."

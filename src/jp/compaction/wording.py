"""What jp says to a model in a view, where it leaves something out or asks for more."""

from __future__ import annotations

HANDLE_DIGITS = 12
"""How many digits of a checksum name content: enough to tell apart whatever one conversation holds."""

SHORTEST_ANCHOR = 40
"""How many characters a model repeats, at least, before it goes on with a message that has as many."""

_LONGEST_ANCHOR = 120

AFTER_MESSAGE_END = "END"
"""What a model replies where nothing was to follow its message."""

AFTER_MESSAGE = (
    "Your message above arrived complete, but the connection broke before what follows it. "
    "Do not repeat the message. If a tool call was to follow, make it now. "
    f"If nothing was to follow, reply with the single word {AFTER_MESSAGE_END}."
)
"""What follows a message that came to its end in an attempt that failed after it."""


def anchor_of(text: str) -> str:
    """Return the end of `text` with which a continuation of it has to begin, or all of `text` where that is short.

    It begins with no white space, which models leave out, at a word where there is one, and not as `text` itself
    begins: so a model that repeats the anchor is told apart from one that starts over.
    """
    whole = text.lstrip()
    fallback, bordered = "", 0
    for size in range(SHORTEST_ANCHOR, len(whole)):
        start = len(whole) - size
        if whole[start].isspace():
            continue
        if whole.startswith(whole[start:]):
            bordered += 1
            if bordered > _LONGEST_ANCHOR:
                break  # one character over and over: every end of it is its beginning, too
            continue
        if whole[start - 1].isspace():
            return whole[start:]
        fallback = fallback or whole[start:]
        if size >= _LONGEST_ANCHOR:
            return fallback
    return fallback or whole


def continue_request(text: str) -> str:
    """Return what asks a model to go on with its message, of which `text` has come."""
    return (
        "Your message above was cut off. Continue it exactly where it stops, without any preamble. So that the two "
        "pieces can be joined, begin your reply with the text between <anchor> and </anchor>, which is how your "
        "message ends so far, character for character and without these tags, and go on from its last character.\n"
        f"<anchor>{anchor_of(text)}</anchor>"
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
